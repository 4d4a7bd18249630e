from __future__ import annotations

import sys

import pytest

from unskew.cli import main


@pytest.fixture
def offered(monkeypatch, capsys):
    """A function that returns what the shell offers after some words."""

    def complete(*words: str) -> list[str]:
        monkeypatch.setenv("_UNSKEW_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", "\n".join(["unskew", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        monkeypatch.setattr(sys, "argv", ["unskew"])
        with pytest.raises(SystemExit) as stopped:
            main()
        assert not stopped.value.code
        return capsys.readouterr().out.split()

    return complete


def test_commands_options_and_methods(offered):
    assert offered("we") == ["weigh"]
    assert {"weigh", "apply", "demo", "reproduce"} <= set(offered(""))
    assert set(offered("weigh", "--sa")) == {"--sample-weight", "--save"}
    assert offered("weigh", "a.csv", "b.csv", "--method", "") == [
        "auto", "classifier", "logistic", "tree", "kmm", "ratio", "kliep", "cluster", "histogram",
        "frequency", "rake", "propensity", "linear", "logit", "label-shift",
    ]  # fmt: skip
    assert offered("weigh", "--method", "hi") == ["histogram"]
    assert offered("weigh", "--total", "p") == ["population"]


def test_columns_of_the_files_named_before(offered, survey):
    files = ("weigh", "answers.csv", "people.parquet")
    assert offered(*files, "--target", "s") == ["spend"]
    assert offered(*files, "--id", "") == ["customer", "age", "income", "town", "spend"]
    assert offered(*files, "--columns", "age,to") == ["age,town"]
    assert offered(*files, "--population-weight", "") == ["age", "income", "town"]
    assert offered("apply", "weighter.skops", "people.parquet", "--id", "i") == ["income"]
    assert offered("weigh", "nowhere.csv", "people.parquet", "--target", "") == []
    assert offered("weigh", "-", "people.parquet", "--target", "") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell(monkeypatch, capsys, shell):
    # The shell is the one named, not the one that runs the tests: there may be none.
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    monkeypatch.setattr(sys, "argv", ["unskew", "--show-completion", shell])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert not stopped.value.code
    assert "_UNSKEW_COMPLETE" in capsys.readouterr().out

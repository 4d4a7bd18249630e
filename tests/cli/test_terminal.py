"""Names and values that a terminal would obey are shown, and obeyed by none."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

CLIPBOARD = "\x1b]52;c;ZXZpbA==\x07"
ERASE = "\x1b[2K\x1b[1A"
BACKWARDS = "\u202e"
EVIL = f"a{CLIPBOARD}{ERASE}{BACKWARDS}\x9b1m"


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    people = pd.DataFrame({EVIL: random.normal(size=400), "g": random.choice(["m", EVIL], 400)})
    people["t"] = random.choice(["n", EVIL], 400)
    people.to_csv("people.csv", index=False)
    people[people[EVIL] > -0.5].assign(y=1.0, id=np.arange((people[EVIL] > -0.5).sum())).to_csv(
        "answers.csv", index=False
    )
    pd.DataFrame({"variable": "g", "category": ["m", EVIL], "count": [250, 250]}).to_csv(
        "margins.csv", index=False
    )
    pd.DataFrame({"variable": "g", "category": ["m", EVIL + "b"], "count": [2, 1]}).to_csv(
        "wrong.csv", index=False
    )
    return tmp_path


COMMANDS = {
    "messages": ("weigh", "answers.csv", "people.csv", "--columns", "gg", "-o", "w.csv"),
    "results": ("estimate", "answers.csv", "people.csv", "--target", "y", "--id", "id", "--by", "t",
                "--allow-uncovered", "1"),
    "tables": ("diagnose", "answers.csv", "people.csv", "--target", "y", "--id", "id"),
    "json": ("diagnose", "answers.csv", "people.csv", "--target", "y", "--id", "id", "--json"),
    "refusals": ("weigh", "answers.csv", "people.csv", "--target", "y", "--id", "id",
                 "--allow-uncovered", "0", "-o", "w.csv"),
    "margins": ("estimate", "answers.csv", "--margins", "wrong.csv", "--target", "y"),
    "notes": ("weigh", "answers.csv", "--margins", "margins.csv", "-o", "w.csv"),
    "arguments": ("weigh", "answers.csv", "people.csv", EVIL, "-o", "w.csv"),
    "paths": ("weigh", EVIL, "people.csv", "-o", "w.csv"),
}  # fmt: skip


@pytest.mark.parametrize("kind", COMMANDS)
def test_no_name_reaches_the_terminal_raw(unskew, files, kind):
    result = unskew(*COMMANDS[kind])
    shown = result.out + result.err
    assert len(shown) > 20
    for raw in ("\x1b", "\x07", "\x9b", BACKWARDS):
        assert raw not in shown, shown
    assert kind == "notes" or "\\u001b" in shown or "\\x1b" in shown, shown


@pytest.mark.parametrize("kind", ["messages", "results", "arguments"])
def test_nor_on_a_real_terminal(files, kind):
    ours, theirs = pty.openpty()
    run = subprocess.Popen(
        [sys.executable, "-m", "unskew.cli", *COMMANDS[kind]], stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 4096)
        except OSError:
            break
    run.wait()
    os.close(ours)
    assert b"\x1b]" not in shown
    assert b"\x07" not in shown
    assert b"52;c;" in shown


def test_a_newline_in_a_name_makes_no_second_line(unskew, survey, answers):
    answers.rename(columns={"age": "age\nunskew: all is well"}).to_csv("odd.csv", index=False)
    result = unskew("weigh", "odd.csv", "people.parquet", "--target", "spend", "--id", "customer",
                    "-o", "w.csv")  # fmt: skip
    assert result.code == 2
    assert len(result.err.strip().splitlines()) == 1

"""Whatever is wrong: one clear message, the right exit code, no traceback, no file left."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

BAD_INPUT, REFUSED = 2, 3

WEIGH = ("weigh", "answers.csv", "people.parquet", "--target", "spend", "--id", "customer")


class Case(NamedTuple):
    """An invocation, what the message must say, and what is done to the files before."""

    name: str
    arguments: tuple[Any, ...]
    words: tuple[str, ...]
    prepare: Callable[[], Any] = lambda: None
    code: int = BAD_INPUT


def weigh(*more: Any, sample: str = "answers.csv", population: str = "people.parquet") -> tuple:
    return ("weigh", sample, population, *WEIGH[3:], *more, "-o", "w.csv")


def edit_sample(**columns: Any) -> Callable[[], None]:
    return lambda: (
        pd.read_csv("answers.csv", dtype={"customer": str})
        .assign(**columns)
        .to_csv("answers.csv", index=False)
    )


def edit_people(**columns: Any) -> Callable[[], None]:
    return lambda: pd.read_parquet("people.parquet").assign(**columns).to_parquet("people.parquet")


def drop_from_people(*names: str) -> Callable[[], None]:
    return lambda: (
        pd.read_parquet("people.parquet").drop(columns=list(names)).to_parquet("people.parquet")
    )


def write(name: str, content: bytes) -> Callable[[], int]:
    return lambda: Path(name).write_bytes(content)


def truncate(name: str) -> None:
    content = Path(name).read_bytes()
    Path(name).write_bytes(content[: len(content) // 2])


def corrupt(name: str) -> None:
    content = bytearray(Path(name).read_bytes())
    middle = len(content) // 3
    content[middle : middle + 64] = (byte ^ 0x5A for byte in content[middle : middle + 64])
    Path(name).write_bytes(bytes(content))


def keep_weighter() -> None:
    from unskew import TreeWeights, save_weighter

    rows = pd.read_csv("answers.csv")
    people = pd.read_parquet("people.parquet")
    weighter = TreeWeights().fit(rows[list(people)], rows["spend"], population=people)
    save_weighter(weighter, "weighter.skops")


def tamper() -> None:
    keep_weighter()
    corrupt("weighter.skops")


def pickled() -> None:
    Path("weighter.skops").write_bytes(pickle.dumps({"weights": [1.0]}))


class _Trap:
    def __reduce__(self) -> Any:
        return os.mkdir, ("sprung",)


CASES = [
    Case("sample missing", weigh(sample="no.csv"), ("sample file 'no.csv' does not exist",)),
    Case("population missing", weigh(population="no.csv"), ("population file 'no.csv'",)),
    Case("glob without match", weigh(population="no-*.parquet"), ("No file matches", "no-*")),
    Case("sample glob without match", weigh(sample="no-*.csv"), ("No file matches", "no-*")),
    Case("population folder empty", weigh(population="empty"), ("'empty' contains no Parquet",),
         lambda: os.mkdir("empty")),
    Case("sample a folder", weigh(sample="folder"), ("folder", "list its files"),
         lambda: os.mkdir("folder")),
    Case("sample of no known kind", weigh(sample="a.xlsx"), ("a.xlsx", "neither Parquet"),
         write("a.xlsx", b"PK\x03\x04")),
    Case("sample empty", weigh(sample="a.csv"), ("'a.csv' could not be read", "Empty CSV"),
         write("a.csv", b"")),
    Case("sample header only", weigh(sample="a.csv"), ("'a.csv' has no rows",),
         write("a.csv", b"customer,age,income,town,spend\n")),
    Case("sample without header", weigh(sample="a.csv"), ("no header line",),
         write("a.csv", b"1,2,3\n4,5,6\n")),
    Case("sample with semicolons", weigh(sample="a.csv"), ("by semicolons, pass", "--delimiter"),
         write("a.csv", b"customer;age;income;town;spend\n1;2;3;Ulm;4\n")),
    Case("sample not UTF-8", weigh(sample="a.csv"), ("'town'", "UTF-8"),
         write("a.csv", "customer,age,income,town,spend\n1,2,3,Köln,4\n".encode("latin-1"))),
    Case("sample lines of several lengths", weigh(sample="a.csv"), ("Expected 5 columns, got 2",),
         write("a.csv", b"customer,age,income,town,spend\n1,2\n")),
    Case("a column twice", weigh(sample="a.csv"), ("more than one column called 'age'",),
         write("a.csv", b"customer,age,age,income,town,spend\n1,2,2,3,Ulm,4\n")),
    Case("broken gzip", weigh(sample="a.csv.gz"), ("'a.csv.gz' could not be read",),
         write("a.csv.gz", b"\x1f\x8b\x08nothing")),
    Case("population header only", weigh(population="p.csv"), ("population has no rows",),
         write("p.csv", b"age,income,town\n")),
    Case("population empty", weigh(population="p.csv"), ("'p.csv' could not be read",),
         write("p.csv", b"")),
    Case("text where numbers belong", weigh(population="p.csv"), ("column 'income'", "lots"),
         write("p.csv", b"age,income,town\n30,10.5,Ulm\n31,lots,Ulm\n")),
    Case("text in the sample's numbers", weigh(), ("'income'", "text", "numbers"),
         edit_sample(income="lots")),
    Case("incompatible types", weigh(), ("'age'", "Convert one of them"), edit_people(age="old")),
    Case("truncated Parquet", weigh(), ("'people.parquet' could not be read as Parquet",),
         lambda: truncate("people.parquet")),
    Case("corrupted Parquet", weigh(), ("'people.parquet' could not be read as Parquet",),
         lambda: corrupt("people.parquet")),
    Case("CSV called Parquet", weigh(), ("'people.parquet' could not be read as Parquet",),
         write("people.parquet", b"age,income,town\n1,2,Ulm\n")),
    Case("truncated sample", weigh(sample="a.parquet"), ("'a.parquet' could not be read",),
         lambda: (pd.read_csv("answers.csv").to_parquet("a.parquet"), truncate("a.parquet"))),
    Case("target not in the sample", weigh("--target", "spent"),
         ("--target names 'spent'", "'town'")),
    Case("target missing in places", weigh(), ("'spend' is missing in 1 of", "--unlabelled drop"),
         edit_sample(spend=lambda rows: rows["spend"].where(rows.index > 0))),
    Case("target missing throughout", weigh(), ("'spend' is missing in",), edit_sample(spend=None)),
    Case("target infinite", weigh("--method", "tree"), ("infinity",), edit_sample(spend=np.inf)),
    Case("no target for a tree",
         ("weigh", "answers.csv", "people.parquet", "-o", "w.csv", "--method", "tree"),
         ("--target",)),
    Case("target among the features", weigh("--columns", "age,spend"),
         ("--columns and --target both name 'spend'",)),
    Case("id not in the sample", weigh("--id", "name"), ("--id names 'name'",)),
    Case("id not unique", weigh("--id", "town"), ("'town' (--id) does not identify rows", "times")),
    Case("id missing in places", weigh(), ("'customer' (--id) is missing in 1 rows",),
         edit_sample(customer=lambda rows: rows["customer"].where(rows.index > 0))),
    Case("id called weight", weigh("--id", "weight"), ("Rename the column",),
         lambda: pd.read_csv("answers.csv").rename(columns={"customer": "weight"}).to_csv(
             "answers.csv", index=False)),
    Case("no such column", weigh("--columns", "age,size"), ("--columns names 'size'",)),
    Case("no such column to leave out", weigh("--exclude", "size"), ("--exclude names 'size'",)),
    Case("no feature left", weigh("--exclude", "age,income,town"), ("No feature is left",)),
    Case("population lacks a column", weigh(), ("population lacks column 'town'", "--exclude"),
         drop_from_people("town")),
    Case("disjoint columns", weigh(population="p.csv"), ("lacks columns 'age', 'income', 'town'",),
         write("p.csv", b"height,size\n1,2\n")),
    Case("a label that is no target", ("weigh", "answers.csv", "people.parquet", "--method", "kmm",
                                       "--id", "customer", "-o", "w.csv"),
         ("population lacks column 'spend'", "--target")),
    Case("negative design weights", weigh("--sample-weight", "d"), ("not be negative", "-1.0"),
         edit_sample(d=-1.0)),
    Case("missing design weights", weigh("--sample-weight", "d"), ("be finite",),
         edit_sample(d=lambda rows: np.where(rows.index > 0, 1.0, np.nan))),
    Case("design weights that are text", weigh("--sample-weight", "town"),
         ("'town' (--sample-weight) must hold numbers",)),
    Case("no such design weight", weigh("--sample-weight", "d"), ("--sample-weight names 'd'",)),
    Case("negative weights of the population", weigh("--population-weight", "n"),
         ("weight column 'n'", "not be negative"), edit_people(n=-2.0)),
    Case("no such weight in the population", weigh("--population-weight", "n"),
         ("'n' is not a column of the population",)),
    Case("unknown method", weigh("--method", "magic"), ("magic", "tree")),
    Case("unknown parameter", weigh("--set", "weight=3"), ("--set weight", "max_weight")),
    Case("parameter without value", weigh("--set", "max_weight"), ("name=value", "'max_weight'")),
    Case("parameter out of its domain", weigh("--set", "max_weight=0"),
         ("max_weight", "[1.0, inf)")),
    Case("parameter of a wrong type", weigh("--set", "max_weight=many"),
         ("max_weight", "many")),
    Case("a parameter with an option of its own", weigh("--set", "total=population"), ("--total",)),
    Case("more leaves than rows", weigh("--method", "tree", "--set", "min_samples_leaf=100000"),
         ("min_samples_leaf",)),
    Case("a share beyond one", weigh("--allow-uncovered", "1.5"),
         ("--allow-uncovered",)),
    Case("output of no known kind", (*WEIGH, "-o", "w.xlsx"), ("'w.xlsx'", ".parquet")),
    Case("no output", WEIGH, ("--output",)),
    Case("output is the sample", (*WEIGH, "-o", "answers.csv"),
         ("part of the input 'answers.csv'",)),
    Case("output is the population", (*WEIGH, "-o", "./people.parquet"),
         ("part of the input 'people.parquet'",)),
    Case("output in the population's folder", weigh(population="."), ("part of the input '.'",)),
    Case("output that the sample's glob matches", weigh(sample="*.csv"),
         ("part of the input '*.csv'",)),
    Case("two outputs of one name", (*WEIGH, "-o", "w.csv", "--save", "w.csv"), ("same name",)),
    Case("output in a missing folder", (*WEIGH, "-o", "no/w.csv"),
         ("'no/w.csv' cannot be written: No such file",)),
    Case("output below a file", (*WEIGH, "-o", "answers.csv/w.csv"), ("Not a directory",)),
    Case("output a folder", (*WEIGH, "-o", "folder.csv"), ("it is a folder",),
         lambda: os.mkdir("folder.csv")),
    Case("output a device", (*WEIGH, "-o", "full.csv"), ("not a regular file",),
         lambda: os.symlink("/dev/full", "full.csv")),
    Case("report as PDF", (*WEIGH, "-o", "w.csv", "--report", "r.pdf"),
         ("'r.pdf'", ".html, .htm, .md, .json", "print the .html")),
    Case("report without an ending, of files that are not there",
         ("diagnose", "no.csv", "no.parquet", "--report", "report"), ("'report'", ".html")),
    Case("report of the demonstration as text", ("demo", "--report", "r.txt"), ("'r.txt'", ".md")),
    Case("report in a missing folder", (*WEIGH, "-o", "w.csv", "--report", "no/r.html"),
         ("no/r.html",)),
    Case("weighter in a missing folder", (*WEIGH, "-o", "w.csv", "--save", "no/w.skops"),
         ("no/w.skops",)),
    Case("a method that cannot be kept", weigh("--method", "kmm", "--save", "w.skops"),
         ("--method ratio",)),
    Case("population from standard input", weigh(population="-"), ("Only SAMPLE",)),
    Case("uncovered population", weigh(), ("Refused", "33", "--allow-uncovered"),
         edit_people(town=lambda rows: rows["town"].replace("Kiel", "Rome")), REFUSED),
    Case("no weighter", ("apply", "no.skops", "answers.csv", "-o", "w.csv"),
         ("'no.skops' does not exist",)),
    Case("a tampered weighter", ("apply", "weighter.skops", "answers.csv", "-o", "w.csv"),
         ("'weighter.skops' is refused",), tamper),
    Case("a pickle for a weighter", ("apply", "weighter.skops", "answers.csv", "-o", "w.csv"),
         ("'weighter.skops' is refused", "Pickles"), pickled),
    Case("a trap for a weighter", ("apply", "weighter.skops", "answers.csv", "-o", "w.csv"),
         ("'weighter.skops' is refused",),
         lambda: Path("weighter.skops").write_bytes(pickle.dumps(_Trap()))),
    Case("new rows without a column", ("apply", "weighter.skops", "n.csv", "-o", "w.csv"),
         ("lacks column 'income'",),
         lambda: (keep_weighter(), write("n.csv", b"age,town\n1,Ulm\n")())),
    Case("new rows of another type", ("apply", "weighter.skops", "n.csv", "-o", "w.csv"),
         ("'income'", "text"),
         lambda: (keep_weighter(), write("n.csv", b"age,income,town\n1,lots,Ulm\n")())),
    Case("new rows that are the output", ("apply", "weighter.skops", "answers.csv", "-o",
                                          "answers.csv"), ("part of the input",), keep_weighter),
    Case("one column in two roles", ("weigh", "answers.csv", "people.parquet", "--target", "spend",
                                     "--id", "spend", "-o", "w.csv"),
         ("--id and --target both name 'spend'",)),
    Case("an output that a pattern of folders will match",
         ("weigh", "answers.csv", "parts/**/*.parquet", *WEIGH[3:], "-o", "parts/a/b/w.parquet"),
         ("part of the input",), lambda: os.makedirs("parts/a/b")),
    Case("weights beyond all bounds", weigh("--sample-weight", "huge"), ("adds up to infinity",),
         edit_sample(huge=1e308)),
    Case("population weights beyond all bounds", weigh("--population-weight", "huge"),
         ("adds up to infinity",), edit_people(huge=1e308)),
    Case("no such command", ("wiegh",), ("wiegh",)),
    Case("no such option", (*WEIGH, "-o", "w.csv", "--outptu", "x"), ("--outptu",)),
    Case("an argument too many", (*WEIGH, "more", "-o", "w.csv"), ("more",)),
]  # fmt: skip


def tree(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")
def test_one_clear_message_and_no_file(unskew, survey, case):
    case.prepare()
    before = tree(survey)
    result = unskew(*case.arguments)
    assert result.code == case.code, result.err
    message = " ".join(result.err.replace("│", " ").split())
    for word in case.words:
        assert word in message
    assert "Traceback" not in result.err
    assert result.out == ""
    if "Usage:" not in result.err:  # what is wrong with the words themselves is Typer's to say
        assert result.err.count("unskew: ") == 1, result.err
        assert result.err.startswith("unskew: ")
        assert result.err.count("\n") == 1, result.err
    assert tree(survey) == before


def test_there_are_enough_of_them():
    assert len(CASES) >= 40
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize(
    "limited",
    [
        (*WEIGH, "-q", "-o", "w.csv"),
        (*WEIGH, "-q", "--method", "tree", "-o", "w.parquet", "--save", "w.skops"),
    ],
    ids=["weights", "weighter"],
)
def test_a_disk_that_is_full_leaves_what_was_there(survey, limited):
    """A limit on the size of files fails a write where a full disk would."""
    (survey / limited[-1]).write_text("mine")
    before = tree(survey)
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        f"sys.argv = ['unskew', *{limited!r}]\n"
        "from unskew.cli import main; main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == BAD_INPUT, result.stderr
    assert f"'{limited[-1]}' cannot be written: File too large." in result.stderr
    assert result.stderr.count("\n") == 1
    assert tree(survey) == before


@pytest.mark.parametrize("redirection", ["> /dev/full", "| true"])
def test_standard_output_that_takes_nothing(survey, redirection):
    command = " ".join([sys.executable, "-m", "unskew.cli", *WEIGH, "-o", "w.csv", redirection])
    result = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert "Traceback" not in result.stderr
    assert "Exception ignored" not in result.stderr
    assert result.stderr.count("\n") <= 1
    assert len(pd.read_csv("w.csv")) == len(pd.read_csv("answers.csv"))
    assert [name for name in os.listdir() if name.endswith(".unfinished")] == []


@pytest.mark.parametrize("command", ["weigh", "estimate", "apply", "diagnose", "demo", "reproduce"])
def test_help_fits_in_eighty_columns_with_every_name_whole(unskew, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    result = unskew(command, "--help")
    assert result.code == 0
    assert max(map(len, result.out.splitlines())) <= 80
    assert "<bool>" not in result.out
    assert "[bold]" not in result.out
    names = {
        "weigh": ["--population-weight", "--allow-uncovered", "--no-verdict", "--reconcile"],
        "estimate": ["--finite-population", "--sensitivity"],
        "diagnose": ["--weights", "--check", "--title"],
    }.get(command, ["--output"])
    for name in names:
        assert re.search(rf"^ +(-\w, )?(--verdict / )?{name}\b", result.out, re.M), name
    if command == "weigh":  # lines of a command are not wrapped
        assert "--target spend \\\n    --id customer -o weights.csv" in result.out


def test_without_arguments_there_is_help(unskew):
    result = unskew()
    assert "Usage: unskew [OPTIONS] COMMAND" in result.out + result.err
    assert "Traceback" not in result.err

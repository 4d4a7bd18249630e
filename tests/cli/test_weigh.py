from __future__ import annotations

import bz2
import gzip
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from unskew import (
    AutoWeights,
    CalibrationWeights,
    ClassifierWeights,
    ClusterWeights,
    DensityRatioWeights,
    FrequencyWeights,
    HistogramWeights,
    KernelMeanMatching,
    LabelShiftWeights,
    Population,
    TreeWeights,
    load_weighter,
)
from unskew.cli.methods import METHODS

FEATURES = ["age", "income", "town"]


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_weights_are_the_librarys_in_the_samples_order(unskew, survey, answers, people):
    result = unskew("weigh", "answers.csv", "people.parquet", "--target", "spend",
                    "--id", "customer", "-o", "weights.csv")  # fmt: skip
    assert result.code == 0, result.err
    written = pd.read_csv("weights.csv", dtype=str).astype({"weight": float})
    assert list(written) == ["customer", "weight"]
    assert list(written["customer"]) == list(answers["customer"])  # zeros in front and all
    expected = AutoWeights().fit(answers[FEATURES], population=people)
    np.testing.assert_allclose(written["weight"], expected.weights_, rtol=1e-12)
    assert f"{len(answers)} sample rows weighed against 4,000 population rows" in result.out
    assert "Effective sample size" in result.out
    assert "by auto in" in result.out
    assert "Written: weights.csv" in result.out
    assert result.err == ""
    assert names(survey) == ["answers.csv", "people.parquet", "weights.csv"]


IN_PYTHON = {
    "auto": AutoWeights(),
    "classifier": ClassifierWeights(),
    "logistic": ClassifierWeights("logistic"),
    "tree": TreeWeights(),
    "kmm": KernelMeanMatching(),
    "ratio": DensityRatioWeights(),
    "kliep": DensityRatioWeights("kl"),
    "cluster": ClusterWeights(),
    "histogram": HistogramWeights(),
    "frequency": FrequencyWeights(),
    "rake": CalibrationWeights(),
    "propensity": CalibrationWeights(distance="propensity"),
    "linear": CalibrationWeights(distance="linear"),
    "logit": CalibrationWeights(distance="logit", bounds=(0.1, 50)),  # which has no default
    "label-shift": LabelShiftWeights(),
}


@pytest.fixture(scope="module")
def steep(tmp_path_factory):
    """A sample that is selected so steeply that the largest weights are cut."""
    random = np.random.default_rng(3)
    people = pd.DataFrame(
        {"age": random.normal(50, 15, 3000).round(), "g": random.integers(3, size=3000)}
    )
    people["g"] = people["g"].map({0: "a", 1: "b", 2: "c"})
    chance = 1 / (1 + np.exp((40 - people["age"]) / 5))
    sample = people[random.uniform(size=3000) < 0.2 * chance].reset_index(drop=True)
    sample["buys"] = np.where(random.uniform(size=len(sample)) < sample["age"] / 100, "yes", "no")
    folder = tmp_path_factory.mktemp("steep")
    sample.to_csv(folder / "answers.csv", index=False)
    people.to_csv(folder / "people.csv", index=False)
    return folder


@pytest.mark.parametrize("method", list(METHODS))
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_method_is_its_class_with_its_defaults_to_the_last_bit(unskew, steep, method):
    settings = ["--set", "bounds=(0.1, 50)"] if method == "logit" else []
    result = unskew("weigh", steep / "answers.csv", steep / "people.csv", "--target", "buys",
                    "--method", method, *settings, "--allow-uncovered", 1, "--no-verdict",
                    "-o", steep / "w.parquet")  # fmt: skip
    assert result.code == 0, result.err
    sample = pd.read_csv(steep / "answers.csv")
    weighter = IN_PYTHON[method].fit(
        sample[["age", "g"]],
        sample["buys"] if method in ("tree", "label-shift") else None,  # others do not need it
        population=steep / "people.csv",
    )
    written = pq.read_table(steep / "w.parquet")["weight"].to_numpy()
    assert (written == weighter.weights_).all()
    if method == "auto":
        assert weighter.n_capped_ > 0


@pytest.mark.parametrize(
    ("method", "settings", "weighter"),
    [
        ("tree", ["min_samples_leaf=20", "honest=True"],
         TreeWeights(min_samples_leaf=20, honest=True)),
        ("kmm", ["bandwidth=median"], KernelMeanMatching(bandwidth="median")),
        ("ratio", ["n_centres=50"], DensityRatioWeights(n_centres=50)),
        ("kliep", ["bandwidth=median", "tilt=False"],
         DensityRatioWeights("kl", bandwidth="median", tilt=False)),
        ("cluster", ["random_state=3"], ClusterWeights(random_state=3)),
        ("histogram", ["buckets={'age': [30, 60], 'income': 3}"],
         HistogramWeights(buckets={"age": [30, 60], "income": 3})),
        ("frequency", [], FrequencyWeights()),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")
def test_every_method_with_its_parameters(unskew, survey, answers, method, settings, weighter):
    columns = ["age", "town"] if method == "frequency" else FEATURES
    given = [word for setting in settings for word in ("--set", setting)]
    result = unskew("weigh", "answers.csv", "people.parquet", "--target", "spend",
                    "--method", method, *given, "--columns", ",".join(columns),
                    "--total", "population", "--allow-uncovered", 1, "-o", "w.parquet")  # fmt: skip
    assert result.code == 0, result.err
    written = pq.read_table("w.parquet")
    assert written.column_names == ["row", "weight"]
    assert written["row"].to_pylist() == list(range(len(answers)))
    weighter.set_params(total="population").fit(
        answers[columns],
        answers["spend"],
        population=Population("people.parquet", columns=columns),
    )
    np.testing.assert_array_equal(written["weight"], weighter.weights_)


def test_every_form_of_input_gives_the_same_weights(unskew, survey, answers, people):
    answers.to_parquet("answers.parquet")
    answers.to_csv("answers.csv.gz", index=False)
    answers.iloc[:100].to_csv("part-1.csv", index=False)
    answers.iloc[100:].to_csv("part-2.csv", index=False)
    answers.set_index("customer").to_parquet("indexed.parquet")
    people.to_csv("people.csv", index=False)
    os.mkdir("folder")
    people.iloc[:1500].to_parquet("folder/a.parquet")
    people.iloc[1500:].to_parquet("folder/b.parquet")
    weights = []
    samples = ["answers.csv", "answers.parquet", "answers.csv.gz", "part-*.csv", "indexed.parquet"]
    for sample, population in [
        *((sample, "people.parquet") for sample in samples),
        *(("answers.csv", people) for people in ("people.csv", "folder", "folder/*.parquet")),
        ("-", "people.parquet"),
    ]:  # fmt: skip
        content = (survey / "answers.csv").read_bytes()
        result = unskew("weigh", sample, population, "--target", "spend", "--id", "customer",
                        "--method", "tree", "-o", "w.parquet", stdin=content)  # fmt: skip
        assert result.code == 0, (sample, population, result.err)
        weights.append(pq.read_table("w.parquet"))
    assert weights[0]["customer"].to_pylist() == list(answers["customer"])
    assert all(table["weight"].equals(weights[0]["weight"]) for table in weights)
    piped = unskew("weigh", "-", "people.parquet", "--target", "spend", "--id", "customer",
                   "--method", "tree", "-o", "w.parquet",
                   stdin=(survey / "answers.parquet").read_bytes())  # fmt: skip
    assert piped.code == 0, piped.err


def test_text_files_of_every_kind_give_the_same_weights(unskew, survey, answers, people):
    for name, mark in (("tsv", "\t"), ("bars.txt", "|"), ("odd.csv", ";")):
        answers.to_csv(f"answers.{name}", index=False, sep=mark)
        people.to_csv(f"people.{name}", index=False, sep=mark)
    answers.to_csv("answers.tsv.gz", index=False, sep="\t")
    plain, odd = ((survey / name).read_bytes() for name in ("answers.csv", "answers.odd.csv"))
    weights = []
    for sample, population, options, stdin in [
        ("answers.csv", "people.parquet", [], None),
        ("answers.tsv", "people.tsv", [], None),
        ("answers.tsv.gz", "people.bars.txt", [], None),
        ("answers.bars.txt", "people.tsv", [], None),
        ("answers.odd.csv", "people.odd.csv", ["--delimiter", ";"], None),
        ("answers.bars.txt", "people.parquet", ["--delimiter", "|"], None),
        ("answers.tsv", "people.tsv", ["--delimiter", "tab"], None),
        ("answers.tsv", "people.tsv", ["--delimiter", r"\t"], None),
        ("-", "people.parquet", [], gzip.compress(plain)),
        ("-", "people.parquet", [], bz2.compress(plain)),
        ("-", "people.parquet", ["--delimiter", ";"], gzip.compress(odd)),
    ]:  # fmt: skip
        result = unskew("weigh", sample, population, "--target", "spend", "--id", "customer",
                        "--method", "tree", "-o", "w.parquet", "--save", "w.skops", *options,
                        stdin=stdin)  # fmt: skip
        assert result.code == 0, (sample, population, options, result.err)
        weights.append(pq.read_table("w.parquet"))
    assert all(table.equals(weights[0]) for table in weights)
    for command in (
        ["apply", "w.skops", "answers.odd.csv", "-o", "w.csv"],
        [
            "diagnose",
            "answers.odd.csv",
            "people.odd.csv",
            "--target",
            "spend",
            "--weights",
            "w.csv",
        ],
    ):
        result = unskew(*command, "--id", "customer", "--delimiter", ";", "--quiet")
        assert result.code == 0, result.err


def test_classes_in_a_csv_file_are_classes(unskew, survey, answers, people):
    answers.assign(spend=(answers["spend"] > 150).astype(int)).to_csv("answers.csv", index=False)
    unskew("weigh", "answers.csv", "people.parquet", "--target", "spend", "--exclude", "customer",
           "--method", "tree", "-o", "w.parquet", "--save", "w.skops")  # fmt: skip
    assert type(load_weighter("w.skops").tree_).__name__ == "DecisionTreeClassifier"


def test_numbers_stay_numbers_and_names_stay_names(unskew, survey, answers):
    for ids, kind in ((2**60 + np.arange(len(answers)), "int64"), (answers["customer"], "string")):
        answers.assign(customer=ids).to_csv("answers.csv", index=False)
        unskew("weigh", "answers.csv", "people.parquet", "--target", "spend", "--id", "customer",
               "--method", "tree", "-o", "w.parquet")  # fmt: skip
        written = pq.read_table("w.parquet")["customer"]
        assert str(written.type) == kind
        assert written.to_pylist() == list(ids)


def test_design_weights_on_both_sides(unskew, survey, answers, people):
    random = np.random.default_rng(1)
    answers = answers.assign(design=random.uniform(0.5, 2, len(answers)))
    people = people.assign(persons=random.integers(1, 4, len(people)))
    answers.to_csv("answers.csv", index=False)
    people.to_parquet("people.parquet")
    result = unskew("weigh", "answers.csv", "people.parquet", "--target", "spend",
                    "--id", "customer", "--sample-weight", "design",
                    "--population-weight", "persons",
                    "--method", "tree", "-o", "w.parquet")  # fmt: skip
    assert result.code == 0, result.err
    expected = TreeWeights().fit(
        answers[FEATURES],
        answers["spend"],
        population=Population(people, weight="persons"),
        sample_weight=answers["design"],
    )
    np.testing.assert_array_equal(pq.read_table("w.parquet")["weight"], expected.weights_)


def test_ignored_columns_are_noted(unskew, survey, answers, people):
    people.assign(spend=1.0, shoe=42).to_parquet("people.parquet")
    arguments = ("weigh", "answers.csv", "people.parquet", "--target", "spend",
                 "--exclude", "customer", "-o", "w.parquet")  # fmt: skip
    result = unskew(*arguments)
    assert result.code == 0, result.err
    assert "Ignoring population column 'spend': it is the target" in result.err
    assert "Ignoring population columns that are not features: 'shoe'." in result.err
    quiet = unskew(*arguments, "--quiet")
    assert quiet == (0, "", "")


def test_a_weighter_is_kept_and_applied(unskew, survey, answers):
    weigh = ("weigh", "answers.csv", "people.parquet", "--target", "spend", "--id", "customer")
    assert unskew(*weigh, "-o", "w.csv", "--save", "w.skops").code == 0
    result = unskew("apply", "w.skops", "answers.csv", "--id", "customer", "-o", "again.csv")
    assert result.code == 0, result.err
    again, first = pd.read_csv("again.csv", dtype=str), pd.read_csv("w.csv", dtype=str)
    assert list(again["customer"]) == list(first["customer"])
    weights = [table["weight"].astype(float) for table in (again, first)]
    np.testing.assert_allclose(*weights, rtol=1e-12)
    assert "Ignoring columns that are not features: spend." in result.err
    assert "rows weighed by AutoWeights" in result.out
    shuffled = answers.sample(frac=1, random_state=0)[["town", "income", "age"]]
    piped = unskew("apply", "w.skops", "-", "-o", "again.csv.gz", "-q",
                   stdin=shuffled.to_csv(index=False).encode())  # fmt: skip
    assert piped == (0, "", "")
    weights = pd.read_csv("w.csv")["weight"].to_numpy()[shuffled.index]
    with gzip.open("again.csv.gz") as file:
        np.testing.assert_allclose(pd.read_csv(file)["weight"], weights, rtol=1e-12)


def test_new_rows_with_an_unseen_category_are_named(unskew, survey, answers):
    weigh = ("weigh", "answers.csv", "people.parquet", "--target", "spend", "--id", "customer")
    assert unskew(*weigh, "-o", "w.csv", "--save", "w.skops").code == 0
    later = answers.assign(town=["Rome"] * 3 + answers["town"].tolist()[3:])
    later.to_csv("later.csv", index=False)
    result = unskew("apply", "w.skops", "later.csv", "--id", "customer", "-o", "later-w.csv")
    assert result.code == 0, result.err
    assert f"note: 3 of {len(later)} new rows hold values that no sample row has" in result.err
    weights = pd.read_csv("later-w.csv")["weight"][:3]
    assert "column 'town': Rome (3 rows)" in result.err
    assert f"{weights.min():.4g}" in result.err


def test_too_little_overlap_is_refused_with_code_3(unskew, survey, people):
    people.assign(town=people["town"].replace("Kiel", "Rome")).to_parquet("people.parquet")
    arguments = ("weigh", "answers.csv", "people.parquet", "--target", "spend", "--id", "customer",
                 "--method", "tree", "-o", "w.parquet", "--save", "w.skops")  # fmt: skip
    share = (people["town"] == "Kiel").mean()  # other rows may be uncovered too
    result = unskew(*arguments)
    assert result.code == 3
    assert "of the population is not covered by the sample: town = Rome: 33" in result.err
    assert "--allow-uncovered 0.33" in result.err
    assert "Traceback" not in result.err
    assert names(survey) == ["answers.csv", "people.parquet"]
    assert unskew(*arguments, "--allow-uncovered", share - 0.001).code == 3
    allowed = unskew(*arguments, "--allow-uncovered", share + 0.01)
    assert allowed.code == 0, allowed.err
    assert "town = Rome: 33" in allowed.out
    assert "Not covered by the sample: 3" in allowed.out
    assert names(survey) == ["answers.csv", "people.parquet", "w.parquet", "w.skops"]


def test_an_existing_file_stays_if_the_command_fails(unskew, survey):
    (survey / "w.csv").write_text("mine")
    result = unskew("weigh", "answers.csv", "people.parquet", "--target", "spent", "-o", "w.csv")
    assert result.code == 2
    assert (survey / "w.csv").read_text() == "mine"
    assert names(survey) == ["answers.csv", "people.parquet", "w.csv"]


@pytest.mark.parametrize(
    ("number", "sample"), [(signal.SIGINT, "wide.parquet"), (signal.SIGTERM, "-")]
)
def test_interrupted_during_a_pass_or_while_it_waits(survey, number, sample):
    random = np.random.default_rng(0)  # six billion kernel values: a pass of many seconds
    pd.DataFrame({"x": random.normal(size=2000)}).to_parquet("wide.parquet")
    pd.DataFrame({"x": random.normal(size=3_000_000)}).to_parquet("long.parquet")
    (survey / "w.csv").write_text("mine")
    before = names(survey)
    command = [sys.executable, "-m", "unskew.cli", "weigh", sample, "long.parquet", "-o", "w.csv"]
    with subprocess.Popen(
        [*command, "--method", "kmm"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "UNSKEW_THREADS": "1"},
    ) as process:
        try:
            patience = time.monotonic() + 60
            while names(survey) == before:
                assert time.monotonic() < patience
                time.sleep(0.05)
            time.sleep(2.0)
            assert process.poll() is None, "it was done before it could be interrupted"
            process.send_signal(number)
            assert process.wait(timeout=30) == 128 + number
        finally:
            process.kill()
        assert process.stderr.read() == "unskew: interrupted\n"
    assert (survey / "w.csv").read_text() == "mine"
    assert names(survey) == before


def test_progress_on_a_terminal_and_elsewhere(monkeypatch):
    import io

    from rich.console import Console

    from unskew.cli import progress
    from unskew.results import Progress

    updates = [
        Progress(250, 1000, 0, None, 3.0),
        Progress(2500, None, 1, 4, 3.0),
        Progress(70, None, 0, None, 1.0),
    ]
    monkeypatch.setattr(progress, "PLAIN_EVERY", 0.0)
    for terminal in (False, True):
        file = io.StringIO()
        console = Console(file=file, force_terminal=terminal, width=90)
        with progress.show_progress("Reading", console) as show:
            for each in updates:
                progress.population_progress(show)(each)
                if terminal:
                    time.sleep(0.2)
        text = file.getvalue()
        assert "250 of 1,000 rows, about 0:09 left" in text
        assert "2,500 rows, 1 of 4 files, about 0:09 left" in text
        assert "70 rows" in text
        assert ("Reading" in text) == terminal
    file = io.StringIO()
    with progress.show_progress("Reading", Console(file=file), quiet=True) as show:
        progress.population_progress(show)(updates[0])
    assert file.getvalue() == ""


def test_what_takes_long_is_named_where_there_is_no_terminal(monkeypatch):
    import io

    from rich.console import Console

    from unskew.cli import progress
    from unskew.results import Progress

    monkeypatch.setattr(progress, "NAMED_AFTER", 0.1)
    file = io.StringIO()
    with progress.show_progress("Reading", Console(file=file)) as show:
        told = progress.population_progress(show)
        told(Progress(0, None, 0, None, 0.0, doing="what is over at once"))
        told(Progress(0, None, 0, None, 0.0, doing="growing a tree"))
        time.sleep(0.5)
        assert file.getvalue() == "Growing a tree …\n"  # while it is done, and once
        monkeypatch.setattr(progress, "PLAIN_EVERY", 0.2)
        time.sleep(0.5)
    assert "Growing a tree, 0:0" in file.getvalue()
    assert "at once" not in file.getvalue()


def test_resume_is_refused_by_name(unskew, survey):
    found = unskew("weigh", "answers.csv", "people.parquet", "-o", "w.csv", "--resume")
    assert found.code == 2
    assert "--resume was removed" in found.err
    assert not (survey / "w.csv").exists()


def test_what_the_models_were_trained_on_is_said_where_it_is_not_all(unskew, survey, monkeypatch):
    from unskew.weighters import two_samples

    given = (
        "weigh",
        "answers.csv",
        "people.parquet",
        "--target",
        "spend",
        "--no-verdict",
        "--id",
        "customer",
    )
    assert "trained" not in unskew(*given, "-o", "w.csv").out
    monkeypatch.setattr(two_samples, "MEMORY", 1)
    monkeypatch.setattr(two_samples, "FEWEST", 100)
    found = unskew(*given, "-o", "w.csv").out
    assert "Models were trained on 100 sample rows and 100 population rows" in found

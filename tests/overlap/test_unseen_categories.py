"""A category with 4.1 % of the population and no sample row is named by every door."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin

from unskew import (
    AutoWeights,
    CalibrationWeights,
    ClassifierWeights,
    ClusterWeights,
    HistogramWeights,
    Margins,
    Unweighted,
    diagnose,
    estimate,
    estimate_score,
)
from unskew.errors import OverlapWarning

TOWNS, SHARES = list("abcdefgh"), [0.3, 0.2, 0.15, 0.1, 0.09, 0.07, 0.049, 0.041]


def survey(seed, without="h", m=1000, n=5000):
    random = np.random.default_rng(seed)
    people = pd.DataFrame(
        {"town": random.choice(TOWNS, n, p=SHARES), "age": random.normal(40, 12, n)}
    )
    answering = people[people["town"] != without]
    return answering.sample(m, random_state=seed).reset_index(drop=True), people


@pytest.mark.parametrize(
    "weighter",
    [AutoWeights(), CalibrationWeights(), ClassifierWeights("logistic"), HistogramWeights()],
)
def test_the_warning_of_a_fit_names_column_and_share(weighter):
    sample, people = survey(0)
    with pytest.warns(OverlapWarning, match=r"town = h: 4\.\d %.*0 of 1,000 sample rows"):
        weighter.fit(sample, population=people)
    assert [rule.text for rule in weighter.overlap_.unseen] == ["town = h"]


def test_a_limit_that_allows_it_does_not_silence_it():
    sample, people = survey(0)
    with pytest.warns(OverlapWarning, match="town = h"):
        Unweighted(overlap=0.2).fit(sample, population=people)


@pytest.mark.parametrize("seed", range(2))
def test_the_diagnosis_names_it_and_calls_it_bias(seed):
    sample, people = survey(seed)
    found, share = diagnose(sample, people), (people["town"] == "h").mean()
    assert f"except for town = h ({share:.1%}".replace("%", " %") in found.verdict.headline
    assert found.verdict.status == "correctable"  # not at a cost: the rest needs hardly any weights
    assert found.bias_left
    weighed = diagnose(sample, people, np.ones(len(sample)))
    assert "town = h" in weighed.verdict.headline
    assert weighed.bias_left  # which no weights can change


def test_what_chance_explains_is_no_bias():
    """A category of 0.1 %, which an even draw of 300 rows lacks in three of four cases."""
    random = np.random.default_rng(1)
    people = pd.DataFrame({"town": random.choice(["a", "b", "c"], 20_000, p=[0.6, 0.399, 0.001])})
    sample = people[people["town"] != "c"].sample(300, random_state=0)
    found = diagnose(sample, people)
    assert not found.overlap.unseen
    assert not found.bias_left


@pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")
def test_estimates_and_scores_note_it():
    sample, people = survey(0)
    y = 2 * sample["age"] + np.random.default_rng(0).normal(size=len(sample))
    for found in (
        estimate(sample, y, population=people),
        estimate_score(
            _Constant(), sample, y, population=people, method="weighted", scoring="r2", replicates=5
        ),
    ):
        assert any("town = h: 4." in note for note in found.notes)
        assert "town = h: 4." in str(found)


class _Constant(RegressorMixin, BaseEstimator):
    def predict(self, X):
        return np.full(len(X), 80.0)


def by_level(seed, n_levels=60, m=400, n=4000):
    """One column; levels come in at rates that differ by their effects on y."""
    random = np.random.default_rng(seed)
    effects = np.random.default_rng(7).normal(size=n_levels).clip(-2, 2)
    people = pd.DataFrame({"level": random.integers(n_levels, size=n + 40 * m)})
    rates = np.exp(0.7 * (effects[people["level"]] - 2))
    taken = people[n:][random.uniform(size=40 * m) < rates[n:]].iloc[:m]
    y = effects[taken["level"]] + random.normal(size=len(taken))
    text = lambda rows: ("l" + rows["level"].astype(str)).to_frame()  # noqa: E731
    return text(taken), y, text(people.iloc[:n])


@pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")
def test_levels_that_selection_leaves_out_by_chance_raise_no_doubt():
    """About as much of the population has levels with one row as with none."""
    doubts = 0
    for seed in range(30):
        X, y, people = by_level(seed)
        notes = estimate(X, y, population=people).notes
        doubts += any("make up" in note or "interval" in note for note in notes)
    assert doubts <= 4  # 23 of 100 before


@pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")
def test_an_unseen_level_says_how_much_it_can_matter():
    random = np.random.default_rng(3)
    people = pd.DataFrame({"town": random.choice(list("abcd"), 8000, p=[0.4, 0.3, 0.284, 0.016])})
    sample = people[people["town"] != "d"].sample(500, random_state=0)
    y = random.normal(size=500)
    (note,) = [one for one in estimate(sample, y, population=people).notes if "town = d" in one]
    share = (people["town"] == "d").mean()
    assert f"{100 * share:.1f} %" in note
    assert "no weights make up" not in note  # 0.016 · √500 = 0.36 standard errors
    more = people[people["town"] != "d"].sample(3000, random_state=0)
    (note,) = [
        one
        for one in estimate(more, random.normal(size=3000), population=people).notes
        if "town = d" in one
    ]
    assert "no weights make up" in note  # 0.88 standard errors


def test_a_level_of_margins_that_the_sample_lacks_is_named():
    sample = pd.DataFrame({"town": np.repeat(["a", "b"], 500)})
    margins = Margins(counts={"town": {"a": 500, "b": 460, "d": 40}})
    with pytest.warns(OverlapWarning, match=r"town = d: 4\.0 %.*0 of 1,000 sample rows"):
        found = estimate(sample, np.arange(1000.0), population=margins)
    assert any("town = d: 4.0 %" in note and "make up" in note for note in found.notes)
    assert found.weighter.overlap_.uncovered == pytest.approx(0.04)


@pytest.mark.parametrize("kind", [int, bool, float])
@pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")
def test_a_mark_that_no_sample_row_has_is_named_by_every_weighter(kind):
    """A number of few values is a category: nothing else says that 2 % are unlike all rows."""
    random = np.random.default_rng(0)
    people = pd.DataFrame(
        {"age": random.normal(40, 12, 5000), "mark": (random.uniform(size=5000) < 0.02)}
    )
    sample = people[~people["mark"]].sample(1000, random_state=0).astype({"mark": kind})
    people, share = people.astype({"mark": kind}), people["mark"].mean()
    text = f"mark = {'true' if kind is bool else 1}: {100 * share:.1f} % of the population, 0 of"
    for weighter in (AutoWeights(), ClassifierWeights("logistic"), ClusterWeights()):
        with pytest.warns(OverlapWarning, match=text):
            weighter.fit(sample, population=people)
    found = estimate(sample, sample["age"], population=people, weighter=ClusterWeights())
    assert any(text in note and "make up" in note for note in found.notes)
    assert "mark" in diagnose(sample, people).verdict.headline


def test_a_count_that_chance_leaves_out_is_no_category():
    random = np.random.default_rng(1)
    people = pd.DataFrame({"children": random.poisson(1.2, 5000).clip(0, 8)})
    sample = people.sample(200, random_state=1)
    assert set(people["children"]) > set(sample["children"])
    assert not ClusterWeights().fit(sample, population=people).overlap_.unseen

"""The contract: a question without a trace, one pass, and solutions that can be repeated."""

from __future__ import annotations

import copy
import inspect

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from tests.weighters.catalogue import (
    WEIGHTERS,
    every_weighter,
    labels_for,
    one_half,
    public_weighters,
    rows_for,
    shown,
    to_sample,
)

from unskew import (
    CalibrationWeights,
    ClusterWeights,
    DensityRatioWeights,
    FrequencyWeights,
    HistogramWeights,
    KernelMeanMatching,
    KnownProbability,
    Margins,
    Population,
    Tempered,
    TreeWeights,
    Unweighted,
)
from unskew.errors import InputError, ParameterError
from unskew.population.feature_sums import FeatureSums
from unskew.population.summaries import Summaries, TotalWeight
from unskew.rows.encode import ColumnCodes
from unskew.rows.sample import Sample
from unskew.weighters.base import Weighter

pytestmark = pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")

RANDOM = np.random.default_rng(5)
X = pd.DataFrame(
    {"age": RANDOM.integers(20, 60, 80).astype(float), "town": RANDOM.choice(list("abc"), 80)}
)
U = pd.DataFrame(
    {"age": RANDOM.integers(20, 60, 300).astype(float), "town": RANDOM.choice(list("abc"), 300)}
)
Y = X["age"].to_numpy() + RANDOM.normal(size=80)


def pickled(weighter):
    return repr((sorted(vars(weighter)), weighter.get_params()))


def ask(weighter, sample, population):
    question = weighter._question(sample, population.about)
    if question is not None:
        population.reduce(question)
    return question


@pytest.mark.parametrize(
    "weighter", [*WEIGHTERS, Tempered(Tempered(ClusterWeights()), max_weight=2.0)], ids=shown
)
def test_a_question_leaves_no_trace_and_solutions_repeat(weighter):
    weighter = copy.deepcopy(weighter)
    sample = Sample.from_data(X, labels_for(weighter, Y))
    population = Population(U)
    before = pickled(weighter)
    answer = ask(weighter, sample, population)
    assert pickled(weighter) == before
    first = weighter._solve(sample, answer)
    weighter._solve(sample.with_design(np.arange(80) % 3 + 1.0), answer)
    again = weighter._solve(sample, answer)
    # Calibration starts from the tilt of its last solution; nothing else remembers.
    rounding = 1e-9 if isinstance(weighter, CalibrationWeights) else 0.0
    assert np.allclose(again, first, rtol=rounding, atol=0.0)
    fitted = to_sample(weighter).fit(X, labels_for(weighter, Y), population=U)
    assert fitted.weights_ == pytest.approx(first * 80 / first.sum(), rel=1e-12)


@pytest.mark.parametrize(
    "weighter",
    [FrequencyWeights(), HistogramWeights(strategy="width"), KernelMeanMatching(ridge=0.1)],
    ids=str,
)
def test_a_replicate_is_the_same_rows_with_other_design_weights(weighter):
    """These questions do not depend on design weights, so that a replicate is a fit with them."""
    design = np.arange(80) % 4 + 0.5
    sample = Sample.from_data(X, Y)
    answer = ask(weighter, sample, Population(U))
    raw = weighter._solve(sample.with_design(design), answer)
    fitted = weighter.fit(X, Y, population=U, sample_weight=design)
    assert raw * 80 / raw.sum() == pytest.approx(fitted.weights_, rel=1e-6, abs=1e-9)


def test_rows_that_a_replicate_leaves_out_get_no_weight():
    design = (np.arange(80) % 2).astype(float)
    for weighter in (KernelMeanMatching(), KernelMeanMatching(method="low-rank"), TreeWeights()):
        sample = Sample.from_data(X, Y)
        raw = weighter._solve(sample.with_design(design), ask(weighter, sample, Population(U)))
        assert (raw[design == 0] == 0).all()
        assert raw.sum() > 0


@every_weighter
def test_one_fit_makes_one_pass_and_encodes_the_sample_once(weighter, monkeypatch):
    passes, fits = [], []
    reading, learning = Population._pass, ColumnCodes.fit_transform
    monkeypatch.setattr(Population, "_pass", lambda *a: passes.append(1) or reading(*a))
    monkeypatch.setattr(
        ColumnCodes, "fit_transform", lambda *a, **k: fits.append(1) or learning(*a, **k)
    )
    weighted = U.assign(w=1.5)
    fitted = clone(weighter)
    if isinstance(weighter, Weighter):
        fitted.set_params(overlap=1.0, total="population")
    rows = rows_for(weighter, weighted)
    fitted.fit(
        rows_for(weighter, X),
        labels_for(weighter, Y),
        population=Population(rows, weight="w"),
    )
    assert len(passes) == 1
    assert len(fits) <= 1
    if isinstance(weighter, Weighter):
        assert fitted.weights_.sum() == pytest.approx(450)
        assert 0 <= fitted.uncovered_ <= 1


def test_fits_with_one_population_share_what_does_not_depend_on_the_sample(monkeypatch):
    population = Population(U)
    Unweighted(overlap="warn").fit(X, population=population)
    passes = []
    reading = Population._pass
    monkeypatch.setattr(Population, "_pass", lambda *a: passes.append(1) or reading(*a))
    for _ in range(3):
        Unweighted(overlap="warn").fit(X, population=population)
        DensityRatioWeights(population_rows=900).fit(X, population=population)
    assert passes == []  # all 300 rows are kept


def test_questions_of_several_weighters_are_answered_together():
    sample, population = Sample.from_data(X, Y), Population(U)
    weighters = [TreeWeights(), DensityRatioWeights(), KernelMeanMatching(ridge=0.1)]
    questions = [weighter._question(sample, population.about) for weighter in weighters]
    population.reduce(Summaries([*questions, TotalWeight()]))
    for weighter, answer in zip(weighters, questions, strict=True):
        together = weighter._solve(sample, answer)
        alone = copy.deepcopy(weighter).fit(X, Y, population=U).weights_
        assert together * 80 / together.sum() == pytest.approx(alone, rel=1e-12)


def test_a_replicate_that_empties_a_cell_leaves_its_population_uncovered():
    rows, people = pd.DataFrame({"c": list("xyz")}), pd.DataFrame({"c": ["x", "y"] + ["z"] * 8})
    weighter, sample = FrequencyWeights(), Sample.from_data(rows)
    answer = ask(weighter, sample, Population(people))
    raw = weighter._solve(sample.with_design(np.array([2.0, 1.0, 0.0])), answer)
    assert weighter.uncovered_ == pytest.approx(0.8)
    assert weighter.population_counts_.sum() == pytest.approx(raw.sum()) == 2


def test_a_question_that_was_answered_is_refused_within_others():
    sample, population = Sample.from_data(X, Y), Population(U)
    question = FeatureSums(sample.points()[0])
    population.reduce(question)
    for ask_again in (population.reduce, sample.reduce):
        with pytest.raises(ParameterError, match="FeatureSums has been answered already"):
            ask_again(Summaries([question, TotalWeight()]))


class Regularised(Unweighted):
    """A parameter may end in an underscore, as an attribute does."""

    lambda_: float = 1.0


def test_parameters_of_a_subclass_survive_a_fit():
    weighter = Regularised(lambda_=9.0, total="population").fit(X, population=U)
    assert weighter.get_params()["lambda_"] == 9.0
    assert weighter.fit(X, population=U).weights_.sum() == pytest.approx(300)
    assert next(iter(inspect.signature(Regularised).parameters)) == "lambda_"


def test_parts_of_a_sample_keep_what_a_weighter_needs():
    frame = X.assign(p=np.linspace(0.1, 1.0, 80))
    sample = Sample.from_data(frame, Y)
    assert sample.ordered.values.shape == (80, 3)
    some = sample.select(["age"])
    assert some.ordered.values.shape == (80, 1)
    few = some.take(np.array([3, 1]))
    assert KnownProbability("p")._solve(few, None) == pytest.approx(
        1 / frame["p"].to_numpy()[[3, 1]]
    )
    seen = []
    KnownProbability(lambda rows: seen.append(rows) or one_half(rows))._solve(few, None)
    assert isinstance(seen[0], pd.DataFrame)
    assert seen[0].columns.tolist() == ["age", "town", "p"]


@pytest.mark.parametrize("weighter", public_weighters())
def test_weighters_describe_themselves(weighter):
    for text in (weighter.traits.assumes, weighter.traits.uncovered_means):
        assert len(text.split()) > 4
    assert weighter.traits.judged_by in ("trees", "smooth")
    parameters = inspect.signature(weighter).parameters
    assert list(parameters)[-4:] == ["columns", "total", "overlap", "random_state"]
    assert "<" not in weighter.__doc__.partition("Examples")[0].replace("<=", "")
    for parameter in ("columns : ", "total : ", "overlap : ", "random_state : ", "uncovered_ : "):
        assert f"\n{parameter}" in weighter.__doc__


class TestMargins:
    MARGINS = Margins(counts={"town": {"a": 100, "b": 100, "c": 50}})

    def test_what_needs_no_rows_takes_them(self):
        weighter = Unweighted(total="population").fit(X, population=self.MARGINS)
        assert weighter.columns_ == ["town"]
        assert weighter.weights_.sum() == pytest.approx(250)

    def test_what_needs_rows_refuses_them_and_names_what_can(self):
        with pytest.raises(InputError, match="KernelMeanMatching asks what.*CalibrationWeights"):
            KernelMeanMatching().fit(X, Y, population=self.MARGINS)
        two = Margins(counts={"town": {"a": 100, "b": 100, "c": 50}}, means={"age": 50.0})
        for weighter in (TreeWeights(), ClusterWeights()):
            with pytest.raises(InputError, match=f"{type(weighter).__name__} asks what these"):
                weighter.fit(X, Y, population=two)

    @pytest.mark.parametrize("weighter", [TreeWeights(min_samples_leaf=2), ClusterWeights()])
    def test_cells_of_a_table_are_counted_as_its_rows(self, weighter):
        rows = pd.DataFrame({"town": ["a"] * 100 + ["b"] * 100 + ["c"] * 50})
        expected = weighter.fit(X[["town"]], Y, population=rows).weights_
        found = weighter.fit(X, Y, population=self.MARGINS).weights_
        assert np.array_equal(found, expected)

    def test_columns_that_are_not_known(self):
        with pytest.raises(InputError, match="no column in common"):
            Unweighted().fit(X[["age"]], population=self.MARGINS)
        with pytest.raises(InputError, match="No margin of column 'age' is known"):
            Unweighted(columns=["age"]).fit(X, population=self.MARGINS)

"""Weights by a classifier that tells sample from population."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from tests.references import reference

from unskew import (
    AutoWeights,
    ClassifierWeights,
    FrequencyWeights,
    Population,
    load_weighter,
    save_weighter,
)
from unskew.errors import LearnerError, OverlapError, OverlapWarning, ParameterError

NAMED = ["logistic", "boosted"]


def normal_shift(seed, width=1, shift=1.0, m=600, n=400):
    random = np.random.default_rng(seed)
    sample = random.normal(0, 1, (m, width))
    population = random.normal(shift, 1, (n, width))
    new = random.normal(0, 1, (4000, width))
    return sample, population, new, np.exp(shift * new.sum(axis=1) - width * shift**2 / 2)


@pytest.mark.parametrize(
    ("name", "least"), [("logistic", 0.97), ("boosted", 0.93)], ids=["logistic", "boosted"]
)
@pytest.mark.parametrize(("width", "shift"), [(1, 1.0), (5, 0.5)])
def test_new_rows_get_the_ratio_of_two_normal_distributions(name, least, width, shift):
    found, means = [], []
    for seed in range(20):
        sample, population, new, truth = normal_shift(seed, width, shift)
        weighter = ClassifierWeights(name, overlap="ignore").fit(sample, population=population)
        weights = weighter.weigh(new)
        found.append(np.corrcoef(weights, truth)[0, 1])
        means.append(weights.mean())
    assert np.median(found) >= least
    assert np.median(means) == pytest.approx(1, abs=0.05)


def eight_cells(seed=0):
    random = np.random.default_rng(seed)
    shares = np.array([0.3, 0.2, 0.15, 0.1, 0.1, 0.05, 0.05, 0.05])
    tilt = np.array([0.4, 1.0, 2.0, 1.0, 1.0, 2.0, 0.5, 1.5])
    letters = np.array(list("abcdefgh"))
    population = pd.DataFrame({"cell": letters[random.choice(8, 4000, p=shares)]})
    tilted = shares * tilt / (shares @ tilt)
    sample = pd.DataFrame({"cell": letters[random.choice(8, 1500, p=tilted)]})
    return sample, population


@pytest.mark.parametrize("name", NAMED)
def test_on_a_table_of_cells_the_weights_are_post_stratification(name):
    sample, population = eight_cells()
    expected = FrequencyWeights().fit(sample, population=population).weights_
    weights = ClassifierWeights(name).fit(sample, population=population).weights_
    assert weights == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("name", NAMED)
def test_equal_rows_have_equal_weights_and_the_samples_own_rows_keep_theirs(name):
    sample, population, *_ = normal_shift(0, 2, 0.5, 200, 300)
    sample[:50] = sample[0]  # a frequent value
    sample[50:60] = sample[50]  # one that is held out
    weighter = ClassifierWeights(name).fit(sample, population=population)
    assert np.ptp(weighter.weights_[:50]) <= 1e-12
    assert np.ptp(weighter.weights_[50:60]) <= 1e-12
    assert weighter.weigh(sample) == pytest.approx(weighter.weights_, rel=1e-12)


@pytest.mark.parametrize("name", NAMED)
def test_a_sample_that_is_the_population_shows_no_difference(name):
    random = np.random.default_rng(0)
    rows = random.normal(size=(400, 3))
    weighter = ClassifierWeights(name).fit(rows, population=Population(rows.copy()))
    assert weighter.weights_ == pytest.approx(np.ones(400), abs=0.05)
    assert weighter.gain_ <= 2 * weighter.gain_error_ + 1e-5
    assert weighter.held_out_loss_ == pytest.approx(np.log(2), abs=1e-3)
    assert weighter.auc_after_ == pytest.approx(0.5, abs=0.05)


def test_a_sample_inside_the_population_does_not_leak():
    # Without folds by value, a row's copy on the other side would pull its weight to a half.
    random = np.random.default_rng(1)
    population = random.normal(size=(2000, 2))
    chosen = random.uniform(size=2000) < 1 / (1 + np.exp(-2 * population[:, 0]))
    truth = 1 + np.exp(-2 * population[chosen, 0])
    truth *= chosen.sum() / truth.sum()
    for name in NAMED:
        weights = ClassifierWeights(name, overlap="ignore").fit(
            population[chosen], population=population
        )
        assert np.abs(weights.weights_ - truth).mean() < 0.3


@pytest.mark.parametrize("name", NAMED)
def test_marks_give_the_inverse_of_the_chance_of_selection(name):
    random = np.random.default_rng(2)
    population = random.normal(size=(3000, 2))
    chance = 1 / (1 + np.exp(-1.5 * population[:, 0]))
    chosen = random.uniform(size=3000) < chance
    weighter = ClassifierWeights(name, total="population", overlap="ignore").fit(
        population[chosen], population=Population(population, selected=chosen)
    )
    error = np.abs(weighter.weights_ * chance[chosen] - 1)
    assert np.median(error) < 0.15
    # A row that was certainly selected stands for itself alone.
    assert weighter.weights_.min() == pytest.approx(1, abs=0.1)


def test_lalonde_as_in_weightit():
    # Controls to treated by the odds of a logistic regression without penalty: WeightIt prints
    # 5135.1 and an effective sample size of 99.82.
    table = reference("lalonde")
    columns = ["age", "educ", "race", "married", "nodegree", "re74", "re75"]
    treated = table["treat"] == 1
    controls = table[~treated]
    own = ClassifierWeights(
        "logistic", cv=None, calibration=None, penalty=0.0, rate="odds", hinges=False
    )
    encoder = make_column_transformer(
        (OneHotEncoder(drop="first"), ["race"]), remainder=StandardScaler()
    )
    learner = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12)
    other = ClassifierWeights(make_pipeline(encoder, learner), cv=None, calibration=None)
    for weighter in (own, other):
        weighter.set_params(overlap="ignore")
        weighter.fit(controls[columns], population=table.loc[treated, columns])
        mean = np.average(controls["re78"], weights=weighter.weights_)
        assert mean == pytest.approx(5135.072307, abs=5e-6)
        assert weighter.effective_sample_size_ == pytest.approx(99.815386, abs=5e-7)


def test_a_design_weight_of_two_is_a_row_twice():
    # Not so for boosted trees, whose leaves are counted in rows.
    sample, population, *_ = normal_shift(3, 2, 0.5, 150, 300)
    design = np.where(np.arange(150) % 3 == 0, 2.0, 1.0)
    twice = np.repeat(np.arange(150), design.astype(int))
    weighter = ClassifierWeights("logistic", overlap="ignore", penalty=0.01, rate=0.3)
    weights = weighter.fit(sample, population=population, sample_weight=design).weights_
    repeated = weighter.fit(sample[twice], population=population).weights_
    both = np.bincount(twice, repeated)
    assert weights / weights.sum() == pytest.approx(both / both.sum(), rel=1e-6)


def test_repeating_the_population_changes_nothing():
    sample, population, *_ = normal_shift(4, 2, 0.5, 150, 300)
    weighter = ClassifierWeights("logistic", penalty=0.01, rate=0.3, overlap="ignore")
    once = weighter.fit(sample, population=population).weights_
    thrice = weighter.fit(sample, population=np.tile(population, (3, 1))).weights_
    assert thrice == pytest.approx(once, rel=1e-6)


@pytest.mark.parametrize("name", NAMED)
def test_permuting_rows_permutes_weights(name):
    sample, population, *_ = normal_shift(5, 2, 0.5, 150, 300)
    order = np.random.default_rng(0).permutation(150)
    weights = ClassifierWeights(name).fit(sample, population=population).weights_
    shuffled = ClassifierWeights(name).fit(sample[order], population=population).weights_
    assert shuffled == pytest.approx(weights[order], rel=1e-9)


def mixed(m=300, n=500, seed=0):
    random = np.random.default_rng(seed)

    def rows(size, older):
        return pd.DataFrame(
            {
                "age": np.where(
                    random.uniform(size=size) < 0.1, np.nan, random.normal(older, 10, size)
                ),
                "town": random.choice(["Ulm", "Bonn", "Kiel"], size),
                "member": random.uniform(size=size) < 0.5,
            }
        )

    return rows(m, 40), rows(n, 45)


@pytest.mark.parametrize("library", ["pandas", "polars", "array"])
def test_a_classifier_gets_rows_as_the_caller_gave_them(library):
    sample, population = mixed()
    seen = []

    class Recording(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            seen.append(type(X))
            columns = X if isinstance(X, np.ndarray) else X[["member"]].to_numpy()
            return super().fit(columns.astype(float), y, sample_weight)

        def predict_proba(self, X):
            seen.append(type(X))
            columns = X if isinstance(X, np.ndarray) else X[["member"]].to_numpy()
            return super().predict_proba(columns.astype(float))

    if library == "polars":
        sample, population = pl.from_pandas(sample), pl.from_pandas(population)
    elif library == "array":
        sample, population = (one[["member"]].to_numpy(float) for one in (sample, population))
    weighter = ClassifierWeights(Recording()).fit(sample, population=population)
    assert set(seen) == {type(sample)}
    assert weighter.weigh(sample) == pytest.approx(weighter.weights_)


@pytest.mark.parametrize(
    "classifier",
    [
        RandomForestClassifier(20, random_state=0),
        GaussianNB(),
        KNeighborsClassifier(30),  # takes no weights
        LinearSVC(),  # has no probabilities
        CalibratedClassifierCV(LinearSVC()),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=lambda one: type(one).__name__,
)
def test_any_classifier_moves_the_mean_towards_the_population(classifier):
    sample, population, *_ = normal_shift(6, 2, 0.7, 400, 400)
    weighter = ClassifierWeights(classifier, overlap="ignore").fit(sample, population=population)
    before = np.abs(sample.mean(axis=0) - population.mean(axis=0)).max()
    after = np.abs(np.average(sample, axis=0, weights=weighter.weights_) - population.mean(axis=0))
    assert after.max() < before / 2
    assert weighter.weigh(sample) == pytest.approx(weighter.weights_)
    assert weighter.auc_after_ < weighter.auc_before_


def test_design_weights_that_cannot_reach_the_classifier_are_an_error():
    sample, population, *_ = normal_shift(7, 2, 0.5, 100, 100)
    with pytest.raises(LearnerError, match="KNeighborsClassifier takes no sample_weight"):
        ClassifierWeights(KNeighborsClassifier()).fit(
            sample, population=population, sample_weight=np.arange(1.0, 101.0)
        )


class Raising(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        raise RuntimeError("out of order")


def test_a_classifier_that_raises_is_named():
    sample, population, *_ = normal_shift(8, 1, 0.5, 50, 50)
    with pytest.raises(LearnerError, match=r"Raising could not be trained.*out of order"):
        ClassifierWeights(Raising()).fit(sample, population=population)
    texts = pd.DataFrame({"town": ["Ulm", "Bonn"] * 25})
    with pytest.raises(LearnerError, match="Put encoders of text"):
        ClassifierWeights(LogisticRegression()).fit(texts, population=texts.iloc[:30])


@pytest.mark.parametrize("classifier", [None, "logistic", LogisticRegression(C=1e6)])
def test_perfect_separation_is_refused(classifier):
    random = np.random.default_rng(0)
    sample, population = random.uniform(0, 1, (200, 1)), random.uniform(5, 6, (300, 1))
    with pytest.raises(OverlapError, match="almost without error"):
        ClassifierWeights(classifier).fit(sample, population=population)
    weighter = ClassifierWeights(classifier, overlap="ignore").fit(sample, population=population)
    assert np.isfinite(weighter.weights_).all()
    assert weighter.weights_.max() < 200


@pytest.mark.parametrize("weighter", [ClassifierWeights("logistic"), AutoWeights()], ids=str)
def test_a_sample_far_from_the_whole_population_is_refused(weighter):
    random = np.random.default_rng(0)
    sample, population = random.normal(0, 1, (200, 2)), random.normal(20, 1, (400, 2))
    with pytest.raises(OverlapError, match="100.0 % of the population is not covered"):
        weighter.fit(sample, population=population)


@pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")
@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("m", [1, 2, 10])
def test_very_few_rows(name, m):
    sample, population, *_ = normal_shift(9, 2, 0.2, m, 50)
    weighter = ClassifierWeights(name).fit(sample, population=population)
    assert weighter.weights_.sum() == pytest.approx(m)
    assert (weighter.weights_ > 0).all()


@pytest.mark.parametrize("name", NAMED)
def test_five_thousand_categories(name):
    random = np.random.default_rng(0)
    codes = random.zipf(1.3, 8000) % 5000
    sample = pd.DataFrame({"code": codes[:3000].astype(str), "x": random.normal(0.5, 1, 3000)})
    population = pd.DataFrame({"code": codes[3000:].astype(str), "x": random.normal(0, 1, 5000)})
    with pytest.warns(OverlapWarning):
        weighter = ClassifierWeights(name).fit(sample, population=population)
    assert 0 < weighter.uncovered_ < 0.3
    assert abs(np.average(sample["x"], weights=weighter.weights_)) < 0.15


def test_a_cap_is_kept_by_new_rows_and_reported():
    sample, population, new, _ = normal_shift(10)
    weighter = ClassifierWeights("logistic", max_weight=2.0, overlap="ignore")
    weighter.fit(sample, population=population)
    assert weighter.weights_.max() == pytest.approx(2.0)
    assert weighter.n_capped_ == (weighter.weights_ > 2 - 1e-9).sum() > 0
    assert weighter.weigh(new).max() <= 2 + 1e-9


def test_fewer_population_rows_than_there_are():
    sample, population, *_ = normal_shift(11, n=5000)
    weighter = ClassifierWeights("logistic", population_rows=500, overlap="ignore")
    weighter.fit(sample, population=population)
    assert weighter.population_rows_ == 500


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"classifier": "forest"}, "classifier"),
        ({"cv": 1}, "cv"),
        ({"penalty": 0.1}, 'penalty=0.1 is a parameter of classifier="logistic"'),
        ({"classifier": "logistic", "cv": None}, "give penalty and rate"),
        ({"classifier": LinearSVC(), "calibration": None}, "no predict_proba"),
        ({"classifier": StandardScaler()}, "neither predict_proba nor decision_function"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(parameters, message):
    sample, population, *_ = normal_shift(0, m=30, n=30)
    with pytest.raises(ParameterError, match=message):
        ClassifierWeights(**parameters).fit(sample, population=population)


@pytest.mark.parametrize("classifier", [None, "logistic", LogisticRegression()])
def test_a_saved_weighter_weighs_alike(classifier, tmp_path):
    sample, population, new, _ = normal_shift(12, 2, 0.5, 100, 100)
    weighter = ClassifierWeights(classifier, overlap="ignore").fit(sample, population=population)
    save_weighter(weighter, tmp_path / "weighter.skops")
    same = load_weighter(tmp_path / "weighter.skops")
    assert np.array_equal(same.weigh(new), weighter.weigh(new))


def test_a_fit_by_many_passes_is_refused_by_name():
    sample, population, *_ = normal_shift(16, 2, 0.5, 50, 100)
    for classifier in (None, "logistic"):
        with pytest.raises(ParameterError, match="population_rows=None.* was removed"):
            ClassifierWeights(classifier, population_rows=None).fit(sample, population=population)


def test_trees_find_the_column_that_matters_among_many():
    random = np.random.default_rng(0)
    population = random.normal(size=(500, 210))
    chance = 1 / (1 + np.exp(-2 * population[:, 205]))
    chosen = random.uniform(size=500) < chance
    weighter = ClassifierWeights(overlap="ignore").fit(population[chosen], population=population)
    assert np.corrcoef(weighter.weights_, 1 / chance[chosen])[0, 1] > 0.6
    again = weighter.weigh(population[chosen])
    assert again == pytest.approx(weighter.weights_, rel=1e-9)

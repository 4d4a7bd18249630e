from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import log_loss
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from unskew import LabelShiftWeights, Population, Reweighted, estimate
from unskew.errors import InputError, LabelShiftWarning, LearnerError, ParameterError

METHODS = ("mlls", "bbse")


def rows(labels, seed, noise=1.0):
    random = np.random.default_rng(seed)
    centres = np.random.default_rng(99).normal(size=(int(np.max(labels)) + 1, 4)) * 2
    return centres[labels] + noise * random.normal(size=(len(labels), 4))


def shifted(shares, *, m=1500, n=6000, seed=0, noise=1.0):
    """A sample with equal classes, and a population of other shares."""
    random = np.random.default_rng(seed)
    k = len(shares)
    y, hidden = random.integers(0, k, m), random.choice(k, n, p=shares)
    return rows(y, seed + 1, noise), y, rows(hidden, seed + 2, noise), hidden


class TestEstimates:
    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("shares", [(0.9, 0.1), (0.1, 0.2, 0.7), (0.4, 0.1, 0.1, 0.3, 0.1)])
    def test_shares_of_the_population_are_found(self, method, shares):
        X, y, U, hidden = shifted(shares)
        weighter = LabelShiftWeights(method=method).fit(X, y, population=U)
        truth = np.bincount(hidden) / len(hidden)
        np.testing.assert_allclose(weighter.population_shares_, truth, atol=0.03)
        expected = truth / weighter.sample_shares_
        np.testing.assert_allclose(weighter.class_weights_, expected, atol=0.1)
        assert weighter.shift_test_.holds

    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("k", [2, 4])
    def test_a_population_equal_to_the_sample(self, method, k):
        X, y, _, _ = shifted(np.full(k, 1 / k))
        weighter = LabelShiftWeights(method=method, shrink=False).fit(
            X, y, population=Population(X)
        )
        np.testing.assert_allclose(weighter.class_weights_, 1, atol=0.02)
        shrunk = LabelShiftWeights(method=method).fit(X, y, population=Population(X))
        np.testing.assert_allclose(shrunk.weights_, 1)
        assert shrunk.shrinkage_ == 0

    def test_what_chance_explains_is_left_out(self):
        """Without shift, shrinking makes weights more precise; with a clear one, not less."""
        errors = {True: [], False: []}
        for seed in range(20):
            X, y, U, _ = shifted((0.25,) * 4, m=400, n=400, seed=10 * seed)
            for shrink, found in errors.items():
                weighter = LabelShiftWeights(shrink=shrink, cv=2).fit(X, y, population=U)
                wanted = 0.25 / weighter.sample_shares_
                found.append(((weighter.class_weights_ - wanted) ** 2).mean())
        assert np.mean(errors[True]) < 0.8 * np.mean(errors[False])
        X, y, U, _ = shifted((0.7, 0.1, 0.1, 0.1), m=400, n=400)
        assert LabelShiftWeights().fit(X, y, population=U).shrinkage_ > 0.95

    def test_exact_where_the_confusion_matrix_is_known(self):
        """A prefit classifier that is wrong at known rates, on rows in exact proportions."""

        class Known(ClassifierMixin, BaseEstimator):
            classes_ = np.array(["a", "b"])

            def fit(self, X, y):
                raise AssertionError("it is fitted already")

            def predict_proba(self, X):
                return np.column_stack([1 - X[:, 0], X[:, 0]])

        # Where y is b, 0.8 is predicted in three of four cases, where y is a in one of four.
        X = np.array([[0.2], [0.2], [0.2], [0.8], [0.2], [0.8], [0.8], [0.8]])
        y = np.array(list("aaaabbbb"))
        U = np.concatenate([np.tile(X[:4], (9, 1)), X[4:]])  # nine times as many of a
        weighter = LabelShiftWeights(
            Known(), method="bbse", prefit=True, calibrate=False, shrink=False
        )
        weighter.fit(X, y, population=U)
        np.testing.assert_allclose(weighter.class_weights_, [1.8, 0.2], atol=1e-9)
        # p̂ is calibrated for an even prior if it says 0.25 and 0.75: then so is the likelihood.
        calibrated = LabelShiftWeights(Known(), prefit=True, shrink=False)
        calibrated.fit(X, y, population=U)
        np.testing.assert_allclose(calibrated.class_weights_, [1.8, 0.2], atol=2e-3)

    @pytest.mark.filterwarnings(
        "ignore::unskew.errors.LabelShiftWarning", "ignore:The solution gives"
    )
    def test_likelihood_is_more_precise_than_the_linear_system(self):
        errors = {method: [] for method in ("mlls", "bbse")}
        for seed in range(12):
            X, y, U, hidden = shifted((0.7, 0.2, 0.1), m=300, n=600, seed=10 * seed, noise=3.0)
            truth = np.bincount(hidden) / len(hidden)
            for method, found in errors.items():
                weighter = LabelShiftWeights(method=method, cv=3).fit(X, y, population=U)
                found.append(((weighter.population_shares_ - truth) ** 2).mean())
        assert np.mean(errors["mlls"]) < np.mean(errors["bbse"])

    def test_a_third_class_that_is_never_there_changes_nothing(self):
        X, y, U, _ = shifted((0.8, 0.2))
        two = LabelShiftWeights(LogisticRegression()).fit(X, y, population=U)

        class Three(LogisticRegression):
            def fit(self, X, y, sample_weight=None):
                super().fit(X, np.where(np.asarray(y) == 2, 0, y), sample_weight)
                self.classes_ = np.array([0, 1, 2])
                return self

            def predict_proba(self, X):
                self.classes_ = np.array([0, 1])
                p = super().predict_proba(X)
                return np.column_stack([p[:, 0], p[:, 1], np.full(len(p), 1e-9)])

        third = np.append(y, [2, 2, 2, 2, 2])
        drawn = LabelShiftWeights(Three(), calibrate=False).fit(
            np.vstack([X, X[:5]]), third, population=U
        )
        plain = LabelShiftWeights(LogisticRegression(), calibrate=False).fit(X, y, population=U)
        np.testing.assert_allclose(
            drawn.population_shares_[1], plain.population_shares_[1], atol=0.01
        )
        assert two.gap_ < 1e-8

    def test_design_weights_count_rows(self):
        X, y, U, _ = shifted((0.8, 0.2), m=400, n=900)
        counts = np.random.default_rng(0).integers(1, 3, len(U))
        weighter = LabelShiftWeights(shrink=False)  # shrinking counts rows by Kish's formula
        weighted = clone(weighter).fit(X, y, population=Population(U, weight=counts))
        repeated = clone(weighter).fit(X, y, population=np.repeat(U, counts, axis=0))
        np.testing.assert_allclose(weighted.class_weights_, repeated.class_weights_, rtol=1e-6)
        # In the sample, a class of which each row stands for three was sampled at a third.
        design = np.where(y == 1, 3.0, 1.0)
        designed = LabelShiftWeights().fit(X, y, population=U, sample_weight=design)
        assert designed.sample_shares_[1] == pytest.approx(np.average(y, weights=design))
        np.testing.assert_allclose(
            designed.population_shares_, weighted.population_shares_, atol=0.05
        )

    @pytest.mark.parametrize("shares", [(0.55, 0.45), (0.4, 0.3, 0.3)])
    @pytest.mark.parametrize("method", ["mlls", "bbse"])
    def test_the_unit_of_the_population_weights_does_not_matter(self, shares, method):
        X, y, U, _ = shifted(shares, m=60, n=200, noise=2.0)
        uneven = np.random.default_rng(0).choice([1.0, 3.0], len(U))
        for weight in (np.ones(len(U)), uneven):
            found = [
                LabelShiftWeights(method=method)
                .fit(X, y, population=Population(U, weight=unit * weight))
                .shrinkage_
                for unit in (1.0, 100.0, 100.5, 1e-3)
            ]
            assert 0 < found[0] < 1
            assert found == pytest.approx([found[0]] * 4, rel=1e-9)


class TestContract:
    def test_weights_are_those_of_the_classes(self):
        X, y, U, _ = shifted((0.8, 0.2))
        names = np.array(["healthy", "ill"])[y]
        weighter = LabelShiftWeights().fit(X, names, population=U)
        assert weighter.classes_.tolist() == ["healthy", "ill"]
        ratio = weighter.weights_ / weighter.class_weights_[y]
        np.testing.assert_allclose(ratio, ratio[0])
        assert weighter.weights_.sum() == pytest.approx(len(y))
        assert not hasattr(weighter, "weigh")
        assert weighter.overlap_ is None
        assert weighter.uncovered_ == 0

    def test_shuffling_rows_changes_nothing(self):
        X, y, U, _ = shifted((0.8, 0.2), m=300, n=500)
        order = np.random.default_rng(0).permutation(len(y))
        plain = LabelShiftWeights().fit(X, y, population=U)
        mixed = LabelShiftWeights().fit(X[order], y[order], population=U)
        np.testing.assert_allclose(mixed.weights_, plain.weights_[order], rtol=1e-9)

    def test_clone_and_pickle(self):
        X, y, U, _ = shifted((0.8, 0.2), m=300, n=500)
        weighter = LabelShiftWeights(RandomForestClassifier(20, random_state=0), cv=3)
        fitted = clone(weighter).fit(X, y, population=U)
        again = pickle.loads(pickle.dumps(fitted))
        np.testing.assert_array_equal(again.weights_, fitted.weights_)
        assert not hasattr(weighter.classifier, "classes_")

    def test_a_classifier_gets_rows_in_the_form_of_the_sample(self):
        X, y, U, _ = shifted((0.8, 0.2), m=300, n=500)
        frame = pd.DataFrame(X[:, :2], columns=["a", "b"]).assign(town=np.where(y, "x", "y"))
        frame.loc[::3, "town"] = "z"
        others = pd.DataFrame(U[:, :2], columns=["a", "b"]).assign(town="z")
        encoder = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
        pipeline = make_pipeline(encoder, LogisticRegression())
        with pytest.warns(LabelShiftWarning, match="not label shift alone"):
            weighter = LabelShiftWeights(pipeline).fit(frame, y, population=others)
        assert weighter.weights_.sum() == pytest.approx(300)

    def test_through_reweighted(self):
        """The model of the weighted sample is better on the population than the plain one."""
        X, y, U, hidden = shifted((0.95, 0.05), noise=3.0)
        model = Reweighted(LogisticRegression(), LabelShiftWeights())
        model.fit(X, y, population=U)
        plain = LogisticRegression().fit(X, y)
        corrected = model.weighter_.adjust_probabilities(plain.predict_proba(U))
        uncorrected = log_loss(hidden, plain.predict_proba(U))
        assert log_loss(hidden, model.predict_proba(U)) < 0.8 * uncorrected
        assert log_loss(hidden, corrected) < 0.8 * uncorrected

    @pytest.mark.filterwarnings(
        "ignore::unskew.errors.LabelShiftWarning"
    )  # of one draw in a hundred
    def test_an_interval_is_as_wide_as_estimates_vary(self):
        """Replicates draw sample rows anew, so that some have no weight."""
        shares = []
        for seed in range(40):
            X, y, U, _ = shifted((0.8, 0.2), m=200, n=1000, seed=3 * seed, noise=2.0)
            shares.append(LabelShiftWeights(cv=2).fit(X, y, population=U).population_shares_[1])
        found = estimate(X, y, population=U, weighter=LabelShiftWeights(cv=2), replicates=40)
        assert found.value == pytest.approx(shares[-1], abs=1e-9)
        assert found.standard_error == pytest.approx(np.std(shares), rel=0.4)
        assert found.assumptions[0].startswith("selection depends on the label alone")

    def test_one_pass_over_the_population(self):
        X, y, U, _ = shifted((0.8, 0.2), m=300, n=500)
        chunks = iter([U[:200], U[200:]])  # which can be read once
        weighter = LabelShiftWeights().fit(X, y, population=Population(chunks))
        expected = LabelShiftWeights().fit(X, y, population=U)
        np.testing.assert_allclose(weighter.weights_, expected.weights_)


class TestAdjusting:
    X, y, U, _ = shifted((0.8, 0.2), m=300, n=500)
    weighter = LabelShiftWeights().fit(X, y, population=U)

    def test_to_given_shares(self):
        p = np.array([0.1, 0.5, 0.9])
        prior = self.weighter.sample_shares_
        r = (0.1 / 0.9) * (prior[0] / prior[1])
        expected = p * r / (p * r + 1 - p)
        for shares in ({0: 0.9, 1: 0.1}, [0.9, 0.1], [9, 1]):
            found = self.weighter.adjust_probabilities(p, shares=shares)
            np.testing.assert_allclose(found, expected)
        both = self.weighter.adjust_probabilities(np.column_stack([1 - p, p]), shares=[0.9, 0.1])
        np.testing.assert_allclose(both[:, 1], expected)

    def test_estimated_shares_are_the_default(self):
        p = np.array([0.3, 0.6])
        given = self.weighter.population_shares_
        np.testing.assert_allclose(
            self.weighter.adjust_probabilities(p),
            self.weighter.adjust_probabilities(p, shares=given),
        )

    @pytest.mark.parametrize(
        ("p", "shares", "error", "message"),
        [
            ([[0.2, 0.3, 0.5]], None, InputError, "each of the 2 classes"),
            ([1.5], None, InputError, "from 0 to 1"),
            ([0.5], {0: 1.0}, ParameterError, "name each class once"),
            ([0.5], [1.0, -1.0], ParameterError, "none negative"),
            ([0.5], [0.0, 0.0], ParameterError, "zero for every class"),
        ],
    )
    def test_what_cannot_be_adjusted(self, p, shares, error, message):
        with pytest.raises(error, match=message):
            self.weighter.adjust_probabilities(p, shares=shares)


class TestVerdict:
    def test_selection_by_a_column_is_noticed_and_named(self):
        X, y, U, _ = shifted((0.8, 0.2))
        frame, others = (pd.DataFrame(one, columns=list("abcd")) for one in (X, U))
        with pytest.warns(LabelShiftWarning, match="'c' differs by"):
            weighter = LabelShiftWeights().fit(frame, y, population=others.assign(c=others.c + 1))
        assert not weighter.shift_test_.holds
        assert weighter.shift_test_.p_value < 1e-6
        assert "Selection depends on columns too" in str(weighter.shift_test_)

    @pytest.mark.filterwarnings("ignore::unskew.errors.LabelShiftWarning")
    def test_it_rejects_label_shift_as_seldom_as_it_says(self):
        p_values = []
        for seed in range(60):
            X, y, U, _ = shifted((0.8, 0.2), m=200, n=300, seed=100 * seed, noise=3.0)
            weighter = LabelShiftWeights(method="bbse", cv=2).fit(X, y, population=U)
            p_values.append(weighter.shift_test_.p_value)
        assert np.mean(np.array(p_values) < 0.05) <= 0.15  # binomial: above by chance once in 1,000


class TestErrors:
    X, y, U, _ = shifted((0.8, 0.2), m=60, n=100)

    @pytest.mark.parametrize(
        ("y", "message"),
        [
            (lambda y: y + 0.5 * np.arange(60) / 60, "HeckmanRegressor"),
            (lambda y: np.column_stack([y, y]), "classes"),
            (lambda y: 0 * y, "single class"),
            (lambda y: np.append(y[:-1], 7), "has one row"),
            (lambda y: None, "requires y"),
        ],
    )
    def test_labels_that_cannot_be_used(self, y, message):
        with pytest.raises(InputError, match=message):
            LabelShiftWeights().fit(self.X, y(self.y), population=self.U)

    def test_classifiers_that_cannot_be_used(self):
        with pytest.raises(LearnerError, match="no predict_proba"):
            LabelShiftWeights(RidgeClassifier()).fit(self.X, self.y, population=self.U)
        with pytest.raises(ParameterError, match="prefit"):
            LabelShiftWeights(prefit=True).fit(self.X, self.y, population=self.U)
        with pytest.raises(ParameterError, match="fitted classifier"):
            LabelShiftWeights(LogisticRegression(), prefit=True).fit(
                self.X, self.y, population=self.U
            )
        fitted = LogisticRegression().fit(self.X, self.y)
        with pytest.raises(InputError, match="does not know the class '2'"):
            LabelShiftWeights(fitted, prefit=True).fit(
                self.X, np.append(self.y[:-2], [2, 2]), population=self.U
            )

    def test_a_classifier_that_cannot_be_trained(self):
        frame = pd.DataFrame(self.X, columns=list("abcd")).assign(town="x")
        with pytest.raises(LearnerError, match="could not be trained.*pipeline"):
            LabelShiftWeights(LogisticRegression()).fit(frame, self.y, population=frame)
        with pytest.raises(LearnerError, match="takes no sample_weight"):
            LabelShiftWeights(KNeighborsClassifier()).fit(
                self.X, self.y, population=self.U, sample_weight=1 + self.y
            )

    def test_a_classifier_that_knows_nothing(self):
        from sklearn.dummy import DummyClassifier

        dummy = DummyClassifier().fit(self.X, self.y)
        with pytest.raises(InputError, match="do not distinguish the classes"):
            LabelShiftWeights(dummy, method="bbse", prefit=True, calibrate=False).fit(
                self.X, self.y, population=self.U
            )

    @pytest.mark.filterwarnings("ignore::unskew.errors.LabelShiftWarning")
    def test_negative_solutions_are_warned_of(self):
        X, y, _, _ = shifted((0.5, 0.5), m=400)
        far = X[y == 0] - 0.5 * (X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0))
        weighter = LabelShiftWeights(method="bbse", shrink=False)
        with pytest.warns(UserWarning, match="class '1' a weight of -.* set to zero"):
            weighter.fit(X, y, population=far)
        assert weighter.class_weights_[1] == 0

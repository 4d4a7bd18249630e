from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_validate
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from unskew import (
    ConformalRegressor,
    KnownProbability,
    Population,
    Reweighted,
    TreeWeights,
    Unweighted,
)
from unskew.errors import InputError, LearnerError, ParameterError

# Selection is strong and samples are small: regions without rows are told of, and rightly.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.* not covered by the sample:unskew.errors.OverlapWarning"
)

REGRESSORS = [
    SVR(),
    KernelRidge(kernel="rbf"),
    LinearRegression(),
    DecisionTreeRegressor(max_depth=3, random_state=0),
    AdaBoostRegressor(n_estimators=5, random_state=0),
    RandomForestRegressor(n_estimators=5, random_state=0),
    GradientBoostingRegressor(n_estimators=5, random_state=0),
]
CLASSIFIERS = [
    LogisticRegression(),
    SVC(),
    DecisionTreeClassifier(max_depth=3, random_state=0),
    AdaBoostClassifier(n_estimators=5, random_state=0),
    RandomForestClassifier(n_estimators=5, random_state=0),
    HistGradientBoostingClassifier(max_iter=5),
]
by_name = {"ids": lambda learner: type(learner).__name__}


@pytest.fixture
def small(shift):
    return shift.sample[:200], shift.labels[:200], shift.population[:500]


@pytest.mark.parametrize("learner", REGRESSORS, **by_name)
def test_regressors_are_trained_with_the_weights(small, learner):
    X, y, U = small
    model = Reweighted(learner, TreeWeights()).fit(X, y, population=U)
    weights = TreeWeights().fit(X, y, population=U).weights_
    by_hand = clone(learner).fit(X, y, sample_weight=weights)
    unweighted = clone(learner).fit(X, y)
    assert np.array_equal(model.weights_, weights)
    assert np.array_equal(model.predict(U), by_hand.predict(U))
    assert not np.allclose(model.predict(U), unweighted.predict(U))
    assert model.score(X, y) == by_hand.score(X, y)
    assert is_regressor(model)


@pytest.mark.parametrize("learner", CLASSIFIERS, **by_name)
def test_classifiers_are_trained_with_the_weights(small, learner):
    X, y, U = small
    classes = np.where(y > 0.5, "high", "low")
    model = Reweighted(learner, TreeWeights()).fit(X, classes, population=U)
    by_hand = clone(learner).fit(X, classes, sample_weight=model.weights_)
    assert is_classifier(model)
    assert model.classes_.tolist() == ["high", "low"]
    assert np.array_equal(model.predict(U), by_hand.predict(U))
    for method in ("predict_proba", "predict_log_proba", "decision_function"):
        assert hasattr(model, method) == hasattr(learner, method)
        if hasattr(learner, method):
            with np.errstate(divide="ignore"):  # the logarithm of a probability of zero
                assert np.array_equal(getattr(model, method)(U), getattr(by_hand, method)(U))


def test_weights_correct_a_misspecified_learner():
    random = np.random.default_rng(0)
    U = random.normal(size=(4000, 1))
    probabilities = 1 / (1 + np.exp(-3 * U[:, 0]))
    selected = random.uniform(size=len(U)) < probabilities
    X, y = U[selected], U[selected, 0] ** 2

    def error(weighter):
        model = Reweighted(LinearRegression(), weighter).fit(X, y, population=U)
        return np.mean((model.predict(U) - U[:, 0] ** 2) ** 2)

    plain = error(Unweighted())
    assert error(TreeWeights(min_samples_leaf=20)) < 0.6 * plain
    assert error(KnownProbability(probabilities[selected])) < 0.6 * plain


class TestWithinScikitLearn:
    def test_a_pipeline_passes_weights_to_its_last_step(self, small):
        X, y, U = small
        pipeline = make_pipeline(StandardScaler(), Ridge())
        model = Reweighted(pipeline, TreeWeights()).fit(X, y, population=U)
        by_hand = clone(pipeline).fit(X, y, ridge__sample_weight=model.weights_)
        assert np.array_equal(model.predict(U), by_hand.predict(U))

    def test_a_pipeline_in_a_pipeline_and_a_transformed_target(self, small):
        X, y, U = small
        inner = TransformedTargetRegressor(Ridge(), transformer=StandardScaler())
        learner = make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), inner))
        model = Reweighted(learner, TreeWeights()).fit(X, y, population=U)
        plain = clone(learner).fit(X, y)
        assert not np.allclose(model.predict(U), plain.predict(U))

    def test_a_search_inside_hands_the_weights_on(self, small):
        X, y, U = small
        search = GridSearchCV(make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [1, 10]})
        model = Reweighted(search, TreeWeights()).fit(X, y, population=U)
        best = make_pipeline(StandardScaler(), Ridge(**_alpha(model.estimator_)))
        best.fit(X, y, ridge__sample_weight=model.weights_)
        assert np.allclose(model.predict(U), best.predict(U))

    def test_cross_validation_hands_the_population_through_whole(self, small):
        X, y, U = small
        seen = []

        class Spy(TreeWeights):
            def fit(self, X, y=None, *, population, **options):
                seen.append((len(X), population.size))
                return super().fit(X, y, population=population, **options)

        model = Reweighted(Ridge(), Spy())
        # A population as long as the sample is the case in which an array would be cut up.
        result = cross_validate(model, X, y, params={"population": Population(U[:200])}, cv=4)
        assert len(result["test_score"]) == 4
        assert seen == [(150, 200)] * 4

    def test_grid_search_reaches_both_parts(self, small):
        X, y, U = small
        search = GridSearchCV(
            Reweighted(Ridge(), TreeWeights()),
            {"estimator__alpha": [0.1, 10.0], "weighter__min_samples_leaf": [4, 20]},
            cv=3,
        ).fit(X, y, population=Population(U))
        assert len(search.cv_results_["params"]) == 4
        assert hasattr(search, "best_estimator_")

    @pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, pl.DataFrame, list])
    def test_a_population_that_would_be_cut_into_folds_is_refused(self, small, form):
        X, y, U = small
        raw = form(U[: len(X)])
        search = GridSearchCV(Reweighted(Ridge(), TreeWeights()), {"estimator__alpha": [1.0]}, cv=3)
        with pytest.raises(ValueError, match=r"Wrap it: population=Population\(U\)"):
            search.set_params(error_score="raise").fit(X, y, population=raw)
        with pytest.raises(ValueError, match=r"as many rows as X \(133\)"):
            cross_validate(
                search.estimator,
                X,
                y,
                params={"population": raw},
                cv=3,
                n_jobs=2,
                error_score="raise",
            )
        assert search.fit(X, y, population=Population(raw)).best_score_ > 0
        assert search.fit(X, y, population=U).best_score_ > 0  # of another length: handed on whole

    @pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, pl.DataFrame, list])
    def test_a_population_with_as_many_rows_as_the_sample(self, small, form):
        X, y, U = small
        raw = U[: len(X)]
        model = Reweighted(Ridge(), TreeWeights())
        expected = model.fit(X, y, population=Population(raw)).weights_
        assert np.array_equal(model.fit(X, y, population=form(raw)).weights_, expected)
        pipeline = make_pipeline(FunctionTransformer(), model)
        pipeline.fit(X, y, reweighted__population=form(raw))
        assert np.array_equal(pipeline[-1].weights_, expected)

    @pytest.mark.parametrize("named", [True, False])
    @pytest.mark.parametrize(
        "encoder",
        [
            OneHotEncoder(),
            OneHotEncoder(sparse_output=False),
            OneHotEncoder(sparse_output=False).set_output(transform="pandas"),
            OrdinalEncoder(),
            OrdinalEncoder().set_output(transform="pandas"),
        ],
    )
    def test_an_encoder_before_it_belongs_inside(self, encoder, named):
        random = np.random.default_rng(0)
        U = pd.DataFrame(
            {"age": random.integers(0, 9, 300), "town": random.choice(["a", "b"], 300)}
        )
        U = U if named else U.to_numpy()
        y = random.normal(size=100)
        outside = make_pipeline(encoder, Reweighted(Ridge(), TreeWeights()))
        with pytest.raises(InputError, match=r"put the pipeline inside, Reweighted\(make_pipe"):
            outside.fit(U[:100], y, reweighted__population=U)
        inside = Reweighted(make_pipeline(clone(encoder), Ridge()), TreeWeights())
        assert inside.fit(U[:100], y, population=U).predict(U[:100]).shape == (100,)

    def test_parallel_cross_validation(self, small):
        X, y, U = small
        params = {"population": Population(U)}
        model = Reweighted(Ridge(), TreeWeights())
        one, two = (
            cross_validate(model, X, y, params=params, n_jobs=jobs)["test_score"] for jobs in (1, 2)
        )
        assert np.array_equal(one, two)

    def test_metadata_routing(self, small):
        X, y, U = small
        with sklearn.config_context(enable_metadata_routing=True):
            model = Reweighted(make_pipeline(StandardScaler(), Ridge()), TreeWeights())
            model.set_fit_request(population=True)
            scores = cross_validate(model, X, y, params={"population": Population(U)})
        plain = cross_validate(
            Reweighted(make_pipeline(StandardScaler(), Ridge()), TreeWeights()),
            X,
            y,
            params={"population": Population(U)},
        )
        assert np.array_equal(scores["test_score"], plain["test_score"])

    def test_stratified_folds_for_classes(self, small):
        X, y, U = small
        classes = (y > np.quantile(y, 0.9)).astype(int)
        predicted = cross_val_predict(
            Reweighted(LogisticRegression(), TreeWeights()),
            X,
            classes,
            params={"population": Population(U)},
        )
        assert set(predicted) <= {0, 1}

    def test_dataframes_with_text_reach_a_learner_that_encodes_them(self):
        from sklearn.compose import make_column_transformer

        random = np.random.default_rng(0)
        U = pd.DataFrame({"age": random.normal(size=300), "town": random.choice(list("ab"), 300)})
        X, y = U[:100], random.normal(size=100)
        encoder = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
        model = Reweighted(make_pipeline(encoder, Ridge()), TreeWeights()).fit(X, y, population=U)
        assert model.predict(U).shape == (300,)
        assert model.feature_names_in_.tolist() == ["age", "town"]


def _alpha(search):
    return {"alpha": search.best_params_["ridge__alpha"]}


class TestLearnersWithoutWeights:
    def test_they_are_an_error_that_offers_a_way(self, small):
        X, y, U = small
        for learner in (
            KNeighborsRegressor(),
            make_pipeline(StandardScaler(), KNeighborsRegressor()),
        ):
            with pytest.raises(
                LearnerError, match="KNeighborsRegressor takes no sample_weight"
            ) as e:
                Reweighted(learner, TreeWeights()).fit(X, y, population=U)
            assert 'resample="multiplicity"' in str(e.value)
            assert 'resample="rejection"' in str(e.value)

    def test_multiplicities_follow_the_weights(self, small):
        X, y, U = small
        model = Reweighted(
            KNeighborsRegressor(), TreeWeights(), resample="multiplicity", random_state=0
        ).fit(X, y, population=U)
        assert model.multiplicities_.sum() == 200
        assert (np.abs(model.multiplicities_ - model.weights_) < 1).all()
        rows = np.repeat(np.arange(200), model.multiplicities_)
        by_hand = KNeighborsRegressor().fit(X[rows], y[rows])
        assert np.array_equal(model.predict(U), by_hand.predict(U))

    def test_the_size_of_the_resampled_sample_can_be_stated(self, small):
        X, y, U = small
        model = Reweighted(
            KNeighborsRegressor(), TreeWeights(), resample="multiplicity", resample_size=5000
        ).fit(X, y, population=U)
        assert model.multiplicities_.sum() == 5000
        assert model.multiplicities_ == pytest.approx(model.weights_ * 25, abs=1)

    def test_with_many_copies_it_approaches_the_weighted_fit(self, small):
        X, y, U = small
        resampled = Reweighted(
            LinearRegression(),
            TreeWeights(),
            resample="multiplicity",
            resample_size=1_000_000,
        ).fit(X, y, population=U)
        weighted = Reweighted(LinearRegression(), TreeWeights()).fit(X, y, population=U)
        assert resampled.predict(U) == pytest.approx(weighted.predict(U), abs=1e-3)

    def test_rejection_averages_its_rounds(self, small):
        X, y, U = small
        model = Reweighted(
            KNeighborsRegressor(), TreeWeights(), resample="rejection", rounds=4, random_state=1
        ).fit(X, y, population=U)
        members = model.estimator_.members
        assert len(members) == 4
        assert np.allclose(model.predict(U), np.mean([m.predict(U) for m in members], axis=0))
        assert np.isfinite(model.score(X, y))

    @pytest.mark.parametrize("learner", [KNeighborsClassifier(1), LinearSVC()], **by_name)
    def test_rejection_of_classes(self, small, learner):
        X, y, U = small
        classes = np.digitize(y, [0.0, 1.0, 9.0])  # the last class is rare: some rounds lack it
        model = Reweighted(
            learner, TreeWeights(), resample="rejection", rounds=5, random_state=0
        ).fit(X, classes, population=U)
        assert set(model.predict(U)) <= set(classes)
        assert 0 <= model.score(X, classes) <= 1
        if hasattr(learner, "predict_proba"):
            probabilities = model.predict_proba(U)
            assert probabilities.shape == (500, len(np.unique(classes)))
            assert np.allclose(probabilities.sum(axis=1), 1)

    def test_one_seed_one_model(self, small):
        X, y, U = small
        for resample in ("multiplicity", "rejection"):
            model = Reweighted(
                KNeighborsRegressor(), TreeWeights(), resample=resample, random_state=7
            )
            first, second = (clone(model).fit(X, y, population=U).predict(U) for _ in range(2))
            assert np.array_equal(first, second)


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_labels_and_weights_by_the_names_of_columns(small, library):
    X, y, U = small
    names = ["a", "b", "c"]
    design = 1.0 + np.arange(len(X)) % 3
    frame = library.DataFrame({**dict(zip(names, X.T, strict=True)), "y": y, "w": design})
    population = library.DataFrame(dict(zip(names, U.T, strict=True)))
    model = Reweighted(Ridge(), TreeWeights()).fit(X, y, population=U, sample_weight=design)
    named = Reweighted(Ridge(), TreeWeights())
    named.fit(frame, "y", population=population, sample_weight="w")
    assert named.weights_ == pytest.approx(model.weights_, rel=1e-12)
    assert named.predict(population) == pytest.approx(model.predict(U), rel=1e-9)
    conformal = ConformalRegressor(Ridge(), TreeWeights())
    conformal.fit(frame, "y", population=population, sample_weight="w")
    expected = ConformalRegressor(Ridge(), TreeWeights())
    expected.fit(X, y, population=U, sample_weight=design)
    found = conformal.predict_interval(population), expected.predict_interval(U)
    np.testing.assert_allclose(*found, rtol=1e-9)


def test_one_row():
    model = Reweighted(DummyRegressor()).fit([[1.0]], [3.0], population=[[1.0], [2.0]])
    assert model.power_ == 1.0
    assert model.predict([[5.0]]) == pytest.approx([3.0])


def test_mistakes_are_named(small):
    X, y, U = small
    with pytest.raises(ParameterError, match="population is None"):
        Reweighted(Ridge(), TreeWeights()).fit(X, y)
    with pytest.raises(InputError, match="requires y"):
        Reweighted(Ridge(), Unweighted()).fit(X, None, population=U)
    with pytest.raises(ParameterError, match="'resample' parameter of Reweighted"):
        Reweighted(Ridge(), TreeWeights(), resample="magic").fit(X, y, population=U)
    with pytest.raises(ParameterError, match="'weighter' parameter of Reweighted"):
        Reweighted(Ridge(), Ridge()).fit(X, y, population=U)
    with pytest.raises(ParameterError, match="'estimator' parameter of Reweighted"):
        Reweighted(StandardScaler(), TreeWeights()).fit(X, y, population=U)
    with pytest.raises(NotFittedError):
        Reweighted(Ridge(), TreeWeights()).predict(X)


def test_the_score_can_be_weighted(small):
    X, y, U = small
    model = Reweighted(Ridge(), TreeWeights()).fit(X, y, population=U)
    weighted = model.score(X, y, sample_weight=model.weighter_.weigh(X))
    assert weighted == model.estimator_.score(X, y, sample_weight=model.weights_)
    assert weighted != model.score(X, y)


def test_resampling_that_leaves_too_little_is_named():
    X, y = np.arange(40.0).reshape(20, 2), np.arange(20.0)
    probability = np.append(1e-6, np.ones(19))
    model = Reweighted(
        LogisticRegression(),
        KnownProbability(probability),
        resample="rejection",
        random_state=0,
    )
    with pytest.raises(LearnerError, match="distinct rows that resampling left of 20"):
        model.fit(X, (y > 0).astype(int), population=Population(X))


def test_rejection_that_keeps_one_row_says_so():
    X, y = np.arange(40.0).reshape(20, 2), np.arange(20.0)
    model = Reweighted(
        KNeighborsRegressor(1),
        KnownProbability(np.append(1e-9, np.ones(19))),
        resample="rejection",
        rounds=3,
        random_state=0,
    )
    with pytest.warns(UserWarning, match=r"kept one row of 20 in 3 of 3 rounds.*size is 1\.0") as w:
        model.fit(X, y, population=Population(X))
    assert [str(one.filename) for one in w] == [__file__]
    assert (model.predict(X) == y[0]).all()


def test_fitting_again_leaves_nothing_behind():
    X, y = np.arange(40.0).reshape(20, 2), np.arange(20.0)
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = Reweighted(Ridge(), TreeWeights(), resample="multiplicity")
    model.fit(frame, y, population=Population(frame))
    model.set_params(resample=None).fit(X, y, population=Population(X))
    assert not hasattr(model, "feature_names_in_")
    assert not hasattr(model, "multiplicities_")

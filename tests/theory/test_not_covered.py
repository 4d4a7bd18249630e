"""What a certificate refuses, and why."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Lasso
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from tests.theory.helpers import BUCKETS, fitted, ridge

from unskew import FrequencyWeights, KnownProbability, Population, Reweighted, Unweighted
from unskew.errors import InputTypeError, LearnerError, ParameterError
from unskew.theory import certificate


class TestNotCovered:
    @pytest.mark.parametrize(
        ("learner", "why"),
        [
            (Lasso(), "Lasso does not minimise"),
            (RandomForestRegressor(n_estimators=2), "RandomForestRegressor does not"),
            (make_pipeline(StandardScaler(), Lasso()), "Lasso does not"),
            (KernelRidge(kernel="linear"), 'kernel="linear" has no bound.*"rbf"'),
            (SVR(kernel="poly", degree=2), 'kernel="poly" has no bound.*"rbf"'),
            (KernelRidge(kernel=lambda x, y: float(x @ y)), "a custom kernel has no bound"),
            (ridge(alpha=0.0), "alpha=0.0 is not a positive penalty"),
        ],
    )
    @pytest.mark.filterwarnings("ignore")
    def test_learners(self, cells, learner, why):
        population, sample, labels, _ = cells
        model = Reweighted(learner, BUCKETS).fit(sample[:200], labels[:200], population=population)
        with pytest.raises(LearnerError, match=f"not covered: .*{why}"):
            certificate(model)

    @pytest.mark.parametrize(
        ("weighter", "why"),
        [
            (Unweighted(), "makes no correction"),
            (KnownProbability(lambda X: np.full(len(X), 0.5)), "estimates nothing"),
        ],
    )
    def test_weighters(self, cells, weighter, why):
        with pytest.raises(LearnerError, match=f"not covered: .*{why}"):
            certificate(fitted(cells, weighter=weighter))

    def test_resampling(self, cells):
        population, sample, labels, _ = cells
        model = Reweighted(KNeighborsRegressor(), BUCKETS, resample="multiplicity", random_state=0)
        with pytest.raises(LearnerError, match="not covered: .*resampled"):
            certificate(model.fit(sample, labels, population=population))

    def test_design_weights(self, cells):
        population, sample, labels, _ = cells
        design = np.random.default_rng(0).uniform(0.5, 2, len(sample))
        model = Reweighted(ridge(), BUCKETS)
        model.fit(sample, labels, population=population, sample_weight=design)
        with pytest.raises(LearnerError, match="not covered: design weights"):
            certificate(model)
        weight = np.random.default_rng(0).uniform(0.5, 2, len(population))
        model.fit(sample, labels, population=Population(population, weight=weight))
        with pytest.raises(LearnerError, match="not covered: design weights"):
            certificate(model)

    def test_a_sample_that_is_no_part_of_the_population(self, cells):
        population, sample, labels, _ = cells
        model = Reweighted(ridge(), BUCKETS).fit(sample, labels, population=population[:300])
        with pytest.raises(LearnerError, match="not covered: cell .* part of the population"):
            certificate(model)

    @pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")
    def test_a_population_out_of_reach(self, cells):
        population, sample, labels, _ = cells
        model = Reweighted(ridge(), FrequencyWeights())
        model.fit(sample, labels, population=population)
        with pytest.raises(LearnerError, match="not covered: .* without sample rows"):
            certificate(model)

    def test_a_model_without_support_vectors(self, cells):
        population, sample, _, _ = cells
        model = Reweighted(SVR(), BUCKETS).fit(sample, np.zeros(len(sample)), population=population)
        with pytest.raises(LearnerError, match="not covered: SVR has no support vectors"):
            certificate(model)

    def test_several_labels(self, cells):
        population, sample, labels, _ = cells
        model = Reweighted(ridge(), BUCKETS)
        model.fit(sample, np.column_stack([labels, labels]), population=population)
        with pytest.raises(LearnerError, match="not covered: the labels have 2 columns"):
            certificate(model)


class TestBadInput:
    @pytest.mark.parametrize("delta", [0, 1, -1, 1.5, math.nan, None])
    def test_delta(self, cells, delta):
        with pytest.raises(ParameterError, match="delta"):
            certificate(fitted(cells), delta)

    def test_what_is_no_reweighted_model(self):
        with pytest.raises(InputTypeError, match="takes a fitted Reweighted; got KernelRidge"):
            certificate(ridge())

    def test_what_is_not_fitted(self):
        from sklearn.exceptions import NotFittedError

        with pytest.raises(NotFittedError):
            certificate(Reweighted(ridge(), BUCKETS))

    @pytest.mark.parametrize("name", ["coarse_cells", "refits"])
    def test_numbers(self, cells, name):
        with pytest.raises(ParameterError, match=name):
            certificate(fitted(cells), **{name: 0})

    def test_population_is_for_matching_only(self, cells):
        with pytest.raises(ParameterError, match="population is only for classifiers"):
            certificate(fitted(cells), population=cells[0])

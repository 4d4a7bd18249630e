"""Training a learner on weighted rows, or on resampled ones if it takes no weights."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import has_fit_parameter

from unskew._compat import _num_samples, _safe_indexing
from unskew.errors import LearnerError, warn_caller
from unskew.learning.committee import Committee
from unskew.learning.resampling import multiplicities, rejection
from unskew.numerics.typing import FloatArray, IntArray
from unskew.numerics.weight_vectors import effective_sample_size
from unskew.weighters.weight_keyword import weight_keyword


class Trainer:
    """Trains clones of a learner.

    Parameters
    ----------
    estimator : estimator
    keyword : str or None
        Under which its ``fit`` takes weights.
    resample : {"multiplicity", "rejection"} or None
    resample_size : int or None
    rounds : int
    random : RandomState

    Attributes
    ----------
    multiplicities_ : ndarray of int
        How often each row was used in the last fit, with ``resample="multiplicity"``.
    """

    def __init__(
        self,
        estimator: Any,
        keyword: str | None,
        resample: Literal["multiplicity", "rejection"] | None,
        resample_size: int | None,
        rounds: int,
        random: np.random.RandomState,
    ) -> None:
        self.estimator = estimator
        self.keyword = keyword
        self.resample = resample
        self.resample_size = resample_size
        self.rounds = rounds
        self.random = random

    def fit(self, X: Any, y: Any, weights: FloatArray | None) -> Any:
        """Train the learner, without weights where they are all one."""
        counted = np.ones(_num_samples(X)) if weights is None else weights
        if self.keyword is not None and self.resample is None:
            plain = bool((counted == 1.0).all())
            return train(self.estimator, X, y, **({} if plain else {self.keyword: counted}))
        if self.resample == "multiplicity":
            return self._fit_multiplicity(X, y, counted)
        return self._fit_rejection(X, y, counted)

    def _fit_multiplicity(self, X: Any, y: Any, weights: FloatArray) -> Any:
        size = self.resample_size or max(1, round(weights.sum()))
        self.multiplicities_ = multiplicities(weights, size, self.random)
        rows = np.repeat(np.arange(len(weights)), self.multiplicities_)
        return self._train_resampled(X, y, rows, weights)

    def _fit_rejection(self, X: Any, y: Any, weights: FloatArray) -> Committee:
        members, kept = [], list[int]()
        for _ in range(self.rounds):
            rows = np.flatnonzero(rejection(weights, self.random))  # never none: max w is kept
            kept.append(len(rows))
            members.append(self._train_resampled(X, y, rows, weights))
        self._warn_of_single_rows(kept, weights)
        classes = np.unique(np.asarray(y)) if is_classifier(self.estimator) else None
        return Committee(members, classes)

    def _warn_of_single_rows(self, kept: list[int], weights: FloatArray) -> None:
        alone = kept.count(1)
        if alone:
            warn_caller(
                UserWarning(
                    f"Rejection sampling kept one row of {len(weights)} in {alone} of "
                    f"{len(kept)} rounds, and a learner of one row knows nothing else: a few "
                    "weights are far larger than the others (the effective sample size is "
                    f'{effective_sample_size(weights):.1f}). Use resample="multiplicity", or '
                    "a weighter with smaller weights."
                )
            )

    def _train_resampled(self, X: Any, y: Any, rows: IntArray, weights: FloatArray) -> Any:
        try:
            return train(self.estimator, _safe_indexing(X, rows), _safe_indexing(y, rows))
        except ValueError as error:
            raise LearnerError(
                f"{learner_name(self.estimator)} could not be trained on the "
                f"{len(np.unique(rows))} distinct rows that resampling left of "
                f"{len(weights)} (their effective sample size is "
                f"{effective_sample_size(weights):.0f}): {error}"
            ) from error


class TrainingRows(NamedTuple):
    """Rows on which to train learners, with the design weights that they have, if any.

    Attributes
    ----------
    X, y : array-likes
    design : ndarray or None
    population : Population or Margins
        For learners that weigh the sample themselves.
    """

    X: Any
    y: Any
    design: FloatArray | None
    population: Any

    def take(self, places: IntArray) -> TrainingRows:
        """Return the rows at these places."""
        design = None if self.design is None else self.design[places]
        X, y = _safe_indexing(self.X, places), self.y[places]
        return TrainingRows(X, y, design, self.population)

    def train(self, learner: Any, y: Any = None) -> Any:
        """Return a fitted clone, on other labels if they are given."""
        weights = {}
        if self.design is not None and not is_frozen(learner):
            keyword = weight_keyword(learner)
            if keyword is None:
                raise LearnerError(
                    f"{learner_name(learner)} takes no sample_weight, so the design weights could "
                    "not reach it. Use a learner that takes weights, or pass no sample_weight."
                )
            weights[keyword] = self.design
        return train(learner, self.X, self.y if y is None else y, self.population, **weights)


def train(learner: Any, X: Any, y: Any, population: Any = None, **weights: FloatArray) -> Any:
    """Return a fitted clone of a learner; one that weighs the sample gets the population."""
    further = {"population": population} if weighs_itself(learner) else {}
    # The keyword names the step that takes the weights; metadata routing would want requests set
    # on every step for the same purpose.
    with sklearn.config_context(enable_metadata_routing=False):
        return clone(learner).fit(X, y, **further, **weights)


def weighs_itself(learner: Any) -> bool:
    """Whether a learner weighs its sample by a population, as ``Reweighted`` does."""
    return bool(has_fit_parameter(learner, "population"))


def is_frozen(learner: Any) -> bool:
    """Whether a learner, or the last step of a pipeline, is trained already and stays as it is."""
    steps = getattr(learner, "steps", None)
    return is_frozen(steps[-1][1]) if steps else isinstance(learner, FrozenEstimator)


def learner_name(learner: Any) -> str:
    """Return the name of a learner, of the last step of a pipeline."""
    steps = getattr(learner, "steps", None)
    return learner_name(steps[-1][1]) if steps else type(learner).__name__

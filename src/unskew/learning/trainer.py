"""Training a learner on weighted rows, or on resampled ones if it takes no weights."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import sklearn
from sklearn.base import clone, is_classifier

from unskew._compat import _num_samples, _safe_indexing
from unskew.errors import LearnerError, warn_caller
from unskew.learning.committee import Committee
from unskew.learning.resampling import multiplicities, rejection
from unskew.numerics.typing import FloatArray, IntArray
from unskew.numerics.weight_vectors import effective_sample_size


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
            return _train(self.estimator, X, y, **({} if plain else {self.keyword: counted}))
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
            return _train(self.estimator, _safe_indexing(X, rows), _safe_indexing(y, rows))
        except ValueError as error:
            raise LearnerError(
                f"{learner_name(self.estimator)} could not be trained on the "
                f"{len(np.unique(rows))} distinct rows that resampling left of "
                f"{len(weights)} (their effective sample size is "
                f"{effective_sample_size(weights):.0f}): {error}"
            ) from error


def _train(learner: Any, X: Any, y: Any, **weights: FloatArray) -> Any:
    # The keyword names the step that takes the weights; metadata routing would want requests set
    # on every step for the same purpose.
    with sklearn.config_context(enable_metadata_routing=False):
        return clone(learner).fit(X, y, **weights)


def learner_name(learner: Any) -> str:
    """Return the name of a learner, of the last step of a pipeline."""
    steps = getattr(learner, "steps", None)
    return learner_name(steps[-1][1]) if steps else type(learner).__name__

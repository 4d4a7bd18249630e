"""Any classifier as the model of who is selected: an experiment."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri, xlogy
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from unskew.errors import InputError, LearnerError
from unskew.learning.heckman_rows import HeckmanRows
from unskew.numerics.typing import FloatArray
from unskew.weighters.weight_keyword import weight_keyword

_FOLDS = 5
_CERTAIN = 40.0
"""The index from which the inverse Mills ratio is zero in floating point."""


class SelectionScores(NamedTuple):
    """A classifier of who is selected.

    Attributes
    ----------
    model : classifier
        Fitted on all rows.
    probability : ndarray of shape (n_rows,)
        Of being selected, each by a model that was fitted without the row.
    log_likelihood : float
        Of who is selected, by these probabilities.
    """

    model: Any
    probability: FloatArray
    log_likelihood: float


def score_selection(classifier: Any, z: FloatArray, rows: HeckmanRows) -> SelectionScores:
    """Fit a classifier of who is selected, and score each row by one that was fitted without it."""
    selected = rows.selected
    name = type(classifier).__name__
    if not hasattr(classifier, "predict_proba"):
        raise LearnerError(
            f"selection_model: {name} has no predict_proba. Wrap it in scikit-learn's "
            "CalibratedClassifierCV."
        )
    n_folds = min(_FOLDS, int(selected.sum()), int((~selected).sum()))
    if n_folds < 2:
        raise InputError(
            "selection_model needs at least two rows that are selected, and two that are not."
        )
    kind = StratifiedKFold if rows.groups is None else StratifiedGroupKFold
    folds = kind(n_folds, shuffle=True, random_state=0)
    probability = np.empty(len(selected))
    for train, rest in folds.split(z, selected, rows.groups):
        model = _fit(classifier, z[train], selected[train], rows.weight[train])
        probability[rest] = model.predict_proba(z[rest])[:, 1]
    with np.errstate(divide="ignore"):
        said = xlogy(selected, probability) + xlogy(~selected, 1 - probability)
    model = _fit(classifier, z, selected, rows.weight)
    return SelectionScores(model, probability, float(rows.weight @ said))


def index_of(probability: FloatArray) -> FloatArray:
    """Return the index whose Φ is the probability of being selected.

    Examples
    --------
    >>> index_of(np.array([0.5, 1.0]))
    array([ 0., 40.])
    """
    if (probability <= 0).any():
        raise InputError(
            f"selection_model gives {int((probability <= 0).sum()):,} rows a probability of zero "
            "to be selected, where the inverse Mills ratio is infinite. Use a smoother classifier: "
            "larger leaves, or CalibratedClassifierCV around it."
        )
    return np.minimum(ndtri(probability), _CERTAIN)


def _fit(classifier: Any, z: FloatArray, selected: Any, weight: FloatArray) -> Any:
    model, options = clone(classifier), {}
    if np.ptp(weight) > 1e-9 * weight.max():
        keyword = weight_keyword(model)
        if keyword is None:
            raise LearnerError(
                f"selection_model: {type(model).__name__} takes no sample_weight, so the design "
                "weights could not reach it. Use a classifier that takes weights."
            )
        options[keyword] = weight
    return model.fit(z, selected, **options)

"""Probabilities of classes from linear scores, in NumPy alone, so that they travel lightly."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unskew.numerics.typing import FloatArray


def softmax(scores: FloatArray) -> FloatArray:
    """Return e^score, normalised over the last axis.

    Examples
    --------
    >>> softmax(np.array([0.0, np.log(3.0)]))
    array([0.25, 0.75])
    """
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    result: FloatArray = powers / powers.sum(axis=-1, keepdims=True)
    return result


class LinearClasses(NamedTuple):
    """A fitted logistic regression: a row of coefficients for each class, or one for two classes.

    Examples
    --------
    >>> LinearClasses(np.array([[1.0]]), np.zeros(1)).predict_proba(np.array([[np.log(3.0)]]))
    array([[0.25, 0.75]])
    """

    coef: FloatArray
    intercept: FloatArray

    def predict_proba(self, points: FloatArray) -> FloatArray:
        """Return the probabilities of the classes."""
        scores = points @ self.coef.T + self.intercept
        if scores.shape[1] == 1:
            scores = np.column_stack([np.zeros(len(scores)), scores])
        return softmax(scores)

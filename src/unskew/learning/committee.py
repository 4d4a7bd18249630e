"""The average of several fitted learners."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.metaestimators import available_if


def _all_have(name: str) -> Callable[[Committee], bool]:
    return lambda committee: all(hasattr(member, name) for member in committee.members)


def _all_decide_alike(committee: Committee) -> bool:
    # A member that saw fewer classes has a decision function of another shape.
    return _all_have("decision_function")(committee) and all(
        len(member.classes_) == len(committee.classes_)
        for member in committee.members
        if hasattr(committee, "classes_")
    )


class Committee:
    """The average of its members' predictions; for classes, of their probabilities or votes.

    Parameters
    ----------
    members : sequence of fitted estimators
    classes : ndarray, optional
        All classes, where the members are classifiers; a member may have seen only some of them.
    """

    def __init__(self, members: Sequence[Any], classes: NDArray[Any] | None) -> None:
        self.members = members
        if classes is not None:
            self.classes_ = classes

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the mean prediction, or the class with the largest mean probability."""
        if not is_classifier(self.members[0]):
            return np.mean([member.predict(X) for member in self.members], axis=0)
        shares = self.predict_proba(X) if hasattr(self, "predict_proba") else self._votes(X)
        return np.asarray(self.classes_[np.argmax(shares, axis=1)])

    @available_if(_all_have("predict_proba"))
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the mean of the members' probabilities."""
        return np.mean(
            [
                aligned(member.predict_proba(X), member.classes_, self.classes_)
                for member in self.members
            ],
            axis=0,
        )

    @available_if(_all_decide_alike)
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the mean of the members' decision functions."""
        return np.mean([member.decision_function(X) for member in self.members], axis=0)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of classes, or the coefficient of determination."""
        metric = accuracy_score if is_classifier(self.members[0]) else r2_score
        return float(metric(y, self.predict(X), sample_weight=sample_weight))

    def _votes(self, X: Any) -> NDArray[np.float64]:
        votes = [member.predict(X)[:, None] == self.classes_ for member in self.members]
        return np.mean(votes, axis=0)


def aligned(
    probabilities: NDArray[np.float64], known: NDArray[Any], classes: NDArray[Any]
) -> NDArray[np.float64]:
    """Return the probabilities of all classes, zero for those that a learner has not seen.

    Examples
    --------
    >>> aligned(np.array([[0.25, 0.75]]), np.array(["a", "c"]), np.array(["a", "b", "c"]))
    array([[0.25, 0.  , 0.75]])
    """
    whole = np.zeros((len(probabilities), len(classes)))
    whole[:, np.searchsorted(classes, known)] = probabilities
    return whole

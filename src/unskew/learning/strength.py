"""How strongly to weight, or not at all, by the learner's own loss.

A better density ratio is not a better learner: one that can fit the truth needs no weights, and
they cost it variance. So candidates (a weighter and a power of its weights) are compared by
importance-weighted cross-validation (Sugiyama, Krauledat and Müller, JMLR 8, 2007): each is trained
on four fifths of the sample, and its loss on the rest is averaged with the same evaluation weights,
capped and cross-fitted, for all. Not weighting stays unless another is better by one standard error
of the paired difference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold, StratifiedKFold

from unskew._compat import _safe_indexing
from unskew.learning.row_losses import row_loss
from unskew.numerics.typing import FloatArray, IntArray

N_FOLDS = 5
NOT_WEIGHTING = "not weighting"

Train = Callable[[Any, Any, "FloatArray | None"], Any]
"""Fits the learner on rows and labels with these weights, or with none."""


class Weighing(NamedTuple):
    """A way of weighing the sample: the weights for any of its rows as training rows."""

    name: str
    power: float
    weights: Callable[[IntArray], FloatArray | None]
    """From the numbers of training rows to their weights; None is not weighting."""


@dataclass(frozen=True)
class Scored:
    """A candidate's loss on the population, as estimated.

    Attributes
    ----------
    name : str
    power : float
        The exponent of its weights.
    loss : float
        The importance-weighted, cross-validated loss.
    change, change_error : float
        By how much it differs from that of not weighting, and the standard error.
    """

    name: str
    power: float
    loss: float
    change: float
    change_error: float


@dataclass(frozen=True)
class Strength:
    """The candidate that was chosen for a learner, and why.

    Attributes
    ----------
    scores : tuple of Scored
        Not weighting first.
    chosen : Scored
    loss : str
        What was compared.
    """

    scores: tuple[Scored, ...]
    chosen: Scored
    loss: str

    def __str__(self) -> str:
        if len(self.scores) == 1:
            return "No selection was detected, so the learner is not weighted."
        others = [one for one in self.scores if one.name != NOT_WEIGHTING]
        best = min(others, key=lambda one: one.loss)
        relative = (
            f"{best.change / abs(self.scores[0].loss):+.1%}" if self.scores[0].loss else "0 %"
        )
        change = (
            f"{best.change:+.4g} ± {best.change_error:.2g} in {self.loss} ({relative}) against not "
            f"weighting, by {best.name}"
        )
        if self.chosen.name == NOT_WEIGHTING:
            return f"Weighting does not help this learner here: at best {change}."
        return f"Weighting helps this learner: {change}."


def choose_strength(
    learner: Any,
    train: Train,
    X: Any,
    y: Any,
    candidates: list[Weighing],
    evaluation: FloatArray,
    *,
    scoring: Any = None,
    n_jobs: int | None = None,
    folds: list[tuple[IntArray, IntArray]],
) -> Strength:
    """Compare candidates, the first of which is not weighting, by the learner's loss.

    Parameters
    ----------
    learner : estimator
    train : callable
        Fits it.
    X, y : the sample
    candidates : list of Weighing
    evaluation : ndarray of shape (n_rows,)
        Weights under which losses are averaged.
    scoring : str or callable, optional
        A scorer in place of the learner's loss; its negative is then the loss.
    n_jobs : int, optional
        How many fits run at once.
    folds : list of (training rows, other rows)
    """
    from joblib import Parallel, delayed

    if len(candidates) == 1:  # the weights are equal
        only = Scored(NOT_WEIGHTING, 0.0, float("nan"), 0.0, 0.0)
        return Strength((only,), only, "")
    name, rows = row_loss(learner)
    scorer = None if scoring is None else get_scorer(scoring)

    def judge(candidate: Weighing, training: IntArray, inside: IntArray) -> FloatArray:
        model = train(
            _safe_indexing(X, training), _safe_indexing(y, training), candidate.weights(training)
        )
        held_out = _safe_indexing(X, inside), _safe_indexing(y, inside)
        if scorer is None:
            return rows(model, *held_out)
        return np.array([-scorer(model, *held_out, sample_weight=evaluation[inside])])

    jobs = [(one, *fold) for one in candidates for fold in folds]
    found = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(judge)(*job) for job in jobs)
    places = [inside for _, inside in folds]
    losses = np.array(
        [np.concatenate(found[k : k + len(folds)]) for k in range(0, len(jobs), len(folds))]
    )
    weight = evaluation[np.concatenate(places)] if scorer is None else np.ones(len(folds))
    scores = tuple(
        _scored(one, loss, losses[0], weight) for one, loss in zip(candidates, losses, strict=True)
    )
    return Strength(scores, _best(scores), name if scorer is None else f"negative {scoring}")


def weighings(name: str, base: FloatArray, design: FloatArray) -> list[Weighing]:
    """Return not weighting and, unless the weights are equal, the weights and their square roots.

    Parameters
    ----------
    name : str
        Of the weighter.
    base, design : ndarray of shape (n_rows,)
        Its weights, and the design weights that they include.
    """
    even = None if np.ptp(design) == 0 else tempered(base, design, 0.0)
    flat = Weighing(NOT_WEIGHTING, 0.0, lambda rows: None if even is None else even[rows])
    ratio = base[design > 0] / design[design > 0]
    if np.ptp(ratio) <= 1e-12 * ratio.max():
        return [flat]
    half = tempered(base, design, 0.5)
    root = Weighing(f"{name} to the power ½", 0.5, half.__getitem__)
    return [flat, root, Weighing(name, 1.0, base.__getitem__)]


def split(
    learner: Any, y: Any, seed: int, n_folds: int = N_FOLDS
) -> list[tuple[IntArray, IntArray]]:
    """Return folds of the sample, with the classes spread evenly over them."""
    labels = np.asarray(y)
    n_folds = min(n_folds, len(labels))
    if is_classifier(learner):
        smallest = int(np.unique(labels, return_counts=True)[1].min())
        if smallest >= 2:
            folds = StratifiedKFold(min(n_folds, smallest), shuffle=True, random_state=seed)
            return list(folds.split(np.zeros(len(labels)), labels))
    return list(KFold(n_folds, shuffle=True, random_state=seed).split(np.zeros(len(labels))))


def _scored(candidate: Weighing, loss: FloatArray, flat: FloatArray, weight: FloatArray) -> Scored:
    share = weight / weight.sum()
    change = loss - flat
    mean = float(share @ change)
    error = float(np.sqrt(np.square(share * (change - mean)).sum()))
    return Scored(candidate.name, candidate.power, float(share @ loss), mean, error)


def _best(scores: tuple[Scored, ...]) -> Scored:
    """Return the candidate with the least loss, if it is better by one standard error."""
    best = min(scores, key=lambda one: one.loss)
    return best if best.change < -best.change_error else scores[0]


def tempered(weights: FloatArray, design: FloatArray, power: float) -> FloatArray:
    """Return weights whose ratio to the design weights is taken to a power, with the same sum."""
    if power == 1.0:
        return weights
    counted = design > 0
    ratio = np.zeros(len(weights))
    ratio[counted] = weights[counted] / design[counted]
    powers = design * (ratio / ratio.max()) ** power if power else design
    if (powers == powers[0]).all():  # to the last bit
        mean = float(weights.mean())
        return np.full(len(weights), 1.0 if abs(mean - 1.0) < 1e-12 else mean)
    return np.asarray(powers * (weights.sum() / powers.sum()))

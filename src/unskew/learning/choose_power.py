"""How strongly to weight, or not at all, by the learner's own loss.

A better density ratio is not a better learner: one that can fit the truth needs no weights, and
they cost it variance. So candidates (a weighter and a power of its weights) are compared by
importance-weighted cross-validation (Sugiyama, Krauledat and Müller, JMLR 8, 2007): each is trained
on four fifths of the sample, and its loss on the rest is averaged with the same evaluation weights,
capped and cross-fitted, for all. Not weighting stays unless another is better by one standard error
of the paired difference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy
from sklearn.base import is_classifier
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold, StratifiedKFold

from unskew._compat import _safe_indexing
from unskew.errors import InputError, ParameterError, UnskewError
from unskew.numerics.typing import FloatArray, IntArray
from unskew.numerics.weight_vectors import check_weights, scale_to_total
from unskew.population.summaries import About
from unskew.rows.sample import Sample
from unskew.weighters.base import ask, solve
from unskew.weighters.tree import TreeWeights

N_FOLDS = 5
NOT_WEIGHTING = "not weighting"
LEAF_SIZES = (4, 20)
_LEAST_CHANCE = 1e-6
"""A class that was thought impossible costs no more than 13.8 nats."""

Fold = tuple[IntArray, IntArray]
"""The numbers of training rows, and of the rows held out."""

RowLoss = Callable[[Any, Any, Any], FloatArray]
"""Takes a fitted learner, rows and labels, and returns one number for each row."""

Train = Callable[[Any, Any, "FloatArray | None"], Any]
"""Fits the learner on rows and labels with these weights, or with none."""


class Weighting(NamedTuple):
    """A way of weighting the sample by a power of some weights, and what comes of it."""

    name: str
    power: float
    weights: FloatArray | None = None
    """Of all rows; None is not weighting."""
    of_training: Sequence[FloatArray] = ()
    """Of the training rows of each fold, where they differ from those of all rows."""
    loss: float = float("nan")
    """The importance-weighted, cross-validated loss of the learner."""
    change: float = 0.0
    """By how much it differs from that of not weighting."""
    change_error: float = 0.0
    """The standard error of the change."""

    def of_fold(self, number: int, training: IntArray) -> FloatArray | None:
        """Return the weights of a fold's training rows."""
        if self.of_training:
            return self.of_training[number]
        return None if self.weights is None else self.weights[training]


@dataclass(frozen=True)
class Strength:
    """The candidate that was chosen for a learner, and why.

    Attributes
    ----------
    scores : tuple of Weighting
        Not weighting first.
    chosen : Weighting
    loss : str
        What was compared.
    """

    scores: tuple[Weighting, ...]
    chosen: Weighting
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


def choose_power(
    learner: Any,
    train: Train,
    X: Any,
    y: Any,
    candidates: Sequence[Weighting],
    evaluation: FloatArray,
    *,
    scoring: Any = None,
    n_jobs: int | None = None,
    folds: Sequence[Fold],
) -> Strength:
    """Compare candidates, the first of which is not weighting, by the learner's loss.

    Parameters
    ----------
    learner : estimator
    train : callable
        Fits it.
    X, y : the sample
    candidates : list of Weighting
    evaluation : ndarray of shape (n_rows,)
        Weights under which losses are averaged.
    scoring : str or callable, optional
        A scorer in place of the learner's loss; its negative is then the loss.
    n_jobs : int, optional
        How many fits run at once.
    folds : list of (training rows, rows held out)
    """
    from joblib import Parallel, delayed

    if len(candidates) == 1:  # the weights are equal
        return Strength((candidates[0],), candidates[0], "")
    name, rows = row_loss(learner)
    scorer = None if scoring is None else get_scorer(scoring)

    def judge(weights: FloatArray | None, training: IntArray, inside: IntArray) -> FloatArray:
        model = train(_safe_indexing(X, training), _safe_indexing(y, training), weights)
        held_out = _safe_indexing(X, inside), _safe_indexing(y, inside)
        if scorer is None:
            return rows(model, *held_out)
        return np.array([-scorer(model, *held_out, sample_weight=evaluation[inside])])

    jobs = [
        (one.of_fold(number, fold[0]), *fold)
        for one in candidates
        for number, fold in enumerate(folds)
    ]
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


def powers_of(name: str, base: FloatArray, design: FloatArray) -> list[Weighting]:
    """Return not weighting and, unless the weights are equal, the weights and their square roots.

    Parameters
    ----------
    name : str
        Of the weighter.
    base, design : ndarray of shape (n_rows,)
        Its weights, and the design weights that they include.
    """
    even = None if np.ptp(design) == 0 else tempered(base, design, 0.0)
    flat = Weighting(NOT_WEIGHTING, 0.0, even)
    ratio = base[design > 0] / design[design > 0]
    if np.ptp(ratio) <= 1e-12 * ratio.max():
        return [flat]
    root = Weighting(f"{name} to the power ½", 0.5, tempered(base, design, 0.5))
    return [flat, root, Weighting(name, 1.0, base)]


class LeafTrees(NamedTuple):
    """Trees on the labels whose leaf weights are a candidate, and what they ask of the population.

    A tree that is to be judged on some rows must not have seen their labels, so one is grown on the
    training rows of each fold, and one on all rows. All of them count the population in one pass.
    """

    weighter: TreeWeights
    parts: Sequence[Sample]
    """The training rows of each fold, and all rows."""
    questions: Sequence[Any]

    @classmethod
    def grow(cls, sample: Sample, about: About, folds: Sequence[Fold]) -> list[LeafTrees]:
        """Grow trees of each size of leaves; labels that no tree takes give no candidate."""
        parts, found = [*(sample.take(training) for training, _ in folds), sample], []
        for size in LEAF_SIZES:
            weighter = TreeWeights(min_samples_leaf=size, overlap="ignore")
            with suppress(UnskewError):
                questions = [ask(weighter, part, about) for part in parts]
                found.append(cls(weighter, parts, questions))
        return found

    def weighting(self) -> Weighting | None:
        """Return the leaf weights, once the questions are answered; None where there are none."""
        solved = []
        for part, answer in zip(self.parts, self.questions, strict=True):
            try:
                raw = solve(self.weighter, part, answer)
            except UnskewError:
                return None
            solved.append(raw * scale_to_total(raw, float(len(part))))
        name = f"TreeWeights({self.weighter.min_samples_leaf})"
        return Weighting(name, 1.0, solved[-1], solved[:-1])


def split(learner: Any, y: Any, seed: int, n_folds: int = N_FOLDS) -> list[Fold]:
    """Return folds of the sample, with the classes spread evenly over them."""
    labels = np.asarray(y)
    n_folds = min(n_folds, len(labels))
    if is_classifier(learner):
        smallest = int(np.unique(labels, return_counts=True)[1].min())
        if smallest >= 2:
            folds = StratifiedKFold(min(n_folds, smallest), shuffle=True, random_state=seed)
            return list(folds.split(np.zeros(len(labels)), labels))
    return list(KFold(n_folds, shuffle=True, random_state=seed).split(np.zeros(len(labels))))


def _scored(
    candidate: Weighting, loss: FloatArray, flat: FloatArray, weight: FloatArray
) -> Weighting:
    share, change = weight / weight.sum(), loss - flat
    mean = float(share @ change)
    error = float(np.sqrt(np.square(share * (change - mean)).sum()))
    return candidate._replace(loss=float(share @ loss), change=mean, change_error=error)


def _best(scores: tuple[Weighting, ...]) -> Weighting:
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


def row_loss(learner: Any) -> tuple[str, RowLoss]:
    """Return the name and the function of the loss that a learner minimises.

    The log loss of a classifier with probabilities, the hinge loss of one with a decision function,
    otherwise errors; for regressors what they declare as ``loss``, the deviance of generalised
    linear models, otherwise squared errors.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
    >>> row_loss(LogisticRegression())[0], row_loss(Ridge())[0], row_loss(PoissonRegressor())[0]
    ('log loss', 'squared error', 'Poisson deviance')
    """
    if is_classifier(learner):
        if hasattr(learner, "predict_proba"):
            return "log loss", _log_loss
        if hasattr(learner, "decision_function"):
            return "hinge loss", _hinge_loss
        return "error rate", partial(_loss_of_prediction, "error rate")
    last = learner.steps[-1][1] if hasattr(learner, "steps") else learner
    declared, family = str(getattr(last, "loss", "")), type(last).__name__
    name = "squared error"
    if declared == "absolute_error":
        name = "absolute error"
    elif declared == "poisson" or family == "PoissonRegressor":
        name = "Poisson deviance"
    elif declared == "gamma" or family == "GammaRegressor":
        name = "gamma deviance"
    return name, partial(_loss_of_prediction, name)


def _loss_of_prediction(name: str, model: Any, X: Any, y: Any) -> FloatArray:
    truth, found = np.asarray(y), np.asarray(model.predict(X))
    losses = np.asarray(LOSSES[name](truth, found.reshape(truth.shape)), dtype=float)
    return losses.reshape(len(losses), -1).sum(axis=1)


def _log_loss(model: Any, X: Any, y: Any) -> FloatArray:
    chances = np.asarray(model.predict_proba(X), dtype=float)
    classes, labels = np.asarray(model.classes_), np.asarray(y)
    place = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    # A class that the training rows lack has no chance.
    known = np.where(classes[place] == labels, chances[np.arange(len(labels)), place], 0.0)
    return -np.log(np.maximum(known, _LEAST_CHANCE))


def _hinge_loss(model: Any, X: Any, y: Any) -> FloatArray:
    scores = np.asarray(model.decision_function(X), dtype=float)
    if scores.ndim > 1:
        return _loss_of_prediction("error rate", model, X, y)
    sign = np.where(np.asarray(y) == model.classes_[1], 1.0, -1.0)
    return np.maximum(1.0 - sign * scores, 0.0)


def _difference(y: Any, prediction: Any) -> FloatArray:
    return np.asarray(y, dtype=np.float64) - np.asarray(prediction, dtype=np.float64)


def _poisson(y: Any, prediction: Any) -> FloatArray:
    found = np.maximum(np.asarray(prediction, dtype=float), 1e-12)
    return 2 * (xlogy(y, y / found) - y + found)


def _gamma(y: Any, prediction: Any) -> FloatArray:
    ratio = np.maximum(y, 1e-12) / np.maximum(np.asarray(prediction, dtype=float), 1e-12)
    return 2 * (ratio - 1 - np.log(ratio))


LOSSES: Mapping[str, Callable[[Any, Any], Any]] = {
    "squared error": lambda y, prediction: _difference(y, prediction) ** 2,
    "absolute error": lambda y, prediction: np.abs(_difference(y, prediction)),
    "error rate": lambda y, prediction: y != prediction,
    "Poisson deviance": _poisson,
    "gamma deviance": _gamma,
}
"""Losses of labels and predictions, a number for each row."""
RISKS = {"squared": "squared error", "absolute": "absolute error", "zero-one": "error rate"}


def weighted_risk(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    weights: ArrayLike,
    *,
    loss: Literal["squared", "absolute", "zero-one"] | Callable[[Any, Any], Any] = "squared",
) -> float:
    r"""Return the weighted mean loss, an estimate of the risk on the population.

    The paper's :math:`\hat R_w(h) = \sum_i w_i c(h, z_i)` with weights that sum to one, as its
    Proposition 1 needs. The scale of the weights therefore does not matter.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        Labels and predictions.
    weights : array-like of shape (n_rows,)
        Finite, non-negative, not all zero.
    loss : {"squared", "absolute", "zero-one"} or callable, default="squared"
        A callable takes labels and predictions and returns the loss of each row.

    Returns
    -------
    float

    Examples
    --------
    >>> weighted_risk([1.0, 2.0], [1.0, 4.0], [3.0, 1.0])
    1.0
    """
    truth, prediction = np.asarray(y_true), np.asarray(y_pred)
    if truth.ndim != 1 or truth.shape != prediction.shape:
        raise InputError(
            "y_true and y_pred must have one entry per row each; got shapes "
            f"{truth.shape} and {prediction.shape}."
        )
    if not len(truth):
        raise InputError("y_true is empty; give at least one row.")
    vector = check_weights(weights, name="weights", n_rows=len(truth))
    function = LOSSES.get(RISKS.get(loss, "")) if isinstance(loss, str) else loss
    if not callable(function):
        raise ParameterError(f"loss must be one of {sorted(RISKS)} or a function; got {loss!r}.")
    try:
        losses: NDArray[Any] = np.asarray(function(truth, prediction), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"The loss could not be computed from y_true and y_pred: {error}"
        ) from error
    if losses.shape != truth.shape:
        raise InputError(f"loss must return one number per row; got shape {losses.shape}.")
    if not np.isfinite(losses).all():
        row = int(np.flatnonzero(~np.isfinite(losses))[0])
        raise InputError(f"The loss of row {row} is {losses[row]}; y_true or y_pred is not finite.")
    return float(np.average(losses, weights=vector / vector.max()))

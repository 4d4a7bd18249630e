"""Selection by the label alone: one weight for each class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from numbers import Integral
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from unskew._compat import HasMethods, Interval, StrOptions
from unskew.errors import InputError, LabelShiftWarning, ParameterError, warn_caller
from unskew.numerics.label_shift import (
    adjusted,
    by_class,
    evidence,
    most_likely_shares,
    solve_confusion,
)
from unskew.numerics.typing import FloatArray, IntArray
from unskew.population.about import About
from unskew.population.reservoir import Reservoir
from unskew.population.sample import Sample
from unskew.population.summaries import Question, Summaries, Summary
from unskew.weighters.base import Weighter
from unskew.weighters.class_scores import (
    Scores,
    check_classifier,
    cross_fit,
    score_prefit,
)
from unskew.weighters.label_shift_answer import (
    DrawnRows,
    LabelShiftTest,
    Predictions,
    find_difference,
)
from unskew.weighters.typing import OnUncovered


class _Learned(NamedTuple):
    """What the question was asked with."""

    scores: Scores
    classes: NDArray[Any]
    labels: IntArray
    held_out: FloatArray
    points: FloatArray
    """The sample's features."""
    counting: IntArray
    """Which rows these are: those with a positive weight, in the sample's fixed order."""


class LabelShiftWeights(Weighter):
    r"""A weight for each class, :math:`w(y) = p_U(y) / p_S(y)`, where the label alone selects.

    In the hospital's sample the sick are frequent, in the population rare; but the sick, and the
    healthy, are alike in both. Then the shares of the classes in the population follow from what a
    classifier predicts there, although no label is known there.

    Parameters
    ----------
    classifier : classifier, optional
        With ``predict_proba``; it gets rows in the form of X. By default a logistic regression on
        standardised numbers and one-hot categories. It is cloned and fitted on the sample.
    method : {"mlls", "bbse"}, default="mlls"
        "mlls" finds the shares with the largest likelihood of the population's rows, "bbse" those
        under which predictions have the population's mean. If the probabilities are calibrated,
        "mlls" is the more precise.
    calibrate : bool, default=True
        Whether to calibrate the probabilities on held-out rows of the sample, by a temperature and
        a bias for each class.
    cv : int, default=5
        The number of folds: each sample row is scored by a model that was fitted without it, the
        population by all models, in one pass.
    prefit : bool, default=False
        Whether the classifier is fitted already, on other rows than the sample, and used as it is.
    shrink : bool, default=True
        Whether to shrink the estimated shift by what of it may be chance. A clear shift stays as it
        is, and weights of a sample that was not selected stay near one. The population counts
        with its effective size, whatever the unit of its weights: where they count equal rows, as
        in a table of groups, that is too small, and False is right.
    population_rows : int, default=20_000
        How many population rows are drawn, for ``shift_test_`` and for "mlls" with more than two
        classes. Otherwise all rows count: with two classes in a histogram, with "bbse" in a mean.
    <Weighter parameters>

    Attributes
    ----------
    <Weighter attributes>
    uncovered_ : float
        Zero: the search is off, as no column decides who is in the sample. A class that the sample
        lacks altogether cannot be noticed.
    classes_ : ndarray
    class_weights_ : ndarray of shape (n_classes,)
        The weight of each class, before scaling to ``total``.
    sample_shares_, population_shares_ : ndarray of shape (n_classes,)
        The share of each class in the sample, and what is estimated for the population.
    shift_test_ : LabelShiftTest
        Whether p(x | y) is unchanged, as far as the columns' means can say.
    shrinkage_ : float
        The factor by which the estimated shift was multiplied: near 1 where it is clear, 0 where
        chance explains it.
    gap_ : float
        For "mlls": how much larger the mean log-likelihood could be at most.

    Notes
    -----
    The weight of a row needs its label, so new rows cannot be weighed: there is no ``weigh``. Give
    a fitted model's probabilities to :meth:`adjust_probabilities` instead. Replicates of the
    weights, as for intervals, solve for the shares again and keep the fitted classifiers.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import LabelShiftWeights
    >>> random = np.random.default_rng(0)
    >>> y, unseen = random.uniform(size=1000) < 0.5, random.uniform(size=5000) < 0.2
    >>> sample = random.normal(np.where(y, 2.0, 0.0))[:, None]
    >>> population = random.normal(np.where(unseen, 2.0, 0.0))[:, None]
    >>> weighter = LabelShiftWeights().fit(sample, y, population=population)
    >>> weighter.population_shares_.round(1)
    array([0.8, 0.2])
    """

    classifier: Any = field(default=None, kw_only=False)
    method: Literal["mlls", "bbse"] = "mlls"
    calibrate: bool = True
    cv: int = 5
    prefit: bool = False
    shrink: bool = True
    population_rows: int = 20_000
    overlap: OnUncovered = "ignore"

    assumes = "selection depends on the label alone: p(x | y) is the same in the population"
    uncovered_means = "nothing: selection by the label leaves no part of the columns uncovered"
    _corrects_columns = False
    _not_certifiable = (
        "LabelShiftWeights corrects selection by the label; the bounds are about selection by x."
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Weighter._parameter_constraints,
        "classifier": [HasMethods(["fit"]), None],
        "method": [StrOptions({"mlls", "bbse"})],
        "calibrate": [bool],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "prefit": [bool],
        "shrink": [bool],
        "population_rows": [Interval(Integral, 2, None, closed="left")],
    }

    def _question(self, sample: Sample, about: About) -> Summary:  # noqa: ARG002
        counting = np.flatnonzero(sample.ordered.design > 0)
        sample = _with_mean_one(sample.ordered.take(counting))
        classes, labels = self._classes(sample)
        space, points = sample.points("standard")
        space.check_distances(points, side="sample")
        if self.classifier is not None:
            check_classifier(self.classifier, classes, prefit=self.prefit)
        if self.prefit:
            if self.classifier is None:
                raise ParameterError("prefit=True needs a classifier, which was not given.")
            scores, held_out = score_prefit(
                self.classifier, sample, labels, classes, calibrate=self.calibrate
            )
        else:
            n_folds = min(self.cv, int(np.bincount(labels).min()))
            scores, held_out = cross_fit(
                self.classifier,
                sample,
                labels,
                n_folds,
                self.random_state,
                calibrate=self.calibrate,
            )
        learned = _Learned(scores, classes, labels, held_out, points, counting)
        asked: list[Summary] = [Reservoir(self.population_rows)]
        if self.method != "mlls" or len(classes) == 2:
            asked.append(Predictions(scores))
        return Question(Summaries(asked), learned)

    def _classes(self, sample: Sample) -> tuple[NDArray[Any], IntArray]:
        """Return the classes, and the number of each row's."""
        if sample.labels is None:
            raise InputError(
                "LabelShiftWeights requires y to be passed, but the target y is None: its weights "
                "go by class."
            )
        if type_of_target(sample.labels) not in ("binary", "multiclass"):
            raise InputError(
                "y must hold classes, and LabelShiftWeights found numbers or several columns. For "
                "an outcome that is a number and decides who is in the sample, use "
                "HeckmanRegressor; or cut y into classes."
            )
        classes, labels = np.unique(sample.labels, return_inverse=True)
        counts = np.bincount(labels)
        if len(classes) < 2:
            raise InputError(
                f"y holds a single class, '{classes[0]}', in the rows with a positive "
                f"sample_weight (n_samples={len(sample)}): at least two are needed."
            )
        if counts.min() < 2:
            raise InputError(
                f"Class '{classes[counts.argmin()]}' of y has one row; each class needs at least "
                "two, in the sample. Leave it out, or merge it with another."
            )
        return classes, labels

    def _solve(self, sample: Sample, answer: Any) -> FloatArray:
        learned: _Learned = answer.learned
        reservoir, *scored = answer.summary.parts
        drawn = DrawnRows.of(reservoir, learned.scores)
        asked: DrawnRows | Predictions = scored[0] if scored else drawn
        design = sample.ordered.design[learned.counting]  # of a replicate, some may be zero
        design = design / design.max() if design.any() else design
        if not np.bincount(learned.labels, design).all():
            raise InputError("A class of y has no row with a positive weight.")
        design = design / design.sum()
        matrix = by_class(learned.held_out, learned.labels, design)
        # E_U[φ] = M w and E_U[p̂] = C w, so φ − M C⁻¹ p̂ has a mean of zero in the population.
        by_label = by_class(learned.points, learned.labels, design)
        explained = np.linalg.lstsq(matrix.T, by_label.T, rcond=None)[0]
        prior = design @ learned.held_out
        self.classes_ = learned.classes
        self.sample_shares_ = np.bincount(learned.labels, design)
        means = asked.means()
        if self.method == "mlls":
            probabilities, mass = asked.distribution()
            found = most_likely_shares(probabilities, mass, prior)
            weights: FloatArray = found.shares / prior
            self.gap_ = found.gap
        else:
            weights = self._linear(matrix, means)
        weights = weights / (self.sample_shares_ @ weights)
        chance = (learned.held_out, learned.labels, design, means, asked.effective_rows)
        self.shrinkage_ = evidence(*chance) if self.shrink else 1.0
        weights = 1.0 + self.shrinkage_ * (weights - 1.0)
        self.class_weights_: FloatArray = weights
        self.population_shares_ = weights * self.sample_shares_
        left = learned.points - learned.held_out @ explained
        parts = (design * weights[learned.labels])[:, None] * left
        names = learned.scores.space.labels()
        self.shift_test_: LabelShiftTest = find_difference(drawn, explained, parts, names)
        if not self.shift_test_.holds:
            warn_caller(LabelShiftWarning(str(self.shift_test_)))
        counts = sample.design > 0
        rows = np.zeros(len(sample))
        labels = np.searchsorted(self.classes_, sample.labels[counts])
        rows[counts] = sample.design[counts] * weights[labels]
        return rows

    def _linear(self, matrix: FloatArray, means: FloatArray) -> FloatArray:
        if np.linalg.cond(matrix) > 1e6:
            raise InputError(
                "The classifier's predictions do not distinguish the classes, so their shares in "
                'the population cannot be found. Use a better classifier, or method="mlls".'
            )
        weights = solve_confusion(matrix, means)
        if weights.min() < 0:
            worst = self.classes_[weights.argmin()]
            warn_caller(
                UserWarning(
                    f"The solution gives class '{worst}' a weight of {weights.min():.2f}, which is "
                    'set to zero. method="mlls" finds weights that are not negative.'
                )
            )
        return np.maximum(weights, 0.0)

    def adjust_probabilities(
        self, p: ArrayLike, *, shares: Mapping[Any, float] | ArrayLike | None = None
    ) -> FloatArray:
        """Return a model's probabilities as they are in the population.

        For a model that was trained on the sample without weights: instead of training it again,
        correct what it says (Elkan, "The foundations of cost-sensitive learning", 2001).

        Parameters
        ----------
        p : array-like of shape (n_rows, n_classes) or (n_rows,)
            In the order of ``classes_``; a single number a row is the probability of the second of
            two classes.
        shares : mapping from class to share, or array-like, optional
            The shares of the classes to correct to; by default those that were estimated.

        Returns
        -------
        ndarray of the shape of p
        """
        check_is_fitted(self, "class_weights_")
        given = np.asarray(p, dtype=np.float64)
        both = np.column_stack([1 - given, given]) if given.ndim == 1 else given
        if both.ndim != 2 or both.shape[1] != len(self.classes_):
            raise InputError(
                f"p has the shape {given.shape}; it must have a column for each of the "
                f"{len(self.classes_)} classes."
            )
        weights = self.class_weights_
        if shares is not None:
            weights = self._as_shares(shares) / self.sample_shares_
        if not ((both >= 0) & (both <= 1)).all():
            raise InputError("p must hold probabilities, from 0 to 1.")
        result = adjusted(both, weights)
        return result[:, 1] if given.ndim == 1 else result

    def _as_shares(self, shares: Any) -> FloatArray:
        if isinstance(shares, Mapping):
            lacking = [label for label in self.classes_ if label not in shares]
            if lacking or len(shares) != len(self.classes_):
                raise ParameterError(
                    f"shares must name each class once; the classes are {self.classes_.tolist()}."
                )
            shares = [shares[label] for label in self.classes_]
        values = np.asarray(shares, dtype=np.float64)
        if values.shape != self.classes_.shape or (values < 0).any():
            raise ParameterError(
                f"shares must be one number for each of the {len(self.classes_)} classes, none "
                f"negative; got {shares!r}."
            )
        if not values.sum() > 0:
            raise ParameterError("shares are zero for every class.")
        return values / values.sum()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _with_mean_one(sample: Sample) -> Sample:
    """Return the sample with design weights that have a mean of one."""
    design = sample.design / sample.design.max()
    return sample.with_design(design / design.mean())

r"""Selection by the label alone: one weight for each class.

If p(x | y) is the same in sample and population, the shares of the classes there follow from what a
classifier predicts: its mean prediction is :math:`E_U[\hat p] = C w`, where C is the matrix of what
it predicts where the label is j, and w the weights of the classes
(:mod:`unskew.numerics.label_shift`). Each sample row is scored by a model that was fitted without
it; rows drawn from the population are scored by all models, and tell whether p(x | y) is unchanged.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from unskew._compat import HasMethods
from unskew.errors import InputError, LabelShiftWarning, LearnerError, ParameterError, warn_caller
from unskew.numerics.label_shift import (
    Calibration,
    adjusted,
    by_class,
    evidence,
    fit_calibration,
    most_likely_shares,
    solve_confusion,
)
from unskew.numerics.typing import FloatArray, IntArray
from unskew.population.reservoir import Reservoir
from unskew.population.summaries import About, Question, Summary
from unskew.rows.design import Design
from unskew.rows.sample import Sample
from unskew.rows.tables import Form
from unskew.weighters.base import Replicator, Weighter
from unskew.weighters.parameters import OnUncovered, TwoOrMore
from unskew.weighters.ratio_models import trained

_SIGNIFICANT = 0.01
_LARGE = 0.1
"""The difference, in standard deviations, from which a significant one is warned of."""


def check_classifier(classifier: Any, classes: Any, *, prefit: bool) -> None:
    """Refuse what gives no probabilities, or not of these classes."""
    name = type(classifier).__name__
    if not hasattr(classifier, "predict_proba"):
        raise LearnerError(
            f"{name} has no predict_proba, and LabelShiftWeights needs probabilities. Wrap it in "
            "scikit-learn's CalibratedClassifierCV."
        )
    if not prefit:
        return
    known = getattr(classifier, "classes_", None)
    if known is None:
        raise ParameterError(f"prefit=True needs a fitted classifier; this {name} is not.")
    unknown = [label for label in classes if label not in known]
    if unknown:
        raise InputError(f"The classifier does not know the class '{unknown[0]}' of y.")


class ClassModels(NamedTuple):
    """Models of the classes, and the sample as they see it: each row by a model without it.

    Attributes
    ----------
    models : list of fitted classifiers
    columns : ndarray of int
        Which of a model's classes each class of the sample is.
    form : Form or None
        The form in which the models take rows; None for points of ``space``.
    space : Design
    classes : ndarray
    labels : ndarray of int of shape (n_rows,)
        The class of each row.
    points : ndarray of shape (n_rows, n_features)
    held_out : ndarray of shape (n_rows, n_classes)
        The probabilities of the classes.
    counting : ndarray of int
        Which rows these are: those with a positive weight, in the sample's fixed order.
    calibration : Calibration or None
    """

    models: list[Any]
    columns: IntArray
    form: Form | None
    space: Design
    classes: NDArray[Any]
    labels: IntArray
    points: FloatArray
    held_out: FloatArray
    counting: IntArray
    calibration: Calibration | None = None

    def score(self, drawn: Reservoir) -> ScoredRows:
        """Score rows of the population by all models."""
        points = self.space.transform(drawn.rows, side="population").values
        self.space.check_distances(points, side="population")
        table = pa.Table.from_batches([drawn.rows])
        rows = points if self.form is None else self.form.of(table)
        each = []
        for model in self.models:
            said = np.asarray(model.predict_proba(rows), dtype=np.float64)[:, self.columns]
            each.append(said if self.calibration is None else self.calibration(said))
        return ScoredRows(np.stack(each, axis=1), points, drawn.weight)


def cross_fit(classifier: Any, sample: Sample, labels: IntArray, n_folds: int, seed: Any) -> Any:
    """Fit a model for each fold; return them, and the sample's probabilities by models without it.

    Without a classifier, it is a logistic regression in the sample's feature space.
    """
    from sklearn.linear_model import LogisticRegression

    points = sample.points("standard")[1]
    table = pa.Table.from_batches([sample.batch])

    def take(places: IntArray) -> Any:
        if classifier is None:
            return points[places]
        return sample.form.of(table.take(pa.array(places)))

    models, held_out = [], np.empty((len(labels), int(labels.max()) + 1))
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    for train, rest in folds.split(np.zeros(len(labels)), labels):
        model = LogisticRegression(max_iter=1000) if classifier is None else clone(classifier)
        task = f"on {len(train)} rows of the sample"
        model = trained(model, take(train), sample.labels[train], sample.design[train], task)
        models.append(model)
        held_out[rest] = model.predict_proba(take(rest))
    return models, held_out


class ScoredRows(NamedTuple):
    """Population rows that were drawn, as all models and the features see them.

    Attributes
    ----------
    probabilities : ndarray of shape (n_rows, n_models, n_classes)
        Calibrated.
    points : ndarray of shape (n_rows, n_features)
    weight : ndarray of shape (n_rows,)
    """

    probabilities: FloatArray
    points: FloatArray
    weight: FloatArray

    @property
    def effective_rows(self) -> float:
        """As many rows as the design weights leave, by Kish's formula."""
        share = self.weight / self.weight.max()
        return float(share.sum() ** 2 / (share @ share))


@dataclass(frozen=True)
class LabelShiftTest:
    """A test of whether p(x | y) is the same in sample and population.

    If it is, the mean of every column in the population is the mixture of its means by class in the
    sample. The largest difference is tested, allowing for the number of columns.

    Attributes
    ----------
    p_value : float
    column : str
        Which feature differs most, in standard errors.
    difference : float
        Of its mean in the population from that mixture, in standard deviations.
    holds : bool
        Whether the data do not contradict label shift: p of at least 1 %, or a difference below a
        tenth of a standard deviation.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import LabelShiftWeights
    >>> random = np.random.default_rng(0)
    >>> y, hidden = random.uniform(size=500) < 0.5, random.uniform(size=500) < 0.2
    >>> X, U = random.normal(2.0 * y[:, None]), random.normal(2.0 * hidden[:, None])
    >>> bool(LabelShiftWeights().fit(X, y, population=U).shift_test_.p_value > 0.01)
    True
    """

    p_value: float
    column: str
    difference: float

    @property
    def holds(self) -> bool:
        """Whether the data do not contradict label shift."""
        return not (self.p_value < _SIGNIFICANT and abs(self.difference) >= _LARGE)

    def __str__(self) -> str:
        found = f"'{self.column}' differs by {self.difference:+.2f} standard deviations"
        if self.holds:
            return (
                f"Nothing contradicts label shift (p = {self.p_value:.2g}; at most, {found}): the "
                "population looks like the sample's classes in other shares."
            )
        return (
            f"This is not label shift alone (p = {self.p_value:.2g}): {found} from what the "
            "sample's classes in any shares would give. Selection depends on columns too."
        )


def find_difference(
    drawn: ScoredRows, explained: FloatArray, sample_parts: FloatArray, names: list[str]
) -> LabelShiftTest:
    """Test whether the features' means in the population are those of the classes in the sample.

    What is left of a feature, φ − M C⁻¹ p̂, has mean zero in both if so. Its mean in the population
    varies with the population's rows, and with the sample's through M and C.

    Parameters
    ----------
    drawn : ScoredRows
    explained : ndarray of shape (n_classes, n_features)
        The matrix (M C⁻¹)ᵀ.
    sample_parts : ndarray of shape (n_samples, n_features)
        What each sample row adds to the weighted means of what is left.
    names : list of str
        What the features are.
    """
    left = drawn.points - drawn.probabilities.mean(axis=1) @ explained
    mean = np.average(left, axis=0, weights=drawn.weight)
    variance = np.average((left - mean) ** 2, axis=0, weights=drawn.weight)
    error = np.sqrt(variance / drawn.effective_rows + (sample_parts**2).sum(axis=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(error > 0, np.abs(mean) / error, 0.0)
    worst = int(z.argmax())
    p_value = min(1.0, 2.0 * float(norm.sf(z[worst])) * len(names))
    return LabelShiftTest(p_value, names[worst], float(mean[worst]))


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
    population_rows : int, default=100_000
        How many population rows are drawn, uniformly, and scored by all models; all if it has
        fewer.
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

    classifier: Annotated[Any, HasMethods(["fit"]), None] = field(default=None, kw_only=False)
    method: Literal["mlls", "bbse"] = "mlls"
    calibrate: bool = True
    cv: TwoOrMore = 5
    prefit: bool = False
    shrink: bool = True
    population_rows: TwoOrMore = 100_000
    overlap: OnUncovered = "ignore"

    traits = replace(
        Weighter.traits,
        assumes="selection depends on the label alone: p(x | y) is the same in the population",
        uncovered_means="nothing: selection by the label leaves no part of the columns uncovered",
        corrects_columns=False,
        not_certifiable=(
            "LabelShiftWeights corrects selection by the label; the bounds are about selection by "
            "x."
        ),
    )

    def _question(self, sample: Sample, about: About) -> Summary:  # noqa: ARG002
        counting = np.flatnonzero(sample.ordered.design > 0)
        sample = _with_mean_one(sample.ordered.take(counting))
        classes, labels = self._classes(sample)
        space, points = sample.points("standard")
        space.check_distances(points, side="sample")
        columns, form = np.arange(len(classes)), None if self.classifier is None else sample.form
        if self.classifier is not None:
            check_classifier(self.classifier, classes, prefit=self.prefit)
        if not self.prefit:
            n_folds = min(self.cv, int(np.bincount(labels).min()))
            models, held_out = cross_fit(
                self.classifier, sample, labels, n_folds, self.random_state
            )
        elif form is not None:
            models = [self.classifier]
            columns = np.array([list(models[0].classes_).index(label) for label in classes])
            rows = form.of(pa.Table.from_batches([sample.batch]))
            held_out = np.asarray(models[0].predict_proba(rows), dtype=np.float64)[:, columns]
        else:
            raise ParameterError("prefit=True needs a classifier, which was not given.")
        calibration = fit_calibration(held_out, labels, sample.design) if self.calibrate else None
        if calibration is not None:
            held_out = calibration(held_out)
        learned = ClassModels(
            models, columns, form, space, classes, labels, points, held_out, counting, calibration
        )
        return Question(Reservoir(self.population_rows), learned)

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
        learned: ClassModels = answer.learned
        return self._solve_scored(sample, learned, learned.score(answer.summary))

    def _replicator(self, sample: Sample, answer: Any) -> Replicator:  # noqa: ARG002
        """Return how to solve for other weights: rows are scored once."""
        learned: ClassModels = answer.learned
        drawn = learned.score(answer.summary)

        def solve(replicate: Sample, redrawn: Any) -> tuple[Weighter, FloatArray]:
            twin, again = copy.copy(self), drawn._replace(weight=redrawn.summary.weight)
            return twin, twin._solve_scored(replicate, learned, again)

        return solve

    def _solve_scored(self, sample: Sample, learned: ClassModels, drawn: ScoredRows) -> FloatArray:
        """Return the weights of the sample's rows, from the scores of both sides."""
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
        _, n_models, n_classes = drawn.probabilities.shape
        means = np.average(drawn.probabilities.mean(axis=1), axis=0, weights=drawn.weight)
        if self.method == "mlls":
            mass = np.repeat(drawn.weight / drawn.weight.max(), n_models)
            rows = drawn.probabilities.reshape(-1, n_classes)  # by one model after the other
            found = most_likely_shares(rows, mass, prior)
            weights: FloatArray = found.shares / prior
            self.gap_ = found.gap
        else:
            weights = self._linear(matrix, means)
        weights = weights / (self.sample_shares_ @ weights)
        chance = (learned.held_out, learned.labels, design, means, drawn.effective_rows)
        self.shrinkage_ = evidence(*chance) if self.shrink else 1.0
        weights = 1.0 + self.shrinkage_ * (weights - 1.0)
        self.class_weights_: FloatArray = weights
        self.population_shares_ = weights * self.sample_shares_
        left = learned.points - learned.held_out @ explained
        parts = (design * weights[learned.labels])[:, None] * left
        names = learned.space.names
        self.shift_test_: LabelShiftTest = find_difference(drawn, explained, parts, names)
        if not self.shift_test_.holds:
            warn_caller(LabelShiftWarning(str(self.shift_test_)))
        counts = sample.design > 0
        labels = np.searchsorted(self.classes_, sample.labels[counts])
        found_weights = np.zeros(len(sample))
        found_weights[counts] = sample.design[counts] * weights[labels]
        return found_weights

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

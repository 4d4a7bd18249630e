r"""Models of the density ratio of population and sample, one for each fold.

Each is fitted on the rows outside a fold and judged on those inside, by the balanced log loss
(:mod:`unskew.numerics.ratio_loss`), which also chooses its parameters. Those of others are any
scikit-learn classifier, and any weighter that can weigh new rows. Our own are the logistic model of
selection (:mod:`.logistic_models`), boosted trees (:mod:`.boosted_models`) and effects of levels.

Models of numbers and trees see little in a column of many categories, each with few rows. In
:class:`LevelModels` the logarithm of the ratio is a sum of effects of levels,
:math:`\sum_c e_{c, l_c(x)}`, that minimises the balanced log loss with the same ridge on every
effect: a level of :math:`m_l` sample rows keeps about :math:`m_l / (m_l + \kappa)` of its
correction. κ is the one with the least held-out loss. Frequent combinations of values, *cells*,
have effects beside those of their levels, with a κ of their own: where effects of levels add up, it
is large.

Such effects are best for single weights, and too small on the whole: each is drawn to zero. Where
levels matter, :class:`LevelTilt` therefore brings the weights that were pooled nearer to the
population's shares of levels: with the sample's weighted share :math:`W_l` and the population's
:math:`N_l`, :math:`W_l e^{e_l} + \kappa e_l / m = N_l`.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from unskew._compat import BaseBagging, BaseSearchCV, _BaseHeterogeneousEnsemble, _safe_indexing
from unskew.errors import LearnerError, UnskewError
from unskew.numerics.ratio_loss import lowers_loss, ratio_loss
from unskew.numerics.row_keys import Words
from unskew.numerics.typing import FloatArray, IntArray
from unskew.numerics.value_folds import AVERAGE
from unskew.population.progress import tell
from unskew.population.summaries import About
from unskew.rows.sample import BLOCK, Sample
from unskew.rows.tables import Form, RowBlock, Rows
from unskew.weighters.two_samples import TwoSamples, hash_values

NEAREST = 1e-12
"""How near to zero or one a predicted probability counts as such."""
LEAST_SHARE = 1e-4
"""A weight that counts as zero, as a multiple of the mean."""


class RatioModels(ABC):
    """Models of the ratio, one for each fold."""

    n_models: int

    @abstractmethod
    def fit(self, rows: TwoSamples) -> FloatArray:
        """Fit a model outside of each fold, or one of all rows if there is one fold.

        Returns the logarithm of each row's ratio, by the model that has not seen it.
        """

    @abstractmethod
    def predict(self, number: int, encoded: Any) -> FloatArray:
        """Return the logarithm of the ratio by one of the models."""

    def encode(self, codes: FloatArray, table: pa.Table) -> Any:  # noqa: ARG002
        """Return rows, given as codes and as they are, as the models take them."""
        return codes

    def by_number(self, numbers: IntArray, encoded: Any) -> FloatArray:
        """Return the logarithm of each row's ratio, by the model of this number."""
        found = np.zeros(len(numbers))
        for number in range(self.n_models):
            own = np.flatnonzero(numbers == number)
            if len(own):
                found[own] = self.predict(number, take(encoded, own))
        return found

    def log_ratio(self, codes: FloatArray, table: pa.Table, numbers: IntArray) -> FloatArray:
        """Return the logarithm of the ratio by the model of this number, or their average."""
        if len(codes) > BLOCK:  # features of all rows would be many times as large as their codes
            tell(f"weighing {len(codes):,} rows")
            parts = [slice(begin, begin + BLOCK) for begin in range(0, len(codes), BLOCK)]
            return np.concatenate(
                [self.log_ratio(codes[p], table.slice(p.start, BLOCK), numbers[p]) for p in parts]
            )
        encoded = self.encode(codes, table)
        found = self.by_number(numbers, encoded)
        rest = np.flatnonzero(numbers == AVERAGE)
        if len(rest):
            others = take(encoded, rest)
            for number in range(self.n_models):
                found[rest] += self.predict(number, others) / self.n_models
        return found


def take(encoded: Any, places: IntArray) -> Any:
    """Return some rows of an array, a dataframe or a table."""
    if isinstance(encoded, pa.Table):
        return encoded.take(pa.array(places))
    return _safe_indexing(encoded, places)


class ClassifierModels(RatioModels):
    """Clones of a classifier that predicts whether a row is the population's.

    Its rows are as the caller gave X. It sees the two sides as often as they have rows, and odds
    are corrected for that: with a share c of sample rows, the ratio is c / (1 - c) · p / (1 - p).

    Parameters
    ----------
    classifier : estimator
        With ``predict_proba``, or with ``decision_function``, whose scores are only ranked.
    form : Form
        Of X.
    """

    def __init__(self, classifier: Any, form: Form) -> None:
        self.classifier = classifier
        self.form = form
        self.has_probabilities = hasattr(classifier, "predict_proba")

    def fit(self, rows: TwoSamples) -> FloatArray:
        """Train a clone outside of each fold."""
        frame = rows.in_form(self.form)
        # Design weights with a mean of one on either side.
        weight = np.concatenate([side * len(side) for side in rows.shares])
        self.n_models, self.models, self.shift = rows.n_folds, list[Any](), list[float]()
        for number in range(rows.n_folds):
            train = rows.outside(number)
            labels = np.where(rows.is_sample[train], 0, 1)
            own = float(weight[train][labels == 0].sum())
            self.shift.append(float(np.log(own / (weight[train].sum() - own))))
            task = (
                f"to tell the sample's {rows.n_sample} rows from {len(rows.shares.population)} of "
                "the population"
            )
            model = clone(self.classifier)
            self.models.append(trained(model, take(frame, train), labels, weight[train], task))
        return self.by_number(rows.fold, frame)

    def encode(self, codes: FloatArray, table: pa.Table) -> Any:  # noqa: ARG002
        """Return the rows as the caller gave X."""
        return self.form.of(table)

    def predict(self, number: int, encoded: Any) -> FloatArray:
        """Return the logarithm of the ratio; a score, if there are no probabilities."""
        model = self.models[number]
        if not self.has_probabilities:
            return np.asarray(model.decision_function(encoded), dtype=float)
        chance = np.asarray(model.predict_proba(encoded), dtype=float)[:, -1]
        return logit(np.clip(chance, NEAREST, 1 - NEAREST)) + self.shift[number]


class WeighterModels(RatioModels):
    """Clones of a weighter, each fitted on the rows outside of a fold.

    The population's rows are those that were drawn. A fold in which the weighter finds no weights
    has a ratio of one.

    Parameters
    ----------
    weighter : InductiveWeighter
    about : About
    """

    def __init__(self, weighter: Any, about: About) -> None:
        self.weighter = weighter
        self.about = about

    def fit(self, rows: TwoSamples) -> FloatArray:
        """Fit a clone outside of each fold."""
        self.n_models, self.models, self.scales = rows.n_folds, list[Any](), list[float]()
        for number in range(rows.n_folds):
            self._fit_one(rows, rows.outside(number))
        return self.by_number(rows.fold, rows.joined_table)

    def _fit_one(self, rows: TwoSamples, train: IntArray) -> None:
        own, other = train[train < rows.n_sample], train[train >= rows.n_sample] - rows.n_sample
        sample = rows.sample.take(own)
        sample.order = np.arange(len(sample))  # which no order of the columns changes
        about = replace(self.about, n_rows=len(other), selected=False)
        weighter = clone(self.weighter).set_params(overlap="ignore")
        batch, weight = rows.batch.take(pa.array(other)), rows.shares.population[other]
        mean = 0.0
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the fit on all rows says it again
                question = weighter._question(sample, about)
                if question is not None:
                    question.update(RowBlock(batch, weight * len(weight) / weight.sum()))
                    question.finish()
                raw = weighter._solve(sample, question)
            mean = float(raw.sum() / sample.design.sum())
        except UnskewError:
            pass
        self.models.append(weighter if mean > 0 else None)
        self.scales.append(1.0 / mean if mean > 0 else 1.0)

    def encode(self, codes: FloatArray, table: pa.Table) -> pa.Table:  # noqa: ARG002
        """Return the rows as they are."""
        return table

    def predict(self, number: int, encoded: pa.Table) -> FloatArray:
        """Return the logarithm of the weight over its mean."""
        weighter = self.models[number]
        if weighter is None:
            return np.zeros(encoded.num_rows)
        rows = Rows(encoded, named=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            weights = weighter._weigh(Sample(rows, None, np.ones(len(rows))))
        return np.log(np.maximum(weights * self.scales[number], LEAST_SHARE))


def weight_keyword(learner: Any) -> str | None:
    """Return the keyword under which ``learner.fit`` takes weights, or None if it takes none.

    Looks into pipelines, at their last step, and into meta-estimators of one learner or several.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.svm import SVR
    >>> weight_keyword(make_pipeline(StandardScaler(), SVR()))
    'svr__sample_weight'
    >>> weight_keyword(KNeighborsRegressor()) is None
    True
    """
    if isinstance(learner, Pipeline):
        name, last = learner.steps[-1]
        inner = None if last in (None, "passthrough") else weight_keyword(last)
        return None if inner is None else f"{name}__{inner}"
    if isinstance(learner, TransformedTargetRegressor):
        # Without a regressor it uses LinearRegression, which takes weights.
        return "sample_weight" if learner.regressor is None else weight_keyword(learner.regressor)
    if isinstance(learner, BaseSearchCV):
        return weight_keyword(learner.estimator)
    if isinstance(learner, _BaseHeterogeneousEnsemble):
        members = [member for _, member in learner.estimators if member != "drop"]
        return "sample_weight" if all(map(weight_keyword, members)) else None
    if not has_fit_parameter(learner, "sample_weight"):
        return None
    # A bag resamples for learners that take no weights; others would drop them or fail.
    inside = getattr(learner, "estimator", None)
    wraps = hasattr(inside, "fit") and not isinstance(learner, BaseBagging)
    return None if wraps and weight_keyword(inside) is None else "sample_weight"


def trained(classifier: Any, rows: Any, labels: Any, weight: FloatArray, task: str) -> Any:
    """Return the classifier, fitted with these weights; to an error, add what its task was."""
    name, options = type(classifier).__name__, {}
    if np.ptp(weight) > 1e-9:
        keyword = weight_keyword(classifier)
        if keyword is None:
            raise LearnerError(
                f"classifier: {name} takes no sample_weight, so the design weights could not reach "
                "it. Use a classifier that takes weights, or rows without them."
            )
        options[keyword] = weight
    try:
        return classifier.fit(rows, labels, **options)
    except Exception as error:
        raise LearnerError(
            f"classifier: {name} could not be trained {task} ({type(error).__name__}: {error}). "
            "Put encoders of text and missing values into a pipeline with it."
        ) from error


HELD = 1e9
"""The penalty of an effect that is to be zero."""
NO_EFFECT = 1e6
RIDGES = (NO_EFFECT, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3)
"""The sample rows at which a level keeps half of its correction, the most cautious first."""
MAX_SWEEPS = 20
TOLERANCE = 1e-4
"""The largest change of an effect, in nats, at which they count as found."""
LONGEST_STEP = 2.0
TILTED = 0.15
"""The ridge with which weights are brought nearer to shares, as a multiple of the models': of 0.03
to 0.5, the one with which a mean by 60 or 200 levels is off by less than with cells, while single
weights are as good."""
RARE = 5
"""Levels of up to so many sample rows stand for those that no sample row has."""


class LevelBlock(NamedTuple):
    """The levels of a column, or values of whole rows by their hash (column -1)."""

    column: int
    known: Any

    @property
    def width(self) -> int:
        """The number of effects: a missing value has one, and what is not known."""
        return len(self.known) + 2

    def places(self, codes: FloatArray) -> IntArray:
        """Return the level of each row."""
        column: Any = hash_values(codes) if self.column < 0 else codes[:, self.column]
        found = np.searchsorted(self.known, column)
        known = np.append(self.known, self.known[:1])[found] == column
        found[~known] = len(self.known) + 1
        found[np.isnan(column)] = len(self.known)
        return found


def add_effects(effects: Sequence[FloatArray], places: Sequence[IntArray]) -> FloatArray:
    """Return the sum of each row's effects."""
    return np.sum([e[place] for e, place in zip(effects, places, strict=True)], axis=0)


def solve_effects(
    start: Sequence[FloatArray],
    places: Sequence[IntArray],
    penalties: Sequence[FloatArray],
    derivatives: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    targets: Sequence[FloatArray | float],
) -> list[FloatArray]:
    """Return the effects with the least loss, by Newton's method for one block at a time.

    Parameters
    ----------
    start : sequence of ndarray
        Effects to begin with, for each block.
    places : sequence of ndarray of shape (n_rows,)
        Which of them each row has.
    penalties : sequence of ndarray
        Of half the square of each effect.
    derivatives : callable
        Returns the loss's first and second derivatives by each row's sum of effects.
    targets : sequence of ndarray or float
        What the sums of first derivatives are to be, up to the penalty: zero at a minimum.
    """
    effects = [effect.copy() for effect in start]
    total = add_effects(effects, places)
    blocks = list(zip(effects, places, penalties, targets, strict=True))
    for _ in range(MAX_SWEEPS):
        largest = 0.0
        for effect, place, penalty, target in blocks:
            first, second = (np.bincount(place, one, len(effect)) for one in derivatives(total))
            step = (target - first - penalty * effect) / (second + penalty)
            step = np.clip(step, -LONGEST_STEP, LONGEST_STEP)
            effect += step
            total += step[place]
            largest = max(largest, float(np.abs(step).max()))
        if largest < TOLERANCE:
            break
    return effects


class LevelModels(RatioModels):
    """Effects of the levels of columns, and of frequent rows, one for each fold.

    Parameters
    ----------
    cells : ndarray of uint64, optional
        Hashes of frequent rows, sorted.

    Attributes
    ----------
    blocks : list of LevelBlock
    ridges : list of float
        The κ of each block with the least held-out loss.
    matters : bool
        Whether that loss is below that of equal weights by two standard errors.
    """

    def __init__(self, cells: Words | None = None) -> None:
        self.cells = cells

    def fit(self, rows: TwoSamples) -> FloatArray:
        """Choose the ridge of levels, then that of cells beside them."""
        codes = rows.codes
        places = [p for p in range(len(codes.names)) if codes.n_categories(p)]
        self.blocks = [LevelBlock(p, np.arange(float(codes.n_categories(p)))) for p in places]
        groups = [slice(len(places))] if places else []
        if self.cells is not None and len(self.cells) > 1 and len(codes.names) > len(groups):
            self.blocks.append(LevelBlock(-1, self.cells))
            groups.append(slice(len(places), None))
        self.n_models = rows.n_folds
        self.ridges = [NO_EFFECT] * len(self.blocks)
        self.effects: list[list[FloatArray]] = [
            [np.zeros(block.width) for block in self.blocks] for _ in range(rows.n_folds)
        ]
        located = [block.places(rows.given) for block in self.blocks]
        held_out: FloatArray = np.zeros(len(rows.values))
        for group in groups:
            held_out = self._choose(rows, located, group)
        even = rows.shares.map(np.zeros_like)
        self.matters = rows.n_folds > 1 and lowers_loss(rows.split(held_out), even, rows.shares)
        return held_out

    def _choose(self, rows: TwoSamples, located: list[IntArray], group: slice) -> FloatArray:
        """Choose the ridge of some blocks, and return each row's ratio without its fold."""
        found, effects = [], self.effects
        for ridge in RIDGES:
            ridges = self.ridges.copy()
            ridges[group] = [ridge] * len(ridges[group])
            effects = [
                self._effects(rows, rows.outside(number), located, ridges, start)
                for number, start in enumerate(effects)
            ]
            held_out = np.zeros(len(rows.values))
            for number, own in enumerate(effects):
                inside = rows.inside(number)
                held_out[inside] = add_effects(own, [place[inside] for place in located])
            loss = ratio_loss(rows.split(held_out), rows.shares).value
            found.append((loss, ridges, held_out, effects))
        _, self.ridges, held_out, self.effects = min(found, key=lambda one: one[0])
        return held_out

    def _effects(
        self,
        rows: TwoSamples,
        train: IntArray,
        located: list[IntArray],
        ridges: list[float],
        start: list[FloatArray],
    ) -> list[FloatArray]:
        """Return the effects with the least balanced log loss on some rows."""
        is_sample = rows.is_sample[train]
        mass = rows.balanced(train) / len(train)
        row = float(np.square(mass[is_sample]).sum())

        def derivatives(total: FloatArray) -> tuple[FloatArray, FloatArray]:
            chance = expit(total)
            return mass * (chance - ~is_sample), mass * chance * (1 - chance)

        places = [place[train] for place in located]
        each = zip(start, ridges, strict=True)
        # What is not known, and a row that is not frequent, has no effect.
        penalties = [np.append(np.full(len(e) - 1, ridge * row), HELD) for e, ridge in each]
        return solve_effects(start, places, penalties, derivatives, [0.0] * len(places))

    def predict(self, number: int, encoded: FloatArray) -> FloatArray:
        """Return the sum of the effects of the rows' levels."""
        return add_effects(self.effects[number], [block.places(encoded) for block in self.blocks])


class LevelTilt:
    """Effects by which weights come nearer to the population's shares of levels.

    Levels of up to ``RARE`` sample rows stand for those that no sample row has: where the
    population has such, they have one effect, and the share of both. Cells are left alone, but
    where there are no levels of columns.

    Parameters
    ----------
    models : LevelModels or None
        With its levels and ridges; None leaves weights as they are.
    """

    def __init__(self, models: LevelModels | None) -> None:
        self.blocks: list[LevelBlock] = []
        self.ridges: list[float] = []
        if models is not None:
            n_columns = sum(block.column >= 0 for block in models.blocks) or 1
            self.blocks, self.ridges = models.blocks[:n_columns], models.ridges[:n_columns]
        self.effects: list[FloatArray] = [np.zeros(block.width) for block in self.blocks]

    def fit(
        self, codes: FloatArray, weights: FloatArray, values: FloatArray, mass: FloatArray
    ) -> None:
        """Move the weights of rows with these codes to the shares of levels in the population.

        ``values`` and ``mass`` are the codes of its rows, and their weights.
        """
        if not self.blocks:
            return
        counted = weights > 0
        shares = weights[counted] / weights[counted].sum()
        row = TILTED * float(np.square(shares).sum())

        def derivatives(total: FloatArray) -> tuple[FloatArray, FloatArray]:
            own = shares * np.exp(total)
            own /= own.sum()
            return own, own

        places, penalties, targets = [], [], []
        for block, ridge in zip(self.blocks, self.ridges, strict=True):
            place = block.places(codes[counted])
            counts = np.bincount(place, minlength=block.width)
            target = np.bincount(block.places(values), mass, block.width)
            rare, known = (counts > 0) & (counts <= RARE), counts > 0
            if block.column >= 0 and target[rare].any():
                target[rare] *= 1 + min(1.0, target[~known].sum() / target[rare].sum())
            target[~known] = 0.0
            places.append(place)
            targets.append(target / target.sum())
            penalties.append(np.where(known, ridge * row, HELD))
        self.effects = solve_effects(self.effects, places, penalties, derivatives, targets)

    def of(self, codes: FloatArray) -> FloatArray:
        """Return the sum of the effects of rows, to add to the logarithms of their weights."""
        if not self.blocks:
            return np.zeros(len(codes))
        return add_effects(self.effects, [block.places(codes) for block in self.blocks])

r"""The right weights by default: a pool of candidates, chosen by held-out rows and explained.

The pool of candidates' density ratios is :math:`\prod_j r_j^{\theta_j}` with the exponents θ ≥ 0 of
the least held-out loss. Its own loss is judged on rows that have not contributed to the exponents.
If that is not surely below the loss log 2 of equal weights, no difference was detected.

``DEFAULTS`` at the end says which weighter each entry point takes where none is named: one table
for Python, the shell and the docs.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from sklearn.base import clone

from unskew.errors import ParameterError
from unskew.numerics.distances import Raking
from unskew.numerics.ratio_loss import (
    RatioLoss,
    Sided,
    pool_exponents,
    pool_ratios,
    ratio_loss,
    separation,
    without_own_fold,
)
from unskew.numerics.typing import FloatArray
from unskew.numerics.value_folds import EXPECTED
from unskew.numerics.weight_vectors import effective_sample_size
from unskew.population.feature_rules import FeatureRules
from unskew.population.margins import Margins
from unskew.population.summaries import About, Question, Summaries
from unskew.rows.design import MAX_CATEGORIES, Design
from unskew.rows.sample import Sample
from unskew.weighters.base import Replicator, Weighter
from unskew.weighters.calibration import CalibrationWeights
from unskew.weighters.classifier import ClassifierWeights
from unskew.weighters.inductive import InductiveWeighter
from unskew.weighters.linearisation import Linearisation
from unskew.weighters.parameters import AtLeastOne, TwoOrMore
from unskew.weighters.ratio import LIMIT, RatioWeighter, learn_pool
from unskew.weighters.ratio_models import LevelModels, RatioModels
from unskew.weighters.two_samples import TwoSamples

DETECTED = 2.0
"""Standard errors by which the held-out gain must exceed zero."""
SEPARATED = 3.5
"""Standard errors by which its log ratios must separate held-out rows, if the gain is less: of 60
even samples that has detected one, and the gain another. Parameters were chosen on these rows."""
LEAST_GAIN = 1e-5
"""Below it, in nats, a ratio differs from one by less than a hundredth, or by rounding alone."""


def is_detected(loss: RatioLoss, difference: float, error: float) -> bool:
    """Return whether sample and population differ, by the held-out rows.

    ``loss`` is the pool's on rows that have not contributed to its exponents; ``difference`` is by
    how much its log ratio differs between such rows of either side, and ``error`` of that.
    """
    sure = difference > SEPARATED * error
    return loss.gain > max(0.0 if sure else DETECTED * loss.error, LEAST_GAIN)


def choose_exponents(
    candidates: list[Sided], shares: Sided, folds: Sided
) -> tuple[FloatArray, RatioLoss, bool]:
    """Return the exponents of held-out ratios, the pool's loss, and whether it detects anything.

    The loss is that of exponents from other folds. Exponents from few effective rows differ between
    folds, and their loss is uncertain: where such a pool detects nothing and its best candidate
    alone does, the pool is that candidate.
    """
    pooled = without_own_fold(learn_pool, candidates, shares, folds)
    loss = ratio_loss(pooled, shares)
    detected = is_detected(loss, *separation(pooled, shares))
    losses = [ratio_loss(one, shares) for one in candidates]
    best = int(np.argmin([one.value for one in losses]))
    if not detected and is_detected(losses[best], *separation(candidates[best], shares)):
        return np.eye(len(losses))[best], losses[best], True
    return pool_exponents(candidates, shares), loss, detected


@dataclass(frozen=True)
class Candidate:
    """One way of weighing the sample.

    Attributes
    ----------
    name : str
    held_out_loss : float
        The balanced log loss of its ratio on rows that it has not seen; 0.693 for equal weights.
    effective_share : float
        The effective sample size over the number of rows.
    imbalance : float
        The largest difference that its weights leave between a mean of the sample and of the
        population, in standard deviations of the population.
    most_imbalanced : str
        What has that difference.
    exponent : float
        Its power in the pool.
    """

    name: str
    held_out_loss: float
    effective_share: float
    imbalance: float
    most_imbalanced: str
    exponent: float


@dataclass(frozen=True)
class Choice:
    """What :class:`unskew.AutoWeights` has chosen; it prints as an explanation.

    Attributes
    ----------
    candidates : tuple of Candidate
        Equal weights first.
    gain, gain_error : float
        How far the pool's held-out loss is below that of equal weights, and its standard error.
    detected : bool
        Whether the gain exceeds two standard errors, or held-out rows are separated by three and a
        half; if not, the pool's weights are equal.
    chosen : Candidate
        The weights themselves.
    n_capped : int
        Sample rows whose weight ``max_weight`` has cut.
    calibrated_to : str or None
    """

    candidates: tuple[Candidate, ...]
    gain: float
    gain_error: float
    detected: bool
    chosen: Candidate
    n_capped: int
    calibrated_to: str | None

    @property
    def sentence(self) -> str:
        """The choice in words."""
        gain = f"held-out gain {self.gain:.3f} ± {self.gain_error:.3f} nats"
        if self.detected:
            parts = [c for c in self.candidates if c.exponent > 0.005]
            pool = " and ".join(f"{c.name} ({c.exponent:.1f})" for c in parts) or "nothing"
            text = f"Selection was detected: {gain}. Weights pool {pool}"
        else:
            text = f"No selection was detected: {gain}. The weights are equal"
        if self.calibrated_to:
            text += f", then match the population's {self.calibrated_to}"
        kept = f"they keep {self.chosen.effective_share:.0%} of the effective sample"
        left = f"largest imbalance left {self.chosen.imbalance:.2f} sd"
        left += f" ({self.chosen.most_imbalanced})" if self.chosen.most_imbalanced else ""
        text += f"; {kept}; {left}."
        if self.n_capped:
            text += f" {self.n_capped} weights were cut at max_weight."
        return text

    @property
    def _lines(self) -> Iterator[tuple[str, ...]]:
        yield ("candidate", "held-out loss", "effective", "imbalance left", "exponent")
        for one in (*self.candidates, self.chosen):
            loss = "" if np.isnan(one.held_out_loss) else f"{one.held_out_loss:.4f}"
            power = "" if np.isnan(one.exponent) else f"{one.exponent:.2f}"
            left = f"{one.imbalance:.3f} {one.most_imbalanced}".strip()
            yield (one.name, loss, f"{one.effective_share:.0%}", left, power)

    def __str__(self) -> str:
        lines = list(self._lines)
        widths = [max(len(line[place]) for line in lines) for place in range(5)]
        table = "\n".join(
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )
        return f"{self.sentence}\n\n{table}"

    def _repr_html_(self) -> str:
        head, *body = self._lines
        rows = [f"<tr>{''.join(f'<th>{escape(text)}</th>' for text in head)}</tr>"]
        rows += [
            f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in line)}</tr>" for line in body
        ]
        return f"<p>{escape(self.sentence)}</p><table>{''.join(rows)}</table>"


class Imbalance:
    """The difference of weighted means of the sample from those of the whole population.

    Parameters
    ----------
    sample : Sample
        All of it: a category of rows without weight has a share of zero, and is left as it is.
    values, batch, weight : ndarray, pyarrow.RecordBatch and ndarray
        The codes, the rows and the weights of the population.
    """

    def __init__(
        self, sample: Sample, values: FloatArray, batch: pa.RecordBatch, weight: FloatArray
    ) -> None:
        terms = FeatureRules(sample.with_design(np.ones(len(sample)))).means(MAX_CATEGORIES)
        features = Design(sample.codes, terms)
        self.names, self.n_rows = features.names, np.count_nonzero(sample.design)
        share = weight / weight.sum()
        with np.errstate(over="ignore", invalid="ignore"):
            self.sample = features.of_rows(sample.values, sample.batch)
            rows = features.of_rows(values, batch)  # a row with another level has none of these
            numbers, present = rows.matrix, ~np.isnan(rows.matrix)
            numbers[~present] = 0.0
            known = share @ present
            self.means = rows.sums(share)
            variance = self.means * (1 - self.means)  # of an indicator
            means = self.means[rows.columns] = self.means[rows.columns] / known
            squares = np.where(present, numbers - means, 0.0) ** 2
            variance[rows.columns] = share @ squares / known
        self.spread = np.sqrt(np.where(variance > 0, variance, np.nan))

    def candidate(
        self, name: str, weights: FloatArray, loss: float = np.nan, exponent: float = np.nan
    ) -> Candidate:
        """Describe weights of the sample's rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            share = weights / weights.sum()
            left = np.abs(self.sample.sums(share) - self.means) / self.spread
        place = int(np.nanargmax(left)) if np.isfinite(left).any() else None
        return Candidate(
            name,
            loss,
            effective_sample_size(weights) / self.n_rows,
            0.0 if place is None else float(left[place]),
            "" if place is None else self.names[place],
            exponent,
        )


TILTED_ROWS = 20_000
"""Sample rows up to which a tilt is a candidate: it finds products of two columns in few rows; with
more, boosted trees do."""


class AutoWeights(RatioWeighter):
    r"""Weights that pool what several candidates say of the density ratio, and explain themselves.

    Needs no labels. Each candidate's ratio is judged on rows that it has not seen, by the balanced
    log loss; the pool is the product of powers of their ratios with the least such loss. If neither
    it nor its best candidate is surely better than equal weights, the weights are exactly equal.

    Parameters
    ----------
    candidates : "auto" or list of weighters, default="auto"
        What to pool. "auto": ``ClassifierWeights("logistic")`` and ``ClassifierWeights()``, without
        calibration, and effects of the levels of categories and of frequent values, with a ridge. A
        list holds weighters that can weigh new rows, or pairs of a name and such a weighter;
        those that are not classifiers are fitted once more for each fold, on the population rows
        drawn.
    max_weight : float or None, default=20.0
        The largest weight as a multiple of the mean weight, at least 1: larger ones are cut.
    calibrate_to : "means" or None, default=None
        Finally tilts the weights such that the sample's means, and shares of categories, are the
        population's, for estimates. ``max_weight`` then is an upper bound within it. Done whether
        or not a difference was detected.
    cv : int, default=5
        The number of folds; see :class:`unskew.ClassifierWeights`.
    <RatioWeighter parameters>
    <Weighter parameters>

    Attributes
    ----------
    <Weighter attributes>
    choice_ : Choice
        The candidates with their losses and exponents, and a sentence; print it.
    detected_ : bool
        Whether sample and population differ, by held-out rows.
    exponents_ : ndarray
        The candidates' powers in the pool.
    gain_, gain_error_ : float
        How far the pool's held-out loss is below that of equal weights, and its standard error.
    <RatioWeighter attributes>

    Notes
    -----
    1. Five folds by the row's values, so that equal rows of sample and population share one; values
       with 20 sample rows, or two expected of an even sample, are in every training set. Folds are
       drawn by ``random_state``; orders and scales of columns change nothing.
    2. Each candidate is fitted outside of each fold and gives a ratio inside; logarithms are kept
       within ±8.
    3. Exponents, not negative, minimise the held-out loss of the pool. The loss that is reported is
       that of exponents from the other folds.
    4. If the gain over equal weights is less than two standard errors, and the pool's logarithms
       separate held-out rows of the two sides by less than three and a half, the best candidate is
       taken alone, and if that is no surer, weights are equal.
    5. Where levels of categories, or frequent values, lower the held-out loss by two standard
       errors, weights are brought nearer to the population's shares of levels. Levels of at most 5
       sample rows stand for levels that no sample row has.
    6. Weights above ``max_weight`` times the mean are cut.
    7. With ``calibrate_to="means"``, a tilt matches the means.

    In a bootstrap the models count as given; exponents, whether they detect a difference, and what
    follows are solved again.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import AutoWeights
    >>> random = np.random.RandomState(0)
    >>> population = random.normal(size=(2000, 2))
    >>> selected = random.uniform(size=2000) < 1 / (1 + np.exp(-population[:, 0]))
    >>> weighter = AutoWeights().fit(population[selected], population=population)
    >>> weighter.detected_
    True
    >>> even = AutoWeights().fit(population[::3], population=population)
    >>> even.detected_, bool((even.weights_ == 1).all())
    (False, True)
    """

    candidates: Literal["auto"] | Sequence[Any] = "auto"
    max_weight: AtLeastOne | None = 20.0
    calibrate_to: Literal["means"] | None = None
    cv: TwoOrMore = 5

    traits = replace(
        RatioWeighter.traits,
        assumes="selection depends on the columns alone, and the candidates can learn its odds",
        is_automatic=True,
        sharpened_by=('calibrate_to="means"',),
        not_certifiable="automatic weights are not confined to a known region",
    )

    def _check_parameters(self) -> None:
        self._named_candidates()

    def _question(self, sample: Sample, about: About) -> Question[Summaries]:
        question = super()._question(sample, about)
        if self.calibrate_to is not None:
            question.summary.parts.append(self._calibration()._question(sample, about))
        return question

    def _named_candidates(self) -> list[tuple[str, InductiveWeighter]]:
        if isinstance(self.candidates, str):
            logistic = ClassifierWeights("logistic", calibration=None)
            boosted = ClassifierWeights(calibration=None, random_state=self.random_state)
            return [("logistic", logistic), ("boosted", boosted)]
        named = [_named(one) for one in self.candidates]
        if not named:
            raise ParameterError("candidates is empty; give at least one weighter.")
        return named

    def _models(
        self, sample: Sample, rows: TwoSamples, about: About, rate: float
    ) -> dict[str, RatioModels]:
        """Return the candidates' models by name, not fitted."""
        named, is_default = self._named_candidates(), isinstance(self.candidates, str)
        # A calibration sees the values as given, and would follow rounding.
        if is_default and rows.n_sample <= TILTED_ROWS and not rows.rounded:
            named.append(("tilt", CalibrationWeights(overlap="ignore")))
        found = {name: one._ratio_models(sample, about, rate) for name, one in named}
        if is_default and (rows.has_levels or len(rows.folds.frequent) > 1):
            found["levels"] = LevelModels(rows.folds.frequent)
        return found

    def _in_folds(self, rows: TwoSamples) -> TwoSamples:
        return rows.in_folds(self.cv, EXPECTED)

    def _weights(self, sample: Sample, rows: TwoSamples, answer: Question[Summaries]) -> FloatArray:
        models = self._models(sample, rows, answer.learned, self._rate(sample, answer))
        held_out = [one.map(_limited) for one in self._fit_models(rows, models)]
        chosen = choose_exponents(held_out, rows.shares, rows.split(rows.fold))
        self.exponents_, loss, self.detected_ = chosen
        self.gain_, self.gain_error_ = loss.gain, loss.error
        own = self._log_ratios(sample.values, sample.rows.table)
        weights = self._pool_weights(sample, own, rows, *answer.summary.parts[2:])
        losses = [ratio_loss(one, rows.shares).value for one in held_out]
        imbalance = Imbalance(sample, *rows.whole)
        candidates = [imbalance.candidate("equal", sample.design, float(np.log(2.0)), 0.0)]
        powers = self.exponents_ * self.detected_
        for name, value, power, one in zip(self.models_, losses, powers, own, strict=True):
            ratios = self._of_population(np.exp(_limited(one)))
            candidates.append(
                imbalance.candidate(name, ratios * sample.design, value, float(power))
            )
        self.choice_ = Choice(
            tuple(candidates),
            self.gain_,
            self.gain_error_,
            self.detected_,
            imbalance.candidate("these weights", weights, loss.value),
            self.n_capped_,
            self.calibrate_to,
        )
        return weights

    def _pool_weights(
        self, sample: Sample, own: FloatArray, rows: TwoSamples, *sums: Any
    ) -> FloatArray:
        """Pool the candidates' log ratios of the sample, tilt and cut them."""
        self.final_: CalibrationWeights | None = None
        ratios = self._tilted_to_levels(sample, rows, own, tilted=self.detected_)
        if not sums:
            return self._capped(ratios, sample.design, self.max_weight)
        return self._calibrated(sample, ratios, sums[0])

    def _ratios(self, log_ratios: FloatArray, codes: FloatArray) -> FloatArray:
        """Return the pool's ratios; equal ones if no difference was detected."""
        if not self.detected_:
            return np.ones(log_ratios.shape[1])
        ratios = self._of_population(np.exp(self.exponents_ @ _limited(log_ratios)))
        return np.asarray(ratios * np.exp(self.levels_.of(codes)))

    def _replicator(self, sample: Sample, answer: Question[Summaries]) -> Replicator:
        """Return how to solve for other weights: models are kept, pool and tilts solved again."""
        rows = replace(self._two_samples(sample, answer.summary.parts[0]), folds=self.folds_)
        own = self._log_ratios(sample.values, sample.rows.table)
        alone = bool(np.isin(self.exponents_, (0.0, 1.0)).all())
        given = rows.values, rows.joined_table, rows.fold
        found = (model.log_ratio(*given) for model in self.models_.values())
        held_out = [rows.split(_limited(one)) for one in found]
        pooled = pool_ratios(held_out, self.exponents_)
        # What exponents gain on the rows that have chosen them, and others do not.
        more = ratio_loss(pooled, rows.shares).gain - self.gain_
        error = separation(pooled, rows.shares)[1]

        def solve(replicate: Sample, redrawn: Any) -> tuple[Weighter, FloatArray]:
            twin = copy.copy(self)
            population, _, *sums = redrawn.summary.parts
            again = rows.reweighed(replicate.design, population.weight)
            if not alone:
                twin.exponents_ = pool_exponents(held_out, again.shares)
            pooled = pool_ratios(held_out, twin.exponents_)
            loss = RatioLoss(ratio_loss(pooled, again.shares).value + more, self.gain_error_)
            twin.detected_ = is_detected(loss, separation(pooled, again.shares)[0], error)
            return twin, twin._pool_weights(replicate, own, again, *sums)

        return solve

    def _calibrated(self, sample: Sample, ratios: FloatArray, answer: Any) -> FloatArray:
        """Tilt the ratios such that the means are the population's; report what is left."""
        final, design = self._calibration(), ratios * sample.design
        weights = final._solve(sample.with_design(design), answer)
        final.tilt_ = replace(final.tilt_, distance=Raking())  # weights are cut, not factors
        self.final_, self.cap_ = final, np.inf
        if self.max_weight is not None:
            self.cap_ = self.max_weight * float(weights.sum()) / len(weights)
        counted = sample.design > 0
        factors = weights[counted] / sample.design[counted]
        self.n_capped_ = int((factors >= self.cap_ * (1 - 1e-9)).sum())
        return weights

    def _calibration(self) -> CalibrationWeights:
        """Return the final calibration, not fitted."""
        return CalibrationWeights(
            features="means",
            max_weight=self.max_weight,
            on_infeasible="relax",
            overlap="ignore",
        )

    def linearisation(self, sample: Sample) -> Linearisation | None:
        """Return that of the final calibration, with the pool's weights as its design weights."""
        if self.final_ is None:
            return None
        ratios = self._ratios(self._log_ratios(sample.values, sample.rows.table), sample.values)
        return self.final_.linearisation(sample.with_design(ratios * sample.design))

    def _weigh(self, sample: Sample) -> FloatArray:
        if self.final_ is None:
            return super()._weigh(sample)
        codes = self.codes_.transform(sample.batch, side="new rows").values
        ratios = self._ratios(self._log_ratios(codes, sample.rows.table), codes)
        return np.minimum(ratios * self.final_._weigh(sample), self.cap_)


def _limited(log_ratios: FloatArray) -> FloatArray:
    return np.clip(log_ratios, -LIMIT, LIMIT)


def _named(candidate: Any) -> tuple[str, InductiveWeighter]:
    name, weighter = candidate if isinstance(candidate, tuple) else (None, candidate)
    if not isinstance(weighter, InductiveWeighter):
        what = type(weighter).__name__
        reason = "cannot weigh new rows" if isinstance(weighter, Weighter) else "is no weighter"
        raise ParameterError(
            f"candidates holds {what}, which {reason}. Give weighters such as ClassifierWeights(), "
            "CalibrationWeights() or TreeWeights()."
        )
    return name or type(weighter).__name__, weighter


DEFAULTS: dict[str, tuple[Weighter, Weighter, str]] = {
    "weigh": (AutoWeights(), CalibrationWeights(), "nobody has said what the weights are for"),
    "train": (AutoWeights(), CalibrationWeights(), "a learner depends on the whole distribution"),
    "estimate": (
        CalibrationWeights(columns="shared"),
        CalibrationWeights(columns="shared"),
        "a number depends on what predicts y",
    ),
    "score": (
        AutoWeights(columns="shared"),
        CalibrationWeights(columns="shared"),
        "beside a model of the errors, weights correct what it misses anywhere",
    ),
}
"""The weighter of an entry point for rows of the population and for margins, and why these.

Every other parameter has the default of its class, on the command line too. A weighter that is
named (``weighter=``, ``--method``) replaces these, and has the defaults of its class as well.
"""


def default_weighter(
    use: Literal["weigh", "train", "estimate", "score"], population: Any = None
) -> Weighter:
    """Return a new weighter for a use and a population."""
    rows, margins, _ = DEFAULTS[use]
    chosen: Weighter = clone(margins if isinstance(population, Margins) else rows)
    return chosen

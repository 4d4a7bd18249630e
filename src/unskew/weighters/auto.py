"""The right weights by default: a pool of candidates, chosen by held-out rows and explained."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np

from unskew._compat import Interval, StrOptions
from unskew.errors import OverlapWarning, ParameterError, warn_caller
from unskew.numerics.distances import Raking
from unskew.numerics.ratio_loss import RatioLoss, pool_exponents, ratio_loss, separation
from unskew.numerics.trimming import ratio_cap
from unskew.numerics.typing import FloatArray, IntArray
from unskew.population.about import About
from unskew.population.encode import ColumnCodes
from unskew.population.feature_rules import FeatureRules
from unskew.population.feature_space import MAX_CATEGORIES
from unskew.population.feature_sums import FeatureSums
from unskew.population.features import FeatureSet
from unskew.population.reservoir import Reservoir
from unskew.population.sample import Sample
from unskew.population.summaries import Question, Summaries, Summary, Total
from unskew.weighters.balancing import Balancing
from unskew.weighters.base import Replicator, Weighter
from unskew.weighters.calibration import CalibrationWeights
from unskew.weighters.choice import Choice, Imbalance
from unskew.weighters.classifier import ClassifierWeights
from unskew.weighters.inductive import InductiveWeighter
from unskew.weighters.level_models import LevelModels, LevelTilt
from unskew.weighters.linearisation import Linearisation
from unskew.weighters.pool import LIMIT, Pool, limit, product
from unskew.weighters.reservoir_size import rows_within, width_of_models
from unskew.weighters.tilt import Tilt
from unskew.weighters.tilt_linearisation import linearised_tilt
from unskew.weighters.two_samples import TwoSamples, hash_values
from unskew.weighters.value_folds import EXPECTED

TILTED_ROWS = 20_000
"""Sample rows up to which a tilt is a candidate: it finds products of two columns in few rows; with
more, boosted trees do."""
ROWS_A_MEAN = 20
"""The sample rows for each mean from which on a calibration cannot follow single rows."""


class AutoWeights(InductiveWeighter):
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
    population_rows : int or "auto", default="auto"
        How many population rows to draw, uniformly; all if it has fewer. "auto" is 100,000 or 20
        for each sample row, whichever is larger, within 1 GB: a large sample trains the models
        with a part of its rows, too, which is drawn uniformly, and all its rows are weighed.
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
    n_capped_ : int
        Sample rows whose weight ``max_weight`` has cut.
    sample_rows_, population_rows_ : int
        How many rows of the sample have trained the models, and how many population rows, drawn
        uniformly. All sample rows have, unless both sides would take more than 1 GB.
    uncovered_ : float
        The share of the population with values that no sample row has. They train no model.

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
       errors, weights are brought nearer to the population's shares of them.
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

    candidates: Any = "auto"
    max_weight: float | None = 20.0
    calibrate_to: Literal["means"] | None = None
    cv: int = 5
    population_rows: int | Literal["auto"] = "auto"

    assumes = "selection depends on the columns alone, and the candidates can learn its odds"
    uncovered_means = "the share of the population with values that no sample row has"
    refused_above = 0.99
    judged_by = "smooth"
    is_automatic = True
    smoothed_by = ("a smaller max_weight",)
    sharpened_by = ('calibrate_to="means"',)
    _not_certifiable = "automatic weights are not confined to a known region"
    _saved_types = (
        "unskew.numerics.distances.Raking",
        "unskew.weighters.level_models.LevelBlock",
        "unskew.weighters.level_models.LevelModels",
        "unskew.weighters.level_models.LevelTilt",
        "unskew.weighters.tilt.Tilt",
        "unskew.weighters.choice.Candidate",
        "unskew.weighters.choice.Choice",
        "unskew.weighters.weighter_models.WeighterModels",
        "unskew.population.about.About",
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **InductiveWeighter._parameter_constraints,
        "candidates": [StrOptions({"auto"}), list, tuple],
        "max_weight": [Interval(Real, 1, None, closed="left"), None],
        "calibrate_to": [StrOptions({"means"}), None],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "population_rows": [StrOptions({"auto"}), Interval(Integral, 2, None, closed="left")],
    }

    def _question(self, sample: Sample, about: About) -> Question[Summaries]:
        self._named_candidates()  # checked before the pass
        _, rows = self._learned_from(sample)
        asked: list[Summary] = [Reservoir(rows), Total()]
        if self.calibrate_to is not None:
            asked.append(
                FeatureSums(FeatureSet(sample.codes, FeatureRules(sample).means(MAX_CATEGORIES)))
            )
        return Question(Summaries(asked), about)

    def _learned_from(self, sample: Sample) -> tuple[int, int]:
        """Return how many rows of sample and population train the models, at most."""
        return rows_within(self.population_rows, len(sample), width_of_models(sample.codes))

    def _solve(self, sample: Sample, answer: Question[Summaries]) -> FloatArray:
        drawn, total, *sums = answer.summary.parts
        most = self._learned_from(sample)[0]
        rows = TwoSamples.of(sample, drawn, most, self.random_state).aligned()
        self.sample_rows_ = rows.n_mine
        self.rounded_ = tuple(rows.rounded.values())
        self.uncovered_ = rows.uncovered
        self.population_rows_ = len(drawn.weight)
        self.codes_, self.marked_ = sample.codes, rows.marked
        self.folds_ = rows.folds(self.cv, EXPECTED)
        dealt = rows.dealt(self.folds_)
        rate = np.count_nonzero(sample.design) / max(total.rows, 1)
        named = self._named_candidates()
        # A calibration sees the values as given, and would follow rounding.
        tilted = rows.n_mine <= TILTED_ROWS and not rows.rounded
        if isinstance(self.candidates, str) and tilted:
            named.append(("tilt", CalibrationWeights(overlap="ignore")))
        self.models_ = [one._ratio_models(sample, answer.learned, rate) for _, one in named]
        names = [name for name, _ in named]
        if isinstance(self.candidates, str):
            further = self._level_models(rows)
            names += further
            self.models_ += further.values()
        held_out = [
            rows.split(model.fit(rows, dealt, self.folds_.n_folds)) for model in self.models_
        ]
        pool = Pool.of(held_out, rows, rows.split(dealt), self.folds_.n_folds)
        self.exponents_ = pool.exponents
        self.detected_ = pool.detected
        self.gain_, self.gain_error_ = pool.loss.gain, pool.loss.error
        own = self._log_ratios(sample.values, sample.rows.table)
        weights = self._weights_of(sample, own, rows, *sums)
        imbalance = Imbalance(sample, *rows.whole)
        self._explain(names, pool, imbalance, own, weights, sample.design)
        return weights

    def _weights_of(
        self, sample: Sample, own: FloatArray, rows: TwoSamples, *sums: FeatureSums
    ) -> FloatArray:
        """Pool the candidates' log ratios of the sample, tilt and cut them."""
        levels = [one for one in self.models_ if isinstance(one, LevelModels) and one.matters]
        self.levels_ = LevelTilt(levels if self.detected_ else [])
        ratios = self._pooled(own, sample.values)
        self.levels_.fit(sample.values, ratios * sample.design, rows.whole_population)
        ratios *= np.exp(self.levels_.of(sample.values))
        self.tilt_: Tilt | None = None
        self.cap_ = np.inf
        counted = sample.design > 0
        if sums:
            weights = self._calibrated(sample, ratios, sums[0])
            factors = weights[counted] / sample.design[counted]
            self.n_capped_ = int((factors >= self.cap_ * (1 - 1e-9)).sum())
        else:
            self.cap_ = ratio_cap(ratios, sample.design, self.max_weight)
            weights = np.minimum(ratios, self.cap_) * sample.design
            self.n_capped_ = int((ratios[counted] > self.cap_).sum())
        return weights

    def _replicator(self, sample: Sample, answer: Question[Summaries]) -> Replicator:
        """Return how to solve for other weights: models are kept, pool and tilts solved again."""
        most = self._learned_from(sample)[0]
        drawn = answer.summary.parts[0]
        rows = TwoSamples.of(sample, drawn, most, self.random_state).aligned()
        own = self._log_ratios(sample.values, sample.rows.table)
        alone = bool(np.isin(self.exponents_, (0.0, 1.0)).all())
        dealt, table = rows.dealt(self.folds_), rows.joined_table
        found = (model.log_ratio(rows.values, table, dealt) for model in self.models_)
        held_out = [limit(rows.split(one)) for one in found]

        pooled = product(held_out, self.exponents_)
        # What exponents gain on the rows that have chosen them, and others do not.
        more = ratio_loss(pooled, rows.shares).gain - self.gain_
        error = separation(pooled, rows.shares)[1]

        def solve(replicate: Sample, redrawn: Any) -> tuple[Weighter, FloatArray]:
            twin = copy.copy(self)
            population, _, *sums = redrawn.summary.parts
            again = rows.reweighed(replicate.design, population.weight)
            if not alone:
                twin.exponents_ = pool_exponents(held_out, again.shares)
            pooled = product(held_out, twin.exponents_)
            loss = RatioLoss(ratio_loss(pooled, again.shares).value + more, self.gain_error_)
            apart = separation(pooled, again.shares)[0], error
            twin.detected_ = Pool(twin.exponents_, loss, [loss], apart).detected
            return twin, twin._weights_of(replicate, own, again, *sums)

        return solve

    @property
    def _is_cross_fitted(self) -> bool:
        # A final calibration to few means does not follow single rows.
        few = self.tilt_ is None or len(self.feature_set_) * ROWS_A_MEAN <= len(self.weights_)
        return self.folds_.n_folds > 1 and few

    def _named_candidates(self) -> list[tuple[str, InductiveWeighter]]:
        if isinstance(self.candidates, str):
            return [
                ("logistic", ClassifierWeights("logistic", calibration=None)),
                (
                    "boosted",
                    ClassifierWeights(calibration=None, random_state=self.random_state),
                ),
            ]
        named = [_named(one) for one in self.candidates]
        if not named:
            raise ParameterError("candidates is empty; give at least one weighter.")
        return named

    def _level_models(self, rows: TwoSamples) -> dict[str, LevelModels]:
        """Return models by level, where there are such: of columns, and of whole rows."""
        found = {}
        n_columns, common = rows.values.shape[1], self.folds_.frequent
        if any(rows.codes.n_categories(place) for place in range(n_columns)):
            found["levels"] = LevelModels()
        if len(common) > 1 and (n_columns > 1 or not found):
            found["cells"] = LevelModels(common)
        return found

    def _log_ratios(self, codes: FloatArray, table: Any) -> FloatArray:
        """Return the log ratios of rows by each of the candidates."""
        numbers: IntArray = self.folds_.number(hash_values(codes))
        found = [model.log_ratio(codes, table, numbers) for model in self.models_]
        return np.clip(np.array(found), -LIMIT, LIMIT)

    def _pooled(self, log_ratios: FloatArray, codes: FloatArray) -> FloatArray:
        """Return the pool's ratios; equal ones if no difference was detected."""
        if not self.detected_:
            return np.ones(log_ratios.shape[1])
        ratios = self._inverse_chance(np.exp(self.exponents_ @ log_ratios))
        return np.asarray(ratios * np.exp(self.levels_.of(codes)))

    def _inverse_chance(self, ratios: FloatArray) -> FloatArray:
        """Return the ratio to the whole population, if the models know that to the rest of it."""
        return ratios if self.marked_ is None else self.marked_ + (1 - self.marked_) * ratios

    def _calibrated(self, sample: Sample, ratios: FloatArray, sums: FeatureSums) -> FloatArray:
        """Tilt the ratios such that the means are the population's; report what is left."""
        self.feature_set_ = sums.features
        design = ratios * sample.design
        balancing = Balancing(
            sums.features.of_rows(sample.values, sample.batch),
            design,
            sums.features.names,
            sums.sums.sum(axis=0) / float(sums.mass.sum()),
            Raking(),
            np.zeros(len(sums.features)),
            max_weight=self.max_weight,
            origins=sums.features.origins,
        )
        solved = balancing.solve(0.0, None, relax=True)
        self.matched_ = ~solved.collinear & ~solved.tilt.absent
        if solved.slack:  # a mean within its slack is not matched
            self.matched_ &= solved.tilt.multipliers != 0.0
        self.tilt_ = replace(solved.tilt, distance=Raking())
        if self.max_weight is not None:
            self.cap_ = self.max_weight * float((solved.factors * design).sum()) / len(design)
        if solved.slack:
            warn_caller(
                OverlapWarning(
                    "No weights within max_weight match all means of the population; each was "
                    f"allowed {solved.slack:.3g} standard deviations.",
                    self.uncovered_,
                )
            )
        return solved.factors * design

    def _linearisation(self, sample: Sample) -> Linearisation | None:
        """Return that of the final calibration, with the pool's weights as its design weights."""
        if self.tilt_ is None:
            return None
        ratios = self._pooled(self._log_ratios(sample.values, sample.rows.table), sample.values)
        return linearised_tilt(
            self.tilt_,
            self.feature_set_,
            sample.with_design(ratios * sample.design),
            self.matched_,
            distance=Raking(),
            max_weight=self.max_weight,
        )

    def _explain(
        self,
        names: Sequence[str],
        pool: Pool,
        imbalance: Imbalance,
        log_ratios: FloatArray,
        weights: FloatArray,
        design: FloatArray,
    ) -> None:
        described = [imbalance.candidate("equal", design, float(np.log(2.0)), 0.0)]
        for name, loss, exponent, own in zip(
            names, pool.losses, pool.exponents, log_ratios, strict=True
        ):
            ratios = self._inverse_chance(np.exp(own))
            power = float(exponent) if pool.detected else 0.0
            described.append(imbalance.candidate(name, ratios * design, loss.value, power))
        chosen = imbalance.candidate("these weights", weights, pool.loss.value)
        self.choice_ = Choice(
            tuple(described),
            pool.loss.gain,
            pool.loss.error,
            pool.detected,
            chosen,
            self.n_capped_,
            self.calibrate_to,
        )

    def _weigh(self, sample: Sample) -> FloatArray:
        codes = self.codes_.transform(sample.batch, side="new rows").values
        ratios = self._pooled(self._log_ratios(codes, sample.rows.table), codes)
        if self.tilt_ is not None:
            ratios = ratios * self.tilt_.factors(
                self.feature_set_.transform(sample.batch, side="new rows")
            )
        return np.minimum(ratios, self.cap_)

    def _codes(self) -> ColumnCodes:
        return self.codes_

    def _describe_unseen(self) -> str:
        return "the models take such a value for none of those that they know"


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

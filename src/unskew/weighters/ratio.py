r"""Weights by models of the density ratio of population and sample.

The weight of a row is the ratio :math:`r(x) = f_U(x) / f_S(x)` of how frequent such rows are in the
population and in the sample. It is estimated in four steps:

1. a pair of the sample and rows drawn from the population, in folds by their values
   (:mod:`.two_samples`);
2. models of the ratio, each fitted outside of a fold, so that the weight of a sample row comes from
   a model that has not seen its values (:mod:`.ratio_models`);
3. one ratio out of those of the models: a product of powers (:mod:`.auto`), or a map of scores;
4. a cap: no weight is more than ``max_weight`` times the mean.

:class:`unskew.ClassifierWeights`, :class:`unskew.AutoWeights` and
:class:`unskew.DensityRatioWeights` differ in the models, and in what they make of the ratios.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from unskew.errors import ParameterError
from unskew.numerics.ratio_loss import Sided, pool_exponents, pool_ratios
from unskew.numerics.typing import FloatArray, IntArray
from unskew.numerics.weight_vectors import ratio_cap
from unskew.population.reservoir import Reservoir
from unskew.population.summaries import About, Question, Summaries, Summary, TotalWeight
from unskew.rows.encode import ColumnCodes
from unskew.rows.sample import Sample
from unskew.weighters.inductive import InductiveWeighter
from unskew.weighters.parameters import TwoOrMore
from unskew.weighters.ratio_models import LevelModels, LevelTilt, RatioModels
from unskew.weighters.selection_features import width_of_models
from unskew.weighters.two_samples import TwoSamples, hash_values, rows_within

LIMIT = 8.0
"""The logarithm of a ratio is kept within plus and minus this."""


class RatioWeighter(InductiveWeighter):
    """Weighs rows by density ratios, of models that are fitted to a pair of samples.

    Parameters
    ----------
    population_rows : int or "auto", default="auto"
        How many population rows to draw, uniformly; all if it has fewer. "auto" is 100,000 or 20
        for each sample row, whichever is larger, within 1 GB: a large sample trains the models
        with a part of its rows, too, which is drawn uniformly, and all its rows are weighed.

    Attributes
    ----------
    n_capped_ : int
        Sample rows whose weight ``max_weight`` has cut.
    sample_rows_, population_rows_ : int
        How many rows of the sample have trained the models, and how many population rows, drawn
        uniformly. All sample rows have, unless both sides would take more than 1 GB.
    uncovered_ : float
        The share of the population with values that no sample row has. They train no model.
    """

    population_rows: TwoOrMore | Literal["auto"] | None = "auto"

    _needs_rate: ClassVar[bool] = True
    """Whether models need to know how large the sample is beside the population."""

    traits = replace(
        InductiveWeighter.traits,
        uncovered_means="the share of the population with values that no sample row has",
        refused_above=0.99,
        smoothed_by=("a smaller max_weight",),
    )

    def _question(self, sample: Sample, about: About) -> Question[Summaries]:
        if self.population_rows is None:
            raise ParameterError(
                "population_rows=None, a fit over all rows by many passes, was removed. Give a "
                'number of rows, as large as the population if you like, or "auto".'
            )
        self._check_parameters()
        rows = self._learned_from(sample)[1]
        asked: list[Summary] = [TotalWeight()] if self._needs_rate else []
        return Question(Summaries([Reservoir(rows), *asked]), about)

    def _check_parameters(self) -> None:
        """Refuse parameters that do not fit together, before the pass."""

    def _learned_from(self, sample: Sample) -> tuple[int, int]:
        """Return how many rows of sample and population train the models, at most."""
        return rows_within(self.population_rows, len(sample), width_of_models(sample.codes))

    def _solve(self, sample: Sample, answer: Question[Summaries]) -> FloatArray:
        drawn = answer.summary.parts[0]
        rows = self._in_folds(self._two_samples(sample, drawn))
        self.sample_rows_, self.population_rows_ = rows.n_sample, len(drawn.weight)
        self.rounded_ = tuple(rows.rounded.values())
        self.uncovered_, self.marked_ = rows.uncovered, rows.marked
        self.codes_, self.folds_ = sample.codes, rows.folds
        return self._weights(sample, rows, answer)

    def _two_samples(self, sample: Sample, drawn: Reservoir) -> TwoSamples:
        most = self._learned_from(sample)[0]
        return TwoSamples.from_reservoir(sample, drawn, most, self.random_state).aligned()

    @abstractmethod
    def _in_folds(self, rows: TwoSamples) -> TwoSamples:
        """Return the rows in as many folds as the parameters say."""

    @abstractmethod
    def _weights(self, sample: Sample, rows: TwoSamples, answer: Question[Summaries]) -> FloatArray:
        """Return the sample's weights."""

    def _fit_models(self, rows: TwoSamples, models: dict[str, RatioModels]) -> list[Sided]:
        """Fit the models, and return their log ratios of rows that were held out."""
        self.models_ = models
        return [rows.split(model.fit(rows)) for model in models.values()]

    def _rate(self, sample: Sample, answer: Question[Summaries]) -> float:
        """Return the number of sample rows over that of population rows."""
        return np.count_nonzero(sample.design) / max(answer.summary.parts[1].rows, 1)

    @abstractmethod
    def _ratios(self, log_ratios: FloatArray, codes: FloatArray) -> FloatArray:
        """Return one ratio for each row, out of those of the models."""

    @property
    def is_cross_fitted(self) -> bool:
        return self.folds_.n_folds > 1

    def _log_ratios(self, codes: FloatArray, table: Any) -> FloatArray:
        """Return the log ratios of rows by each of the models."""
        numbers, models = self._numbers(codes), self.models_.values()
        return np.array([model.log_ratio(codes, table, numbers) for model in models])

    def _numbers(self, codes: FloatArray) -> IntArray:
        """Return which of a fold's models weighs a row."""
        return self.folds_.number(hash_values(codes))

    def _tilted_to_levels(
        self, sample: Sample, rows: TwoSamples, own: FloatArray, *, tilted: bool = True
    ) -> FloatArray:
        """Return the sample's ratios, brought nearer to the population's shares of levels.

        Only where levels lower the held-out loss; not if ``tilted`` is False.
        """
        levels: Any = self.models_.get("levels")
        matter = tilted and isinstance(levels, LevelModels) and levels.matters
        self.levels_ = LevelTilt(levels if matter else None)
        ratios = self._ratios(own, sample.values)
        codes, _, mass = rows.whole
        self.levels_.fit(sample.values, ratios * sample.design, codes, mass)
        return np.asarray(ratios * np.exp(self.levels_.of(sample.values)))

    def _of_population(self, ratios: FloatArray) -> FloatArray:
        """Return the ratio to the whole population, if the models know that to the rest of it."""
        return ratios if self.marked_ is None else self.marked_ + (1 - self.marked_) * ratios

    def _capped(
        self, ratios: FloatArray, design: FloatArray, max_weight: float | None
    ) -> FloatArray:
        """Return the weights of sample rows with these ratios, none above the cap."""
        self.cap_ = ratio_cap(ratios, design, max_weight)
        self.n_capped_ = int((ratios[design > 0] > self.cap_).sum())
        return np.minimum(ratios, self.cap_) * design

    def _weigh(self, sample: Sample) -> FloatArray:
        codes = self.codes_.transform(sample.batch, side="new rows").values
        ratios = self._ratios(self._log_ratios(codes, sample.rows.table), codes)
        return np.minimum(ratios, self.cap_)

    def _codes(self) -> ColumnCodes:
        return self.codes_

    def _describe_unseen(self) -> str:
        return "the models take such a value for none of those that they know"


def learn_pool(scores: list[Sided], shares: Sided) -> partial[Sided]:
    """Return the pool with the least loss on rows with these log ratios."""
    return partial(pool_ratios, exponents=pool_exponents(scores, shares))

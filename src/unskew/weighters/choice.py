"""What the automatic weights consist of, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

import numpy as np
import pyarrow as pa

from unskew.numerics.typing import FloatArray
from unskew.numerics.weight_vectors import effective_sample_size
from unskew.population.feature_rules import FeatureRules
from unskew.population.feature_space import MAX_CATEGORIES
from unskew.population.features import FeatureSet
from unskew.population.sample import Sample


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
        features = FeatureSet(sample.codes, terms)
        self.names, self.n_rows = features.names, np.count_nonzero(sample.design)
        share = weight / weight.sum()
        with np.errstate(over="ignore", invalid="ignore"):
            self.mine = features.of_rows(sample.values, sample.batch)
            theirs = features.of_rows(values, batch)  # a row with another level has none of these
            numbers, present = theirs.matrix, ~np.isnan(theirs.matrix)
            numbers[~present] = 0.0
            known = share @ present
            self.means = theirs.sums(share)
            variance = self.means * (1 - self.means)  # of an indicator
            means = self.means[theirs.columns] = self.means[theirs.columns] / known
            squares = np.where(present, numbers - means, 0.0) ** 2
            variance[theirs.columns] = share @ squares / known
        self.spread = np.sqrt(np.where(variance > 0, variance, np.nan))

    def candidate(
        self, name: str, weights: FloatArray, loss: float = np.nan, exponent: float = np.nan
    ) -> Candidate:
        """Describe weights of the sample's rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            share = weights / weights.sum()
            left = np.abs(self.mine.sums(share) - self.means) / self.spread
        place = int(np.nanargmax(left)) if np.isfinite(left).any() else None
        return Candidate(
            name,
            loss,
            effective_sample_size(weights) / self.n_rows,
            0.0 if place is None else float(left[place]),
            "" if place is None else self.names[place],
            exponent,
        )

"""What label shift asks of a population, and whether the answer looks like label shift."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from unskew.numerics.typing import FloatArray
from unskew.population.binned import Binned
from unskew.population.reservoir import Reservoir
from unskew.population.summaries import Moments, RowBlock, Summary

_SIGNIFICANT = 0.01
_LARGE = 0.1
"""The difference, in standard deviations, from which a significant one is warned of."""


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


class AskedScores(Summary):
    """Means of every model's probabilities and of further columns, and rows or a histogram."""

    shared = frozenset({"n_models", "n_classes"})
    added = ("n_rows", "n_broken", "squares")

    def __init__(self, n_models: int, n_classes: int, n_features: int) -> None:
        self.n_models, self.n_classes = n_models, n_classes
        self.moments = Moments(n_models * n_classes + n_features)
        self.rows: Binned | Reservoir | None = None
        self.n_rows, self.n_broken, self.squares = 0, 0, 0.0

    def draw(self, n_rows: int) -> None:
        """Ask for the distribution of probabilities too."""
        second = [1 + 2 * model for model in range(self.n_models)]
        self.rows = Binned(second) if self.n_classes == 2 else Reservoir(n_rows)

    def update(self, rows: RowBlock) -> None:
        """Add a block of encoded rows."""
        self.moments.update(rows)
        self.n_rows += len(rows)
        self.n_broken += int((rows.weight % 1 != 0).sum())
        with np.errstate(over="ignore", under="ignore"):
            self.squares += float(rows.weight @ rows.weight)
        if self.rows is not None:
            self.rows.update(rows)

    @property
    def effective_rows(self) -> float:
        """As many rows as the design weights leave; whole numbers are taken as counts of rows."""
        if not self.n_broken:
            return float(self.moments.mass[0])
        if not 0 < self.squares < np.inf:  # weights too small or large for squares
            return self.n_rows
        return float(self.moments.mass[0] / np.sqrt(self.squares)) ** 2

    def means(self) -> FloatArray:
        """Return the mean probabilities, averaged over the models."""
        width = self.n_models * self.n_classes
        return self.moments.mean[:width].reshape(self.n_models, -1).mean(axis=0)

    def drawn(self) -> tuple[FloatArray, FloatArray]:
        """Return probabilities of rows, one after another by each model, and their weights."""
        if isinstance(self.rows, Binned):
            points = self.rows.points
            return np.column_stack([1 - points, points]), self.rows.weight
        assert isinstance(self.rows, Reservoir)
        each = self.rows.rows[:, : self.n_models * self.n_classes]
        return each.reshape(-1, self.n_classes), np.repeat(self.rows.weight, self.n_models)


def find_difference(
    asked: AskedScores, sample_parts: FloatArray, names: list[str]
) -> LabelShiftTest:
    """Test whether the features' means in the population are those of the classes in the sample.

    What is left of a feature, φ − M C⁻¹ p̂, has mean zero in both if so. Its mean in the population
    varies with the population's rows, and with the sample's through M and C.

    Parameters
    ----------
    asked : AskedScores
        Filled; its last columns are what is left of the features.
    sample_parts : ndarray of shape (n_samples, n_features)
        What each sample row adds to their weighted means.
    names : list of str
        What the features are.
    """
    n_features = sample_parts.shape[1]
    mean, variance = asked.moments.mean[-n_features:], asked.moments.variance[-n_features:]
    error = np.sqrt(variance / asked.effective_rows + (sample_parts**2).sum(axis=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(error > 0, np.abs(mean) / error, 0.0)
    worst = int(z.argmax())
    p_value = min(1.0, 2.0 * float(norm.sf(z[worst])) * n_features)
    return LabelShiftTest(p_value, names[worst], float(mean[worst]))

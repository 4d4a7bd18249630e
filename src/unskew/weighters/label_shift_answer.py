"""What label shift asks of a population, and whether the answer looks like label shift."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import norm

from unskew.numerics.typing import FloatArray
from unskew.population.binned import Binned
from unskew.population.reservoir import Reservoir
from unskew.population.summaries import RowBlock, Summary
from unskew.weighters.class_scores import Scores

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


class Predictions(Summary):
    """What all models say of the population: with two classes a histogram, otherwise the mean.

    The histogram is of what they say before calibration, which is a function of it: that spares
    calibrating every row.
    """

    shared = frozenset({"scores"})
    added = ("sums", "mass", "n_rows", "squares")

    def __init__(self, scores: Scores) -> None:
        self.scores = scores
        self.sums = np.zeros(len(scores.columns))
        self.mass, self.n_rows, self.squares = 0.0, 0, 0.0
        columns = list(range(len(scores.models) if len(scores.columns) == 2 else 0))
        self.binned = Binned(columns)

    def update(self, rows: RowBlock) -> None:
        """Score a block."""
        said = self.scores.raw(self.scores.rows(rows.batch, side="population"))
        if self.binned.columns:
            second = np.column_stack([probabilities[:, 1] for probabilities in said])
            self.binned.update(replace(rows, batch=second))
        else:
            for probabilities in said:
                self.sums += rows.weight @ self.scores.calibrated(probabilities)
        self.mass += float(rows.weight.sum())
        self.n_rows += len(rows)
        with np.errstate(over="ignore", under="ignore"):
            self.squares += float(rows.weight @ rows.weight)

    def means(self) -> FloatArray:
        """Return the mean calibrated probabilities, over rows and models."""
        if not self.binned.columns:
            return self.sums / self.sums.sum()
        probabilities, weight = self.distribution()
        return np.average(probabilities, axis=0, weights=weight)

    def distribution(self) -> tuple[FloatArray, FloatArray]:
        """Return calibrated probabilities of the histogram's bins, and their weights."""
        points = self.binned.points
        return self.scores.calibrated(np.column_stack([1 - points, points])), self.binned.weight

    @property
    def effective_rows(self) -> float:
        """As many rows as the design weights leave, by Kish's formula, whatever their unit."""
        if not 0 < self.squares < np.inf:  # weights too small or large for squares
            return self.n_rows
        return float(self.mass / np.sqrt(self.squares)) ** 2


@dataclass(frozen=True)
class DrawnRows:
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

    @classmethod
    def of(cls, drawn: Reservoir, scores: Scores) -> DrawnRows:
        """Score the rows of a reservoir."""
        points = scores.space.transform(drawn.rows, side="population").values
        scores.space.check_distances(points, side="population")
        said = scores.raw(scores.rows(drawn.rows, side="population"))
        each = np.stack([scores.calibrated(probabilities) for probabilities in said], axis=1)
        return cls(each, points, drawn.weight / drawn.weight.max())

    @property
    def effective_rows(self) -> float:
        """As many rows as the design weights leave."""
        return float(self.weight.sum() ** 2 / (self.weight @ self.weight))

    def means(self) -> FloatArray:
        """Return the mean probabilities, over rows and models."""
        return np.average(self.probabilities.mean(axis=1), axis=0, weights=self.weight)

    def distribution(self) -> tuple[FloatArray, FloatArray]:
        """Return the probabilities, one after another by each model, and their weights."""
        _, n_models, n_classes = self.probabilities.shape
        return self.probabilities.reshape(-1, n_classes), np.repeat(self.weight, n_models)


def find_difference(
    drawn: DrawnRows, explained: FloatArray, sample_parts: FloatArray, names: list[str]
) -> LabelShiftTest:
    """Test whether the features' means in the population are those of the classes in the sample.

    What is left of a feature, φ − M C⁻¹ p̂, has mean zero in both if so. Its mean in the population
    varies with the population's rows, and with the sample's through M and C.

    Parameters
    ----------
    drawn : DrawnRows
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

"""What a diagnosis says: frozen dataclasses of plain values, which JSON takes as they are."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from unskew.overlap import Overlap

__all__ = [
    "Bias",
    "BoundStatement",
    "Comparison",
    "Diagnosis",
    "Difference",
    "Distribution",
    "FeatureBalance",
    "HeavyRow",
    "Histogram",
    "Outcome",
    "TwoSampleTest",
    "Verdict",
    "WeightSummary",
]

NOT_IN_SAMPLE = "(not in the sample)"
"""What the categories are called, together, that only the population has."""

Status = Literal["no bias found", "correctable", "costly", "not corrected", "not correctable"]


@dataclass(frozen=True)
class Difference:
    """How far the sample is from the population in one column.

    Attributes
    ----------
    mean : float or None
        Standardised mean difference: the sample's mean less the population's, in standard
        deviations of the population. Of categories, the one of the category where it is furthest
        from zero; ``category`` names it. Infinite where the population does not vary and the sample
        differs from it; None where either side has no value.
    variance_ratio : float or None
        The sample's variance over the population's, for numbers and times.
    distance : float or None
        Kolmogorov and Smirnov's distance for numbers and times, the total variation distance for
        categories; between 0 and 1.
    missing : float
        The sample's share of missing values less the population's.
    category : str or None
        Of which category ``mean`` is told.
    mendable : float or None
        The largest standardised difference, without its sign, that weights can do something about:
        of the mean, of the shares of categories that the sample has, of the share of missing values
        if the sample has some.
    """

    mean: float | None
    variance_ratio: float | None
    distance: float | None
    missing: float
    category: str | None = None
    mendable: float | None = None


@dataclass(frozen=True)
class Distribution:
    """One column's distribution: shares of sample, weighted sample and population.

    Attributes
    ----------
    labels : tuple of str
        Of the bins, in the column's units, or the categories; the last may be "(missing)",
        "(other)" or "(not in the sample)".
    edges : tuple of float or None
        The borders of the bins, one more than bins; None for categories. Times are in days since
        the sample's first. A bin for missing values, which comes last, has none.
    sample, weighted, population : tuple of float
        Shares that sum to one; ``weighted`` is None without weights.
    """

    labels: tuple[str, ...]
    edges: tuple[float, ...] | None
    sample: tuple[float, ...]
    weighted: tuple[float, ...] | None
    population: tuple[float, ...]


@dataclass(frozen=True)
class FeatureBalance:
    """One column, before and after weighting.

    Attributes
    ----------
    name : str
    kind : {"number", "category", "time"}
    before : Difference
        With the sample's design weights, if it has any, and no others.
    after : Difference or None
        With the weights; None without.
    distribution : Distribution
    """

    name: str
    kind: Literal["number", "category", "time"]
    before: Difference
    after: Difference | None
    distribution: Distribution


@dataclass(frozen=True)
class Comparison:
    """What a test says of one pair: sample and population, or weighted sample and population.

    Attributes
    ----------
    statistic : float
    low, high : float or None
        A 95 % interval around it, where the test gives one.
    p_value : float
        How often two draws from one distribution would differ as much.
    """

    statistic: float
    low: float | None
    high: float | None
    p_value: float


@dataclass(frozen=True)
class TwoSampleTest:
    """Whether sample and population look like draws from one distribution.

    Attributes
    ----------
    name : str
        For example "maximum mean discrepancy".
    method : str
        How statistic and null were obtained, in a sentence.
    before : Comparison
    after : Comparison or None
    """

    name: str
    method: str
    before: Comparison
    after: Comparison | None


@dataclass(frozen=True)
class Bias:
    """How the sample differs from the population.

    Attributes
    ----------
    features : tuple of FeatureBalance
        The columns, the most biased first.
    mmd : TwoSampleTest
        Maximum mean discrepancy; the statistic is the distance itself, not its square.
    classifier : TwoSampleTest
        The statistic is the area under the curve of a classifier that tells the sample from the
        population, on rows that it was not trained on: 0.5 where it cannot.
    """

    features: tuple[FeatureBalance, ...]
    mmd: TwoSampleTest
    classifier: TwoSampleTest


@dataclass(frozen=True)
class Histogram:
    """Counts between edges."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class HeavyRow:
    """A row that carries much of the weight.

    Attributes
    ----------
    row : int
        Its position in the sample, from 0.
    weight : float
        Its weight, where weights have mean one.
    share : float
        Of the total weight.
    values : dict of str to str
        The row itself, as text.
    """

    row: int
    weight: float
    share: float
    values: dict[str, str]


@dataclass(frozen=True)
class WeightSummary:
    """What can be said of the weights by themselves.

    Attributes
    ----------
    effective_sample_size : float
        Kish's: as many evenly weighted rows would give a mean of the same variance.
    effective_share : float
        The same over the number of rows.
    design_effect : float
        Its inverse: by how much the variance of a mean grows.
    smallest, largest : float
        Where weights have mean one.
    zero_rows : int
        How many rows have no weight at all.
    top_share : float
        The share of the total weight that the largest hundredth of the weights carries.
    heaviest : tuple of HeavyRow
        The largest weights, with their rows.
    histogram : Histogram
        Of the positive weights, where weights have mean one; edges evenly spaced in the logarithm.
    """

    effective_sample_size: float
    effective_share: float
    design_effect: float
    smallest: float
    largest: float
    zero_rows: int
    top_share: float
    heaviest: tuple[HeavyRow, ...]
    histogram: Histogram


@dataclass(frozen=True)
class BoundStatement:
    """What one theorem says here.

    Attributes
    ----------
    theorem : str
    statement : str
        In words, with the numbers in it.
    value : float
    vacuous : bool
        Whether it says nothing that was not known without it.
    assumptions : tuple of str
    """

    theorem: str
    statement: str
    value: float
    vacuous: bool
    assumptions: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """What weighting does to the labels.

    Attributes
    ----------
    labels : tuple of str
        The classes; of numbers only "mean".
    before, after : tuple of float
        Each class's share, or the mean label, in the sample and in the weighted sample; ``after``
        is None without weights.
    before_error, after_error : tuple of float
        Their standard errors, the weights being taken as given.
    """

    labels: tuple[str, ...]
    before: tuple[float, ...]
    before_error: tuple[float, ...]
    after: tuple[float, ...] | None
    after_error: tuple[float, ...] | None


@dataclass(frozen=True)
class Verdict:
    """The answer in plain words.

    Attributes
    ----------
    status : str
        "no bias found"; "correctable"; "costly": correctable at the cost of much of the effective
        sample; "not corrected": the weights leave bias behind; "not correctable": too much of the
        population is out of the sample's reach.
    headline : str
        One sentence.
    sentences : tuple of str
        What it stands on.
    """

    status: Status
    headline: str
    sentences: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join((self.headline, *self.sentences))


@dataclass(frozen=True)
class Diagnosis:
    """Whether a sample is biased, how badly and where, and whether weights mend it.

    Made by :func:`unskew.diagnose`.

    Attributes
    ----------
    verdict : Verdict
    bias : Bias
    overlap : Overlap
        Which part of the population the sample does not reach.
    weights : WeightSummary or None
        None without weights.
    bounds : tuple of BoundStatement
        What the theory says, where it applies.
    sample_rows, population_rows : int
    examined_rows : int
        How many rows of the population, drawn evenly, stand for it in the distances, tests and
        rules; means, variances, missing values and categories are counted over all rows.
    method : str or None
        What made the weights.
    thresholds : dict of str to float
        By which the verdict was reached.
    outcome : Outcome or None
        What weighting does to the labels, if they were given.
    """

    verdict: Verdict
    bias: Bias
    overlap: Overlap
    weights: WeightSummary | None
    bounds: tuple[BoundStatement, ...]
    sample_rows: int
    population_rows: int
    examined_rows: int
    method: str | None
    thresholds: dict[str, float]
    outcome: Outcome | None = None

    def __str__(self) -> str:
        return str(self.verdict)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain dicts, lists, numbers and text.

        Numbers that JSON does not know are told as text: "inf", "-inf", "nan".
        """
        plain = _plain(asdict(self))
        assert isinstance(plain, dict)
        return plain

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the diagnosis as JSON, and write it to a file if a path is given."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        if path is not None:
            _report().write_whole(path, text)
        return text

    def to_markdown(self) -> str:
        """Return the diagnosis as Markdown."""
        text: str = _report().to_markdown(self)
        return text

    def to_html(self, path: str | Path | None = None, *, static: bool = False) -> str:
        """Return the report as one self-contained page, and write it to a file if a path is given.

        Parameters
        ----------
        path : str or Path, optional
            The file appears whole or not at all.
        static : bool, default=False
            Without JavaScript, for e-mail.
        """
        text: str = _report().to_html(self, static=static)
        if path is not None:
            _report().write_whole(path, text)
        return text

    def _repr_html_(self) -> str:
        text: str = _report().to_notebook_html(self)
        return text


def _report() -> Any:
    # The one call up the layers: a Diagnosis knows that it can be shown, not how.
    return import_module("unskew.report")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value

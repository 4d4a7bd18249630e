"""The parts of a diagnosis: frozen dataclasses of plain values that JSON can hold."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from unskew.diagnostics.thresholds import Thresholds
from unskew.diagnostics.weights import WeightSummary
from unskew.files import write_whole
from unskew.overlap import Overlap
from unskew.weighters.next_step import NextStep

OTHER, NOT_IN_SAMPLE, MISSING = "(other)", "(not in the sample)", "(missing)"
"""Labels of rare categories, of unseen categories (of the population alone), of missing values."""

Status = Literal["no bias found", "correctable", "costly", "not corrected", "not correctable"]


@dataclass(frozen=True)
class Difference:
    """How far the sample is from the population in one column.

    Attributes
    ----------
    mean : float or None
        Standardised mean difference: the sample's mean minus the population's, in standard
        deviations of the population. For categories, the largest one in absolute value over all
        categories; ``category`` names it. Infinite if the population is constant and the sample
        differs from it; None if either side has no value.
    variance_ratio : float or None
        The sample's variance divided by the population's, for numbers and times.
    distance : float or None
        The Kolmogorov-Smirnov distance for numbers and times, the total variation distance for
        categories; between 0 and 1.
    missing : float
        The sample's share of missing values minus the population's.
    category : str or None
        The category that ``mean`` refers to.
    correctable_difference : float or None
        The largest absolute standardised difference that weights can reduce: of the mean, of the
        shares of categories that the sample has, of the share of missing values if the sample has
        some.
    """

    mean: float | None
    variance_ratio: float | None
    distance: float | None
    missing: float
    category: str | None = None
    correctable_difference: float | None = None


@dataclass(frozen=True)
class Distribution:
    """The distribution of one column in sample, weighted sample and population.

    Attributes
    ----------
    labels : tuple of str
        The bins, in the column's units, or the categories.
    edges : tuple of float or None
        The edges of the bins, one more than bins, equally spaced; None for categories and for
        numbers of few values. Times are in days since the sample's first.
    sample, weighted, population : tuple of float
        Shares that sum to one; ``weighted`` is None without weights.
    n_special : int
        How many labels at the end are neither a bin nor a category of the sample, but "(other)",
        "(not in the sample)" or "(missing)".
    """

    labels: tuple[str, ...]
    edges: tuple[float, ...] | None
    sample: tuple[float, ...]
    weighted: tuple[float, ...] | None
    population: tuple[float, ...]
    n_special: int = 0

    @property
    def shares(self) -> dict[str, tuple[float, ...]]:
        """The shares by side, without ``weighted`` if there are no weights."""
        sides = {"sample": self.sample, "weighted": self.weighted, "population": self.population}
        return {side: shares for side, shares in sides.items() if shares is not None}


@dataclass(frozen=True)
class FeatureBalance:
    """One column, before and after weighting.

    Attributes
    ----------
    name : str
    kind : {"number", "category", "time"}
    before : Difference
        With the sample's design weights only, if it has any.
    after : Difference or None
        With the weights; None without.
    distribution : Distribution
    """

    name: str
    kind: Literal["number", "category", "time"]
    before: Difference
    after: Difference | None
    distribution: Distribution

    @property
    def differences(self) -> dict[str, Difference]:
        """The differences by stage, without ``after`` if there are no weights."""
        return {"before": self.before} | ({"after": self.after} if self.after else {})


@dataclass(frozen=True)
class Comparison:
    """The result of one test of the sample, or of the weighted sample, against the population.

    Attributes
    ----------
    statistic : float
    low, high : float or None
        The 95 % confidence interval of the statistic, where the test gives one.
    p_value : float
        The probability of a difference at least as large if both had one distribution.
    """

    statistic: float
    low: float | None
    high: float | None
    p_value: float


@dataclass(frozen=True)
class TwoSampleTest:
    """A test of whether sample and population have the same distribution.

    Attributes
    ----------
    name : str
        For example "maximum mean discrepancy".
    method : str
        How the statistic and its null distribution were computed, in a sentence.
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
        The statistic is the AUC, on held-out rows, of a classifier that separates the sample from
        the population: 0.5 if it cannot.
    """

    features: tuple[FeatureBalance, ...]
    mmd: TwoSampleTest
    classifier: TwoSampleTest


@dataclass(frozen=True)
class BoundStatement:
    """A theorem, applied to this diagnosis.

    Attributes
    ----------
    theorem : str
    statement : str
        In words, with the numbers in it.
    value : float
    vacuous : bool
        Whether the bound is no better than what is known without it.
    assumptions : tuple of str
    """

    theorem: str
    statement: str
    value: float
    vacuous: bool
    assumptions: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """The effect of weighting on the labels.

    Attributes
    ----------
    kind : {"mean", "shares"}
        Whether the labels are numbers, described by their mean, or classes, by their shares.
    labels : tuple of str
        The classes; "mean" for numbers.
    before, after : tuple of float
        The share of each class, or the mean label, in the sample and in the weighted sample;
        ``after`` is None without weights.
    before_error, after_error : tuple of float
        Their standard errors, with the weights treated as fixed.
    """

    kind: Literal["mean", "shares"]
    labels: tuple[str, ...]
    before: tuple[float, ...]
    before_error: tuple[float, ...]
    after: tuple[float, ...] | None
    after_error: tuple[float, ...] | None


@dataclass(frozen=True)
class Verdict:
    """The conclusion in plain words.

    Attributes
    ----------
    status : str
        "no bias found"; "correctable"; "costly": correctable at the cost of much of the effective
        sample size; "not corrected": the weights do not remove the bias; "not correctable": the
        sample leaves too much of the population uncovered.
    headline : str
        One sentence.
    sentences : tuple of str
        The reasons.
    next_step : NextStep or None
        What to do where it is not good: columns to leave out, weighters and parameters to try; it
        prints as what follows "Next step:".
    """

    status: Status
    headline: str
    sentences: tuple[str, ...]
    next_step: NextStep | None = None

    def __str__(self) -> str:
        step = () if self.next_step is None else (f"Next step: {self.next_step}",)
        return " ".join((self.headline, *self.sentences, *step))


@dataclass(frozen=True)
class Diagnosis:
    """Whether a sample is biased, how badly and where, and whether weights correct it.

    Returned by :func:`unskew.diagnose`.

    Attributes
    ----------
    verdict : Verdict
    bias : Bias
    overlap : Overlap
        Which part of the population the sample does not cover.
    weights : WeightSummary or None
        None without weights.
    bounds : tuple of BoundStatement
        Theoretical bounds, where they apply.
    sample_rows, population_rows : int
    examined_rows : int
        How many rows of the population, drawn uniformly at random, the distances, tests and rules
        use; means, variances, missing values and categories use all rows.
    method : str or None
        The weighter that made the weights.
    thresholds : Thresholds
        The limits by which the verdict was reached.
    outcome : Outcome or None
        The effect of weighting on the labels, if they were given.
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
    thresholds: Thresholds
    outcome: Outcome | None = None

    def __str__(self) -> str:
        return str(self.verdict)

    @property
    def bias_left(self) -> bool:
        """Whether there is bias: in the sample or, if weights are given, in the weighted sample."""
        corrected = ("correctable", "costly") if self.weights is not None else ()
        return self.verdict.status not in ("no bias found", *corrected)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain dicts, lists, numbers and text.

        Numbers that JSON cannot hold become text: "inf", "-inf", "nan".
        """
        plain: dict[str, Any] = _plain(asdict(self))
        return plain

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the diagnosis as JSON; with a path, also write it to that file."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        if path is not None:
            write_whole(path, text)
        return text

    def to_markdown(self) -> str:
        """Return the report as Markdown."""
        return _render("to_markdown", self)

    def to_html(self, path: str | Path | None = None, *, static: bool = False) -> str:
        """Return the report as one self-contained page; with a path, also write it to that file.

        Parameters
        ----------
        path : str or Path, optional
            The file is written completely or not at all.
        static : bool, default=False
            Leave out JavaScript, for e-mail.
        """
        text = _render("to_html", self, static=static)
        if path is not None:
            write_whole(path, text)
        return text

    def _repr_html_(self) -> str:
        return _render("to_notebook_html", self)


def _render(function: str, diagnosis: Diagnosis, **options: Any) -> str:
    # The one import of a higher layer: a Diagnosis can be shown, but does not know how. Only now,
    # because the report imports vl-convert and Jinja.
    text: str = getattr(import_module("unskew.report"), function)(diagnosis, **options)
    return text


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value

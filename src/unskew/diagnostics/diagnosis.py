"""The parts of a diagnosis: frozen dataclasses of plain values that JSON can hold.

A :class:`Diagnosis` has the :class:`Verdict` and what it rests on: the :class:`Bias` (of each
column, and of all together by tests of shift), the overlap, a summary of the weights, the limits.
It can be shown, as a page, Markdown or JSON, and does not know how: the report is imported then.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from unskew import __version__
from unskew.estimation.results import Sensitivity
from unskew.files import write_whole
from unskew.overlap.overlap import LIMIT, Overlap
from unskew.weighters.next_step import NextStep

OTHER, NOT_IN_SAMPLE, MISSING = "(other)", "(not in the sample)", "(missing)"
"""Labels of rare categories, of unseen categories (of the population alone), of missing values."""


@dataclass(frozen=True)
class BalanceLine:
    """A mean of one column, or the share of one category, compared with the population's.

    The differences are standardised: the sample's mean or share minus the population's, in standard
    deviations of the population. Infinite if the population is constant and the sample differs from
    it; None if either side has no value.

    Attributes
    ----------
    category : str or None
        The category, the same before and after; "(missing)" for the share of missing values, "(not
        in the sample)" for that of all unseen categories; None for the mean of numbers and times.
    before : float or None
        With the sample's design weights only, if it has any.
    after : float or None
        With the weights; None without.
    """

    category: str | None
    before: float | None
    after: float | None

    @property
    def size(self) -> float:
        """The larger of both differences, without its sign."""
        return max(abs(self.before or 0.0), abs(self.after or 0.0))


@dataclass(frozen=True)
class Difference:
    """How far the sample is from the population in one column as a whole.

    Attributes
    ----------
    variance_ratio : float or None
        The sample's variance divided by the population's, for numbers and times.
    distance : float or None
        The Kolmogorov-Smirnov distance for numbers and times, the total variation distance for
        categories; between 0 and 1.
    missing : float
        The sample's share of missing values minus the population's.
    correctable_difference : float or None
        The largest absolute standardised difference that weights can reduce: of the mean, of the
        shares of categories that the sample has, of the share of missing values if the sample has
        some.
    """

    variance_ratio: float | None
    distance: float | None
    missing: float
    correctable_difference: float | None = None


@dataclass(frozen=True)
class Distribution:
    """The distribution of one column in sample, weighted sample and population.

    Attributes
    ----------
    labels : tuple of str
        The bins, in the column's units, or the categories; none where only a mean of the population
        is known.
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
    lines : tuple of BalanceLine
        The mean, or categories: the largest difference before weighting first. Of categories, those
        whose difference exceeds ``thresholds.balanced_difference`` before or after weighting, at
        most 20; of two categories, whose differences are opposite, one; if all are balanced, the
        one that differs most. Missing values have a line if they exceed it too.
    unlisted : int
        How many more categories exceed it.
    before : Difference
        With the sample's design weights only, if it has any.
    after : Difference or None
        With the weights; None without.
    distribution : Distribution
    """

    name: str
    kind: Literal["number", "category", "time"]
    lines: tuple[BalanceLine, ...]
    unlisted: int
    before: Difference
    after: Difference | None
    distribution: Distribution

    @property
    def differences(self) -> dict[str, Difference]:
        """The differences by stage, without ``after`` if there are no weights."""
        return {"before": self.before} | ({"after": self.after} if self.after else {})


@dataclass(frozen=True)
class Thresholds:
    """The limits of a verdict.

    Attributes
    ----------
    significance_level : float
        Of the tests together: half of it is for that of columns one by one.
    max_uncovered : float
        The uncovered share above which weights cannot correct the bias.
    balanced_difference : float
        The standardised difference up to which a feature counts as balanced.
    balanced_auc : float
        The AUC up to which sample and population count as balanced.
    min_effective_share : float
        The effective share of the sample below which weights are costly.
    chance_difference : float
        With weights: what the largest of all standardised differences reaches by chance at this
        effective sample size.
    """

    significance_level: float = 0.05
    max_uncovered: float = LIMIT
    balanced_difference: float = 0.1
    balanced_auc: float = 0.55
    min_effective_share: float = 0.5
    chance_difference: float = 0.0

    @property
    def largest_difference(self) -> float:
        """The difference above which a feature counts against the weights, everywhere."""
        return self.balanced_difference + self.chance_difference


THRESHOLDS: Thresholds = Thresholds()


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
    row : int or str
        Its position in the sample, from 0; in a report of the command line, its identifier.
    weight : float
        Its weight, where weights have mean one.
    share : float
        Its share of the total weight.
    values : dict of str to str
        The values of the row, as text.
    """

    row: int | str
    weight: float
    share: float
    values: dict[str, str]


@dataclass(frozen=True)
class WeightSummary:
    """A summary of the weights.

    Attributes
    ----------
    effective_sample_size : float
        Kish's: this many equally weighted rows would give a mean of the same variance.
    effective_share : float
        The same, divided by the number of rows.
    design_effect : float
        Its inverse: the factor by which weighting increases the variance of a mean.
    smallest, largest : float
        The extreme weights, where weights have mean one.
    zero_rows : int
        How many rows have weight zero.
    top_share : float
        The share of the total weight that the largest 1 % of the weights carries.
    half_rows : int
        How many rows, those of the largest weights, carry half of the total weight.
    heaviest : tuple of HeavyRow
        The largest weights, with their rows.
    histogram : Histogram
        Of the positive weights, where weights have mean one; edges equally spaced on a log scale.
    """

    effective_sample_size: float
    effective_share: float
    design_effect: float
    smallest: float
    largest: float
    zero_rows: int
    top_share: float
    half_rows: int
    heaviest: tuple[HeavyRow, ...]
    histogram: Histogram


Status = Literal[
    "no bias found", "correctable", "corrected", "costly", "not corrected", "not correctable"
]
Cause = Literal["overlap", "overfitted", "means", "joint distribution", "cost"]


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
    tests : tuple of TwoSampleTest
        The tests of shift; none where only margins of the population are known.
    """

    features: tuple[FeatureBalance, ...]
    tests: tuple[TwoSampleTest, ...] = ()

    def _test(self, name: str) -> TwoSampleTest | None:
        return next((test for test in self.tests if test.name == name), None)

    @property
    def classifier(self) -> TwoSampleTest | None:
        """The test whose statistic is the AUC of a classifier on held-out rows.

        It separates the sample from the population: 0.5 if it cannot.
        """
        return self._test("classifier")

    @property
    def mmd(self) -> TwoSampleTest | None:
        """The test by the maximum mean discrepancy: the distance itself, not its square."""
        return self._test("maximum mean discrepancy")

    @property
    def columns(self) -> TwoSampleTest | None:
        """The largest difference of a share, of a category or below a quintile.

        It is in its standard deviations, and tested with a correction for their number.
        """
        return self._test("columns one by one")


@dataclass(frozen=True)
class BoundStatement:
    """A theorem, applied to this diagnosis.

    Attributes
    ----------
    theorem : str
    statement : str
        What its number means for this sample, in a sentence.
    value : float
    vacuous : bool
        Whether the bound is no better than what is known without it.
    assumptions : tuple of str
    of_learner : bool
        Whether it is about the error of a learner, and not about the weights.
    """

    theorem: str
    statement: str
    value: float
    vacuous: bool
    assumptions: tuple[str, ...]
    of_learner: bool = False


Stage = Literal["before", "after"]


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
        Their standard errors.
    after_interval : tuple of pairs of float, or None
        95 % intervals of ``after`` that count the estimation of the weights, as those of
        :func:`unskew.estimate`, and so does ``after_error``. None if the weights are treated as
        fixed: they are not from a fitted weighter, or cannot be linearised.
    sensitivity : Sensitivity or None
        How far the mean, or the share of the larger of two classes, moves if odds of selection are
        off by a factor for reasons that no column shows. None where there is no interval.
    """

    kind: Literal["mean", "shares"]
    labels: tuple[str, ...]
    before: tuple[float, ...]
    before_error: tuple[float, ...]
    after: tuple[float, ...] | None
    after_error: tuple[float, ...] | None
    after_interval: tuple[tuple[float, float], ...] | None = None
    sensitivity: Sensitivity | None = None

    def answers(self, stage: Stage) -> list[tuple[float, float, float]] | None:
        """Return each value with the ends of its 95 % interval; None without weights."""
        before = stage == "before"
        values = self.before if before else self.after
        errors = self.before_error if before else self.after_error
        if values is None or errors is None:
            return None
        if not before and self.after_interval is not None:
            ends = self.after_interval
            return [(value, *end) for value, end in zip(values, ends, strict=True)]
        found = []
        for value, error in zip(values, errors, strict=True):
            low, high = value - 1.96 * error, value + 1.96 * error
            if self.kind == "shares":
                low, high = max(low, 0.0), min(high, 1.0)
            found.append((value, low, high))
        return found


@dataclass(frozen=True)
class Verdict:
    """The conclusion in plain words.

    Attributes
    ----------
    status : str
        "no bias found"; "correctable": there is bias, and no weights yet; "corrected": the weights
        remove it; "costly": either, at the cost of much of the effective sample size; "not
        corrected": the weights do not remove the bias; "not correctable": the
        sample leaves too much of the population uncovered.
    headline : str
        One sentence.
    sentences : tuple of str
        The reasons.
    next_step : NextStep or None
        What to do where it is not good: columns to leave out, weighters and parameters to try; it
        prints as what follows "Next step:".
    cause : str or None
        What is wrong where it is not good. "overlap": the sample lacks part of the population;
        "overfitted": the weights follow single rows; "means": means or shares still differ; "joint
        distribution": these agree, and yet a classifier separates sample and population; "cost":
        the bias is corrected, and much of the effective sample size is lost.
    """

    status: Status
    headline: str
    sentences: tuple[str, ...]
    next_step: NextStep | None = None
    cause: Cause | None = None

    def __str__(self) -> str:
        step = () if self.next_step is None else (f"Next step: {self.next_step}",)
        return " ".join((self.headline, *self.sentences, *step))


@dataclass(frozen=True)
class Provenance:
    """Which data a diagnosis is about, and when it was made.

    Attributes
    ----------
    sample, population, weights : str or None
        The files, as far as they are known.
    target : str or None
        The name of the labels.
    date : str
        ISO 8601, in local time with its distance from UTC.
    version : str
        Of unskew.
    title : str or None
        Of the report.
    identifier : str or None
        The column that identifies the rows; where there is none, they are counted from 0.
    """

    sample: str | None = None
    population: str | None = None
    weights: str | None = None
    target: str | None = None
    date: str = field(default_factory=lambda: datetime.now().astimezone().isoformat("T", "seconds"))
    version: str = __version__
    title: str | None = None
    identifier: str | None = None


@dataclass(frozen=True)
class Diagnosis:
    """Whether a sample is biased, how badly and where, and whether weights correct it.

    Returned by :func:`unskew.diagnose`.

    Attributes
    ----------
    verdict : Verdict
    bias : Bias
    overlap : Overlap or None
        Which part of the population the sample does not cover; None where only margins are known.
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
    provenance : Provenance
        Which data it is about, and when it was made; equal diagnoses may differ in it.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import diagnose
    >>> random = np.random.default_rng(0)
    >>> diagnosis = diagnose(random.normal(1, 1, (200, 1)), random.normal(0, 1, (1000, 1)))
    >>> diagnosis.bias_left
    True
    >>> [feature.name for feature in diagnosis.bias.features]
    ['x0']
    """

    verdict: Verdict
    bias: Bias
    overlap: Overlap | None
    weights: WeightSummary | None
    bounds: tuple[BoundStatement, ...]
    sample_rows: int
    population_rows: int
    examined_rows: int
    method: str | None
    thresholds: Thresholds
    outcome: Outcome | None = None
    provenance: Provenance = field(default_factory=Provenance, compare=False)

    def __str__(self) -> str:
        return str(self.verdict)

    def largest_lines(
        self, most: int, most_a_feature: int = 1
    ) -> tuple[list[tuple[FeatureBalance, BalanceLine]], int]:
        """Return the means and categories that differ most, and how many more are not balanced.

        They are chosen by the larger difference before or after weighting, and sorted by that
        before. Each feature's largest is chosen before any feature's second, so that a column of
        many categories leaves room for the others.

        Parameters
        ----------
        most, most_a_feature : int
            How many to return, of all features and of one.
        """
        ranked = [
            (place, feature, line)
            for feature in self.bias.features
            for place, line in enumerate(sorted(feature.lines, key=lambda line: -line.size))
        ]
        first = [entry for entry in ranked if entry[0] < most_a_feature]
        first.sort(key=lambda entry: (entry[0] > 0, -entry[2].size))
        shown = [(feature, line) for _, feature, line in first[:most]]
        shown.sort(key=lambda entry: -abs(entry[1].before or 0.0))
        limit = self.thresholds.largest_difference
        found = sum(line.size > limit for _, _, line in ranked)
        found += sum(feature.unlisted for feature in self.bias.features)
        return shown, found - sum(line.size > limit for _, line in shown)

    @property
    def bias_left(self) -> bool:
        """Whether there is bias: in the sample or, if weights are given, in the weighted sample.

        A value that no sample row has, beyond chance, is bias that no weights correct.
        """
        corrected = ("corrected", "costly") if self.weights is not None else ()
        unseen = self.overlap is not None and bool(self.overlap.unseen)
        return unseen or self.verdict.status not in ("no bias found", *corrected)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain dicts, lists, numbers and text.

        Numbers that JSON cannot hold become text: "inf", "-inf", "nan".
        """
        plain: dict[str, Any] = _plain(asdict(self))
        tests = {test["name"]: test for test in plain["bias"].pop("tests")}
        for key in ("mmd", "classifier", "columns"):  # which have a key of their own
            test = getattr(self.bias, key)
            plain["bias"][key] = None if test is None else tests.pop(test.name)
        plain["bias"] |= tests
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

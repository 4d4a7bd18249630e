"""Diagnoses put together by hand, of samples drawn here: what a report must be able to show."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np

from unskew.diagnostics.diagnosis import (
    THRESHOLDS,
    BalanceLine,
    Bias,
    BoundStatement,
    Comparison,
    Diagnosis,
    Difference,
    Distribution,
    FeatureBalance,
    HeavyRow,
    Histogram,
    Outcome,
    TwoSampleTest,
    Verdict,
    WeightSummary,
)
from unskew.overlap.overlap import Overlap, OverlapRule
from unskew.report import to_html, to_notebook_html

REGIONS = ("north", "east", "south", "west", "islands")

HOSTILE = (
    "<script>window.hit = 1</script>",
    "</script><script>window.hit = 2</script>",
    '"><img src=x onerror="window.hit = 3">',
    "'-alert(4)-'",
    "{{ 7 * 7 }}{% raw %}",
    "${window.hit = 5}",
    "datum['x'].y[0]\\",
    "a|b`c*d*_e_[f](javascript:window.hit=6)<!--",
    "two\nlines\u2028and\u2029more\ttab",
    "\u202egnirts a\u202c \u05e9\u05dc\u05d5\u05dd",
    "",
    "   ",
    "x" * 5000,
    "<svg onload=window.hit=7>",
    "http://example.com/?a=1&b=2#c",
    "</style><style>body{display:none}</style>",
    "&lt;b&gt; &amp; \x00\x1b[31m",
    "]]><!DOCTYPE x>",
)


def survey(n_features: int = 16, *, weighted: bool = True, seed: int = 0) -> Diagnosis:
    """A survey that the old and the well-off answered more often, and nobody on the islands."""
    random = np.random.default_rng(seed)
    n_population, n_sample = 40_000, 1_200
    region = random.choice(len(REGIONS), n_population, p=[0.3, 0.26, 0.22, 0.179, 0.041])
    income = np.exp(random.normal(10.4, 0.45, n_population))
    age = random.gamma(9, 5.2, n_population)
    lean = 0.09 * (age - 52) + 2.2 * (np.log(income) - 10.5) + 0.8 * (region == 0)
    chance = np.where(REGIONS.index("islands") == region, 0.0, 1 / (1 + np.exp(-lean)))
    chosen = random.choice(n_population, n_sample, replace=False, p=chance / chance.sum())
    weights = 1 / chance[chosen] * np.exp(0.1 * random.normal(size=n_sample))
    weights *= n_sample / weights.sum()

    names = ["income", "age", "years at address", "hours online", "rooms", "distance to town"]
    names += [f"question {number}" for number in range(1, n_features)]
    numbers = {"income": income, "age": age}
    for place, name in enumerate(names[2 : n_features - 2]):
        tied = 0.7 / (1 + 0.4 * place) * (-1) ** place
        numbers[name] = tied * (age - 47) / 15.6 + random.normal(size=n_population)
    features = [_number(name, values, chosen, weights) for name, values in numbers.items()]
    features.append(_category("region", region, REGIONS, chosen, weights))
    rooms = np.minimum(random.poisson(2.2, n_population), 7)
    features.append(_few("bedrooms", rooms, chosen, weights))
    features.sort(key=lambda feature: -abs(feature.lines[0].before))
    if not weighted:
        features = [_unweighted(feature) for feature in features]

    rows = np.argsort(-weights)[:10]
    heaviest = tuple(
        HeavyRow(
            int(row),
            float(weights[row]),
            float(weights[row] / n_sample),
            {name: f"{values[chosen[row]]:,.1f}" for name, values in numbers.items()}
            | {"region": REGIONS[region[chosen[row]]]},
        )
        for row in rows
    )
    effective = float(weights.sum() ** 2 / (weights**2).sum())
    edges = np.geomspace(weights.min(), weights.max(), 31)
    summary = WeightSummary(
        effective_sample_size=effective,
        effective_share=effective / n_sample,
        design_effect=n_sample / effective,
        smallest=float(weights.min()),
        largest=float(weights.max()),
        zero_rows=3,
        top_share=float(np.sort(weights)[-12:].sum() / n_sample),
        half_rows=int((np.sort(weights)[::-1].cumsum() < n_sample / 2).sum()) + 1,
        heaviest=heaviest,
        histogram=Histogram(
            tuple(map(float, edges)), tuple(map(int, np.histogram(weights, edges)[0]))
        ),
    )
    return Diagnosis(
        verdict=Verdict(
            "corrected",
            "The sample is biased, and the weights correct it.",
            (
                "A classifier separates sample and population with an AUC of 0.71; with the "
                "weights 0.52, which chance explains.",
                "The sample does not cover 4.1 % of the population: region = islands.",
                f"The effective sample size is {effective:,.0f} of 1,200 rows.",
            ),
        )
        if weighted
        else Verdict(
            "correctable",
            "The sample is biased; weights can correct it.",
            ("A classifier separates sample and population with an AUC of 0.71.",),
        ),
        bias=Bias(
            tuple(features),
            (
                TwoSampleTest(
                    "classifier",
                    "Gradient-boosted trees, fold after fold; interval of DeLong.",
                    Comparison(0.7123, 0.6951, 0.7288, 1e-12),
                    Comparison(0.5171, 0.4902, 0.5418, 0.1934) if weighted else None,
                ),
                TwoSampleTest(
                    "maximum mean discrepancy",
                    "Gaussian kernel of the median distance; 999 permutations.",
                    Comparison(0.1834, None, None, 0.001),
                    Comparison(0.0213, None, None, 0.4183) if weighted else None,
                ),
            ),
        ),
        overlap=Overlap(
            0.0489,
            0.0042,
            (
                OverlapRule("region = islands", 0.041, 0.0, 0, n_sample),
                OverlapRule("income > 92,000 and age ≤ 24", 0.0062, 0.0015, 0, n_sample),
            ),
            0.0017,
            "Categories are counted; elsewhere by the distance to the nearest sample row.",
        ),
        weights=summary if weighted else None,
        bounds=(
            BoundStatement(
                "Proposition 2",
                "With probability 95 %, every cell's weight is within a factor of 1.6 of the true "
                "one.",
                1.6,
                False,
                ("The sample's rows were drawn independently.", "No cell is empty."),
            ),
            BoundStatement(
                "Theorem 3",
                "The error changes by at most 41.7.",
                41.7,
                True,
                ("A bounded kernel.",),
            ),
        ),
        sample_rows=n_sample,
        population_rows=2_400_000,
        examined_rows=n_population,
        method="TreeWeights(min_samples_leaf=40)" if weighted else None,
        thresholds=THRESHOLDS,
        outcome=Outcome("mean", ("mean",), (11565.29,), (33.33,), (11347.7,), (34.6,))
        if weighted
        else None,
    )


def unbiased() -> Diagnosis:
    """Nothing to see: no bias, no weights, no rules, no bounds."""
    diagnosis = survey(8, weighted=False)
    small = [
        replace(
            feature,
            lines=(replace(feature.lines[0], before=0.01 * (-1) ** place),),
            before=replace(feature.before, distance=0.02),
        )
        for place, feature in enumerate(diagnosis.bias.features)
    ]
    return replace(
        diagnosis,
        verdict=Verdict("no bias found", "No bias was found.", ("AUC 0.50, p = 0.61.",)),
        bias=replace(diagnosis.bias, features=tuple(small)),
        overlap=Overlap(0.0, 0.0, (), 0.0, "Counted."),
        bounds=(),
        population_rows=diagnosis.examined_rows,
    )


def hopeless() -> Diagnosis:
    """A sample that cannot represent the population, and a constant column that differs."""
    diagnosis = survey(12)
    constant = FeatureBalance(
        "country",
        "number",
        (BalanceLine(None, float("inf"), float("inf")),),
        0,
        Difference(None, 1.0, 0.0),
        Difference(None, 1.0, 0.0),
        Distribution(("49", "(missing)"), None, (1.0, 0.0), (1.0, 0.0), (0.9, 0.1), 1),
    )
    empty = FeatureBalance(
        "comment",
        "category",
        (),
        0,
        Difference(None, None, 0.4),
        Difference(None, None, 0.4),
        Distribution(("(missing)",), None, (1.0,), (1.0,), (1.0,), 1),
    )
    return replace(
        diagnosis,
        verdict=Verdict(
            "not correctable",
            "The sample does not cover 38 % of the population: no weights can correct that.",
            ("The largest region is income > 92,000.", "The limit is 5 %."),
        ),
        bias=replace(diagnosis.bias, features=(constant, *diagnosis.bias.features, empty)),
        overlap=replace(
            diagnosis.overlap,
            uncovered=0.38,
            rules=(
                OverlapRule("income > 92,000", 0.31, 0.01, 0, 1200),
                *diagnosis.overlap.rules,
            ),
        ),
    )


def hostile() -> Diagnosis:
    """Names, categories, rules, cells and even sentences that try to be more than text."""
    diagnosis = survey(len(HOSTILE) + 1)
    bad = list(HOSTILE)
    features = []
    for place, feature in enumerate(diagnosis.bias.features):
        name = bad[place % len(bad)] + ("!" if place >= len(bad) else "")
        features.append(replace(feature, name=name))
    shares = tuple(1 / len(bad) for _ in bad)
    features.insert(
        0,
        FeatureBalance(
            "<img src=x onerror=window.hit=8>",
            "category",
            (BalanceLine(bad[0], -1.2, 0.1), BalanceLine(bad[1], 0.3, 0.2)),
            12,
            Difference(None, 0.4, 0.0),
            Difference(None, 0.1, 0.0),
            Distribution(tuple(bad), None, shares, shares, shares),
        ),
    )
    assert diagnosis.weights is not None
    heaviest = tuple(
        replace(row, values=dict(zip(bad, reversed(bad), strict=True)))
        for row in diagnosis.weights.heaviest
    )
    return replace(
        diagnosis,
        verdict=Verdict("costly", f"Costly: {bad[0]}", tuple(bad)),
        bias=replace(diagnosis.bias, features=tuple(features)),
        overlap=replace(
            diagnosis.overlap,
            rules=tuple(OverlapRule(text, 0.01, 0.0, 0, 1200) for text in bad),
        ),
        weights=replace(diagnosis.weights, heaviest=heaviest),
        bounds=(BoundStatement(bad[0], bad[1], 1.0, False, tuple(bad)),),
        method=bad[0],
        outcome=Outcome("shares", tuple(bad), shares, shares, shares, shares),
    )


EXAMPLES = {
    "survey": survey,
    "unweighted": lambda: survey(weighted=False),
    "unbiased": unbiased,
    "hopeless": hopeless,
    "hostile": hostile,
}


@cache
def example(name: str) -> Diagnosis:
    """An example by its name, or a survey of so many features."""
    if not name.isdigit():
        return EXAMPLES[name]()
    few = survey(min(int(name), 16))
    features = [
        replace(feature, name=f"{feature.name} {copy}" if copy else feature.name)
        for copy in range(-(-int(name) // 16))
        for feature in few.bias.features
    ]
    return replace(few, bias=replace(few.bias, features=tuple(features[: int(name)])))


@cache
def page_of(name: str, static: bool = False) -> str:
    """The page of an example, made once."""
    return to_html(example(name), static=static)


@cache
def notebook_of(name: str) -> str:
    """What a notebook shows of an example, made once."""
    return to_notebook_html(example(name))


def _number(
    name: str, values: np.ndarray, chosen: np.ndarray, weights: np.ndarray
) -> FeatureBalance:
    edges = np.linspace(*np.quantile(values, [0.001, 0.999]), 25)
    sample = values[chosen]

    def shares(rows: np.ndarray, by: np.ndarray | None = None) -> tuple[float, ...]:
        counts = np.histogram(np.clip(rows, edges[0], edges[-1]), edges, weights=by)[0]
        return (*(float(share) for share in 0.98 * counts / counts.sum()), 0.02)

    def shift(by: np.ndarray) -> float:
        return float((np.average(sample, weights=by) - values.mean()) / values.std())

    def difference(by: np.ndarray) -> Difference:
        variance = np.average((sample - np.average(sample, weights=by)) ** 2, weights=by)
        return Difference(float(variance / values.var()), min(1.0, abs(shift(by)) / 2.5), 0.012)

    even = np.ones(len(sample))
    labels = (*(f"{low:,.1f} to {high:,.1f}" for low, high in pairwise(edges)), "(missing)")
    return FeatureBalance(
        name,
        "number",
        (BalanceLine(None, shift(even), shift(weights)),),
        0,
        difference(even),
        difference(weights),
        Distribution(
            labels,
            tuple(map(float, edges)),
            shares(sample),
            shares(sample, weights),
            shares(values),
            1,
        ),
    )


def _few(name: str, values: np.ndarray, chosen: np.ndarray, weights: np.ndarray) -> FeatureBalance:
    """A number of few values, which has no bins."""
    labels = tuple(map(str, range(values.max() + 1)))
    by_bins = _number(name, values.astype(float), chosen, weights)
    return replace(
        by_bins, distribution=_category(name, values, labels, chosen, weights).distribution
    )


def _category(
    name: str, codes: np.ndarray, labels: tuple[str, ...], chosen: np.ndarray, weights: np.ndarray
) -> FeatureBalance:
    def shares(rows: np.ndarray, by: np.ndarray | None = None) -> np.ndarray:
        counts = np.bincount(rows, weights=by, minlength=len(labels))
        return counts / counts.sum()

    population = shares(codes)
    sample, weighted = shares(codes[chosen]), shares(codes[chosen], weights)

    def difference(side: np.ndarray) -> Difference:
        return Difference(None, float(np.abs(side - population).sum() / 2), 0.0)

    deviation = np.sqrt(population * (1 - population))
    before, after = ((side - population) / deviation for side in (sample, weighted))
    lines = [
        BalanceLine(label, float(before[place]), float(after[place]))
        for place, label in enumerate(labels)
    ]
    lines.sort(key=lambda line: -abs(line.before))
    return FeatureBalance(
        name,
        "category",
        tuple(line for line in lines if line.size > 0.1),
        0,
        difference(sample),
        difference(weighted),
        Distribution(
            labels,
            None,
            tuple(map(float, sample)),
            tuple(map(float, weighted)),
            tuple(map(float, population)),
        ),
    )


def _unweighted(feature: FeatureBalance) -> FeatureBalance:
    lines = tuple(replace(line, after=None) for line in feature.lines)
    return replace(
        feature, lines=lines, after=None, distribution=replace(feature.distribution, weighted=None)
    )

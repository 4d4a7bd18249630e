"""Thirty designs: who is in the sample, what the true number is, and the true weight of each row.

A design is a function of a random generator that returns a :class:`Draw`. Rows come from a known
distribution; a row gets into the sample with a known chance, whose inverse is its true weight. True
values are in closed form, never estimated. Effects and chances of levels are fixed for each design.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from unskew import Margins, Population

Random = np.random.Generator
Rows = Callable[[Random, int], pd.DataFrame]
Chance = Callable[[pd.DataFrame], Any]
Outcome = Callable[[Random, pd.DataFrame], Any]
MARGINS = ["variable", "category", "count"]
"""The columns of a table of margins."""


@dataclass(frozen=True)
class Draw:
    """A sample, a population, and the truth."""

    X: pd.DataFrame
    y: np.ndarray
    table: pd.DataFrame
    """The population's rows; or its margins, a row for each level."""
    ratio: np.ndarray
    """The true weight of each sample row, in any scale."""
    truth: dict[Any, float]
    """The population's number, by domain; a single one is that of None."""
    unit: dict[Any, float]
    """The standard error that an even sample of as many rows would have."""
    options: dict[str, Any] = field(default_factory=dict)
    """Of ``estimate``, beside X, y and population."""
    weight: str | None = None
    """The column of ``table`` with the weights of its rows."""

    @property
    def has_margins(self) -> bool:
        """Whether there are margins only."""
        return "variable" in self.table

    @property
    def population(self) -> Any:
        """What is known of the population, as it is given in Python."""
        if self.weight is not None:
            return Population(self.table, weight=self.weight)
        if not self.has_margins:
            return self.table
        means, counts = {}, {}
        for variable, category, count in self.table.itertuples(index=False):
            if category == "(mean)":
                means[variable] = count
            else:
                counts.setdefault(variable, {})[category] = count
        return Margins(counts=counts, means=means)

    @property
    def design(self) -> np.ndarray | None:
        """The sample's design weights, if there are any."""
        return self.options.get("sample_weight")


Make = Callable[[Random], Draw]


@dataclass(frozen=True)
class Design:
    """A named way to draw."""

    name: str
    sentence: str
    make: Make


DESIGNS: dict[str, Design] = {}


def design(sentence: str) -> Callable[[Make], Make]:
    """List a design under its function's name, with a sentence."""

    def listed(make: Make) -> Make:
        name = make.__name__.replace("_", " ")
        DESIGNS[name] = Design(name, sentence, make)
        return make

    return listed


def selected(random: Random, rows: Rows, chance: Chance, m: int) -> pd.DataFrame:
    """Return m rows, each taken with its chance."""
    found: list[pd.DataFrame] = []
    while sum(map(len, found)) < m:
        some = rows(random, 4 * m)
        found.append(some[random.uniform(size=len(some)) < chance(some)])
    return pd.concat(found, ignore_index=True).iloc[:m]


def apart(
    random: Random,
    m: int,
    n: int,
    rows: Rows,
    chance: Chance,
    outcome: Outcome,
    truth: float,
    *,
    of_sample: Callable[[pd.DataFrame], pd.DataFrame] = lambda rows: rows,
    of_population: Callable[[pd.DataFrame], pd.DataFrame] = lambda rows: rows,
) -> Draw:
    """Return a sample by chance and a population of other rows, each with the columns it shows."""
    S, U = selected(random, rows, chance, m), rows(random, n)
    y = np.asarray(outcome(random, S), dtype=float)
    spread = float(np.std(outcome(random, rows(random, 20_000))))
    return Draw(
        of_sample(S),
        y,
        of_population(U),
        1 / np.asarray(chance(S), dtype=float),
        {None: truth},
        {None: spread / m**0.5},
    )


def levels(k: int, seed: int, pull: float, uneven: float = 0.5) -> tuple[Any, Any, Any]:
    """Return shares, effects of mean zero and chances of k levels; those with effects come in."""
    random = np.random.default_rng([k, seed])
    shares = np.exp(uneven * random.normal(size=k))
    shares /= shares.sum()
    effects = random.normal(size=k).clip(-2, 2)
    effects -= shares @ effects
    logs = (pull * effects).clip(-1.5, 1.5)
    return shares, effects, np.exp(logs - logs.max())


def text(codes: Any) -> Any:
    """Return codes as the text of a category."""
    return np.char.add("l", np.asarray(codes).astype(str))


def codes(column: Any) -> Any:
    """Return the codes of a category."""
    return column.str.slice(1).astype(int).to_numpy()


def normals(names: str) -> Rows:
    """Return what draws independent standard normal columns."""
    return lambda random, size: pd.DataFrame(
        {name: random.normal(size=size) for name in names.split()}
    )


def logistic(score: Any) -> Any:
    """Return 1 / (1 + e^−score)."""
    return 1 / (1 + np.exp(-np.asarray(score)))


def of_levels(k: int, seed: int, pull: float, m: int, n: int, random: Random) -> Draw:
    """Return a draw with one category, by which rows come in and y differs."""
    shares, effects, chances = levels(k, seed, pull)
    return apart(
        random,
        m,
        n,
        lambda r, size: pd.DataFrame({"group": text(r.choice(k, size, p=shares))}),
        lambda rows: chances[codes(rows["group"])],
        lambda r, rows: effects[codes(rows["group"])] + r.normal(size=len(rows)),
        0.0,
    )


@design("A yes or no of about 4 %, one category of 5 levels; 600 against 6,000 rows.")
def share_in_five_levels(random: Random) -> Draw:
    shares, yes = np.array([0.3, 0.3, 0.2, 0.15, 0.05]), np.array([0.01, 0.02, 0.05, 0.08, 0.15])
    chances = np.array([0.2, 0.3, 0.5, 0.8, 1.0])
    return apart(
        random,
        600,
        6_000,
        lambda r, size: pd.DataFrame({"group": text(r.choice(5, size, p=shares))}),
        lambda rows: chances[codes(rows["group"])],
        lambda r, rows: r.uniform(size=len(rows)) < yes[codes(rows["group"])],
        float(shares @ yes),
    )


@design("One category of 60 levels, by which rows come in and y differs; 400 against 4,000 rows.")
def sixty_levels(random: Random) -> Draw:
    return of_levels(60, 1, 0.7, 400, 4_000, random)


@design("One category of 200 levels; 2,000 against 10,000 rows.")
def two_hundred_levels(random: Random) -> Draw:
    return of_levels(200, 2, 0.7, 2_000, 10_000, random)


@design("Categories of 12 and 8 levels, with effects that add up; 500 against 5,000 rows.")
def two_categories(random: Random) -> Draw:
    first, second = levels(12, 3, 0.5), levels(8, 4, 0.5)
    return apart(
        random,
        500,
        5_000,
        lambda r, size: pd.DataFrame(
            {
                "trade": text(r.choice(12, size, p=first[0])),
                "region": text(r.choice(8, size, p=second[0])),
            }
        ),
        lambda rows: first[2][codes(rows["trade"])] * second[2][codes(rows["region"])],
        lambda r, rows: (
            first[1][codes(rows["trade"])]
            + second[1][codes(rows["region"])]
            + r.normal(size=len(rows))
        ),
        0.0,
    )


@design("A category of 30 levels and a number that goes with it; 600 against 6,000 rows.")
def category_and_number(random: Random) -> Draw:
    shares, effects, chances = levels(30, 5, 0.5)

    def rows(r: Random, size: int) -> pd.DataFrame:
        group = r.choice(30, size, p=shares)
        return pd.DataFrame(
            {"group": text(group), "size": 0.5 * effects[group] + r.normal(size=size)}
        )

    return apart(
        random,
        600,
        6_000,
        rows,
        lambda rows: chances[codes(rows["group"])] * logistic(rows["size"]),
        lambda r, rows: effects[codes(rows["group"])] + rows["size"] + r.normal(size=len(rows)),
        0.0,
    )


@design("Categories of 10 and 10 levels, many pairs of which no row happens to have; 300 to 6,000.")
def rare_pairs(random: Random) -> Draw:
    first, second = levels(10, 6, 0.3, 0.8), levels(10, 7, 0.3, 0.8)
    return apart(
        random,
        300,
        6_000,
        lambda r, size: pd.DataFrame(
            {
                "age": text(r.choice(10, size, p=first[0])),
                "region": text(r.choice(10, size, p=second[0])),
            }
        ),
        lambda rows: first[2][codes(rows["age"])] * second[2][codes(rows["region"])],
        lambda r, rows: (
            first[1][codes(rows["age"])]
            + second[1][codes(rows["region"])]
            + r.normal(size=len(rows))
        ),
        0.0,
    )


@design("Incomes to the unit in the sample, to 1,000 in the population; 600 against 5,000 rows.")
def rounded_population(random: Random) -> Draw:

    def shown(rows: pd.DataFrame, grid: float) -> pd.DataFrame:
        income = np.exp(10 + 0.6 * rows["income"])
        return pd.DataFrame({"income": (income / grid).round() * grid, "age": rows["age"]})

    return apart(
        random,
        600,
        5_000,
        normals("income age"),
        lambda rows: logistic(rows["income"] + 0.5 * rows["age"]),
        lambda r, rows: rows["income"] + 0.5 * rows["age"] + r.normal(size=len(rows)),
        0.0,
        of_sample=lambda rows: shown(rows, 1.0),
        of_population=lambda rows: shown(rows, 1_000.0),
    )


@design("Ages in whole months in the sample, in days / 30.4 in the population; 500 against 5,000.")
def months_and_days(random: Random) -> Draw:

    def shown(rows: pd.DataFrame, days: int) -> pd.DataFrame:
        age = (600 + 120 * rows["age"]).clip(0) * 30.4
        return pd.DataFrame({"age": (age / days).round() * days / 30.4, "size": rows["size"]})

    return apart(
        random,
        500,
        5_000,
        normals("age size"),
        lambda rows: logistic(rows["age"]),
        lambda r, rows: rows["age"] + rows["size"] + r.normal(size=len(rows)),
        0.0,
        of_sample=lambda rows: shown(rows, 30.4).round({"age": 0}),
        of_population=lambda rows: shown(rows, 1),
    )


@design("One of ten towns, 4.1 % of the population, is not in the sample, and differs; 1,000 rows.")
def unseen_town(random: Random) -> Draw:
    shares = np.r_[0.041, np.full(9, 0.959 / 9)]
    effects = np.r_[2.0, np.linspace(-0.5, 0.5, 9)]
    chances = np.r_[0.0, np.linspace(1.0, 0.4, 9)]
    return apart(
        random,
        1_000,
        8_000,
        lambda r, size: pd.DataFrame(
            {"town": text(r.choice(10, size, p=shares)), "age": r.normal(size=size)}
        ),
        lambda rows: chances[codes(rows["town"])],
        lambda r, rows: effects[codes(rows["town"])] + rows["age"] + r.normal(size=len(rows)),
        float(shares @ effects),
    )


@design("A mark that 1.5 % of the population and no sample row has, and that matters; 1,000 rows.")
def unseen_flag(random: Random) -> Draw:

    def rows(r: Random, size: int) -> pd.DataFrame:
        found = normals("age size")(r, size)
        return found.assign(flag=(r.uniform(size=size) < 0.015).astype(int))

    return apart(
        random,
        1_000,
        8_000,
        rows,
        lambda rows: (rows["flag"] == 0) * logistic(-rows["age"]),
        lambda r, rows: 6 * rows["flag"] + rows["age"] + r.normal(size=len(rows)),
        0.09,
    )


@design("No sample row above 1.5 standard deviations, where y grows; 500 against 5,000 rows.")
def cut_off(random: Random) -> Draw:
    return apart(
        random,
        500,
        5_000,
        normals("x other"),
        lambda rows: (rows["x"] < 1.5) * logistic(-rows["x"]),
        lambda r, rows: np.exp(rows["x"]) + rows["other"] + r.normal(size=len(rows)),
        float(np.exp(0.5)),
    )


@design("The outcome has a Pareto tail of index 2.5; 500 against 5,000 rows.")
def pareto_tail(random: Random) -> Draw:
    return apart(
        random,
        500,
        5_000,
        normals("x other"),
        lambda rows: logistic(rows["x"]),
        lambda r, rows: np.exp(0.5 * rows["x"]) * (1 + r.pareto(2.5, len(rows))),
        float(np.exp(0.125) * 2.5 / 1.5),
    )


@design("Lognormal amounts; 400 against 4,000 rows.")
def lognormal_spend(random: Random) -> Draw:
    return apart(
        random,
        400,
        4_000,
        normals("x other"),
        lambda rows: logistic(rows["x"]),
        lambda r, rows: np.exp(0.5 * rows["x"] + 1.1 * r.normal(size=len(rows))),
        float(np.exp((0.25 + 1.21) / 2)),
    )


@design("Forty clusters of ten rows with an effect of their own; 400 against 4,000 rows.")
def clusters(random: Random) -> Draw:
    found = apart(
        random,
        400,
        4_000,
        normals("x other"),
        lambda rows: logistic(rows["x"]),
        lambda r, rows: rows["x"] + r.normal(size=len(rows)),
        0.0,
    )
    of_row = np.repeat(np.arange(40), 10)
    y = found.y + 0.5 * random.normal(size=40)[of_row]
    unit = {None: float(np.sqrt((2 + 0.25) / 400))}
    return replace(found, y=y, unit=unit, options={"clusters": of_row})


def of_domains(random: Random, rows_of: dict[str, int], share: bool) -> Draw:
    """Return a draw with a fixed number of rows in each domain; "rest" domains are not counted."""
    names = np.array(list(rows_of))
    counts = np.array([*rows_of.values()])
    effects = np.linspace(-0.5, 0.5, len(names))
    shares = np.sqrt(counts) / np.sqrt(counts).sum()  # small ones are selected less often
    parts = [
        selected(random, normals("x other"), lambda rows: logistic(rows["x"]), count).assign(
            domain=name
        )
        for name, count in rows_of.items()
    ]
    X = pd.concat(parts, ignore_index=True)
    number = np.repeat(np.arange(len(names)), counts)
    U = normals("x other")(random, 5_000)
    U["domain"] = names[random.choice(len(names), 5_000, p=shares)]
    ratio = (shares / counts)[number] / logistic(X["x"])
    truth, unit = {}, {}
    if share:
        yes = 0.35 + 0.3 * effects
        y = (random.uniform(size=len(X)) < yes[number] + 0.2 * np.tanh(X["x"])).astype(float)
    else:
        y = (effects[number] + X["x"] + random.normal(size=len(X))).to_numpy()
    for place, (name, count) in enumerate(rows_of.items()):
        if name.startswith("rest"):
            continue
        truth[name] = float(yes[place] if share else effects[place])  # tanh and x have mean 0
        spread = (yes[place] * (1 - yes[place])) ** 0.5 if share else 2**0.5
        unit[name] = float(spread / count**0.5)
    return Draw(X, np.asarray(y), U, np.asarray(ratio), truth, unit, {"by": "domain"})


@design("Means of domains of 2, 3, 4 and 5 rows beside two of 150; 314 against 5,000 rows.")
def domains_of_2_to_5_rows(random: Random) -> Draw:
    rows_of = {"rest a": 150, "two": 2, "three": 3, "four": 4, "five": 5, "rest b": 150}
    return of_domains(random, rows_of, share=False)


@design("Shares in domains of 10, 20, 30 and 50 rows beside two of 150; 410 against 5,000 rows.")
def shares_in_domains_of_10_to_50_rows(random: Random) -> Draw:
    rows_of = {"rest a": 150, "ten": 10, "twenty": 20, "thirty": 30, "fifty": 50, "rest b": 150}
    return of_domains(random, rows_of, share=True)


def of_numbers(random: Random, m: int, n: int, **more: Any) -> Draw:
    """Return a draw with three numbers, two of which matter."""
    return apart(
        random,
        m,
        n,
        normals("x z other"),
        lambda rows: logistic(rows["x"] - 0.5 * rows["z"]),
        lambda r, rows: rows["x"] + rows["z"] + r.normal(size=len(rows)),
        0.0,
        **more,
    )


@design("Three numbers, n/m = 0.5; 800 against 400 rows.")
def half_as_many_population_rows(random: Random) -> Draw:
    return of_numbers(random, 800, 400)


@design("Three numbers, n/m = 100; 150 against 15,000 rows.")
def hundred_times_the_rows(random: Random) -> Draw:
    return of_numbers(random, 150, 15_000)


def inside(random: Random, size: int, finite: bool) -> Draw:
    """Return a sample that is a part of the population."""
    U = normals("x z other")(random, size)
    y = (U["x"] + U["z"] + 0.5 * U["x"] ** 2 + random.normal(size=size)).to_numpy()
    chance = 0.4 * logistic(U["x"] - 0.5 * U["z"])
    taken = random.uniform(size=size) < chance
    m = int(taken.sum())
    truth, spread = (float(y.mean()), float(y.std())) if finite else (0.5, 3.5**0.5)
    X = U[taken].reset_index(drop=True)
    options = {"finite_population": True} if finite else {}
    ratio = 1 / chance[taken]
    return Draw(X, y[taken], U, ratio, {None: truth}, {None: spread / m**0.5}, options)


@design("The sample is a part of the population, itself drawn from more; about 500 of 2,500 rows.")
def nested(random: Random) -> Draw:
    return inside(random, 2_500, finite=False)


@design("The sample is a part of a complete population, whose mean is asked; about 500 of 2,500.")
def census(random: Random) -> Draw:
    return inside(random, 2_500, finite=True)


@design("The population's rows have weights from 1 to 9; 500 against 3,000 rows.")
def weighted_population(random: Random) -> Draw:
    found = of_numbers(random, 500, 3_000)
    rows = normals("x z other")
    persons = lambda table: 1 + 8 * logistic(2 * table["x"])  # noqa: E731
    U = selected(random, rows, lambda table: 1 / persons(table), 3_000)
    return replace(found, table=U.assign(persons=persons(U)), weight="persons")


@design("The sample has design weights of 1 to 4 by a stratum, and non-response; 600 to 5,000.")
def design_weights(random: Random) -> Draw:
    rows = lambda r, size: normals("x z")(r, size).assign(  # noqa: E731
        stratum=text(r.choice(4, size))
    )
    drawn = lambda table: 1 / (1 + codes(table["stratum"]))  # noqa: E731
    found = apart(
        random,
        600,
        5_000,
        rows,
        lambda table: drawn(table) * logistic(table["x"]),
        lambda r, table: 0.3 * codes(table["stratum"]) + table["x"] + r.normal(size=len(table)),
        0.45,
    )
    return replace(found, options={"sample_weight": 1 / drawn(found.X)})


@design("Selection and outcome go by the product of two numbers; 600 against 6,000 rows.")
def product_of_numbers(random: Random) -> Draw:
    return apart(
        random,
        600,
        6_000,
        normals("x z"),
        lambda rows: np.exp((0.8 * rows["x"] * rows["z"]).clip(-1.5, 1.5) - 1.5),
        lambda r, rows: rows["x"] * rows["z"] + rows["x"] + r.normal(size=len(rows)),
        0.0,
    )


@design("Selection and outcome go by pairs of levels, and by no level alone; 500 against 5,000.")
def pairs_of_categories(random: Random) -> Draw:
    sign = lambda rows: 1 - 2 * ((codes(rows["a"]) + codes(rows["b"])) % 2)  # noqa: E731
    return apart(
        random,
        500,
        5_000,
        lambda r, size: pd.DataFrame(
            {"a": text(r.choice(4, size)), "b": text(r.choice(4, size)), "c": r.normal(size=size)}
        ),
        lambda rows: np.where(sign(rows) > 0, 0.9, 0.3),
        lambda r, rows: sign(rows) + rows["c"] + r.normal(size=len(rows)),
        0.0,
    )


@design("Rows above zero come in eight times as often, and y jumps there; 500 against 5,000.")
def threshold(random: Random) -> Draw:
    return apart(
        random,
        500,
        5_000,
        normals("x z other"),
        lambda rows: np.where(rows["x"] > 0, 0.8, 0.1),
        lambda r, rows: 2 * (rows["x"] > 0) + rows["z"] + r.normal(size=len(rows)),
        1.0,
    )


@design("Steep logistic selection, with true weights up to a hundred; 600 against 6,000 rows.")
def steep(random: Random) -> Draw:
    return apart(
        random,
        600,
        6_000,
        normals("x z"),
        lambda rows: logistic(2 * rows["x"]),
        lambda r, rows: rows["x"] + rows["z"] + r.normal(size=len(rows)),
        0.0,
    )


@design("Seven numbers, one with gaps, and three categories; 400 against 4,000 rows.")
def ten_mixed_columns(random: Random) -> Draw:
    shares, effects, chances = levels(6, 8, 0.5)

    def rows(r: Random, size: int) -> pd.DataFrame:
        common = r.normal(size=size)
        found = {f"x{k}": 0.5 * common + r.normal(size=size) for k in range(7)}
        found |= {"a": text(r.choice(6, size, p=shares)), "b": text(r.choice(3, size))}
        return pd.DataFrame({**found, "c": np.where(r.uniform(size=size) < 0.3, "yes", "no")})

    def shown(rows: pd.DataFrame) -> pd.DataFrame:
        gaps = np.random.default_rng(len(rows)).uniform(size=len(rows)) < 0.05
        return rows.assign(x6=rows["x6"].mask(gaps))

    return apart(
        random,
        400,
        4_000,
        rows,
        lambda rows: chances[codes(rows["a"])] * logistic(0.6 * rows["x0"] + 0.6 * rows["x1"]),
        lambda r, rows: (
            effects[codes(rows["a"])]
            + rows[["x0", "x2", "x3"]].sum(axis=1)
            + r.normal(size=len(rows))
        ),
        0.0,
        of_sample=shown,
        of_population=shown,
    )


@design("No selection at all, five columns; 300 against 3,000 rows.")
def even(random: Random) -> Draw:
    return apart(
        random,
        300,
        3_000,
        lambda r, size: normals("x z u v")(r, size).assign(g=text(r.choice(4, size))),
        lambda rows: np.ones(len(rows)),
        lambda r, rows: rows["x"] + rows["z"] + r.normal(size=len(rows)),
        0.0,
    )


@design("Only the margins of two categories and a mean are known, exactly; 500 rows.")
def margins(random: Random) -> Draw:
    first, second = levels(6, 9, 0.5), levels(4, 10, 0.5)
    known = [
        (name, f"l{k}", float(share))
        for name, one in (("age", first), ("region", second))
        for k, share in enumerate(one[0])
    ]
    table = pd.DataFrame([*known, ("income", "(mean)", 0.0)], columns=MARGINS)
    return apart(
        random,
        500,
        10,
        lambda r, size: pd.DataFrame(
            {
                "age": text(r.choice(6, size, p=first[0])),
                "region": text(r.choice(4, size, p=second[0])),
                "income": r.normal(size=size),
            }
        ),
        lambda rows: (
            first[2][codes(rows["age"])]
            * second[2][codes(rows["region"])]
            * np.exp((0.5 * rows["income"]).clip(-1.5, 1.5) - 1.5)
        ),
        lambda r, rows: (
            first[1][codes(rows["age"])]
            + second[1][codes(rows["region"])]
            + rows["income"]
            + r.normal(size=len(rows))
        ),
        0.0,
        of_population=lambda _: table,
    )


@design("The median of an outcome with long tails; 500 against 5,000 rows.")
def median(random: Random) -> Draw:
    found = apart(
        random,
        500,
        5_000,
        normals("x other"),
        lambda rows: logistic(rows["x"]),
        lambda r, rows: rows["x"] + r.standard_t(3, size=len(rows)),
        0.0,
    )
    # The error of an even sample's median is 1 / (2 f(0) √m); f is 0.2536 for N(0, 1) + t(3).
    return replace(
        found,
        unit={None: float(1 / (2 * 0.2536 * 500**0.5))},
        options={"statistic": "quantile", "q": 0.5},
    )

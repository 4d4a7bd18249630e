"""Known totals of a population, such as a census table, without any rows.

:class:`Margins` takes the place of a population for weighters that ask for sums of features or for
counts of cells, which it answers from its tables: a level that no sample row has is uncovered, and
the others of its margin are scaled to the whole. Margins are given, or counted in a population's
rows, in one pass.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Literal, Self

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa

from unskew.errors import InputError, ParameterError, warn_caller, which_there_are
from unskew.numerics.typing import FloatArray
from unskew.population.cell_counts import CellCounts
from unskew.population.feature_sums import FeatureSums
from unskew.population.margin_levels import (
    Key,
    Level,
    MarginLevels,
    Table,
    match_levels,
    moved_tables,
    read_tables,
    resolved_totals,
    split_name,
)
from unskew.population.population import Population
from unskew.population.summaries import (
    About,
    Question,
    Summaries,
    Summary,
    SummaryType,
    TotalWeight,
)
from unskew.rows.design import Design, Levels, Number, Term
from unskew.rows.kinds import Kind, as_doubles, kind_of
from unskew.rows.tables import RowBlock, Rows, with_plain_values

AGREE = 1e-6
"""How far totals of different margins may differ, relatively."""
SIZE = "(size)"
"""What a long table calls the population's size."""
MOST_ROUNDING = 0.02
"""How far the rounding of shares may move their sum, relatively."""


class Margins:
    """Totals of a population that are known, where its rows are not.

    They take the place of a :class:`unskew.Population` for weighters that ask for sums of features
    or for counts of categories: :class:`unskew.CalibrationWeights`, and with a joint table
    :class:`unskew.FrequencyWeights` and :class:`unskew.HistogramWeights`.

    Parameters
    ----------
    counts : mapping from column, or tuple of columns, to a table of counts
        How many members of the population are in each category, or in each combination of
        categories. A table is a mapping from level to number (of tuples or nested, for several
        columns), a pandas series, a cross table, or a table with the columns and one of counts.
        Of a column of numbers, levels are numbers or bands such as "18-24" and "65+".
    shares : the same with shares instead of counts
        They add up to one, or to 100 with ``unit="percent"``. Where they do so only within the
        rounding of the digits that are given, they are scaled, and a warning says so.
    means : mapping from column to float
        Means of columns of numbers.
    totals : mapping from column to float
        Totals of columns of numbers; they need ``size`` or counts.
    size : float, optional
        The number of members of the population; by default what the counts add up to. Without it,
        the totals are known up to a factor.
    unit : {"share", "percent"}, default="share"
        The unit of ``shares``.
    bands : mapping from column to list of borders, optional
        The borders of a column's levels, in their order, where labels do not say it: a level holds
        the numbers from one border up to the next; the outermost may be left open.
    collapse : int, optional
        Merge levels with fewer sample rows than this with a neighbour: the smaller of the adjacent
        bands, or the smallest other level. A warning names them.
    reconcile : {"raise", "scale"}, default="raise"
        What to do with margins whose counts add up to different totals: raise, or scale them to
        ``size``, or else to the total of the first. "scale" also takes shares that do not add up.
    standard_errors : mapping, optional
        Standard errors of estimated margins, with the same keys and units: a table, or one number
        for all its levels. :func:`unskew.estimate` counts them, with multinomial correlations
        between the levels of a table and none between margins.

    Examples
    --------
    >>> from unskew import Margins
    >>> Margins(counts={"sex": {"f": 3159, "m": 3035}}).mass
    6194.0
    """

    def __init__(
        self,
        counts: Mapping[Any, Any] | None = None,
        *,
        shares: Mapping[Any, Any] | None = None,
        means: Mapping[str, float] | None = None,
        totals: Mapping[str, float] | None = None,
        size: float | None = None,
        unit: Literal["share", "percent"] = "share",
        bands: Mapping[str, Sequence[float]] | None = None,
        collapse: int | None = None,
        reconcile: Literal["raise", "scale"] = "raise",
        standard_errors: Mapping[Any, Any] | None = None,
    ) -> None:
        _check_options(size, unit, collapse, reconcile)
        self.bands, self.collapse = dict(bands or {}), collapse
        self._tables = read_tables(counts, "counts")
        self.size = self._agreed_size(size, reconcile)
        as_shares, whole = read_tables(shares, "shares"), 100.0 if unit == "percent" else 1.0
        self._add_shares(as_shares, whole, reconcile)
        self._totals = self._number_totals(means, totals)
        if not self._tables and not self._totals:
            raise ParameterError("Margins needs counts, shares, means or totals; all are empty.")
        self._coefficients: dict[str, float] = {}  # totals with R's names, not yet matched
        self._known: list[MarginLevels] = []
        self.standard_errors = dict(standard_errors or {})
        self._errors: dict[Key, Any] = {}  # in the unit of the tables and totals
        for key, given in self.standard_errors.items():
            columns = key if isinstance(key, tuple) else (key,)
            if columns not in self._keys:
                raise ParameterError(f"standard_errors names {key!r}, of which no margin is given.")
            unit_of = 1.0 / whole if columns in as_shares else float(columns[0] in (means or {}))
            self._errors[columns] = self._read_errors(columns, given, unit_of * self._mass or 1.0)

    def _read_errors(self, columns: Key, given: Any, scale: float) -> Any:
        """Return the error of a total, or of each level of a table."""
        table, name = self._tables.get(columns), ", ".join(columns)
        if table is not None and not _is_number(given):
            errors = read_tables({columns: given}, "standard_errors")[columns]
            lacking = [", ".join(map(str, level)) for level in table if level not in errors]
            if lacking:
                raise ParameterError(f"standard_errors of {name} lacks the level '{lacking[0]}'.")
            return {level: scale * errors[level] for level in table}
        if not _is_number(given) or given < 0:
            raise ParameterError(
                f"standard_errors of {name} must be numbers from 0; got {given!r}."
            )
        return scale * given if table is None else dict.fromkeys(table, scale * given)

    def moved(self, sample: Rows, step: float) -> Iterator[Self]:
        """Return margins that differ by each of their independent errors, times ``step``.

        Levels of one table have the correlations of a multinomial distribution, scaled to the
        standard errors given; different margins have independent errors.
        """
        for columns, errors in self._errors.items():
            twin = copy.copy(self)
            if columns in self._tables:
                for table in moved_tables(self._tables[columns], errors, step):
                    twin._tables = {**self._tables, columns: table}
                    yield twin.matched(sample)
            elif columns[0] in self._totals:
                total = self._totals[columns[0]] + step * errors
                twin._totals = {**self._totals, columns[0]: total}
                yield twin.matched(sample)

    def _agreed_size(self, size: float | None, reconcile: str) -> float | None:
        """Return the size of the population, to which the counts add up; scale them if asked."""
        agreed = None if size is None else float(size)
        first = "size" if size is not None else ""
        for key, table in self._tables.items():
            total = sum(table.values())
            if agreed is None:
                agreed, first = total, f"the margin of {', '.join(key)}"
            elif abs(total - agreed) > AGREE * agreed and reconcile == "raise":
                raise InputError(
                    f"The margin of {', '.join(key)} adds up to {total:,.10g} and {first} "
                    f"{'is' if first == 'size' else 'to'} {agreed:,.10g}. Correct one, or use "
                    'reconcile="scale".'
                )
            elif total != agreed:
                self._tables[key] = {lvl: n * (agreed / total) for lvl, n in table.items()}
        return agreed

    def _add_shares(self, shares: dict[Key, Table], whole: float, reconcile: str) -> None:
        for key, table in shares.items():
            total = sum(table.values())
            found = f"The shares of {', '.join(key)} add up to {total:.10g}, not {whole:g}"
            is_other = whole == 1 and abs(total - 100) <= max(_rounding(table), 1e-4)
            if abs(total - whole) > AGREE * whole:
                if reconcile == "raise" and (is_other or abs(total - whole) > _rounding(table)):
                    hint = 'Use unit="percent" for percentages' if is_other else "Correct them"
                    raise InputError(f'{found}. {hint}, or use reconcile="scale".')
                why = "" if reconcile == "scale" else ", as rounded numbers do"
                warn_caller(UserWarning(f"{found}{why}: they are scaled."))
            if key in self._tables:
                raise InputError(f"{', '.join(key)} has both counts and shares; give one.")
            self._tables[key] = {lvl: n / total * self._mass for lvl, n in table.items()}

    def _number_totals(
        self, means: Mapping[str, float] | None, totals: Mapping[str, float] | None
    ) -> dict[str, float]:
        found: dict[str, float] = {}
        for parameter, given in (("means", means), ("totals", totals)):
            for name, number in dict(given or {}).items():
                if not isinstance(name, str) or not _is_number(number):
                    raise ParameterError(f"{parameter}[{name!r}] must be a number; got {number!r}.")
                if name in found:
                    raise ParameterError(f"'{name}' has both a mean and a total; give one.")
                if parameter == "totals" and self.size is None:
                    raise ParameterError(
                        f"The total of '{name}' needs the population's size: Margins(size=...)."
                    )
                found[name] = float(number) * (self._mass if parameter == "means" else 1.0)
        return found

    @classmethod
    def from_table(
        cls,
        table: Any,
        *,
        variable: str = "variable",
        category: str = "category",
        count: str = "count",
        unit: Literal["count", "share", "percent"] = "count",
        **options: Any,
    ) -> Self:
        """Return the margins of a long table with a row for each category of each variable.

        Of a column of numbers, the category ``(mean)`` or ``(total)`` has its mean or total. For a
        joint table the names and the categories are joined by colons: ``age:region``,
        ``18-24:north``. The variable ``(size)`` is the population's size.

        Parameters
        ----------
        table : dataframe
        variable, category, count : str
            The columns with the variable's name, its category and the number.
        unit : {"count", "share", "percent"}, default="count"
            What the numbers are.
        **options
            Further parameters of :class:`Margins`.

        Examples
        --------
        >>> import pandas as pd
        >>> from unskew import Margins
        >>> census = {"variable": ["sex", "sex"], "category": ["f", "m"], "count": [52, 48]}
        >>> Margins.from_table(pd.DataFrame(census))
        Margins(sex, size=100.0)
        """
        frame = nw.from_native(table, eager_only=True)
        for name in (variable, category, count):
            if name not in frame.columns:
                raise InputError(
                    f"The table of margins lacks column '{name}'."
                    f"{which_there_are(name, frame.columns)}"
                )
        if unit not in ("count", "share", "percent"):
            raise ParameterError(f"unit must be 'count', 'share' or 'percent'; got {unit!r}.")
        found: dict[Key, dict[Level, Any]] = {}
        numbers: dict[str, dict[str, float]] = {"(mean)": {}, "(total)": {}}
        for name, level, number in frame.select([variable, category, count]).rows():
            if name == SIZE:
                options.setdefault("size", number)
            elif level in numbers:
                numbers[level][str(name)] = number
            else:
                _add_level(found, str(name), level, number)
        options = {"means": numbers["(mean)"], "totals": numbers["(total)"], **options}
        if unit == "count":
            return cls(found, **options)
        return cls(shares=found, unit=unit, **options)

    @classmethod
    def from_totals(cls, totals: Mapping[str, float], **options: Any) -> Self:
        """Return margins from totals under the names of R's model matrix.

        ``{"(Intercept)": 6194, "stypeH": 755, "stypeM": 1018, "api99": 3914069}`` has the size, the
        counts of two levels of ``stype`` and the total of ``api99``. The level of the sample that
        has no total is the reference, and gets the rest. Names are matched with the sample's
        columns when the weights are fitted.

        Examples
        --------
        >>> from unskew import Margins
        >>> Margins.from_totals({"(Intercept)": 6194, "stypeH": 755, "stypeM": 1018})
        Margins(stypeH, stypeM, size=6194.0)
        """
        rest = dict(totals)
        size = rest.pop("(Intercept)", None)
        if size is None:
            raise ParameterError("totals lacks '(Intercept)', the size of the population.")
        if not rest or "standard_errors" in options:
            raise ParameterError(
                "totals has nothing but '(Intercept)'."
                if not rest
                else "standard_errors are for margins by column: Margins(counts=..., totals=...)."
            )
        margins = cls(totals=rest, size=size, **options)
        margins._coefficients, margins._totals = margins._totals, {}
        return margins

    @classmethod
    def from_population(cls, population: Any, margins: Sequence[str | Key]) -> Self:
        """Return margins of rows: counts of categories and of tuples of columns, totals of numbers.

        Examples
        --------
        >>> import pandas as pd
        >>> from unskew import Margins
        >>> rows = pd.DataFrame({"sex": ["f", "m", "f"], "age": [30, 40, 50]})
        >>> Margins.from_population(rows, ["sex", "age"])
        Margins(sex, age, size=3.0)
        """
        counts, totals, size = count_margins(population, margins)
        return cls(counts, totals=totals, size=size)

    def __repr__(self) -> str:
        shown = [" × ".join(key) for key in self._keys]
        return f"Margins({', '.join(shown)}, size={self.size})"

    @property
    def _mass(self) -> float:
        """The population's size, or one if it is not known."""
        return 1.0 if self.size is None else self.size

    @property
    def _keys(self) -> list[Key]:
        return [*self._tables, *((name,) for name in [*self._totals, *self._coefficients])]

    @property
    def columns(self) -> list[str]:
        """The columns of which something is known."""
        return list(dict.fromkeys(name for key in self._keys for name in key))

    @property
    def about(self) -> About:
        """What is known: the margins, and no rows."""
        keys = tuple(key if len(key) > 1 else key[0] for key in self._keys)
        return About(tuple(self.columns), None, margins=keys, levels=tuple(self._known))

    @property
    def mass(self) -> float:
        """The number of members of the population."""
        if self.size is None:
            raise InputError("The size of the population is not known: pass Margins(size=...).")
        return self.size

    @property
    def n_selected(self) -> int | None:
        """Margins mark no rows."""
        return None

    def shared_with(self, sample: Rows) -> list[str]:
        """Return those of a sample's columns of which something is known."""
        return self.known_of(sample.table.column_names)

    def known_of(self, names: Sequence[str]) -> list[str]:
        """Return those of these columns of which something is known."""
        known = [*self.columns, *(split_name(one, names)[0] for one in self._coefficients)]
        return [name for name in names if name in known]

    def matched(
        self, sample: Rows, *, among: Sequence[str] | None = None, ignored: Sequence[str] = ()
    ) -> Self:
        """Return these margins for a sample: those of its columns, with its values as levels."""
        del among, ignored
        names = sample.table.column_names
        twin = copy.copy(self)
        if self._coefficients:
            tables, twin._totals = resolved_totals(self._coefficients, sample.table, self.mass)
            twin._tables, twin._coefficients = {**self._tables, **tables}, {}
        for name in names:
            if name not in twin.columns:
                raise InputError(
                    f"No margin of column '{name}' is known. Margins are known of "
                    f"{', '.join(twin.columns)}."
                )
        twin._tables = {key: t for key, t in twin._tables.items() if set(key) <= set(names)}
        twin._totals = {name: total for name, total in twin._totals.items() if name in names}
        twin._known = [
            match_levels(key, table, sample.encoded, self.bands, self.collapse)
            for key, table in twin._tables.items()
        ]
        return twin

    def can_answer(self, summary: Summary) -> bool:
        """Whether the totals that are known answer a question."""
        match summary:
            case Question() | Summaries():
                return all(self.can_answer(part) for part in summary.nested())
            case TotalWeight():
                return self.size is not None
            case FeatureSums(features=features):
                terms = [self._source(features, term) for term in features.terms]
                return len(summary.mass) == 1 and None not in terms
            case CellCounts():
                return self._joint() is not None
        return False

    def reduce(self, summary: SummaryType, *, threads: int | None = None) -> SummaryType:
        """Answer a question from the totals that are known."""
        del threads
        summary.check_empty()
        if not self.can_answer(summary):
            raise InputError(
                f"Margins hold totals, not rows, and cannot answer {type(summary).__name__}. Give "
                "the rows of the population."
            )
        self._answer(summary)
        summary.finish()
        return summary

    def _answer(self, summary: Summary) -> None:
        match summary:
            case Question() | Summaries():
                for part in summary.nested():
                    self._answer(part)
            case TotalWeight():
                summary.rows, summary.mass = round(self.mass), self.mass
            case FeatureSums():
                self._sum_features(summary)
            case CellCounts():
                self._count_cells(summary)

    def _source(self, features: Design, term: Term) -> MarginLevels | float | None:
        """Return what answers a term: the total of a number, or a table; None if nothing does."""
        columns = features.columns_of(term)
        if isinstance(term, Number) and columns[0] in self._totals:
            return self._totals[columns[0]]
        if isinstance(term, Levels) and term.of_margin is not None:
            return next((one for one in self._known if list(one.columns) == columns), None)
        return self._table(columns)

    def _table(self, columns: Sequence[str]) -> MarginLevels | None:
        """Return the smallest table with the values of some columns, not only bands of them."""
        fitting = [
            one
            for one in self._known
            if set(columns) <= set(one.columns) and not set(columns) & set(one.bands)
        ]
        return min(fitting, key=lambda one: len(one.columns), default=None)

    def _sum_features(self, asked: FeatureSums) -> None:
        """Fill the sums; a level that no sample row has is uncovered, and its margin scaled.

        The share of the population that is uncovered is at least the largest of any margin.
        """
        means, uncovered = [], 0.0
        for term in asked.features.terms:
            source = self._source(asked.features, term)
            if isinstance(source, MarginLevels):
                place = term.of_margin if isinstance(term, Levels) else None
                values = (
                    np.empty(0) if place is not None else self._values(asked.features, term, source)
                )
                seen = np.isfinite(values).all(axis=1) if place is None else np.asarray(place >= 0)
                total, here = source.weight.sum(), source.weight[seen].sum()
                uncovered = max(uncovered, float(1.0 - here / total) if not seen.all() else 0.0)
                # Whole counts stay whole where every level is covered.
                scale = 1.0 if seen.all() else self._mass / max(here, np.finfo(float).tiny)
                weight = source.weight[seen]
                if place is None:
                    means.append(weight @ values[seen] * scale)
                else:
                    means.append(np.bincount(place[seen], weight, len(term.names)) * scale)
            elif isinstance(term, Number) and source is not None:
                means.append(np.array([source - term.origin * self._mass]))
        covered = self._mass * (1.0 - uncovered)
        sums = np.concatenate(means)
        asked.sums[0] = sums if not uncovered else sums * (covered / self._mass)
        asked.mass[0] = covered
        asked.uncovered = self._mass * uncovered

    @staticmethod
    def _values(features: Design, term: Term, known: MarginLevels) -> FloatArray:
        codes = np.full((len(known.levels), len(features.codes.names)), np.nan)
        for position in term.positions:
            column = known.rows[features.codes.names[position]].combine_chunks()
            codes[:, position] = features.codes.encode_column(column, position, side="population")
        return term.of(codes, None)

    def _joint(self) -> MarginLevels | None:
        """Return a table of all columns together."""
        fitting = [one for one in self._known if set(one.columns) == set(self.columns)]
        return fitting[0] if fitting else None

    def _count_cells(self, asked: CellCounts) -> None:
        """Count the cells of a joint table; a band must lie within one cell."""
        known = self._joint()
        assert known is not None
        rows = known.rows.select(self.columns).combine_chunks()
        if known.bands:
            ends = [_end_rows(rows, known, end).to_batches()[0] for end in ("lows", "highs")]
            first, last = (asked.locator.locate(batch)[0] for batch in ends)
            if not np.array_equal(first, last):
                level = known.levels[int(np.flatnonzero(first != last)[0])]
                raise InputError(
                    f"The level {', '.join(map(str, level))} of the margin of "
                    f"{', '.join(known.columns)} is a band that lies in several cells. Give the "
                    "histogram the bands' borders, or use CalibrationWeights."
                )
        asked.update(RowBlock(rows.to_batches()[0], known.weight))


def _add_level(
    tables: dict[Key, dict[Level, Any]], variable: str, category: Any, value: Any
) -> None:
    """Put one level into the table of its variables."""
    columns = tuple(variable.split(":"))
    level = (category,) if len(columns) == 1 else tuple(str(category).split(":"))
    if len(level) != len(columns):
        raise InputError(
            f"Category {category!r} of {variable!r} must have {len(columns)} parts, joined by "
            "colons."
        )
    table = tables.setdefault(columns, {})
    if level in table:
        raise InputError(f"The table of margins lists {category!r} of {variable!r} twice.")
    table[level] = value


def _rounding(table: Table) -> float:
    """Return by how much numbers, rounded to the digits that they have, may miss their sum."""
    decimals = next(
        d for d in range(16) if d == 15 or all(round(n, d) == n for n in table.values())
    )
    total = sum(table.values())
    return min(len(table) * 0.5 * 10.0**-decimals, MOST_ROUNDING * total) * (1 + AGREE)


def _check_options(size: Any, unit: str, collapse: Any, reconcile: str) -> None:
    if size is not None and not (_is_number(size) and size > 0):
        raise ParameterError(f"size must be a positive number; got {size!r}.")
    if unit not in ("share", "percent"):
        raise ParameterError(f"unit must be 'share' or 'percent'; got {unit!r}.")
    if reconcile not in ("raise", "scale"):
        raise ParameterError(f"reconcile must be 'raise' or 'scale'; got {reconcile!r}.")
    if collapse is not None and (not isinstance(collapse, Integral) or collapse < 1):
        raise ParameterError(f"collapse must be a positive whole number; got {collapse!r}.")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and abs(float(value)) < np.inf


def _end_rows(rows: pa.Table, known: MarginLevels, end: str) -> pa.Table:
    """Return the rows with the first or the last number of each band."""
    for name, bands in known.bands.items():
        groups = bands.of(rows[name].to_numpy())
        # An open end is as far as whole numbers can be distinguished.
        numbers = np.clip(getattr(bands, end)[groups], -(2.0**52), 2.0**52)
        numbers = numbers if end == "lows" else np.nextafter(numbers, -np.inf)
        numbers = pa.array(np.where(groups < 0, np.nan, numbers))
        rows = rows.set_column(rows.column_names.index(name), name, numbers)
    return rows.combine_chunks()


class LevelCounts(Summary):
    """How many rows have each combination of values; of one column of numbers, their total."""

    grows = True
    shared = frozenset({"columns"})
    added = ("counts", "total", "missing")

    def __init__(self, columns: Key) -> None:
        self.columns = columns
        self.counts: Counter[Level] = Counter()
        self.total = 0.0
        self.missing = 0

    def update(self, rows: RowBlock) -> None:
        """Count a block."""
        table = pa.Table.from_batches([rows.batch]).select(list(self.columns))
        if len(self.columns) == 1 and kind_of(table.schema.types[0]) == Kind.NUMBER:
            column = as_doubles(table.column(0).combine_chunks())
            values = column.to_numpy(zero_copy_only=False)
            self.missing += int((values != values).sum())
            self.total += float(rows.weight @ values)
            return
        grouped = with_plain_values(table).append_column("", pa.array(rows.weight))
        grouped = grouped.group_by(list(self.columns), use_threads=False).aggregate([("", "sum")])
        *levels, numbers = (grouped[n].to_pylist() for n in (*self.columns, "_sum"))
        for level, number in zip(zip(*levels, strict=True), numbers, strict=True):
            self.counts[level] += number


def count_margins(
    data: Any, margins: Sequence[str | Key]
) -> tuple[dict[Key, Mapping[Level, float]], dict[str, float], float]:
    """Return counts of categories, totals of numbers and the size of a population, in one pass."""
    population = Population.from_data(data)
    if isinstance(margins, str) or not len(margins):
        raise ParameterError(f"margins must be a list of columns, or of tuples; got {margins!r}.")
    keys = [key if isinstance(key, tuple) else (key,) for key in margins]
    for name in (name for key in keys for name in key):
        if name not in population.columns:
            raise InputError(
                f"The population lacks column '{name}'. Its columns are "
                f"{', '.join(population.columns)}."
            )
    total, parts = TotalWeight(), [LevelCounts(key) for key in keys]
    population.reduce(Summaries([total, *parts]))
    counts: dict[Key, Mapping[Level, float]] = {}
    totals: dict[str, float] = {}
    for part in parts:
        if part.missing:
            raise InputError(
                f"Column '{part.columns[0]}' of the population has {part.missing} missing numbers, "
                "so that its total is not known."
            )
        if part.counts:
            counts[part.columns] = part.counts
        else:
            totals[part.columns[0]] = part.total
    return counts, totals, total.mass

"""The parts of a report as plain content, which the page and Markdown render."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

LegendEntry = Literal["sample", "weighted", "population", "balanced"]


@dataclass(frozen=True)
class Paragraph:
    """A paragraph, in small print if it is a ``note``."""

    kind: ClassVar = "paragraph"
    text: str
    note: bool = False


@dataclass(frozen=True)
class Figure:
    """A number to see at a glance, or two: before and after weighting."""

    label: str
    value: str
    after: str | None
    note: str


@dataclass(frozen=True)
class Figures:
    """The key figures."""

    kind: ClassVar = "figures"
    figures: Sequence[Figure]


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    heading : str
    cells : sequence of str
    content : {"number", "text", "data"}
        Numbers are aligned to the right; data is text from the user's data, which may hold markup.
    keys : sequence, optional
        What a searchable table sorts the cells by; None comes last.
    bars : sequence of float, optional
        Bars beside the cells: the filled part of each, between 0 and 1.
    """

    heading: str
    cells: Sequence[str]
    content: Literal["number", "text", "data"] = "number"
    keys: Sequence[float | str | None] | None = None
    bars: Sequence[float] | None = None


@dataclass(frozen=True)
class Table:
    """A table by its columns; readers can search and sort it if it is ``searchable``."""

    kind: ClassVar = "table"
    id: str
    caption: str
    columns: Sequence[Column]
    searchable: bool = False

    def __len__(self) -> int:
        return len(self.columns[0].cells)


@dataclass(frozen=True)
class Chart:
    """A chart, for readers who see it and readers who do not.

    Attributes
    ----------
    id : str
    spec : dict
        Vega-Lite.
    description : str
        What a screen reader reads out.
    title, note, caption : str
        Above and below the chart.
    table : Table, optional
        The numbers of the chart.
    """

    id: str
    spec: dict[str, Any]
    description: str
    title: str = ""
    note: str = ""
    caption: str = ""
    table: Table | None = None


@dataclass(frozen=True)
class Charts:
    """Charts with one legend: as wide as the page, or small ones in a grid."""

    kind: ClassVar = "charts"
    charts: Sequence[Chart]
    legend: Sequence[LegendEntry] = ()
    small: bool = False


@dataclass(frozen=True)
class Item:
    """A name and what there is to know about it."""

    name: str
    text: str


@dataclass(frozen=True)
class Items:
    """A list of names with their descriptions."""

    kind: ClassVar = "items"
    items: Sequence[Item]


Block = Paragraph | Figures | Table | Charts | Items


@dataclass(frozen=True)
class Section:
    """A panel of the report."""

    id: str
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Report:
    """The verdict, then the sections in the order of reading.

    Attributes
    ----------
    title, headline : str
    status : str
        The verdict in a word or two.
    tone : {"good", "caution", "bad"}
        Picks the verdict's colour and icon.
    reasons : sequence of str
    sections : sequence of Section
    origin : sequence of Item
        Which data the report is about, and when it was made.
    """

    title: str
    headline: str
    status: str
    tone: Literal["good", "caution", "bad"]
    reasons: Sequence[str]
    sections: Sequence[Section]
    origin: Sequence[Item]

    def charts(self) -> Iterator[Chart]:
        """Yield all charts."""
        for section in self.sections:
            for block in section.blocks:
                if isinstance(block, Charts):
                    yield from block.charts

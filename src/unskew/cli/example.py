"""``unskew example``: write the data of the tutorials to a folder."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from unskew.cli.arguments import Command
from unskew.errors import InputError


class Name(StrEnum):
    """The examples: a folder of ``unskew/examples`` each."""

    VACANCIES = "vacancies"
    CENSUS = "census"


_STORIES = {
    Name.VACANCIES: (
        "register.csv: 9,344 companies in Poland that have reported their vacancies to a public "
        "register, which is voluntary, and whether they look for people on a single shift. "
        "survey.csv: 6,523 companies of an official survey, with weights; they represent all.",
        "unskew estimate {0}/register.csv {0}/survey.csv --target single_shift --id id "
        "--categories region --population-weight weight",
    ),
    Name.CENSUS: (
        "survey.csv: answers to a simulated survey. margins.csv: what a census knows of everyone.",
        "unskew estimate {0}/survey.csv --margins {0}/margins.csv --target buys --id id",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Example(Command):
    """Write example data to a folder, to try the other commands on them.

    vacancies: real companies; a voluntary register and an official survey.
    census: a simulated survey, and a census table.

    Example: unskew example vacancies
    """

    needs_scipy: ClassVar[bool] = False

    name: Annotated[Name, typer.Argument(help="Which data.", show_default=False)]
    folder: Annotated[
        Path | None, typer.Argument(help="Where to write them. Default: a folder of that name.")
    ] = None

    def run(self) -> None:
        """Write the files, and print what they are."""
        import gzip
        import shlex
        from importlib.resources import files

        from unskew.files import whole_files, writing

        folder = Path(self.name) if self.folder is None else self.folder
        held = {}
        for item in (files("unskew") / "examples" / self.name).iterdir():
            packed, path = item.name.endswith(".gz"), folder / item.name.removesuffix(".gz")
            held[path] = gzip.decompress(item.read_bytes()) if packed else item.read_bytes()
            if path.exists() and path.read_bytes() != held[path]:
                raise InputError(f"'{path}' is there and is another file: name another folder.")
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        with whole_files(list(held)) as temporaries:
            for content, temporary in zip(held.values(), temporaries, strict=True):
                temporary.write_bytes(content)
        story, command = _STORIES[self.name]
        print(f"Written to {folder}: {story}")
        print(f"Try: {command.format(shlex.quote(str(folder)))}")

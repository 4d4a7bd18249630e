"""``unskew example``: write the data of the tutorials to a folder."""

from __future__ import annotations

from pathlib import Path

import typer

from unskew.cli.options import REQUIRED, Given, command, one_of
from unskew.errors import InputError

_STORIES = {
    "vacancies": (
        "register.csv: 9,344 companies in Poland that have reported their vacancies to a public "
        "register, which is voluntary, and whether they look for people on a single shift. "
        "survey.csv: 6,523 companies of an official survey, with weights; they represent all.",
        "unskew estimate {0}/register.csv {0}/survey.csv --target single_shift --id id "
        "--categories region --population-weight weight",
    ),
    "census": (
        "survey.csv: answers to a simulated survey. margins.csv: what a census knows of everyone.",
        "unskew estimate {0}/survey.csv --margins {0}/margins.csv --target buys --id id",
    ),
}
"""What is in each folder of ``unskew/examples``, and what to try with it."""


@command(
    name=(
        one_of([*_STORIES]),
        typer.Argument(help="Which data.", show_default=False),
        REQUIRED,
    ),
    folder=(
        Path | None,
        typer.Argument(help="Where to write them. Default: a folder of that name."),
        None,
    ),
)
def example(given: Given) -> None:
    """Write example data to a folder, to try the other commands on them.

    vacancies: real companies; a voluntary register and an official survey.
    census: a simulated survey, and a census table.

    Example: unskew example vacancies
    """
    import gzip
    import shlex
    from importlib.resources import files

    from unskew.files import whole_files, writing

    folder = Path(given.name) if given.folder is None else given.folder
    held = {}
    for item in (files("unskew") / "examples" / given.name).iterdir():
        packed, path = item.name.endswith(".gz"), folder / item.name.removesuffix(".gz")
        held[path] = gzip.decompress(item.read_bytes()) if packed else item.read_bytes()
        if path.exists() and path.read_bytes() != held[path]:
            raise InputError(f"'{path}' is there and is another file: name another folder.")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with whole_files(list(held)) as temporaries:
        for content, temporary in zip(held.values(), temporaries, strict=True):
            temporary.write_bytes(content)
    story, command = _STORIES[given.name]
    print(f"Written to {folder}: {story}")
    print(f"Try: {command.format(shlex.quote(str(folder)))}")


COMMAND = example

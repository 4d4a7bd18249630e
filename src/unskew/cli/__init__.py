"""The command line: one file per command, each a thin shell around the public interface.

Heavy modules are imported inside the commands, so that ``unskew --help`` answers at once.
"""

from __future__ import annotations

import sys

import typer

from unskew import __version__
from unskew.cli.demo import demo
from unskew.cli.reproduce import reproduce
from unskew.errors import OverlapError, UnskewError

__all__ = ["app", "main"]

BAD_INPUT = 2
REFUSED = 3

app = typer.Typer(
    name="unskew",
    help="Correct sample selection bias: weigh a sample so that it stands for the population.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"unskew {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    pass


app.command()(demo)
app.command()(reproduce)


def main() -> None:
    """Run the command line; an error of unskew's is one line on standard error, no traceback."""
    try:
        app()
    except UnskewError as error:
        typer.echo(f"unskew: {error}", err=True)
        sys.exit(REFUSED if isinstance(error, OverlapError) else BAD_INPUT)
    except BrokenPipeError:  # the reader of our output has had enough
        sys.stdout = None
        sys.exit(1)
    except KeyboardInterrupt:
        typer.echo("unskew: interrupted", err=True)
        sys.exit(130)

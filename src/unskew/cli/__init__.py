"""The command line: one file per command, each a thin shell around the public interface.

Heavy modules are imported inside the commands, so that ``unskew --help`` answers at once.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from unskew import __version__
from unskew.cli import apply, demo, diagnose, estimate, example, reproduce, weigh
from unskew.cli.diagnose import with_limits
from unskew.cli.methods import in_options
from unskew.cli.options import register
from unskew.cli.outputs import plain_streams
from unskew.errors import OverlapError, UnskewError, plain

__all__ = ["app", "main"]

BAD_INPUT = 2
REFUSED = 3

app = typer.Typer(
    name="unskew",
    help="Correct sample selection bias: weigh a sample so that it represents the population.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"unskew {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    pass


for module in (weigh, estimate, apply, diagnose, demo, example, reproduce):
    register(app, module.COMMAND)


def main() -> None:
    """Run the command line; an error of unskew's is one line on standard error, no traceback."""
    gc.set_threshold(100_000, 50, 50)  # importing makes much and drops little: a tenth of its time
    atexit.register(gc.freeze)  # nor need all of it be searched for garbage when it is over
    try:
        with plain_streams(), _signals_as_exits():
            try:
                app(with_limits(sys.argv[1:]), prog_name="unskew")
            finally:
                print(end="", flush=True)  # a failure is reported below, not by Python at exit
    except OverlapError as error:
        _fail(f"Refused: {error}", REFUSED)
    except UnskewError as error:
        _fail(error, BAD_INPUT)
    except BrokenPipeError:  # the reader of our output has stopped reading
        sys.stdout = None
        sys.exit(1)
    except OSError as error:  # standard output on a full disk, say
        sys.stdout = None
        _fail(error, BAD_INPUT)
    except MemoryError:
        _fail("This machine does not have enough memory.", BAD_INPUT)


def _fail(message: object, code: int) -> NoReturn:
    print(f"unskew: {plain(in_options(str(message)))}", file=sys.stderr)
    sys.exit(code)


@contextmanager
def _signals_as_exits() -> Iterator[None]:
    """Turn SIGINT and SIGTERM in the block into SystemExit, so that it cleans up."""

    def stop(number: int, _: object) -> NoReturn:
        os.write(2, b"unskew: interrupted\n")
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # A signal that is ignored, as under nohup, stays ignored.
    numbers = [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) != signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

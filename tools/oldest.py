"""Print the oldest declared version of every dependency, as pins for pip.

The floors in ``pyproject.toml`` are the only list; ``make test-oldest`` installs exactly these. A
requirement must therefore be a name with one floor, ``name>=version``. What the dependencies
themselves require is not pinned: a user's pip takes its newest, and so does the test.

Usage: ``python tools/oldest.py EXTRA...``
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"

_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[(?P<extras>[\w,-]+)\])?(?:>=(?P<floor>[\d.]+))?")


def floors(project: dict[str, Any], extras: Iterable[str]) -> Iterator[str]:
    """Yield ``name==floor`` for each dependency of a project and of these extras.

    Parameters
    ----------
    project : dict
        The table ``project`` of a ``pyproject.toml``.
    extras : iterable of str
        Which of its optional dependencies count; those that they refer to count as well.
    """
    yield from _pins(project, project["dependencies"])
    for extra in extras:
        yield from _pins(project, project["optional-dependencies"][extra])


def _pins(project: dict[str, Any], requirements: Iterable[str]) -> Iterator[str]:
    for requirement in requirements:
        found = _REQUIREMENT.fullmatch(requirement)
        if found and found["name"] == project["name"] and found["extras"]:
            for extra in found["extras"].split(","):
                yield from _pins(project, project["optional-dependencies"][extra])
        elif found and found["floor"]:
            yield requirement.replace(">=", "==")
        else:
            raise SystemExit(f"'{requirement}' in pyproject.toml is not of the form name>=version.")


if __name__ == "__main__":
    table = tomllib.loads(PROJECT.read_text())["project"]
    print("\n".join(sorted(set(floors(table, sys.argv[1:])))))

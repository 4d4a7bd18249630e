"""Populations of any size.

    python -m benchmarks.scale local COMMAND [options]
    python -m benchmarks.scale spark [options]
    python -m benchmarks.scale weigh [options]

Each part lists its commands with --help.
"""

from __future__ import annotations

import sys
from importlib import import_module

PARTS = ("local", "spark", "weigh")


def main() -> None:
    """Hand over to the part that is named."""
    if len(sys.argv) < 2 or sys.argv[1] not in PARTS:
        sys.exit(__doc__)
    import_module(f"benchmarks.scale.{sys.argv[1]}").main(sys.argv[2:])


if __name__ == "__main__":
    main()

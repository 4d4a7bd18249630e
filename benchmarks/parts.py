"""Commands that measure in parts, and store each part's result in one file."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def run_parts(
    parts: Mapping[str, Callable[[], Any]], stored: Path, description: str | None
) -> None:
    """Run the parts that the command line names, or all, and store their results."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("parts", nargs="*", choices=[*parts, []], help="Default: all.")
    for part in parser.parse_args().parts or parts:
        result = json.loads(stored.read_text()) if stored.exists() else {}
        result[part] = parts[part]()
        stored.write_text(json.dumps(result, indent=1) + "\n")
        print(part, json.dumps(result[part]))

"""The gallery's settings: which examples run, and in which order they stand."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
REFERENCES = ROOT.parent / "shared" / "references"
NEEDS_REFERENCES = ("airfoil", "lalonde", "mroz")


def settings(*, run: bool) -> dict[str, Any]:
    """Return ``sphinx_gallery_conf``; examples whose data or engine are missing are not run."""
    return {
        "examples_dirs": str(ROOT / "examples"),
        "gallery_dirs": "gallery",
        "plot_gallery": run,
        "filename_pattern": run_pattern(missing()),
        "within_subsection_order": "FileNameSortKey",
        "abort_on_example_error": True,
        "download_all_examples": False,
        "show_signature": False,
        "show_memory": False,
        "min_reported_time": 1e9,
        "write_computation_times": False,
        "remove_config_comments": True,
        "doc_module": ("unskew",),
        "reference_url": {"unskew": None},
        "backreferences_dir": "api/examples",
        "image_srcset": ["2x"],
        "default_thumb_file": str(ROOT / "docs" / "images" / "demo.png"),
    }


def run_pattern(left_out: list[str]) -> str:
    """Return the pattern of the files that are run; the others are shown without their output."""
    apart = f"(?!(?:{'|'.join(left_out)})\\.py)" if left_out else ""
    return f"/plot_{apart}"


def missing() -> list[str]:
    """Return the examples that cannot run here."""
    names = [] if REFERENCES.exists() else list(NEEDS_REFERENCES)
    if find_spec("pyspark") is None or shutil.which("java") is None:
        names.append("spark")
    if find_spec("duckdb") is None:
        names.append("duckdb")
    return names

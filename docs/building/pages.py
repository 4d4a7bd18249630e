"""What is made anew for each build of the site, before Sphinx looks for its pages."""

from __future__ import annotations

from pathlib import Path

from docs.building import reference

DOCS = Path(__file__).resolve().parents[1]
EXTRA = DOCS / "_made"
"""Files that go into the site as they are; made by the build, and not committed."""
EXTRA.mkdir(exist_ok=True)


def make() -> None:
    """Write the reference's lists of names, and the report that the front page shows."""
    for name, module, groups in (
        ("unskew", "unskew", reference.public_names()),
        ("results", "unskew.results", reference.result_names()),
        ("errors", "unskew.errors", reference.error_names()),
        ("theory", "unskew.theory", reference.theory_names()),
    ):
        write_if_new(DOCS / "api" / f"{name}.rst", reference.page(module, groups))
    if not (EXTRA / "live-report.html").exists():
        write_report(EXTRA / "live-report.html")


def write_if_new(path: Path, text: str) -> None:
    """Write a file unless it has this text already: Sphinx reads again what is newer."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def write_report(path: Path) -> None:
    """Write the report of the simulated survey, as the front page shows it."""
    from docs.survey import make_survey
    from unskew import TreeWeights, diagnose

    sample, spending, people = make_survey()
    weighter = TreeWeights(min_samples_leaf=25, overlap="ignore")  # the report shows it
    weighter.fit(sample, spending, population=people)
    diagnose(sample, people, weighter).to_html(path)

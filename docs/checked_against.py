"""docs/checked-against.md: the published numbers that the tests compare with, and what we get.

``python -m docs.checked_against measure`` runs these tests, notes every comparison, and writes
docs/checked-against.json; without an argument, the page is written from that file. Data that are
not part of the project lie beside it; a test whose data are missing keeps its noted comparisons.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
NOTED = ROOT / "docs" / "checked-against.json"
PAGE = ROOT / "docs" / "checked-against.md"
LISTED = 24
"""So many numbers of a test are listed; of the others the largest deviation is given."""


INTRODUCTION = """\
{total} numbers that other programs or papers have printed are compared in the tests. This page is
made by `python -m docs.checked_against`, which runs these tests and notes what they compare:
nothing on it is typed by hand. The deviation is relative to the published number; where few digits
are printed, it cannot be smaller than these allow. Data that are not ours to ship lie in a folder
beside the project; the tests are skipped where it is missing."""


class Check(NamedTuple):
    """A test that compares with published numbers, and where these are from."""

    test: str  # its folder and its name
    what: str
    source: str
    arrays: bool = False  # whether the published numbers are compared by np.allclose


WEIGHTERS = "tests/weighters::"
ESTIMATION = "tests/estimation::"
LEARNING = "tests/learning::"
CHECKS = [
    Check(
        f"{WEIGHTERS}test_the_twelve_cells_of_kalton_and_flores_cervantes",
        "Twelve cells: factors by raking, linear calibration, GREG, post-stratification",
        "Kalton and Flores-Cervantes 2003, in R survey's tests (6 decimals are printed)",
        arrays=True,
    ),
    Check(
        f"{WEIGHTERS}test_schools_of_california_from_rows_as_in_r",
        "Schools of California, from rows: mean, total, extreme ratios, effective size, weights",
        "R survey 4.1, apisrs and apipop",
    ),
    Check(
        f"{ESTIMATION}test_schools_of_california_as_in_r",
        "Schools of California, from totals: means and totals with standard errors",
        "R survey 4.1, apisrs",
    ),
    Check(
        f"{ESTIMATION}test_cells_and_no_weights_as_in_r",
        "Post-stratified and unweighted means, finite population correction",
        "R survey 4.1, apisrs and apipop",
    ),
    Check(
        f"{WEIGHTERS}test_entropy_balancing_of_lalonde",
        "Controls weighted to the treated by entropy balancing: mean, effective size, weights",
        "R ebal, lalonde",
    ),
    Check(
        f"{WEIGHTERS}test_lalonde_as_in_weightit",
        "Controls weighted to the treated by a logistic regression: mean, effective size",
        "R WeightIt prints 5135.1 and 99.82; further digits by scikit-learn",
    ),
    Check(
        f"{ESTIMATION}test_the_odds_of_lalonde_as_in_weightit",
        "Controls weighted to the treated by logistic odds: mean and its standard error",
        "R WeightIt, lalonde",
    ),
    Check(
        f"{ESTIMATION}test_the_effect_on_the_treated_as_in_weightit",
        "Effect on the treated by logistic odds: value and its standard error",
        "R WeightIt, lalonde",
    ),
    Check(
        f"{ESTIMATION}test_lalonde_by_inverse_probabilities",
        "Bounds of a mean under hidden selection: odds off by a factor of 1, 1.5 and 2",
        "R bootsens, lalonde",
    ),
    Check(
        f"{ESTIMATION}test_direct_standardisation_of_cvxr",
        "Direct standardisation by raking and linear calibration: means, standard errors",
        "CVXR's example and empirical_calibration; standard errors by a program of our own",
    ),
    Check(
        f"{ESTIMATION}test_job_vacancies_of_nonprobsvy",
        "Job vacancies: a register weighted to a survey by propensities, doubly robust",
        "R nonprobsvy; its standard error, the last number, takes selection for Poisson sampling",
    ),
    Check(
        f"{ESTIMATION}test_mass_imputation_of_nonprobsvy",
        "Job vacancies: mass imputation",
        "R nonprobsvy",
    ),
    Check(
        f"{ESTIMATION}test_the_doubly_robust_estimate_of_nonprobsvy",
        "Job vacancies with logistic weights: imputed, doubly robust",
        "R nonprobsvy; the number between them is ours, which divides by the sum of the weights",
    ),
    Check(
        f"{ESTIMATION}test_doubly_robust_estimates_of_balance",
        "Simulated rows with known weights: weighted, imputed, doubly robust",
        "balance 0.23, the reference shipped with it",
    ),
    Check(
        f"{LEARNING}test_wooldridge_two_step",
        "Wages of married women, Heckman's two-step estimator: coefficients, standard errors",
        "R sampleSelection, Wooldridge's example 17.5, Mroz's data",
    ),
    Check(
        f"{LEARNING}test_wooldridge_maximum_likelihood",
        "Wages of married women by maximum likelihood: coefficients, standard errors",
        "R sampleSelection",
    ),
    Check(
        f"{LEARNING}test_greene_two_step",
        "Wages of married women, another specification",
        "Greene 2003, example 22.8, as sampleSelection prints it; its maximum likelihood, the last "
        "number, stopped before the maximum",
    ),
]


class Notes:
    """A plugin of pytest that notes what is compared with ``pytest.approx`` and ``np.allclose``."""

    def __init__(self) -> None:
        self.found: dict[str, list[list[float]]] = {}
        self._now = ""

    def pytest_runtest_setup(self, item: Any) -> None:
        """Remember which test runs."""
        folder = Path(item.location[0]).parent.as_posix()
        self._now = f"{folder}::{item.originalname}"

    def note(self, ours: Any, published: Any) -> None:
        """Note each number of a comparison."""
        pairs = np.broadcast_arrays(np.asarray(ours, float), np.asarray(published, float))
        numbers = zip(*(side.ravel().tolist() for side in pairs), strict=True)
        self.found.setdefault(self._now, []).extend(list(pair) for pair in numbers)

    def watch(self) -> None:
        """Make pytest's and NumPy's comparisons note themselves."""
        import pytest

        real, close = pytest.approx, np.allclose

        class Approximately:
            def __init__(self, expected: Any, **tolerance: Any) -> None:
                self.expected, self.inner = expected, real(expected, **tolerance)

            def __eq__(self, ours: object) -> bool:
                note(ours, self.expected)
                return bool(self.inner == ours)

            __hash__ = None  # type: ignore[assignment]
            __array_ufunc__ = None  # so that arrays leave the comparison to this class

        def allclose(ours: Any, published: Any, **tolerance: Any) -> bool:
            if self._now in arrays:
                self.note(ours, published)
            return close(ours, published, **tolerance)

        note, arrays = self.note, {check.test for check in CHECKS if check.arrays}
        pytest.approx, np.allclose = Approximately, allclose  # type: ignore[assignment, misc]


def measure() -> None:
    """Run the tests and note what they compare; keep what is known of tests that are skipped."""
    import pytest

    notes = Notes()
    notes.watch()
    files = sorted({str(file_of(check)) for check in CHECKS})
    chosen = " or ".join(check.test.split("::")[1] for check in CHECKS)
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", str(ROOT), "-k", chosen]
    code = pytest.main([*files, *options], [notes])
    if code:
        sys.exit("A comparison failed: nothing is written.")
    known = json.loads(NOTED.read_text(encoding="utf-8")) if NOTED.exists() else {}
    noted = {check.test: notes.found.get(check.test, known.get(check.test)) for check in CHECKS}
    lines = [f" {json.dumps(test)}: {json.dumps(pairs)}" for test, pairs in noted.items()]
    NOTED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def file_of(check: Check) -> Path:
    """Return the file that has the test."""
    folder, name = check.test.split("::")
    for path in sorted((ROOT / folder).glob("*.py")):
        if f"def {name}(" in path.read_text(encoding="utf-8"):
            return path
    raise LookupError(f"No test in {folder} is called {name}: correct CHECKS.")


def page() -> str:
    """Return the page."""
    noted = json.loads(NOTED.read_text(encoding="utf-8"))
    return "\n".join(_lines(noted)) + "\n"


def _lines(noted: dict[str, list[list[float]]]) -> Iterator[str]:
    total = sum(len(_distinct(noted[check.test])) for check in CHECKS)
    yield "# Checked against"
    yield ""
    yield "*Which published numbers does unskew reproduce, and how closely?*"
    yield ""
    yield INTRODUCTION.format(total=total)
    yield ""
    yield "| what | source | numbers | largest deviation |"
    yield "|---|---|--:|--:|"
    for check in CHECKS:
        pairs = _distinct(noted[check.test])
        largest = max(map(_deviation, pairs))
        yield f"| {check.what} | {check.source} | {len(pairs)} | {largest:.0e} |"
    yield ""
    yield "The experiment of the paper has [a page of its own](table-1.md)."
    for check in CHECKS:
        yield from _section(check, _distinct(noted[check.test]))


def _section(check: Check, pairs: list[list[float]]) -> Iterator[str]:
    yield ""
    yield f"## {check.what.split(':')[0]}"
    yield ""
    yield f"{check.what}. Source: {check.source}. `{check.test}`."
    yield ""
    yield "| published | unskew | relative deviation |"
    yield "|--:|--:|--:|"
    for ours, published in pairs[:LISTED]:
        yield f"| {published:.12g} | {ours:.12g} | {_deviation([ours, published]):.0e} |"
    if len(pairs) > LISTED:
        rest = max(map(_deviation, pairs[LISTED:]))
        yield ""
        yield f"And {len(pairs) - LISTED} more, with a deviation of at most {rest:.0e}."


def _distinct(pairs: list[list[float]]) -> list[list[float]]:
    """Return the pairs without repetitions, in their order."""
    return [list(pair) for pair in dict.fromkeys(map(tuple, pairs))]


def _deviation(pair: list[float]) -> float:
    ours, published = pair
    return abs(ours - published) / (abs(published) or 1.0)


if __name__ == "__main__":
    if sys.argv[1:] == ["measure"]:
        measure()
    PAGE.write_text(page(), encoding="utf-8")

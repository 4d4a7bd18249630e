"""Measure the diagnosis: ``python -m benchmarks.diagnosis [PART ...]``."""

from __future__ import annotations

import argparse

from benchmarks.diagnosis import calibration, cost, overlap, two_sample

PARTS = {
    "calibration": calibration.rates,
    "holes": calibration.holes,
    "disjoint": calibration.disjoint,
    "cost": cost.main,
    "wide": cost.wide,
    "overlap": overlap.overlap,
    "two_sample": two_sample.two_sample,
}


def main() -> None:
    """Run the given parts, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="Default: all.")
    for part in parser.parse_args().parts or PARTS:
        PARTS[part]()


if __name__ == "__main__":
    main()

"""Whether the bounds hold: violation rates of every probabilistic bound, where the truth is known.

    python -m benchmarks.theory [--draws 2000]

The simulations are in ``simulations.py``; the table is in docs/guarantees.md.
"""

from __future__ import annotations

import argparse

from benchmarks.theory.simulations import (
    CERTIFIED,
    SETTINGS,
    Outcome,
    certificate_outcomes,
    count_outcomes,
    matching_outcomes,
    validity_of,
    weighting_outcomes,
)

DELTAS = (0.1, 0.01)


def print_validity(draws: int) -> None:
    """Print a line for each bound, setting and level."""
    print(f"{draws:,} draws each. Rate: share of draws in which the bound failed (95 % interval).")
    print("| bound | setting | δ | rate (interval) | bound ÷ realised, median |")
    print("|---|---|---|---|---|")
    for delta in DELTAS:
        for name, setting in SETTINGS.items():
            _print(count_outcomes(setting, delta, draws, seed=1), name, delta)
        for name, setting in CERTIFIED.items():
            _print(certificate_outcomes(setting, delta, draws, seed=2), name, delta)
        _print(matching_outcomes(delta, draws, seed=3), "narrow kernel", delta)
        _print(weighting_outcomes(delta, draws, seed=4), "two kinds of rows", delta)


def _print(outcomes: dict[str, list[Outcome]], setting: str, delta: float) -> None:
    for name, found in outcomes.items():
        validity = validity_of(found)
        low, high = validity.interval
        broken = "" if low <= delta else " **violated**"
        rate = f"{validity.rate:.4f} ({low:.4f} to {high:.4f}){broken}"
        print(f"| {name} | {setting} | {delta} | {rate} | {validity.tightness:.3g} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    print_validity(parser.parse_args().draws)

"""Table 1 of the paper, as printed.

Cortes, Mohri, Riley and Rostamizadeh, *Sample Selection Bias Correction Theory* (ALT 2008), section
6, Table 1: "Normalized mean-squared error (NMSE) for various regression data sets using unweighted,
ideal, clustered and kernel-mean-matched training sample reweightings."
"""

from __future__ import annotations

from typing import NamedTuple

COLUMNS = ("Unweighted", "Ideal", "Clustered", "KMM")


class Printed(NamedTuple):
    """A printed mean and standard deviation of the NMSE."""

    mean: float
    sd: float


class Row(NamedTuple):
    """A row of the table: the sizes, and the error of each kind of weights."""

    n: int
    m: int
    n_test: int
    nmse: dict[str, Printed]


def _row(n: int, m: int, n_test: int, *nmse: tuple[float, float]) -> Row:
    printed = (Printed(mean, sd) for mean, sd in nmse)
    return Row(n, m, n_test, dict(zip(COLUMNS, printed, strict=True)))


TABLE_1 = {
    "abalone": _row(
        2000, 724, 2177, (0.654, 0.019), (0.551, 0.032), (0.623, 0.034), (0.709, 0.122)
    ),
    "bank32nh": _row(
        4500, 2384, 3693, (0.903, 0.022), (0.610, 0.044), (0.635, 0.046), (0.691, 0.055)
    ),
    "bank8FM": _row(
        4499, 1998, 3693, (0.085, 0.003), (0.058, 0.001), (0.068, 0.002), (0.079, 0.013)
    ),
    "cal-housing": _row(
        16512, 9511, 4128, (0.395, 0.010), (0.360, 0.009), (0.375, 0.010), (0.595, 0.054)
    ),
    "cpu-act": _row(
        4000, 2400, 4192, (0.673, 0.014), (0.523, 0.080), (0.568, 0.018), (0.518, 0.237)
    ),
    "cpu-small": _row(
        4000, 2368, 4192, (0.682, 0.053), (0.477, 0.097), (0.408, 0.071), (0.531, 0.280)
    ),
    "housing": _row(300, 116, 206, (0.509, 0.049), (0.390, 0.053), (0.482, 0.042), (0.469, 0.148)),
    "kin8nm": _row(
        5000, 2510, 3192, (0.594, 0.008), (0.523, 0.045), (0.574, 0.018), (0.704, 0.068)
    ),
    "puma8NH": _row(
        4499, 2246, 3693, (0.685, 0.013), (0.674, 0.019), (0.641, 0.012), (0.903, 0.059)
    ),
}

"""Synthetic patients: the data of the demonstration.

The table is drawn from the formulas below, so that it is part of the package, has any size, and
comes with the true answer. Yearly cost follows J-shaped curves in age
and body mass index, as risks in medicine often do, so that a straight line fitted to some of the
patients is wrong about the others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

COLUMNS = ("age", "body_mass_index", "blood_pressure", "active_hours", "smoker")


class Clinic(NamedTuple):
    """Patients and their yearly cost."""

    patients: NDArray[np.float64]
    cost: NDArray[np.float64]


def make_clinic(n_patients: int, *, random_state: Any = None) -> Clinic:
    """Draw patients at random, with their yearly cost in thousands.

    Examples
    --------
    >>> patients, cost = make_clinic(100, random_state=0)
    >>> patients.shape, cost.shape
    ((100, 5), (100,))
    """
    random = check_random_state(random_state)
    age = random.gamma(9.0, 5.0, n_patients).clip(18, 95)
    body_mass_index = random.normal(26.0, 4.5, n_patients)
    blood_pressure = random.normal(115 + 0.35 * (age - 45), 14.0)
    active_hours = random.gamma(2.0, 2.0, n_patients)
    smoker = (random.uniform(size=n_patients) < 0.22).astype(np.float64)
    cost = (
        1.2 * ((age - 40) / 20) ** 2
        + ((body_mass_index - 23) / 6) ** 2
        + 0.8 * np.maximum(0, (blood_pressure - 125) / 15)
        + 1.2 * np.exp(-active_hours / 2)
        + 0.9 * smoker * (age > 50)
        + random.normal(0, 0.6, n_patients)
    )
    patients = np.column_stack([age, body_mass_index, blood_pressure, active_hours, smoker])
    return Clinic(patients, cost)

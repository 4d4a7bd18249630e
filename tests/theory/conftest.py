"""Data that tests of certificates share."""

import pytest
from tests.theory.helpers import draw_cells


@pytest.fixture(scope="package")
def cells():
    """A population whose probability of selection is constant in four cells."""
    return draw_cells()

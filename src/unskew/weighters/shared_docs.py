"""The parameters and attributes that weighters share, documented once.

A class docstring names them in angle brackets on a line of their own; the base class replaces the
name when the class is created.
"""

from __future__ import annotations

import inspect

_PASSAGES = {
    "shared parameters": """\
columns : None, list or "shared", default=None
    The columns to weigh by: all columns of X, which the population must then have; those in a list
    of names (or positions, for columns without names); or those that both have. A learner or an
    outcome model still gets all of X.
total : {"sample", "population"}, default="sample"
    What the weights sum to: the number of sample rows, or the population's size.
overlap : {"warn", "raise", "ignore"} or float, default=<overlap>
    What to do where the sample does not cover part of the population. "warn" warns if the method
    itself leaves more than 1 % uncovered, or if regions without sample rows hold more than 5 %;
    "raise" raises an ``OverlapError`` at these shares; a number does so at that share of either.
    ``overlap_`` describes the regions. "ignore" skips the search and saves its time.
random_state : int, RandomState instance or None, default=0
    Controls all random choices: the same value gives the same weights.""",
    "shared attributes": """\
weights_ : ndarray of shape (n_samples,)
    One weight per row of X.
columns_ : list of str
    The columns that were weighed by.
overlap_ : Overlap or None
    Which part of the population the sample does not cover, and where; None if ignored.""",
    "empty": """\
empty : {"merge", "drop", "raise"}, default="merge"
    What to do with population rows in cells without sample rows, or with values that no sample row
    has: count them in the cell of the nearest sample row (in the standardised feature space), leave
    them out, or refuse. The first two warn if it is more than 1 % of the population.""",
}


def with_shared_docs(docstring: str, *, overlap: str) -> str:
    """Return a docstring with the shared passages in place of their names."""
    text = inspect.cleandoc(docstring)
    for name, passage in _PASSAGES.items():
        text = text.replace(f"<{name}>", passage.replace("<overlap>", f'"{overlap}"'))
    return text

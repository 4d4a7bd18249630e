"""The population as a meta-estimator is given it, beside the sample that its learner sees."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from narwhals.stable.v2.dependencies import is_dask_dataframe
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import get_tags

from unskew._compat import _num_samples
from unskew.errors import InputError, MismatchError
from unskew.population.rows import is_rows
from unskew.weighters.base import Weighter


def weighter_or_default(weighter: Weighter | None, population: Any) -> Weighter:
    """Return a clone of the weighter, or the default one."""
    from unskew.weighters.defaults import default_weighter

    return default_weighter("train", population) if weighter is None else clone(weighter)


def tags_of_learner(tags: Any, learner: Any) -> Any:
    """Return a meta-estimator's tags with those of the learner that sees X and y."""
    inner = copy.deepcopy(get_tags(learner))
    for name in ("estimator_type", "classifier_tags", "regressor_tags", "target_tags"):
        setattr(tags, name, getattr(inner, name))
    for name in ("allow_nan", "string", "categorical"):
        setattr(tags.input_tags, name, getattr(inner.input_tags, name))
    tags.target_tags.required = True
    tags.input_tags.sparse = False  # the weighter reads tables
    return tags


@contextmanager
def pipelines_go_inside(X: Any, name: str) -> Iterator[None]:
    """Add to an error about columns what to do if an earlier step of a pipeline has made X."""
    try:
        yield
    except InputError as error:
        if isinstance(error, MismatchError) or issparse(X):
            raise type(error)(
                f"{error} If X comes from an earlier step of a pipeline, which does not transform "
                f"the population: put the pipeline inside, {name}(make_pipeline(encoder, learner), "
                "weighter)."
            ) from error
        raise


def check_whole(X: Any, population: Any) -> None:
    """Refuse a population that cross-validation may have cut into folds, as it cuts X and y.

    scikit-learn cuts what has as many entries as X. Afterwards the two still have equal lengths,
    and nothing else distinguishes a part from the whole; so equal lengths are refused where
    scikit-learn makes the call. A ``Population`` has no length and is never cut.
    """
    if population is X or not _is_called_by_a_search():
        return
    is_table = isinstance(population, list | tuple) or is_rows(population)
    if is_table and not is_dask_dataframe(population) and hasattr(X, "__len__"):
        n_rows = _num_samples(population)
        if n_rows == _num_samples(X):
            raise InputError(
                f"population has as many rows as X ({n_rows}). In cross-validation and searches, "
                "scikit-learn would cut such a table into folds as it cuts X, which cannot be "
                "distinguished from a whole one. Wrap it: population=Population(U)."
            )


def _is_called_by_a_search() -> bool:
    """Return whether scikit-learn makes the call, other than by a pipeline that hands on rows."""
    frame: Any = sys._getframe(2)
    while frame:
        name = str(frame.f_globals.get("__name__"))
        if name.startswith("sklearn.") and name not in ("sklearn.base", "sklearn.pipeline"):
            return True
        frame = frame.f_back
    return False

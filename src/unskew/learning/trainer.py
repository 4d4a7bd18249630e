"""What learners that are trained with weights share: training, resampling, and the population.

A learner is trained with the weights where its ``fit`` takes them, otherwise on a resampled sample
that follows them: each row as often as its weight asks, or accepted with probability w / max w
several times, for a :class:`Committee` of learners. A meta-estimator hands the population to its
weighter beside the X and y that its learner sees, and checks that it is whole.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
import sklearn
from narwhals.stable.v2.dependencies import is_dask_dataframe
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import has_fit_parameter

from unskew._compat import _num_samples, _safe_indexing
from unskew.errors import InputError, LearnerError, MismatchError, warn_caller
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.numerics.weight_vectors import effective_sample_size
from unskew.population.population import Population
from unskew.rows.labels import by_position, is_labelled
from unskew.rows.tables import as_rows, is_rows
from unskew.weighters.auto import default_weighter
from unskew.weighters.base import Weighter
from unskew.weighters.ratio_models import weight_keyword


def train_resampled(learner: Any, X: Any, y: Any, rows: IntArray, weights: FloatArray) -> Any:
    """Return a clone that is fitted on rows which were drawn by their weights."""
    try:
        return train(learner, _safe_indexing(X, rows), _safe_indexing(y, rows))
    except ValueError as error:
        raise LearnerError(
            f"{learner_name(learner)} could not be trained on the {len(np.unique(rows))} distinct "
            f"rows that resampling left of {len(weights)} (their effective sample size is "
            f"{effective_sample_size(weights):.0f}): {error}"
        ) from error


def train_by_rejection(
    learner: Any, X: Any, y: Any, weights: FloatArray, rounds: int, random: np.random.RandomState
) -> Committee:
    """Return learners of rows that were accepted by their weights, in as many rounds."""
    drawn = [np.flatnonzero(rejection(weights, random)) for _ in range(rounds)]  # max w is kept
    members = [train_resampled(learner, X, y, rows, weights) for rows in drawn]
    alone = [len(rows) for rows in drawn].count(1)
    if alone:
        warn_caller(
            UserWarning(
                f"Rejection sampling kept one row of {len(weights)} in {alone} of {rounds} rounds, "
                "and a learner of one row knows nothing else: a few weights are far larger than "
                f"the others (the effective sample size is {effective_sample_size(weights):.1f}). "
                'Use resample="multiplicity", or a weighter with smaller weights.'
            )
        )
    return Committee(members, np.unique(np.asarray(y)) if is_classifier(learner) else None)


class TrainingRows(NamedTuple):
    """Rows on which to train learners, with the design weights that they have, if any.

    Attributes
    ----------
    X, y : array-likes
    design : ndarray or None
    population : Population or Margins
        For learners that weigh the sample themselves.
    """

    X: Any
    y: Any
    design: FloatArray | None
    population: Any

    def take(self, places: IntArray) -> TrainingRows:
        """Return the rows at these places."""
        design = None if self.design is None else self.design[places]
        X, y = _safe_indexing(self.X, places), self.y[places]
        return TrainingRows(X, y, design, self.population)

    def train(self, learner: Any, y: Any = None) -> Any:
        """Return a fitted clone, on other labels if they are given."""
        weights = {}
        if self.design is not None and not is_frozen(learner):
            keyword = weight_keyword(learner)
            if keyword is None:
                raise LearnerError(
                    f"{learner_name(learner)} takes no sample_weight, so the design weights could "
                    "not reach it. Use a learner that takes weights, or pass no sample_weight."
                )
            weights[keyword] = self.design
        return train(learner, self.X, self.y if y is None else y, self.population, **weights)


def train(learner: Any, X: Any, y: Any, population: Any = None, **weights: FloatArray) -> Any:
    """Return a fitted clone of a learner; one that weighs the sample gets the population."""
    further = {"population": population} if weighs_itself(learner) else {}
    # The keyword names the step that takes the weights; metadata routing would want requests set
    # on every step for the same purpose.
    with sklearn.config_context(enable_metadata_routing=False):
        return clone(learner).fit(X, y, **further, **weights)


def weighs_itself(learner: Any) -> bool:
    """Whether a learner weighs its sample by a population, as ``Reweighted`` does."""
    return bool(has_fit_parameter(learner, "population"))


def is_frozen(learner: Any) -> bool:
    """Whether a learner, or the last step of a pipeline, is trained already and stays as it is."""
    steps = getattr(learner, "steps", None)
    return is_frozen(steps[-1][1]) if steps else isinstance(learner, FrozenEstimator)


def learner_name(learner: Any) -> str:
    """Return the name of a learner, of the last step of a pipeline."""
    steps = getattr(learner, "steps", None)
    return learner_name(steps[-1][1]) if steps else type(learner).__name__


def multiplicities(weights: FloatArray, size: int, random: np.random.RandomState) -> IntArray:
    r"""Return how often each row occurs in a sample of ``size`` rows that follows the weights.

    The paper's :math:`S'`, in which a row's multiplicity reflects its weight. Rounding is by
    systematic sampling: a row that should occur :math:`a` times occurs :math:`\lfloor a \rfloor` or
    :math:`\lceil a \rceil` times and :math:`a` times on average, so that rows with small weights
    are kept in proportion.

    Examples
    --------
    >>> multiplicities(np.array([2.0, 1.0, 1.0]), 8, np.random.RandomState(0))
    array([4, 2, 2])
    """
    reached = np.cumsum(weights)
    reached *= size / reached[-1]
    reached[-1] = size
    # Systematic sampling: points one apart with a random offset; each row gets those that fall
    # into its interval of the cumulated weights.
    points_below = np.ceil(reached - random.uniform()).astype(np.int64)
    return np.diff(np.clip(points_below, 0, size), prepend=0)


def rejection(weights: FloatArray, random: np.random.RandomState) -> BoolArray:
    """Return which rows are accepted, each with probability ``w / max w``.

    Zadrozny, Langford and Abe, "Cost-sensitive learning by cost-proportionate example weighting",
    ICDM 2003: the accepted rows are an unweighted sample of the distribution that the weights
    describe.

    Examples
    --------
    >>> rejection(np.array([1.0, 0.0, 1.0]), np.random.RandomState(0))
    array([ True, False,  True])
    """
    accepted: BoolArray = random.uniform(size=len(weights)) * weights.max() < weights
    return accepted


def _all_have(name: str) -> Callable[[Committee], bool]:
    return lambda committee: all(hasattr(member, name) for member in committee.members)


def _all_decide_alike(committee: Committee) -> bool:
    # A member that saw fewer classes has a decision function of another shape.
    return _all_have("decision_function")(committee) and all(
        len(member.classes_) == len(committee.classes_)
        for member in committee.members
        if hasattr(committee, "classes_")
    )


class Committee:
    """The average of its members' predictions; for classes, of their probabilities or votes.

    Parameters
    ----------
    members : sequence of fitted estimators
    classes : ndarray, optional
        All classes, where the members are classifiers; a member may have seen only some of them.
    """

    def __init__(self, members: Sequence[Any], classes: NDArray[Any] | None) -> None:
        self.members = members
        if classes is not None:
            self.classes_ = classes

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the mean prediction, or the class with the largest mean probability."""
        if not is_classifier(self.members[0]):
            return np.mean([member.predict(X) for member in self.members], axis=0)
        shares = self.predict_proba(X) if hasattr(self, "predict_proba") else self._votes(X)
        return np.asarray(self.classes_[np.argmax(shares, axis=1)])

    @available_if(_all_have("predict_proba"))
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the mean of the members' probabilities."""
        return np.mean(
            [
                aligned(member.predict_proba(X), member.classes_, self.classes_)
                for member in self.members
            ],
            axis=0,
        )

    @available_if(_all_decide_alike)
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the mean of the members' decision functions."""
        return np.mean([member.decision_function(X) for member in self.members], axis=0)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of classes, or the coefficient of determination."""
        metric = accuracy_score if is_classifier(self.members[0]) else r2_score
        return float(metric(y, self.predict(X), sample_weight=sample_weight))

    def _votes(self, X: Any) -> NDArray[np.float64]:
        votes = [member.predict(X)[:, None] == self.classes_ for member in self.members]
        return np.mean(votes, axis=0)


def aligned(
    probabilities: NDArray[np.float64], known: NDArray[Any], classes: NDArray[Any]
) -> NDArray[np.float64]:
    """Return the probabilities of all classes, zero for those that a learner has not seen.

    Examples
    --------
    >>> aligned(np.array([[0.25, 0.75]]), np.array(["a", "c"]), np.array(["a", "b", "c"]))
    array([[0.25, 0.  , 0.75]])
    """
    whole = np.zeros((len(probabilities), len(classes)))
    whole[:, np.searchsorted(classes, known)] = probabilities
    return whole


def weighter_or_default(weighter: Weighter | None, population: Any) -> Weighter:
    """Return a clone of the weighter, or the default one."""
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


class Labelled(NamedTuple):
    """The rows with a label, and all rows as their population."""

    X: Any
    y: Any
    population: Population


def split_labelled(X: Any, y: Any) -> Labelled:
    """Return the rows that have a label, their labels, and all rows as the population.

    For one table of both: granted and refused loans, answers and silence. The rows with a label are
    the sample, and all rows are its population, which knows which of them the sample has. This is
    right if being labelled depends on the columns alone; where it depends on the label itself, use
    :class:`unskew.HeckmanRegressor`, :class:`unskew.HeckmanClassifier` or
    :class:`unskew.LabelShiftWeights`.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
        Missing (NaN, None or null) where there is no label.

    Returns
    -------
    X : array-like or dataframe
        The rows with a label, in the form of X.
    y : array-like
        Their labels.
    population : Population
        All rows, with marks of those that have a label.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import CalibrationWeights, split_labelled
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> X_s, y_s, population = split_labelled(X, [0, 1, None, 1])
    >>> X_s.ravel(), y_s, population.size, population.n_selected
    (array([1., 2., 4.]), array([0, 1, 1]), 4, 3)
    """
    rows = as_rows(X, name="X")
    if y is None:
        raise InputError("split_labelled requires y to be passed, but the target y is None.")
    y = by_position(y, X, "y")
    labelled = is_labelled(y)
    if len(labelled) != len(rows):
        raise InputError(f"y has {len(labelled)} labels for the {len(rows)} rows of X.")
    if not labelled.any():
        raise InputError("y is missing for every row: there is no sample to learn from.")
    if labelled.all():
        raise InputError(
            "y is there for every row, so there is no population beside the sample. Pass the rows "
            "without labels too, or give the population to fit: population=U."
        )
    return Labelled(_rows(X, labelled), _labels(y, labelled), Population(X, selected=labelled))


def _rows(X: Any, labelled: BoolArray) -> Any:
    if isinstance(X, nw.DataFrame) or nw.dependencies.is_into_dataframe(X):
        frame = nw.from_native(X, eager_only=True).filter(labelled.tolist())
        return frame if isinstance(X, nw.DataFrame) else frame.to_native()
    return np.asarray(X)[labelled]


def _labels(y: Any, labelled: BoolArray) -> Any:
    if isinstance(y, nw.Series) or nw.dependencies.is_into_series(y):
        series = nw.from_native(y, series_only=True).filter(labelled.tolist())
        return series if isinstance(y, nw.Series) else series.to_native()
    values = np.asarray(y)[labelled]
    if values.dtype == object:  # as None beside numbers makes it
        plain = np.array(values.tolist())
        return plain if plain.dtype.kind in "biuf" else values
    return values

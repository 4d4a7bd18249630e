"""Models of the density ratio of population and sample, one for each fold.

Each is fitted on the rows outside a fold and judged on those inside, by the balanced log loss
(:mod:`unskew.numerics.ratio_loss`), which also chooses its parameters. The models here are made of
what others have written: any scikit-learn classifier, and any weighter that can weigh new rows. Our
own are the logistic model of selection (:mod:`.logistic_models`), boosted trees
(:mod:`.boosted_models`) and effects of levels (:mod:`.level_models`).
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import logit
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from unskew._compat import BaseBagging, BaseSearchCV, _BaseHeterogeneousEnsemble, _safe_indexing
from unskew.errors import LearnerError, UnskewError
from unskew.numerics.typing import FloatArray, IntArray
from unskew.numerics.value_folds import AVERAGE
from unskew.population.progress import tell
from unskew.population.summaries import About
from unskew.rows.sample import BLOCK, Sample
from unskew.rows.tables import Form, RowBlock, Rows
from unskew.weighters.two_samples import TwoSamples

NEAREST = 1e-12
"""How near to zero or one a predicted probability counts as such."""
LEAST_SHARE = 1e-4
"""A weight that counts as zero, as a multiple of the mean."""


class RatioModels(ABC):
    """Models of the ratio, one for each fold."""

    n_models: int

    @abstractmethod
    def fit(self, rows: TwoSamples) -> FloatArray:
        """Fit a model outside of each fold, or one of all rows if there is one fold.

        Returns the logarithm of each row's ratio, by the model that has not seen it.
        """

    @abstractmethod
    def predict(self, number: int, encoded: Any) -> FloatArray:
        """Return the logarithm of the ratio by one of the models."""

    def encode(self, codes: FloatArray, table: pa.Table) -> Any:  # noqa: ARG002
        """Return rows, given as codes and as they are, as the models take them."""
        return codes

    def by_number(self, numbers: IntArray, encoded: Any) -> FloatArray:
        """Return the logarithm of each row's ratio, by the model of this number."""
        found = np.zeros(len(numbers))
        for number in range(self.n_models):
            own = np.flatnonzero(numbers == number)
            if len(own):
                found[own] = self.predict(number, take(encoded, own))
        return found

    def log_ratio(self, codes: FloatArray, table: pa.Table, numbers: IntArray) -> FloatArray:
        """Return the logarithm of the ratio by the model of this number, or their average."""
        if len(codes) > BLOCK:  # features of all rows would be many times as large as their codes
            tell(f"weighing {len(codes):,} rows")
            parts = [slice(begin, begin + BLOCK) for begin in range(0, len(codes), BLOCK)]
            return np.concatenate(
                [self.log_ratio(codes[p], table.slice(p.start, BLOCK), numbers[p]) for p in parts]
            )
        encoded = self.encode(codes, table)
        found = self.by_number(numbers, encoded)
        rest = np.flatnonzero(numbers == AVERAGE)
        if len(rest):
            others = take(encoded, rest)
            for number in range(self.n_models):
                found[rest] += self.predict(number, others) / self.n_models
        return found


def take(encoded: Any, places: IntArray) -> Any:
    """Return some rows of an array, a dataframe or a table."""
    if isinstance(encoded, pa.Table):
        return encoded.take(pa.array(places))
    return _safe_indexing(encoded, places)


class ClassifierModels(RatioModels):
    """Clones of a classifier that predicts whether a row is the population's.

    Its rows are as the caller gave X. It sees the two sides as often as they have rows, and odds
    are corrected for that: with a share c of sample rows, the ratio is c / (1 - c) · p / (1 - p).

    Parameters
    ----------
    classifier : estimator
        With ``predict_proba``, or with ``decision_function``, whose scores are only ranked.
    form : Form
        Of X.
    """

    def __init__(self, classifier: Any, form: Form) -> None:
        self.classifier = classifier
        self.form = form
        self.has_probabilities = hasattr(classifier, "predict_proba")

    def fit(self, rows: TwoSamples) -> FloatArray:
        """Train a clone outside of each fold."""
        frame = rows.in_form(self.form)
        # Design weights with a mean of one on either side.
        weight = np.concatenate([side * len(side) for side in rows.shares])
        self.n_models, self.models, self.shift = rows.n_folds, list[Any](), list[float]()
        for number in range(rows.n_folds):
            train = rows.outside(number)
            labels = np.where(rows.is_sample[train], 0, 1)
            own = float(weight[train][labels == 0].sum())
            self.shift.append(float(np.log(own / (weight[train].sum() - own))))
            task = (
                f"to tell the sample's {rows.n_sample} rows from {len(rows.shares.population)} of "
                "the population"
            )
            model = clone(self.classifier)
            self.models.append(trained(model, take(frame, train), labels, weight[train], task))
        return self.by_number(rows.fold, frame)

    def encode(self, codes: FloatArray, table: pa.Table) -> Any:  # noqa: ARG002
        """Return the rows as the caller gave X."""
        return self.form.of(table)

    def predict(self, number: int, encoded: Any) -> FloatArray:
        """Return the logarithm of the ratio; a score, if there are no probabilities."""
        model = self.models[number]
        if not self.has_probabilities:
            return np.asarray(model.decision_function(encoded), dtype=float)
        chance = np.asarray(model.predict_proba(encoded), dtype=float)[:, -1]
        return logit(np.clip(chance, NEAREST, 1 - NEAREST)) + self.shift[number]


class WeighterModels(RatioModels):
    """Clones of a weighter, each fitted on the rows outside of a fold.

    The population's rows are those that were drawn. A fold in which the weighter finds no weights
    has a ratio of one.

    Parameters
    ----------
    weighter : InductiveWeighter
    about : About
    """

    def __init__(self, weighter: Any, about: About) -> None:
        self.weighter = weighter
        self.about = about

    def fit(self, rows: TwoSamples) -> FloatArray:
        """Fit a clone outside of each fold."""
        self.n_models, self.models, self.scales = rows.n_folds, list[Any](), list[float]()
        for number in range(rows.n_folds):
            self._fit_one(rows, rows.outside(number))
        return self.by_number(rows.fold, rows.joined_table)

    def _fit_one(self, rows: TwoSamples, train: IntArray) -> None:
        own, other = train[train < rows.n_sample], train[train >= rows.n_sample] - rows.n_sample
        sample = rows.sample.take(own)
        sample.order = np.arange(len(sample))  # which no order of the columns changes
        about = replace(self.about, n_rows=len(other), selected=False)
        weighter = clone(self.weighter).set_params(overlap="ignore")
        batch, weight = rows.batch.take(pa.array(other)), rows.shares.population[other]
        mean = 0.0
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the fit on all rows says it again
                question = weighter._question(sample, about)
                if question is not None:
                    question.update(RowBlock(batch, weight * len(weight) / weight.sum()))
                    question.finish()
                raw = weighter._solve(sample, question)
            mean = float(raw.sum() / sample.design.sum())
        except UnskewError:
            pass
        self.models.append(weighter if mean > 0 else None)
        self.scales.append(1.0 / mean if mean > 0 else 1.0)

    def encode(self, codes: FloatArray, table: pa.Table) -> pa.Table:  # noqa: ARG002
        """Return the rows as they are."""
        return table

    def predict(self, number: int, encoded: pa.Table) -> FloatArray:
        """Return the logarithm of the weight over its mean."""
        weighter = self.models[number]
        if weighter is None:
            return np.zeros(encoded.num_rows)
        rows = Rows(encoded, named=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            weights = weighter._weigh(Sample(rows, None, np.ones(len(rows))))
        return np.log(np.maximum(weights * self.scales[number], LEAST_SHARE))


def weight_keyword(learner: Any) -> str | None:
    """Return the keyword under which ``learner.fit`` takes weights, or None if it takes none.

    Looks into pipelines, at their last step, and into meta-estimators of one learner or several.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.svm import SVR
    >>> weight_keyword(make_pipeline(StandardScaler(), SVR()))
    'svr__sample_weight'
    >>> weight_keyword(KNeighborsRegressor()) is None
    True
    """
    if isinstance(learner, Pipeline):
        name, last = learner.steps[-1]
        inner = None if last in (None, "passthrough") else weight_keyword(last)
        return None if inner is None else f"{name}__{inner}"
    if isinstance(learner, TransformedTargetRegressor):
        # Without a regressor it uses LinearRegression, which takes weights.
        return "sample_weight" if learner.regressor is None else weight_keyword(learner.regressor)
    if isinstance(learner, BaseSearchCV):
        return weight_keyword(learner.estimator)
    if isinstance(learner, _BaseHeterogeneousEnsemble):
        members = [member for _, member in learner.estimators if member != "drop"]
        return "sample_weight" if all(map(weight_keyword, members)) else None
    if not has_fit_parameter(learner, "sample_weight"):
        return None
    # A bag resamples for learners that take no weights; others would drop them or fail.
    inside = getattr(learner, "estimator", None)
    wraps = hasattr(inside, "fit") and not isinstance(learner, BaseBagging)
    return None if wraps and weight_keyword(inside) is None else "sample_weight"


def trained(classifier: Any, rows: Any, labels: Any, weight: FloatArray, task: str) -> Any:
    """Return the classifier, fitted with these weights; to an error, add what its task was."""
    name, options = type(classifier).__name__, {}
    if np.ptp(weight) > 1e-9:
        keyword = weight_keyword(classifier)
        if keyword is None:
            raise LearnerError(
                f"classifier: {name} takes no sample_weight, so the design weights could not reach "
                "it. Use a classifier that takes weights, or rows without them."
            )
        options[keyword] = weight
    try:
        return classifier.fit(rows, labels, **options)
    except Exception as error:
        raise LearnerError(
            f"classifier: {name} could not be trained {task} ({type(error).__name__}: {error}). "
            "Put encoders of text and missing values into a pipeline with it."
        ) from error

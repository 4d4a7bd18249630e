"""How good a model is on the population, whose labels are not known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm
from sklearn.base import clone
from sklearn.metrics import get_scorer

from unskew.errors import EstimateWarning, InputError, ParameterError, warn_caller
from unskew.estimation.assembling import assumptions, uncovered_notes
from unskew.estimation.confidences import Confidence
from unskew.estimation.estimate import estimate
from unskew.estimation.inputs import open_labelled, opened, shared_columns
from unskew.estimation.learners import learner_by_name
from unskew.estimation.predictions import Predictions
from unskew.estimation.quantities import design_codes
from unskew.estimation.replicates import Replicates
from unskew.estimation.results import FEW_ROWS, Estimate
from unskew.estimation.weighing import weigh
from unskew.numerics.design_variance import Design
from unskew.numerics.typing import FloatArray
from unskew.numerics.weight_vectors import effective_sample_size
from unskew.population.open_sample import named_columns_apart
from unskew.weighters.base import Weighter
from unskew.weighters.defaults import default_weighter

Method = Literal["doubly_robust", "control_variate", "weighted"]
OUTCOMES: dict[str, str | None] = {
    "doubly_robust": "boosted",
    "control_variate": "linear",
    "weighted": None,
}


def _log_score(y: Any, known: Predictions) -> FloatArray:
    shares = known.probabilities()
    own = shares[np.arange(len(y)), np.searchsorted(known.classes, y)]
    return np.log(np.clip(own, np.finfo(float).eps, 1.0))


def _brier(y: Any, known: Predictions) -> FloatArray:
    if len(known.classes) != 2:
        raise ParameterError("neg_brier_score is for two classes.")
    return -(((y == known.classes[1]) - known.probabilities()[:, 1]) ** 2)


MEANS: dict[str, Callable[[Any, Predictions], FloatArray]] = {
    "accuracy": lambda y, known: (y == known.predicted).astype(float),
    "neg_log_loss": _log_score,
    "neg_brier_score": _brier,
    "neg_mean_squared_error": lambda y, known: -((y - known.predicted) ** 2),
    "neg_mean_absolute_error": lambda y, known: -np.abs(y - known.predicted),
}
"""Scores that are means over rows of a number of each row."""


def estimate_score(
    model: Any,
    X: Any,
    y: Any,
    *,
    population: Any,
    scoring: str | Callable[..., float],
    method: Method = "doubly_robust",
    cv: Any = None,
    weighter: Weighter | None = None,
    strata: ArrayLike | str | None = None,
    clusters: ArrayLike | str | None = None,
    level: float = 0.95,
    sample_weight: ArrayLike | str | None = None,
    replicates: int = 200,
    random_state: Any = 0,
) -> Estimate:
    """Estimate how good a model is on the population, without its labels.

    The model's score on the biased sample says how good it is there. A score that is a mean over
    rows is estimated as any other number of the population is, by :func:`unskew.estimate`; others
    from the weighted sample, with a bootstrap that solves the weights again.

    Parameters
    ----------
    model : estimator
        Fitted, and on other rows than these: that is assumed, and said. With ``cv``, any estimator:
        clones of it are fitted.
    X : array-like or dataframe of shape (n_samples, n_features)
        The sample; the model predicts from all of its columns.
    y : array-like of shape (n_samples,), or str
        Its labels, or the name of a column of X that has them.
    population : Population, Margins, or anything that :class:`unskew.Population` takes
        An unbiased reference sample of the population.
    scoring : str or callable
        The name of a scorer of scikit-learn, such as "accuracy", "neg_log_loss", "roc_auc" or "r2",
        or a scorer.
    method : {"doubly_robust", "control_variate", "weighted"}, default="doubly_robust"
        How a mean is estimated: from a boosted model of each row's score given the columns and how
        sure the model is (its largest probability of a class, or what it predicts of a number),
        corrected by the model's weighted residuals; the same with a linear model; or from the
        weights alone. With margins, and for scores that are not means, it is "weighted".
    cv : int, splitter or None, default=None
        Score models that are fitted on the other folds; folds of an integer are drawn at random.
    weighter : Weighter, optional
        By default :class:`unskew.AutoWeights` where a model of the score is corrected, of the
        columns that sample and population share. Errors of weights and model are then multiplied,
        so that the nearest ratio counts, not one whose errors are known. Otherwise as in
        :func:`unskew.estimate`.
    strata, clusters, level, sample_weight, replicates, random_state
        As in :func:`unskew.estimate`.

    Returns
    -------
    Estimate
        Its ``unweighted`` is the score on the sample as it is.

    Warns
    -----
    EstimateWarning
        If the effective sample size is below 30.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from unskew import estimate_score
    >>> random = np.random.RandomState(0)
    >>> population = random.normal(size=(4000, 1))
    >>> sample = population[random.uniform(size=4000) < 0.3 / (1 + np.exp(-2 * population[:, 0]))]
    >>> y = random.uniform(size=len(sample)) < np.where(sample[:, 0] > 0, 0.95, 0.5)
    >>> found = estimate_score(LogisticRegression(), sample, y, population=population,
    ...                        scoring="accuracy", cv=5, method="weighted")
    >>> bool(found.value < found.unweighted)  # it is easier where the sample is
    True
    """
    if method not in OUTCOMES:
        raise ParameterError(f"method must be one of {', '.join(OUTCOMES)}; got {method!r}.")
    X, y, sample_weight = named_columns_apart(X, y, sample_weight, refused_by="a score")
    known = opened(population)
    given, _ = open_labelled(X, y, sample_weight, "raise")
    made = Predictions.of(model, X, given.labels, known, cv, random_state)
    common = {
        "population": known,
        "weighter": weighter,
        "strata": strata,
        "clusters": clusters,
        "level": level,
        "sample_weight": sample_weight,
        "replicates": replicates,
        "random_state": random_state,
    }
    name = scoring if isinstance(scoring, str) else str(getattr(scoring, "__name__", scoring))
    notes = [made.note]
    if isinstance(scoring, str) and scoring in MEANS:
        outcome = None if known.about.margins is not None else OUTCOMES[method]
        if known.about.margins is not None and method != "weighted":
            notes.append("Margins have no rows over which a model could be averaged: weighted.")
        scores = MEANS[scoring](given.labels, made)
        learner = None
        if outcome is not None:
            common["weighter"] = weighter or default_weighter("score")
            # Of right and wrong answers, too: a fold in which all are right has no two classes.
            learner = learner_by_name(
                outcome,
                classify=False,
                random_state=random_state,
                beside=_confidence(made, X, given, known),
            )
        found = estimate(X, scores, outcome=learner, **common)
        assert isinstance(found, Estimate)
        found = replace(found, outcome=outcome)
    else:
        if method != "weighted":
            notes.append(f"{name} is not a mean over rows: weighted, with a bootstrap.")
        found = _bootstrapped(given, made, scoring, **common)
    return replace(found, statistic=name, notes=(*found.notes, *notes))


def _confidence(made: Predictions, X: Any, given: Any, population: Any) -> Confidence | None:
    """Return how sure the model is of rows; None where the population lacks columns for it."""
    if len(shared_columns(given, population)) < len(given.rows.table.column_names):
        return None
    return Confidence.of(made.models, made.folds, X)


def _bootstrapped(given: Any, made: Predictions, scoring: Any, **common: Any) -> Estimate:
    """Return the score of the weighted sample, with its spread over replicates."""
    scorer = get_scorer(scoring)
    model, places = made.as_model(), np.arange(len(given))

    def score(weights: FloatArray) -> float:
        own = weights > 0  # zeros would be rows that a metric counts
        return float(scorer(model, places[own], given.labels[own], sample_weight=weights[own]))

    codes = [design_codes(common[name], name, given.rows) for name in ("strata", "clusters")]
    design = Design.of(len(given), *codes)
    fitted = clone(common["weighter"] or default_weighter("estimate"))
    weighed = weigh(fitted, given, common["population"], [], None, census=False)
    weights = weighed.weights
    try:
        value, plain = score(weights), score((given.design > 0).astype(float))
        by_design = score(given.design) if np.ptp(given.design[given.design > 0]) else None
    except (ValueError, TypeError) as error:
        raise InputError(f"The score could not be computed: {error}") from error
    drawn = Replicates(weighed, design, common["replicates"], common["random_state"])
    found, notes = _of_replicates(score, drawn)
    size = effective_sample_size(np.maximum(weights, 0.0))
    if size < FEW_ROWS:
        warn_caller(
            EstimateWarning(
                f"The effective sample size is {size:.1f}: with fewer than {FEW_ROWS}, bootstrap "
                "intervals are often too short."
            )
        )
    spread, times = float(np.nanstd(found, ddof=1)), float(norm.ppf(0.5 + common["level"] / 2))
    overlap, errors = weighed.weighter.overlap_, np.array([spread])
    doubts = uncovered_notes(overlap, spread * np.sqrt(size), errors, np.array([size]))
    return Estimate(
        value=value,
        standard_error=spread,
        interval=(value - times * spread, value + times * spread),
        level=float(common["level"]),
        unweighted=plain,
        statistic=str(scoring),
        parts={"sample and population": spread**2},
        effective_sample_size=size,
        degrees_of_freedom=float("inf"),
        n_rows=len(given),
        weighter=weighed.weighter,
        weights=weights,
        outcome=None,
        variance="bootstrap",
        assumptions=assumptions(weighed, None),
        notes=(*doubts, *weighed.weighter.rounded_, *notes),
        design_weighted=by_design,
        _basis=(
            f"{scoring} is not a mean over rows, so that its bounds are not known. Sensitivity is "
            f"for {', '.join(MEANS)}."
        ),
    )


def _of_replicates(
    score: Callable[[FloatArray], float], drawn: Replicates
) -> tuple[FloatArray, tuple[str, ...]]:
    """Return the scores of replicates, NaN where there is none, and what to know of them."""
    found = []
    for weights, _ in drawn:
        try:
            found.append(score(np.maximum(weights, 0.0)))
        except ValueError:  # such as of a replicate without a row of a class
            found.append(float("nan"))
    lost = int(np.isnan(found).sum())
    also = (f"{lost} of {len(found)} replicates have no such score and are left out.",)
    return np.array(found), drawn.notes + (also if lost else ())

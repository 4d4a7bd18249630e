"""Weights by a classifier that distinguishes the sample's rows from the population's."""

from __future__ import annotations

from dataclasses import field, replace
from numbers import Real
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
from sklearn.utils import check_random_state

from unskew._compat import HasMethods, Interval, StrOptions
from unskew.errors import OverlapError, OverlapWarning, ParameterError, warn_caller
from unskew.numerics.ratio_loss import (
    ScoreMap,
    Sided,
    isotonic_map,
    lowers_loss,
    pool_exponents,
    ratio_loss,
    sided_auc,
    sigmoid_map,
    without_own_fold,
)
from unskew.numerics.typing import FloatArray
from unskew.numerics.value_folds import EXPECTED
from unskew.numerics.weight_vectors import effective_sample_size
from unskew.population.summaries import About, Question, Summaries
from unskew.rows.sample import Sample
from unskew.weighters.boosted_models import BoostedModels
from unskew.weighters.linearisation import Linearisation
from unskew.weighters.logistic_models import LogisticModels, LogisticWeights, NewRows
from unskew.weighters.parameters import AtLeastOne, AtLeastZero, TwoOrMore
from unskew.weighters.ratio import LIMIT, RatioWeighter, learn_pool
from unskew.weighters.ratio_models import ClassifierModels, LevelModels, RatioModels
from unskew.weighters.selection_features import selection_features
from unskew.weighters.two_samples import TwoSamples

SEPARATED = 0.9999
"""The AUC above which sample and population count as separated."""
FEWEST_TO_SEPARATE = 5
"""Rows of either side from which on a classifier that never errs is no chance."""
MAPS = {"isotonic": isotonic_map, "sigmoid": sigmoid_map}


class ClassifierWeights(RatioWeighter):
    r"""Weights by the odds of a classifier that separates the sample's rows from the population's.

    The odds that a row is the population's and not the sample's, where both are equally frequent,
    are the density ratio :math:`f_U(x) / f_S(x)` (Bickel, Brückner and Scheffer 2009). Weights are
    cross-fitted: that of a sample row comes from a model that has not seen its values.

    Parameters
    ----------
    classifier : estimator, "boosted" or "logistic", default=None
        Any scikit-learn classifier, also at the end of a pipeline; it gets rows as X has them. None
        is "boosted": histogram gradient boosting with as many trees, up to 80, as give the least
        held-out loss; of more than 200 columns, each model takes the 200 that differ most. Where
        levels of categories tell of selection by two standard errors of the held-out loss, their
        effects, with a ridge, are pooled with the trees, and weights are brought nearer to the
        population's shares of levels.
        "logistic" is a ridge logistic model of selection on standardised numbers with hinges,
        categories and missing flags; see ``penalty`` and ``rate``.
    cv : int or None, default=5
        The number of folds. Rows with equal values share a fold; but values with 20 or more sample
        rows are spread over all folds and weighed by the average of all models; boosted trees also
        spread those of which an even sample would have two, where there are categories. None fits
        one model of all rows, which also weighs the rows that it has seen.
    calibration : {"isotonic", "sigmoid"} or None, default="isotonic"
        A monotone map of the held-out scores. It is kept if it lowers the held-out loss by more
        than two standard errors of the difference, and always for a classifier without
        ``predict_proba``.
    penalty : float or "cv", default="cv"
        Of "logistic": the multiple of half the squared coefficients; "cv" tries 1, 0.1, 0.01, 0.001
        and 0.0001.
    rate : float, "odds" or "cv", default="cv"
        Of "logistic": the k in :math:`w \propto 1 + e^{-g(x)}`, where
        :math:`\mathrm{mean}_U \log(1 + e^g) - k\,\mathrm{mean}_S\, g` is smallest. It covers a
        sample inside the population (k = m / n) and one apart from it (small k). "cv" tries 0.05,
        0.2, 0.4, 0.6, 0.8, 0.95 and m / n by the held-out loss, on at most 5,000 rows of either
        side. "odds" is the ordinary logistic regression, :math:`w \propto e^{-g(x)}`.
    hinges : bool, default=True
        Of "logistic": whether a number also enters as :math:`(x - q)_+` at six quantiles; fewer
        where that would be more than 300 features.
    <RatioWeighter parameters>
    max_weight : float, optional
        The largest weight as a multiple of the mean weight, at least 1: larger ones are cut.
    <Weighter parameters>

    Attributes
    ----------
    <Weighter attributes>
    held_out_loss_ : float
        The balanced log loss of the ratio on held-out rows; log 2 = 0.693 if nothing distinguishes
        sample and population.
    gain_, gain_error_ : float
        By how much the loss is below log 2, and the standard error of that. Below two standard
        errors, the classifier has found no difference.
    auc_before_, auc_after_ : float
        The held-out AUC of the classifier, without and with the weights.
    effective_sample_size_ : float
    calibrated_ : bool
        Whether the map of ``calibration`` was kept.
    penalty_, rate_ : float or "odds"
        Of "logistic".
    n_trees_ : int
        Of "boosted".
    <RatioWeighter attributes>

    Notes
    -----
    Where the population marks the rows that are in the sample (``Population(selected=...)``), the
    model distinguishes them from the others, and with their share q the weight is
    :math:`q + (1 - q)\, r(x)`, proportional to the inverse of the probability of selection.

    The logarithm of a ratio is kept within ±8; a warning says how many sample rows this concerns.
    ``random_state`` seeds the folds and the boosted trees; the rows drawn do not depend on it, and
    nothing depends on the orders and scales of columns.

    References
    ----------
    Bickel, Brückner and Scheffer, "Discriminative learning under covariate shift", JMLR 10 (2009).
    Zadrozny, "Learning and evaluating classifiers under sample selection bias", ICML 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import ClassifierWeights
    >>> random = np.random.RandomState(0)
    >>> sample, population = random.normal(0, 1, (600, 1)), random.normal(1, 1, (400, 1))
    >>> weighter = ClassifierWeights("logistic").fit(sample, population=population)
    >>> low, high = weighter.weigh([[-0.5], [1.5]])
    >>> bool(low < 1 < high)
    True
    """

    classifier: Annotated[Any, StrOptions({"boosted", "logistic"}), HasMethods(["fit"]), None] = (
        field(default=None, kw_only=False)
    )
    cv: TwoOrMore | None = 5
    calibration: Literal["isotonic", "sigmoid"] | None = "isotonic"
    penalty: AtLeastZero | Literal["cv"] = "cv"
    rate: Annotated[float, Interval(Real, 0, 1, closed="neither")] | Literal["cv", "odds"] = "cv"
    hinges: bool = True
    max_weight: AtLeastOne | None = None

    traits = replace(
        RatioWeighter.traits,
        assumes=(
            "selection depends on the columns alone, and the classifier can learn the odds of "
            "selection"
        ),
        not_certifiable=(
            "the weights of a classifier are not confined to a known region, unless it is "
            "logistic, without calibration and marks"
        ),
        has_parameters=True,
    )

    def _check_parameters(self) -> None:
        """Refuse parameters that the classifier does not have, or that it needs."""
        if self.classifier != "logistic":
            for name, default in (("penalty", "cv"), ("rate", "cv"), ("hinges", True)):
                if getattr(self, name) != default:
                    raise ParameterError(
                        f'{name}={getattr(self, name)!r} is a parameter of classifier="logistic"; '
                        f"the classifier is {self.classifier!r}."
                    )
        if self.cv is None and "cv" in (self.penalty, self.rate) and self.classifier == "logistic":
            raise ParameterError(
                "cv=None has no held-out rows by which to choose; give penalty and rate, for "
                'example penalty=0.01, rate="odds".'
            )
        if self.classifier is None or isinstance(self.classifier, str):
            return
        if not hasattr(self.classifier, "predict_proba"):
            name = type(self.classifier).__name__
            if not hasattr(self.classifier, "decision_function"):
                raise ParameterError(
                    f"classifier: {name} has neither predict_proba nor decision_function."
                )
            if self.calibration is None:
                raise ParameterError(
                    f"classifier: {name} has no predict_proba, so its scores need a calibration: "
                    '"isotonic" or "sigmoid".'
                )

    def _ratio_models(self, sample: Sample, about: About, rate: float) -> RatioModels:  # noqa: ARG002
        if self.classifier in (None, "boosted"):
            return BoostedModels(check_random_state(self.random_state).randint(2**31 - 1))
        if self.classifier == "logistic":
            return LogisticModels(self.penalty, self.rate, hinges=self.hinges, sampling_rate=rate)
        return ClassifierModels(self.classifier, sample.form)

    def _in_folds(self, rows: TwoSamples) -> TwoSamples:
        # Effects of levels need rows of each level in every training set.
        return rows.in_folds(self.cv, EXPECTED if self._pools_levels(rows) else np.inf)

    def _pools_levels(self, rows: TwoSamples) -> bool:
        """Return whether effects of levels are pooled with boosted trees, which pass over them."""
        return rows.has_levels and self.classifier in (None, "boosted")

    def _weights(self, sample: Sample, rows: TwoSamples, answer: Question[Summaries]) -> FloatArray:
        models = self._ratio_models(sample, answer.learned, self._rate(sample, answer))
        named = {"classifier": models}
        if self._pools_levels(rows):
            named["levels"] = LevelModels()
        held_out = self._fit_models(rows, named)
        scores = held_out[0]
        if isinstance(models, LogisticModels):
            self.penalty_, self.rate_ = models.penalty, models.rate
        elif isinstance(models, BoostedModels):
            self.n_trees_ = models.n_trees
        self._refuse_separation(scores, rows)
        self.exponents_: FloatArray = np.eye(len(held_out))[0]
        if getattr(named.get("levels"), "matters", False):
            self.exponents_ = pool_exponents(held_out, rows.shares)
            scores = without_own_fold(learn_pool, held_out, rows.shares, rows.split(rows.fold))
        scores = self._calibrate(scores, rows)
        own = self._log_ratios(sample.values, sample.rows.table)
        self._warn_of_limits(self._log_ratio(own))
        ratios = self._tilted_to_levels(sample, rows, own)
        weights = self._capped(ratios, sample.design, self.max_weight)
        limited = scores.map(lambda side: np.clip(side, -LIMIT, LIMIT))
        loss = ratio_loss(limited, rows.shares)
        self.held_out_loss_, self.gain_, self.gain_error_ = loss.value, loss.gain, loss.error
        self.auc_before_ = sided_auc(scores, rows.shares)
        self.auc_after_ = sided_auc(scores, Sided(weights[rows.order], rows.shares.population))
        self.effective_sample_size_ = effective_sample_size(weights)
        return weights

    def _refuse_separation(self, scores: Sided, rows: TwoSamples) -> None:
        """Raise an error if held-out rows of the two sides can be separated without error."""
        few = min(len(side) for side in scores) < FEWEST_TO_SEPARATE
        if self.overlap == "ignore" or few or rows.n_folds == 1:
            return
        if sided_auc(scores, rows.shares) > SEPARATED:
            raise OverlapError(
                f"The classifier separates the {rows.n_sample} sample rows from the "
                f"{len(scores.population)} population rows almost without error, on rows that it "
                "has not seen: no sample row can stand for the population. Look for a column that "
                "differs by construction, such as an identifier or a date, and leave it out with "
                "columns=.",
                1.0,
            )

    def _calibrate(self, scores: Sided, rows: TwoSamples) -> Sided:
        """Set the map of the scores, if it is worth it, and return held-out log ratios."""
        models = self.models_["classifier"]
        self.map_: ScoreMap | None = None
        plain = isinstance(models, ClassifierModels) and not models.has_probabilities
        self.calibrated_ = False
        if self.calibration is None or (rows.n_folds == 1 and not plain):
            return scores
        make = MAPS[self.calibration]

        def learn(known: list[Sided], shares: Sided) -> Any:
            fitted = make(known[0], shares)
            return lambda given: given[0].map(fitted)

        mapped = without_own_fold(learn, [scores], rows.shares, rows.split(rows.fold))
        self.calibrated_ = plain or lowers_loss(mapped, scores, rows.shares)
        if not self.calibrated_:
            return scores
        self.map_ = make(scores, rows.shares)
        return mapped

    def _log_ratio(self, log_ratios: FloatArray) -> FloatArray:
        """Return the logarithm of the ratio, mapped."""
        scores = self.exponents_ @ log_ratios
        return scores if self.map_ is None else self.map_(scores)

    def _ratios(self, log_ratios: FloatArray, codes: FloatArray) -> FloatArray:
        ratios = np.exp(np.clip(self._log_ratio(log_ratios), -LIMIT, LIMIT))
        return self._of_population(ratios) * np.exp(self.levels_.of(codes))

    def _warn_of_limits(self, log_ratios: FloatArray) -> None:
        beyond = int((np.abs(log_ratios) > LIMIT).sum())
        if beyond and self.overlap != "ignore":
            warn_caller(
                OverlapWarning(
                    f"{beyond} of {len(log_ratios)} sample rows have a density ratio beyond "
                    f"e^±{LIMIT:.0f}, and were kept at that: the classifier is sure on which side "
                    "they are. Use fewer columns, or a classifier that is regularised more.",
                    self.uncovered_,
                )
            )

    def linearisation(self, sample: Sample) -> Linearisation | None:
        """Return that of logistic models; a map of scores, and marks, are left to the bootstrap."""
        models = self.models_["classifier"]
        if not isinstance(models, LogisticModels) or self.map_ or self.marked_ is not None:
            return None
        own = self._log_ratios(sample.values, sample.rows.table)
        ratios = self._ratios(own, sample.values)

        def of_batch(batch: pa.RecordBatch) -> NewRows:
            values, unseen = self.codes_.transform(batch, side="population")
            trained = np.ones(len(values), dtype=bool) if unseen is None else ~unseen
            return selection_features(models.features, values), self._numbers(values), trained

        return LogisticWeights(
            models,
            np.minimum(ratios, self.cap_) * sample.design,
            sample.design,
            selection_features(models.features, sample.values),
            self._numbers(sample.values),
            (np.abs(own[0]) < LIMIT) & (ratios <= self.cap_),
            of_batch,
            self.population_rows_,
        )

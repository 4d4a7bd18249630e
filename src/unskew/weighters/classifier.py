"""Weights by a classifier that distinguishes the sample's rows from the population's."""

from __future__ import annotations

from dataclasses import field
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from unskew._compat import HasMethods, Interval, StrOptions
from unskew.errors import OverlapError, OverlapWarning, ParameterError, warn_caller
from unskew.numerics.ratio_calibration import ScoreMap, isotonic_map, sigmoid_map
from unskew.numerics.ratio_loss import RatioLoss, Sided, lowers_loss, ratio_loss, sided_auc
from unskew.numerics.trimming import ratio_cap
from unskew.numerics.typing import FloatArray, IntArray
from unskew.numerics.weight_vectors import effective_sample_size
from unskew.population.about import About
from unskew.population.encode import ColumnCodes
from unskew.population.reservoir import Reservoir
from unskew.population.sample import Sample
from unskew.population.summaries import Summaries, Total
from unskew.weighters.any_classifier import ClassifierModels
from unskew.weighters.boosted_ratio import BoostedModels
from unskew.weighters.inductive import InductiveWeighter
from unskew.weighters.linearisation import Linearisation
from unskew.weighters.logistic_linearisation import LogisticWeights, NewRows
from unskew.weighters.ratio_models import LogisticModels, RatioModels
from unskew.weighters.reservoir_size import rows_within, width_of_models
from unskew.weighters.two_samples import TwoSamples, hash_values

LIMIT = 8.0
"""The logarithm of a ratio is kept within plus and minus this."""
SEPARATED = 0.9999
"""The AUC above which sample and population count as separated."""
FEWEST_TO_SEPARATE = 5
"""Rows of either side from which on a classifier that never errs is no chance."""
MAPS = {"isotonic": isotonic_map, "sigmoid": sigmoid_map}


class ClassifierWeights(InductiveWeighter):
    r"""Weights by the odds of a classifier that separates the sample's rows from the population's.

    The odds that a row is the population's and not the sample's, where both are equally frequent,
    are the density ratio :math:`f_U(x) / f_S(x)` (Bickel, Brückner and Scheffer 2009). Weights are
    cross-fitted: that of a sample row comes from a model that has not seen its values.

    Parameters
    ----------
    classifier : estimator, "boosted" or "logistic", default=None
        Any scikit-learn classifier, also at the end of a pipeline; it gets rows as X has them. None
        is "boosted": histogram gradient boosting with as many trees, up to 80, as give the least
        held-out loss; of more than 200 columns, each model takes the 200 that differ most.
        "logistic" is a ridge logistic model of selection on standardised numbers with hinges,
        categories and missing flags; see ``penalty`` and ``rate``.
    cv : int or None, default=5
        The number of folds. Rows with equal values share a fold; but values with 20 or more sample
        rows are spread over all folds and weighed by the average of all models. None fits one model
        of all rows, which also weighs the rows that it has seen.
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
    population_rows : int or "auto", default="auto"
        How many population rows to draw, uniformly; all if it has fewer. "auto" is 100,000 or 20
        for each sample row, whichever is larger, within 1 GB: a large sample trains the models
        with a part of its rows, too, which is drawn uniformly, and all its rows are weighed.
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
    sample_rows_, population_rows_ : int
        How many rows of the sample have trained the models, and how many population rows, drawn
        uniformly. All sample rows have, unless both sides would take more than 1 GB.
    penalty_, rate_ : float or "odds"
        Of "logistic".
    n_trees_ : int
        Of "boosted".
    n_capped_ : int
        Sample rows whose weight ``max_weight`` has cut.
    uncovered_ : float
        The share of the population with values that no sample row has. They train no model.

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

    classifier: Any = field(default=None, kw_only=False)
    cv: int | None = 5
    calibration: Literal["isotonic", "sigmoid"] | None = "isotonic"
    penalty: float | Literal["cv"] = "cv"
    rate: float | Literal["cv", "odds"] = "cv"
    hinges: bool = True
    population_rows: int | Literal["auto"] = "auto"
    max_weight: float | None = None

    assumes = (
        "selection depends on the columns alone, and the classifier can learn the odds of selection"
    )
    uncovered_means = "the share of the population with values that no sample row has"
    refused_above = 0.99
    judged_by = "smooth"
    smoothed_by = ("a smaller max_weight",)
    _not_certifiable = (
        "the weights of a classifier are not confined to a known region, unless it is logistic, "
        "without calibration and marks"
    )
    _has_parameters = True
    _saved_types = (
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        # Boosted trees with categories keep a check of their input.
        "functools.partial",
        "sklearn.compose._column_transformer._RemainderColsList",
        "sklearn.utils.validation.check_array",
        "unskew.numerics.ratio_calibration.ScoreMap",
        "unskew.population.forms.Form",
        "unskew.weighters.any_classifier.ClassifierModels",
        "unskew.weighters.boosted_ratio.BoostedModels",
        "unskew.weighters.boosted_ratio.Tilt",
        "unskew.weighters.boosted_ratio.TreeBins",
        "unskew.weighters.ratio_models.LogisticModels",
        "unskew.weighters.selection_features.Levels",
        "unskew.weighters.selection_features.SelectionFeatures",
        "unskew.weighters.value_folds.ValueFolds",
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **InductiveWeighter._parameter_constraints,
        "classifier": [StrOptions({"boosted", "logistic"}), HasMethods(["fit"]), None],
        "cv": [Interval(Integral, 2, None, closed="left"), None],
        "calibration": [StrOptions({"isotonic", "sigmoid"}), None],
        "penalty": [StrOptions({"cv"}), Interval(Real, 0, None, closed="left")],
        "rate": [StrOptions({"cv", "odds"}), Interval(Real, 0, 1, closed="neither")],
        "hinges": ["boolean"],
        "population_rows": [StrOptions({"auto"}), Interval(Integral, 2, None, closed="left"), None],
        "max_weight": [Interval(Real, 1, None, closed="left"), None],
    }

    def _question(self, sample: Sample, about: About) -> Summaries:  # noqa: ARG002
        self._check_classifier()
        _, rows = self._learned_from(sample)
        return Summaries([Reservoir(rows), Total()])

    def _learned_from(self, sample: Sample) -> tuple[int, int]:
        """Return how many rows of sample and population train the models, at most."""
        return rows_within(self.population_rows, len(sample), width_of_models(sample.codes))

    def _solve(self, sample: Sample, answer: Summaries) -> FloatArray:
        drawn, total = answer.parts
        most = self._learned_from(sample)[0]
        rows = TwoSamples.of(sample, drawn, most, self.random_state).aligned()
        self.sample_rows_ = rows.n_mine
        self.rounded_ = tuple(rows.rounded.values())
        self.uncovered_ = rows.uncovered
        self.population_rows_ = len(drawn.weight)
        self.codes_ = sample.codes
        self.marked_ = rows.marked
        self.folds_ = rows.folds(self.cv)
        dealt = rows.dealt(self.folds_)
        self.models_ = self._ratio_models(
            sample, None, np.count_nonzero(sample.design) / max(total.rows, 1)
        )
        scores = rows.split(self.models_.fit(rows, dealt, self.folds_.n_folds))
        self._describe_models()
        self._refuse_separation(scores, rows)
        held_out = self._calibrate(scores, rows, rows.split(dealt))
        weights = self._weights_of(sample)
        self._judge(held_out, rows, weights)
        return weights

    @property
    def _is_cross_fitted(self) -> bool:
        return self.folds_.n_folds > 1

    def _weights_of(self, sample: Sample) -> FloatArray:
        """Return the weights of the sample's rows by the models as they are."""
        own = self.models_.log_ratio(sample.values, sample.rows.table, self._numbers(sample.values))
        self._warn_of_limits(self.map_(own) if self.map_ else own)
        ratios = self._ratios(own)
        self.cap_ = ratio_cap(ratios, sample.design, self.max_weight)
        self.n_capped_ = int((ratios > self.cap_).sum())
        return np.minimum(ratios, self.cap_) * sample.design

    def _ratio_models(self, sample: Sample, about: About | None, rate: float) -> RatioModels:  # noqa: ARG002
        if self.classifier in (None, "boosted"):
            from sklearn.utils import check_random_state

            return BoostedModels(check_random_state(self.random_state).randint(2**31 - 1))
        if self.classifier == "logistic":
            return LogisticModels(self.penalty, self.rate, hinges=self.hinges, sampling_rate=rate)
        return ClassifierModels(self.classifier, sample.form)

    def _check_classifier(self) -> None:
        """Refuse parameters that the classifier does not have, or that it needs."""
        if self.classifier != "logistic":
            for name, default in (("penalty", "cv"), ("rate", "cv"), ("hinges", True)):
                if getattr(self, name) != default:
                    raise ParameterError(
                        f'{name}={getattr(self, name)!r} is a parameter of classifier="logistic"; '
                        f"the classifier is {self.classifier!r}."
                    )
        if self.population_rows is None:
            raise ParameterError(
                "population_rows=None, a fit over all rows by many passes, was removed. Give a "
                'number of rows, as large as the population if you like, or "auto".'
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

    def _describe_models(self) -> None:
        models = self.models_
        if isinstance(models, LogisticModels):
            self.penalty_, self.rate_ = models.penalty, models.rate
        elif isinstance(models, BoostedModels):
            self.n_trees_ = models.n_trees

    def _refuse_separation(self, scores: Sided, rows: TwoSamples) -> None:
        """Raise an error if held-out rows of the two sides can be separated without error."""
        few = min(len(scores.mine), len(scores.theirs)) < FEWEST_TO_SEPARATE
        if self.overlap == "ignore" or few or self.folds_.n_folds == 1:
            return
        if sided_auc(scores, rows.shares) > SEPARATED:
            raise OverlapError(
                f"The classifier separates the {rows.n_mine} sample rows from the "
                f"{len(scores.theirs)} population rows almost without error, on rows that it has "
                "not seen: no sample row can stand for the population. Look for a column that "
                "differs by construction, such as an identifier or a date, and leave it out with "
                "columns=.",
                1.0,
            )

    def _calibrate(self, scores: Sided, rows: TwoSamples, dealt: Any) -> Sided:
        """Set the map of the scores, if it is worth it, and return held-out log ratios."""
        self.map_: ScoreMap | None = None
        plain = isinstance(self.models_, ClassifierModels) and not self.models_.has_probabilities
        if self.calibration is None or (self.folds_.n_folds == 1 and not plain):
            self.calibrated_ = False
            return scores
        make = MAPS[self.calibration]
        mapped = Sided(*(side.copy() for side in scores))
        for number in range(self.folds_.n_folds):
            others = [side != number for side in dealt]
            if self.folds_.n_folds == 1 or not all(other.any() for other in others):
                others = [np.ones(len(side), dtype=bool) for side in scores]
            fitted = make(
                Sided(*(side[one] for side, one in zip(scores, others, strict=True))),
                Sided(*(q[one] / q[one].sum() for q, one in zip(rows.shares, others, strict=True))),
            )
            for side, given, fold in zip(mapped, scores, dealt, strict=True):
                side[fold == number] = fitted(given[fold == number])
        self.calibrated_ = plain or lowers_loss(mapped, scores, rows.shares)
        if not self.calibrated_:
            return scores
        self.map_ = make(scores, rows.shares)
        return mapped

    def _judge(self, held_out: Sided, rows: TwoSamples, weights: FloatArray) -> None:
        """Say how well the held-out ratio does, and what the weights leave of the difference."""
        limited = Sided(*(np.clip(side, -LIMIT, LIMIT) for side in held_out))
        loss: RatioLoss = ratio_loss(limited, rows.shares)
        self.held_out_loss_, self.gain_, self.gain_error_ = loss.value, loss.gain, loss.error
        self.auc_before_ = sided_auc(held_out, rows.shares)
        self.auc_after_ = sided_auc(held_out, Sided(weights[rows.order], rows.shares.theirs))
        self.effective_sample_size_ = effective_sample_size(weights)

    def _ratios(self, scores: FloatArray) -> FloatArray:
        """Return density ratios, up to a factor, from the models' scores."""
        log_ratios = scores if self.map_ is None else self.map_(scores)
        ratios = np.exp(np.clip(log_ratios, -LIMIT, LIMIT))
        return ratios if self.marked_ is None else self.marked_ + (1 - self.marked_) * ratios

    def _linearisation(self, sample: Sample) -> Linearisation | None:
        """Return that of logistic models; a map of scores, and marks, are left to the bootstrap."""
        models = self.models_
        if not isinstance(models, LogisticModels) or self.map_ or self.marked_ is not None:
            return None
        own = models.log_ratio(sample.values, sample.rows.table, self._numbers(sample.values))
        ratios = self._ratios(own)

        def of_batch(batch: pa.RecordBatch) -> NewRows:
            values, unseen = self.codes_.transform(batch, side="population")
            trained = np.ones(len(values), dtype=bool) if unseen is None else ~unseen
            return models.features.transform(values), self._numbers(values), trained

        return LogisticWeights(
            models,
            np.minimum(ratios, self.cap_) * sample.design,
            sample.design,
            models.features.transform(sample.values),
            self._numbers(sample.values),
            (np.abs(own) < LIMIT) & (ratios <= self.cap_),
            of_batch,
            self.population_rows_,
        )

    def _numbers(self, values: FloatArray) -> IntArray:
        """Return which model weighs a row."""
        return self.folds_.number(hash_values(values))

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

    def _weigh(self, sample: Sample) -> FloatArray:
        codes = self.codes_.transform(sample.batch, side="new rows").values
        own = self.models_.log_ratio(codes, sample.rows.table, self._numbers(codes))
        return np.minimum(self._ratios(own), self.cap_)

    def _codes(self) -> ColumnCodes:
        return self.codes_

    def _describe_unseen(self) -> str:
        return "the models take such a value for none of those that they know"

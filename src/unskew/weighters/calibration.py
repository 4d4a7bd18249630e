"""Calibration weights: raking, entropy balancing, propensity, linear and bounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from unskew._compat import StrOptions
from unskew.errors import (
    InputError,
    OverlapError,
    OverlapWarning,
    ParameterError,
    listing,
    warn_caller,
)
from unskew.numerics.cores import one_blas_thread
from unskew.numerics.distances import DISTANCES, Distance
from unskew.numerics.typing import FloatArray, IntArray
from unskew.overlap.overlap import Overlap
from unskew.population.feature_rules import Candidates, FeatureRules, Features
from unskew.population.feature_sums import FeatureSums
from unskew.population.summaries import About, Question
from unskew.rows.design import Design, Levels
from unskew.rows.encode import ColumnCodes
from unskew.rows.sample import Rule, Sample
from unskew.weighters.balancing import Balancing, TiltedSums, linearised_tilt
from unskew.weighters.feature_choice import (
    N_FOLDS,
    AutomaticTerms,
    jumps,
    unseen_levels,
    unseen_pairs,
)
from unskew.weighters.inductive import InductiveWeighter, check_numbers
from unskew.weighters.linearisation import Linearisation
from unskew.weighters.parameters import AtLeastOne, AtLeastZero, Columns
from unskew.weighters.two_samples import nothing_covered


def checked_bounds(bounds: Any) -> tuple[float, float]:
    """Return the bounds with infinity for none."""
    if bounds is None:
        return -np.inf, np.inf
    try:
        low, high = bounds
        low = -np.inf if low is None else float(low)
        high = np.inf if high is None else float(high)
    except (TypeError, ValueError):
        raise ParameterError(f"bounds must be (low, high); got {bounds!r}.") from None
    if not low < 1 < high:
        raise ParameterError(
            f"bounds are of the ratio of a weight to its design weight, so low < 1 < high; got "
            f"{bounds!r}."
        )
    return low, high


def slacks(slack: Any, features: Design) -> FloatArray:
    """Return the slack of each feature."""
    names = features.names
    if isinstance(slack, Real):
        return np.full(len(names), float(slack))
    if isinstance(slack, Mapping):
        columns = [
            features.columns_of(term) if len(term.positions) == 1 else []
            for term in features.terms
            for _ in term.names
        ]
        for key in slack:
            if key not in names and not any(key in one for one in columns):
                raise ParameterError(
                    f"slack names {key!r}, which is neither a feature nor a column of one. The "
                    f"features are {', '.join(names[:10])}{' …' if len(names) > 10 else ''}."
                )
        found = [
            slack.get(name, next((slack[one] for one in own if one in slack), 0.0))
            for name, own in zip(names, columns, strict=True)
        ]
    else:
        found = list(slack)
    if len(found) != len(names):
        raise ParameterError(f"slack has {len(found)} entries for {len(names)} features.")
    values = np.asarray(found, dtype=float)
    if not (np.isfinite(values) & (values >= 0)).all():
        raise ParameterError(f"slack must not be negative; got {slack!r}.")
    return values


class CalibrationWeights(InductiveWeighter):
    r"""Weights nearest to the design weights under which the sample's means are the population's.

    They are :math:`w = d\,F(\lambda_0 + \lambda^\top \varphi(x))` with :math:`\sum w \varphi`
    equal to the population's sums of the features :math:`\varphi`: one pass and as many numbers as
    there are features, or no rows at all where the sums are known (:class:`unskew.Margins`).

    Parameters
    ----------
    distance : {"raking", "entropy", "propensity", "linear", "logit"} or Distance, default="raking"
        How the distance between weights and design weights is measured, and with it the form of the
        factor F.

        - "raking", or "entropy": :math:`e^u`. Raking, entropy balancing, exponential tilting; the
          weights are positive.
        - "propensity": :math:`1 + e^u`, the inverse of a logistic propensity, for a sample that is
          part of the population (inverse probability tilting, just-identified CBPS). Needs the
          population's size: a row stands at least for itself.
        - "linear": :math:`1 + u`, the generalised regression estimator (GREG). Weights can be
          negative without ``bounds``.
        - "logit": Deville and Särndal's logistic curve between ``bounds``.

        An object of a class that derives from ``unskew.numerics.distances.Distance`` is another F.
    features : {"auto", "means", "margins"} or list, default="auto"
        What is matched. "means": the mean of each number, the share of each category and of
        missing values. "margins": the shares of categories, and of five bands of each number.
        "auto": "means", and of squares, knots and pairs of columns those that lower the held-out
        loss, at most a tenth as many features as sample rows and 200; in :func:`unskew.estimate`
        also those that predict y. Of columns with more levels than a twentieth of the sample rows,
        all levels if these tell of selection or y as a group, else the rarest as one. A list holds
        columns (as in "means"), pairs such as ``("age", "region")``, and functions of a table of
        rows in the form of X; without functions, the population needs only the columns that it
        names. With :class:`unskew.Margins`, "auto" is everything that they know.
    bounds : (low, high), optional
        Bounds of the ratio of a weight to its design weight, both scaled to the same total; None
        for no bound on a side. "linear" with ``bounds=(0, None)`` gives stable balancing weights.
    slack : float, mapping or sequence, default=0.0
        The imbalance that is allowed, in standard deviations of the sample: for all features, by
        name, or for each.
    ridge : float, default=0.0
        The price of imbalance instead: adds half the squared imbalance over ``ridge`` to the
        distance. Zero demands exact balance.
    max_weight : float, optional
        The largest weight as a multiple of the mean weight, at least 1.
    design_effect : float, optional
        The largest :math:`m \sum w^2 / (\sum w)^2`, at least 1; reached by as much ``ridge`` as
        it needs.
    on_infeasible : {"raise", "relax"}, default="raise"
        What to do where no weights match the population: raise an ``OverlapError`` that says how
        near any weights come and in which direction, or allow every feature as much slack as that.
        Of automatic features, those that cannot be matched because of at most 5 % of the population
        are left out, or matched within chance, with a warning.
    negative : {"raise", "allow"}, default="raise"
        What to do with negative weights, which only "linear" without bounds can give. They are for
        estimates: no learner takes them.
    <Weighter parameters>

    Attributes
    ----------
    <Weighter attributes>
    features_ : list of str
        The features that are matched.
    targets_ : ndarray of shape (n_features,)
        The population's means of them.
    imbalance_ : ndarray of shape (n_features,)
        The weighted mean of the sample minus the target, in standard deviations of the sample. Of
        a sample on Spark, whose subsample the weights are solved on: the mean over all its rows.
    collinear_ : list of str
        Features that are linear combinations of others, and so are matched with them.
    multipliers_ : ndarray of shape (n_features,)
        :math:`\lambda`, for features in standard deviations.
    slack_, ridge_ : float
        The slack beyond ``slack`` that was needed, and the ridge that was used.
    certificate_ : CalibrationCertificate
        The largest imbalance, the gradient that is left and the number of steps.
    uncovered_ : float
        The share of the population with values that no sample row has. The targets are those of
        the others; with automatic features only those of the column, in which the rarest levels of
        the sample stand for such levels, if they have at most 5 rows.
    unseen_levels_ : list of OverlapRule
        The levels of known margins that no sample row has, the most frequent first.
    unseen_pairs_ : list of OverlapRule
        Combinations of columns that are matched together, which no sample row has.
    notes_ : tuple of str
        What could not be matched as the population has it, and what was done.

    Notes
    -----
    Features are scaled by the sample. Without slack and ridge the weights do not depend on it.

    References
    ----------
    Deville and Särndal, "Calibration estimators in survey sampling", JASA 87 (1992).
    Hainmueller, "Entropy balancing for causal effects", Political Analysis 20 (2012).

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import CalibrationWeights, Margins
    >>> sample = {"sex": ["f", "f", "f", "m"], "age": [30.0, 40.0, 60.0, 50.0]}
    >>> census = Margins(counts={"sex": {"f": 3159, "m": 3035}}, means={"age": 47.0})
    >>> import pandas as pd
    >>> weighter = CalibrationWeights().fit(pd.DataFrame(sample), population=census)
    >>> round(float(np.average(sample["age"], weights=weighter.weights_)), 6)
    47.0
    """

    distance: Annotated[str, StrOptions(set(DISTANCES))] | Distance = "raking"
    features: Features = "auto"
    bounds: tuple[float | None, float | None] | None = None
    slack: AtLeastZero | Mapping[str, float] | Sequence[float] | NDArray[Any] = 0.0
    ridge: AtLeastZero = 0.0
    max_weight: AtLeastOne | None = None
    design_effect: AtLeastOne | None = None
    on_infeasible: Literal["raise", "relax"] = "raise"
    negative: Literal["raise", "allow"] = "raise"

    traits = replace(
        InductiveWeighter.traits,
        assumes=(
            "selection depends on the columns alone, and the weights needed have the form of the "
            "distance in the features"
        ),
        uncovered_means="the share of the population with values that no sample row has",
        judged_by="trees",
        has_parameters=True,
    )

    def _chosen_columns(self, names: Sequence[str]) -> Columns:
        """Return ``columns``, or else those that a list of features names, if it has no function.

        A function is given all columns. What is no column is refused with the features.
        """
        listed = [] if isinstance(self.features, str) else list(self.features)
        if self.columns is not None or any(map(callable, listed)):
            return self.columns
        parts = [
            [one] if isinstance(one, str | int) else list(one)
            for one in listed
            if not callable(one)
        ]
        named = [f"x{one}" if isinstance(one, int) else one for part in parts for one in part]
        return [one for one in dict.fromkeys(named) if one in names] or None

    def _question(self, sample: Sample, about: About) -> Question[FeatureSums]:
        self._distance()  # its parameters are checked before the pass
        rules = FeatureRules(sample)
        learned: Candidates | None = None
        n_folds, ranges = 1, None
        if about.margins is not None:
            terms = rules.of_margins(about, self.features)
        elif self.features == "auto":
            base, further, whole = rules.candidates()
            learned = Candidates(base, [*further, *jumps(rules)], whole)
            n_folds, ranges = N_FOLDS, rules.ranges()
            terms = [term for group in learned for term in group]
        elif isinstance(self.features, str):
            terms = rules.means() if self.features == "means" else rules.margins()
        else:
            terms = rules.listed(self.features)
        features = Design(sample.codes, terms)
        lacking = unseen_levels(features, about, len(sample))
        return Question(FeatureSums(features, n_folds, ranges), (learned, lacking))

    def _solve(self, sample: Sample, answer: Question[FeatureSums]) -> FloatArray:
        asked, (learned, self.unseen_levels_) = answer.summary, answer.learned
        covered = float(asked.mass.sum()) - asked.partly
        uncovered = asked.uncovered + asked.partly
        self.uncovered_ = uncovered / (covered + uncovered)
        if covered <= 0:
            raise OverlapError(nothing_covered(asked.features.codes), 1.0)
        self.notes_: tuple[str, ...] = ()
        with one_blas_thread():  # products are small, or shared among threads of our own
            solved = self._balance(asked, sample, learned)
        self.unseen_pairs_ = unseen_pairs(asked, solved.feature_set, len(sample))
        if self.unseen_pairs_:
            self.notes_ += (
                f"No sample row has {listing([str(one) for one in self.unseen_pairs_[:3]])}"
                f"{' and more' if len(self.unseen_pairs_) > 3 else ''}. Other pairs have their "
                "share, such that each column keeps its own.",
            )
        self._describe(solved)
        if not sample.in_memory and self.features_:
            found = sample.reduce(TiltedSums(self.tilt_))
            self.imbalance_ = found.sums / found.mass
        weights = solved.factors * sample.design
        self._check_negative(weights)
        return weights

    def _balance(self, asked: FeatureSums, sample: Sample, learned: Candidates | None) -> Balancing:
        """Match the features, or those that are chosen among them."""
        counted = sample.design > 0

        def counts(levels: Levels) -> IntArray:
            places = levels.places(sample.values[counted])
            return np.bincount(places[places >= 0], minlength=len(levels.names))

        sums, contradictory = asked.completed(counts)
        relax = self.on_infeasible == "relax"
        if learned is None:
            return self._solve_terms(asked, sums, sample, range(len(asked.features.terms)), relax)
        choice = AutomaticTerms(asked, sums, sample, learned)
        choices = choice.choices()
        dropped = sorted({*choices[0]} & {*contradictory})
        choices = [[place for place in one if place not in contradictory] for one in choices]
        left = None
        for number, chosen in enumerate(choices):
            last = number == len(choices) - 1
            try:
                solved = self._solve_terms(asked, sums, sample, chosen, relax and last)
                break
            except OverlapError:  # what cannot be matched is not kept
                if last and not choice.is_covered:
                    raise
        else:
            ridge = 1.0 / np.count_nonzero(counted)
            solved = self._solve_terms(asked, sums, sample, choices[-1], relax, ridge)
            left = solved.imbalance
        self.notes_ = choice.unmatched(self.features_, left)
        for note in self.notes_ if self.overlap != "ignore" or left is not None else ():
            warn_caller(OverlapWarning(note, self.uncovered_))
        self.notes_ += choice.stand_ins(self.features_)
        columns = [asked.features.columns_of(asked.features.terms[place]) for place in dropped]
        self.notes_ += tuple(
            f"Pairs of '{one}' and '{other}' are not matched: without those that no sample row "
            "has, they cannot have the shares of both columns."
            for one, other in columns
        )
        return solved

    def _solve_terms(
        self,
        asked: FeatureSums,
        sums: FloatArray,
        sample: Sample,
        places: Sequence[int],
        relax: bool,
        ridge: float = 0.0,
    ) -> Balancing:
        terms = asked.features.terms
        kept = np.repeat(np.isin(np.arange(len(terms)), places), [len(t.names) for t in terms])
        features = Design(asked.features.codes, [terms[place] for place in places])
        mass = float(asked.mass.sum())
        with np.errstate(over="ignore", invalid="ignore"):  # they are checked there
            targets = sums[:, kept].sum(axis=0) / mass
        # Of a bootstrap replicate, the tilt of all rows is a good start, and scales the features.
        again = getattr(self, "features_", None) == features.names
        start = getattr(self, "tilt_", None) if again else None
        balancing = Balancing(
            features,
            sample,
            targets,
            self._distance(),
            slacks(self.slack, features),
            ratio=self._ratio(mass, float(sample.design.sum())),
            max_weight=self.max_weight,
            start=start,
        )
        self.features_ = features.names
        return balancing.solve(max(float(self.ridge), ridge), self.design_effect, relax=relax)

    def _distance(self) -> Distance:
        """Return the distance, or raise what is wrong with its bounds."""
        chosen = DISTANCES[self.distance] if isinstance(self.distance, str) else self.distance
        return chosen.within(*checked_bounds(self.bounds))

    def _ratio(self, mass: float, design: float) -> float:
        """Return the weights' total over the design weights', if the distance depends on it."""
        if not self._distance().counts_totals:
            return 1.0
        if mass <= design:
            raise InputError(
                f'distance="propensity" is for a sample that is part of the population, but the '
                f"population's size is {mass:,.10g} and the sample's {design:,.10g}. Use "
                'distance="raking", or give the size: Population(weight=...) or Margins(size=...).'
            )
        return mass / design

    def _describe(self, solved: Balancing) -> None:
        """Set the fitted attributes; warn if the solver stopped early, or allowed more slack."""
        self.tilt_, self.certificate_ = solved.tilt, solved.certificate
        self.imbalance_ = solved.imbalance
        self.targets_ = solved.targets + solved.feature_set.origins
        self.multipliers_ = solved.tilt.multipliers
        self.collinear_ = [self.features_[place] for place in np.flatnonzero(solved.collinear)]
        self.slack_, self.ridge_ = solved.allowed, solved.ridge
        if not len(self.imbalance_):
            return
        largest = int(np.abs(self.imbalance_).argmax())
        if solved.allowed:
            warn_caller(
                OverlapWarning(
                    f"No weights match the population; each feature was allowed "
                    f"{solved.allowed:.3g} standard deviations. The largest imbalance is "
                    f"{self.imbalance_[largest]:+.3g}, of '{self.features_[largest]}'.",
                    self.uncovered_,
                )
            )
        elif not self.certificate_.converged:
            warn_caller(
                ConvergenceWarning(
                    f"Calibration stopped after {self.certificate_.steps} steps with a largest "
                    f"imbalance of {self.imbalance_[largest]:+.2g} standard deviations, of "
                    f"'{self.features_[largest]}'. Use fewer features, or a small ridge."
                )
            )

    def _judge_overlap(self) -> None:
        if self.unseen_levels_ and self.overlap_ is None:  # margins, which have no rows to search
            by = "Levels of the margins that no sample row has are counted."
            self.overlap_ = Overlap(self.uncovered_, 0.0, tuple(self.unseen_levels_), 0.0, by)
        if self.overlap_ is not None and self.unseen_pairs_:
            rules = (*self.overlap_.rules, *self.unseen_pairs_)
            self.overlap_ = replace(self.overlap_, rules=rules)
        super()._judge_overlap()

    def _check_negative(self, weights: FloatArray) -> None:
        weights[(weights < 0) & (weights > -1e-12 * weights.max())] = 0.0  # rounding
        count = int((weights < 0).sum())
        if count and self.negative == "raise":
            raise ParameterError(
                f"{count} of {len(weights)} weights are negative, the smallest "
                f"{weights.min() / weights.mean():.3g} times the mean. Use bounds=(0, None), or "
                'distance="raking"; negative="allow" keeps them for estimates.'
            )

    @property
    def _least_weight(self) -> float:
        return -np.inf if self.negative == "allow" else 0.0

    def _codes(self) -> ColumnCodes:
        return self.tilt_.features.codes

    def _describe_unseen(self) -> str:
        return "a feature of such a value counts as the population's mean"

    def _check_state(self) -> None:
        super()._check_state()
        tilt, width = self.tilt_, len(self.tilt_.features)
        for name in ("targets", "multipliers"):
            check_numbers(f"tilt_.{name}", getattr(tilt, name), (width,), least=-np.inf)
        check_numbers("tilt_.spread", tilt.spread, (width,), least=np.finfo(float).tiny)
        check_numbers("tilt_.intercept", tilt.intercept, (), least=-np.inf)

    def linearisation(self, sample: Sample) -> Linearisation:
        """Return how the weights follow the rows through the features that are matched."""
        # A feature within its slack is not matched, and one of others' combinations is by these.
        kept = ~np.isin(self.features_, self.collinear_) & ~self.tilt_.absent
        if self.slack_ or np.any(slacks(self.slack, self.tilt_.features)):
            kept &= self.tilt_.multipliers != 0.0
        return linearised_tilt(
            self.tilt_,
            sample,
            kept,
            distance=self._distance(),
            ridge=self.ridge_,
            max_weight=self.max_weight,
            partial=self.features == "auto",
        )

    def _rule(self) -> Rule:
        return self.tilt_

    def _weigh(self, sample: Sample) -> FloatArray:
        return self.tilt_(sample.batch)

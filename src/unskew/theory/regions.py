r"""Regions in which the perfect weights lie, and how far they can pull a fitted model.

Row i contributes a vector :math:`v_i` to the gradient of the objective, so that with weights W
instead of :math:`\hat W` the gradient is :math:`\sum_i (W_i / \hat W_i - 1) v_i` plus what the
optimiser has left. A region bounds the norm of the sum over all weights in it
(:meth:`WeightRegion.pull`), whatever the learner: :class:`Contributions` know the inner products of
the vectors. Here are one known weighting, and two regions that hold for many rows: the confidence
ellipsoid of the weights' parameters, and a bootstrap. The counts of cells have a file of their own,
:mod:`unskew.theory.cell_region`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh
from scipy.stats import chi2
from sklearn.base import clone

from unskew.errors import InputError, ParameterError
from unskew.estimation.weighing import Replicates, weigh
from unskew.numerics.design_variance import SurveyDesign
from unskew.numerics.joint_region import RelativeErrors, worst_norm, worst_norm_of
from unskew.numerics.typing import FloatArray, IntArray
from unskew.population.population import Population
from unskew.rows.sample import Sample
from unskew.theory.assumption_tests import (
    AssumptionTest,
    DrawnPopulation,
    FormTest,
    check_form,
    even_selection,
    sum_of_squares,
)
from unskew.theory.bound import not_covered
from unskew.theory.population_source import PopulationSource
from unskew.weighters.base import Weighter
from unskew.weighters.cells import CellWeighter
from unskew.weighters.inductive import InductiveWeighter
from unskew.weighters.linearisation import Linearisation, left_by

FEW_ROWS = 30
"""The effective sample size below which asymptotic statements say so, as estimates do."""


class Contributions(ABC):
    """The vectors of the rows, in whatever form their inner products can be computed."""

    @abstractmethod
    def gram(self, columns: Any) -> FloatArray:
        """Return the inner products of the sums of vectors, one for each column of factors."""

    def worst(self, errors: RelativeErrors, columns: Any) -> tuple[float, int]:
        """Bound the norm of the sums times errors, and name the cell with the largest part."""
        return worst_norm(errors, self.gram(columns))


class LinearContributions(Contributions):
    """Vectors as the rows of a matrix, in coordinates that a root changes.

    Parameters
    ----------
    vectors : ndarray of shape (m, d)
    root : ndarray of shape (d, d), optional
        Applied to each vector.
    """

    def __init__(self, vectors: FloatArray, root: FloatArray | None = None) -> None:
        self.vectors, self.root = vectors, root
        self._sums: list[tuple[Any, FloatArray]] = []

    def rooted(self, root: FloatArray) -> LinearContributions:
        """Return the same vectors in other coordinates; sums are made once for all."""
        twin = LinearContributions(self.vectors, root)
        twin._sums = self._sums
        return twin

    def sums(self, columns: Any) -> FloatArray:
        """Return the sums of vectors, a row for each column of factors."""
        found = next((sums for known, sums in self._sums if known is columns), None)
        if found is None:
            found = np.asarray(columns.T @ self.vectors)
            self._sums.append((columns, found))
        return found if self.root is None else found @ self.root.T

    def gram(self, columns: Any) -> FloatArray:
        """Return the inner products of the sums of vectors, one for each column of factors."""
        sums = self.sums(columns)
        return sums @ sums.T

    def worst(self, errors: RelativeErrors, columns: Any) -> tuple[float, int]:
        """Bound the norm of the sums times errors, and name the cell with the largest part."""
        return worst_norm_of(errors, self.sums(columns))


class KernelContributions(Contributions):
    """Vectors that are multiples of the points of a kernel's space.

    Parameters
    ----------
    inner : callable
        Returns the inner products of functions, given by columns of coefficients.
    coefficients : ndarray of shape (m,)
    """

    def __init__(self, inner: Callable[[FloatArray], FloatArray], coefficients: FloatArray) -> None:
        self.inner, self.coefficients = inner, coefficients

    def gram(self, columns: Any) -> FloatArray:
        """Return the inner products of the sums of vectors, one for each column of factors."""
        dense = columns.toarray() if hasattr(columns, "toarray") else columns
        return np.asarray(self.inner(self.coefficients[:, None] * dense))


@dataclass(frozen=True)
class RegionWords:
    """What a certificate says of the region of the weights.

    Attributes
    ----------
    headline : str
        How the statement begins.
    region : str
        What the region is, for the reference.
    assumptions, remarks : tuple of str
    terms : dict
    """

    headline: str = ""
    region: str = ""
    assumptions: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    terms: dict[str, float] = field(default_factory=dict)


class WeightRegion(ABC):
    """A set of weights.

    Attributes
    ----------
    least, most : ndarray of shape (m,)
        Each row's least and largest weight in the region, over its estimated one.
    """

    least: FloatArray
    most: FloatArray
    words: RegionWords = RegionWords()
    drawn: bool = False
    """Whether its draws have, asymptotically, the distribution of the perfect weights."""

    @abstractmethod
    def pull(self, rows: Contributions) -> tuple[float, int]:
        """Return the largest norm of the change of the gradient, and what has the largest part.

        The second number is -1 where nothing has a part of its own.
        """

    def along(self, rows: LinearContributions) -> tuple[FloatArray, FloatArray] | None:  # noqa: ARG002
        """Return A and b: the gradient changes by Aᵀe + b for an e of length one at most.

        None where that is not known.
        """
        return None

    def draws(self, random: np.random.RandomState, number: int) -> FloatArray | None:  # noqa: ARG002
        """Return W/Ŵ for weights drawn as the data allow, a column each; None for none."""
        return None


class OtherWeights(WeightRegion):
    """One known weighting.

    Parameters
    ----------
    ratios : ndarray of shape (m,)
        Of its weights to the estimated ones.
    """

    words = RegionWords("These weights would have moved", "the weights given")

    def __init__(self, ratios: FloatArray) -> None:
        self.ratios = self.least = self.most = ratios

    def pull(self, rows: Contributions) -> tuple[float, int]:
        """Return the norm of the change."""
        square = rows.gram((self.ratios - 1)[:, None])
        return math.sqrt(max(float(square[0, 0]), 0.0)), -1


@dataclass(frozen=True)
class ParameterRegion(WeightRegion):
    r"""The confidence ellipsoid of the parameters of the weights, to first order.

    Attributes
    ----------
    columns : ndarray of shape (m, q)
        The derivatives of the logarithm of each row's weight, in directions in which the errors of
        the parameters are independent and have the variance one.
    shares : ndarray of shape (m,)
        Of the estimated weights.
    delta : float
    degrees : float
        Of freedom of the covariance: the draws are Student's.
    drawn : bool
        Whether errors of the parameters are centred at zero. Otherwise only the worst case over the
        ellipsoid counts, which leaves room for a bias of the same order.
    """

    columns: FloatArray
    shares: FloatArray
    delta: float
    degrees: float
    drawn: bool
    words: RegionWords

    @cached_property
    def most(self) -> FloatArray:  # type: ignore[override]
        """Each row's largest weight: to first order its logarithm is linear in the parameters."""
        # |D_iᵀδ| over the ellipsoid is its radius times the length of the row's derivatives.
        reach = math.sqrt(chi2.isf(self.delta, self.columns.shape[1]))
        return np.asarray(np.exp(reach * np.linalg.norm(self.columns, axis=1)))

    @cached_property
    def least(self) -> FloatArray:  # type: ignore[override]
        """Each row's least weight."""
        return 1 / self.most

    def pull(self, rows: Contributions) -> tuple[float, int]:
        """Return the largest norm over the ellipsoid."""
        return gaussian_norm(rows.gram(self.columns), self.delta), -1

    def draws(self, random: np.random.RandomState, number: int) -> FloatArray:
        """Draw parameters from Student's distribution; the weights keep their total."""
        # Normal over the root of χ²/ν: the covariance is itself estimated.
        drawn = random.normal(size=(self.columns.shape[1], number))
        drawn /= np.sqrt(random.chisquare(self.degrees, size=number) / self.degrees)
        ratios: FloatArray = self.columns @ drawn
        np.exp(ratios, out=ratios)
        ratios /= self.shares @ ratios
        return ratios


class BootstrapRegion(WeightRegion):
    """Weights that were solved again with rows drawn again.

    Parameters
    ----------
    ratios : ndarray of shape (m, n_replicates)
        W*/Ŵ of each replicate.
    delta : float
    words : RegionWords
    """

    drawn = True

    def __init__(
        self, ratios: FloatArray, delta: float, words: RegionWords = WeightRegion.words
    ) -> None:
        self.ratios, self.delta, self.words = ratios, delta, words
        self.least, self.most = ratios.min(axis=1), ratios.max(axis=1)

    def pull(self, rows: Contributions) -> tuple[float, int]:
        """Return the norm that all but δ of the replicates stay below."""
        # How each replicate changes the gradient; the perfect weights are, asymptotically, one
        # more draw.
        norms = np.sqrt(np.maximum(np.diag(rows.gram(self.ratios - 1)), 0.0))
        return float(np.sort(norms)[order_statistic(len(norms), self.delta)]), -1

    def draws(self, random: np.random.RandomState, number: int) -> FloatArray:  # noqa: ARG002
        """Return the replicates, whatever number is asked for."""
        return self.ratios


def why_no_region(weighter: Any) -> str:
    """Return why neither counts nor parameters confine a weighter's weights, and what would."""
    name = type(weighter).__name__
    why = (weighter.traits.not_certifiable if isinstance(weighter, Weighter) else "") or (
        f"{name} does not weigh by counts in cells, nor by kernel mean matching, nor by parameters "
        "whose covariance is known"
    )
    why = why.removesuffix(".")
    if isinstance(weighter, InductiveWeighter) and weighter.traits.estimates:
        return f'{why}. region="bootstrap" solves them again instead.'
    return f"{why}."


def order_statistic(number: int, delta: float) -> int:
    """Return the place, from zero, that another draw exceeds with probability δ at most.

    Raises an error if there are too few draws.

    Examples
    --------
    >>> order_statistic(199, 0.05)
    189
    """
    # A further draw is as likely to have any of the number + 1 ranks.
    place = math.ceil((1 - delta) * (number + 1) - 1e-9)
    if place > number:
        raise ParameterError(
            f"{number} draws are too few for delta={delta:g}: use at least "
            f"{math.ceil(1 / delta - 1e-9) - 1}."
        )
    return place - 1


def gaussian_norm(covariance: FloatArray, delta: float) -> float:
    r"""Return a limit that the norm of a centred normal vector exceeds with probability δ at most.

    The smaller of two: the largest distance in its ellipsoid, :math:`\lambda_{\max}
    \chi^2_{1-\delta}`, and Chernoff's limit :math:`\min_s [\log(1/\delta) - \frac12 \sum_j \log(1 -
    2 s \lambda_j)] / s`, of the squared norm.

    Examples
    --------
    >>> round(gaussian_norm(np.eye(1), 0.05), 2)
    1.96
    """
    values = np.maximum(eigvalsh(covariance), 0.0)
    top = float(values[-1])
    if top == 0:
        return 0.0
    # χ² of the ellipsoid is best where one direction dominates, Chernoff where many are alike: its
    # s stays below 1 / (2 λ_max), where the moment is finite, and any s gives a valid limit.
    rank = int((values > 1e-12 * top).sum())
    tilts = np.linspace(0.02, 0.98, 49) / (2 * top)
    moments = -0.5 * np.log1p(-2 * np.multiply.outer(tilts, values)).sum(axis=1)
    chernoff = float(((math.log(1 / delta) + moments) / tilts).min())
    return math.sqrt(min(top * float(chi2.isf(delta, rank)), chernoff))


def parameter_region(
    weighter: Any, source: PopulationSource, delta: float, rows: IntArray
) -> ParameterRegion:
    r"""Return the region of a fitted weighter's parameters, or raise why there is none.

    Weights such as :math:`e^{\lambda^\top\varphi(x)}` or :math:`1 + e^{-\beta^\top\varphi(x)}`
    follow parameters that solve estimating equations. To first order :math:`W_i / \hat W_i - 1 =
    D_i^\top \delta` for weights of the same total, where δ, the error of the parameters, is
    asymptotically normal. The influence of every row on weighted means
    (:class:`unskew.weighters.linearisation.Linearisation`) has a part through the weights; for
    means of values v with :math:`\sum_i s_i D_i v_i^\top = 1`, s the shares of the weights, that
    part is the row's influence on δ itself.
    """
    name, population = type(weighter).__name__, source.population
    if source.X is None:
        raise ParameterError(f"X, the sample, is needed for the covariance of {name}: pass X.")
    sample = source.sample.select(weighter.columns_)
    line = weighter.linearisation(sample)
    responses = None if line is None else line.responses()
    if line is None or responses is None:
        not_covered(why_no_region(weighter))
    if population is None:
        raise ParameterError(
            f"population is needed for the covariance of {name}: pass the population of fit, or "
            "some of its rows."
        )
    # Weights of the same total: what changes all alike is no error.
    shares = weighter.weights_ / weighter.weights_.sum()
    responses = responses - shares @ responses
    drawn = source.rows(weighter.columns_) if source.has_rows else None
    root, degrees = _root(line, shares, responses, drawn)
    words = _asymptotic_words(
        "the covariance of {} parameters of the weights",
        root.shape[1],
        delta,
        shares,
        FormTest(None) if drawn is None else check_form(line, sample, shares, drawn),
        f"the weights needed have the form that {name} fits, with some parameters, and the "
        "errors of these are normal and small: to first order, for many rows",
        "the population's totals are known without error"
        if drawn is None
        else "rows of sample and population are independent draws",
        *line.cautions,
    )
    return ParameterRegion(
        responses[rows] @ root, shares[rows], delta, degrees, line.unbiased, words
    )


def _asymptotic_words(
    region: str,
    number: int,
    delta: float,
    shares: FloatArray,
    tested: AssumptionTest,
    *assumptions: str,
) -> RegionWords:
    """Return what is said of a region that holds for many rows."""
    likely = f"asymptotically with probability {100 * (1 - delta):.6g} %"
    worth = 1 / float(shares @ shares)
    few = (
        f"The statement is for many rows, and the weights leave the worth of {worth:.0f}: it may "
        "fail more often.",
    )
    kind = "parameters" if "parameters" in region else "replicates"
    return RegionWords(
        headline=f"{tested.headline(likely)}, estimating the weights has moved",
        region=region.format(number),
        assumptions=assumptions,
        remarks=(tested.remark, *(few if worth < FEW_ROWS else ())),
        terms={"delta": delta, f"{kind} of the weights": number},
    )


def _root(
    line: Linearisation,
    shares: FloatArray,
    responses: FloatArray,
    population: DrawnPopulation | None,
) -> tuple[FloatArray, float]:
    """Return a root of the parameters' covariance, and its degrees of freedom.

    These are few where few rows have most of the influence.
    """
    # 1) Values v with Σ s D vᵀ = 1, so that the part of their means through the weights is δ.
    gram = responses.T @ (shares[:, None] * responses)
    values = responses @ np.linalg.pinv(gram, rcond=1e-10, hermitian=True)
    # 2) A row's influence on their means, less its direct part.
    influence = line.influence(values, "m_estimator")
    own = influence.sample - shares[:, None] * values
    if line.unbiased and line.has_leverage:
        # As a jackknife would: such rows have moved the parameters towards themselves.
        leverage = shares * np.einsum("ij,ij->i", values, responses)
        own /= left_by(leverage)[:, None]
    covariance = sum_of_squares(own, influence.centred)
    if influence.population is not None and population is not None:
        parts = influence.population(population.batch)
        covariance += population.variance(parts, influence.n_population, influence.centred)
    # 3) The root. Its degrees of freedom are the effective number of rows, (Σ p)² / Σ p², by their
    #    parts p in the covariance.
    size, directions = np.linalg.eigh(covariance)
    kept = size > 1e-12 * size.max(initial=0.0)
    parts = np.square(own @ (directions[:, kept] / np.sqrt(size[kept]))).sum(axis=1)
    degrees = float(parts.sum() ** 2 / np.maximum(parts @ parts, 1e-300))
    return directions[:, kept] * np.sqrt(size[kept]), max(degrees, 1.0)


def bootstrap_region(
    weighter: Any,
    source: PopulationSource,
    delta: float,
    rows: IntArray,
    *,
    replicates: int,
    random_state: Any,
) -> BootstrapRegion:
    """Return the region of weights that are solved again with rows drawn again.

    It serves any weighter that weighs new rows.
    """
    name = type(weighter).__name__
    order_statistic(replicates, delta)  # raises if there are too few
    if not isinstance(weighter, InductiveWeighter):
        not_covered(f"a bootstrap needs weights of rows that were not drawn; {name} has none.")
    if not weighter.traits.estimates:
        not_covered(weighter.traits.not_certifiable or f"{name} estimates nothing.")
    if source.X is None or source.population is None:
        raise ParameterError("X and population are needed to solve the weights again: pass both.")
    known = Population.of(source.population) if source.has_rows else source.population
    weighed = weigh(clone(weighter), Sample.of(source.X), known, [], None, census=False)
    sample = weighed.fit.sample
    if not np.allclose(weighed.weights, weighter.weights_, rtol=1e-6):
        raise InputError(
            f"{name} does not give the weights of fit again. Pass the X and the population of fit "
            "and set random_state; design weights of the sample are not covered."
        )
    drawn = Replicates(
        weighed, SurveyDesign.from_codes(len(sample)), replicates, random_state, of_all_rows=True
    )
    # A replicate's weight of each row, whether it was drawn or not, over the estimated one.
    base = weighter.weigh(source.X)
    found = [np.divide(w, base, out=np.ones_like(base), where=base > 0) for w, _ in drawn]
    drawn.check()
    ratios = np.column_stack(found)
    shares = weighter.weights_ / weighter.weights_.sum()
    ratios /= shares @ ratios  # as the weights that are compared, all have one total
    words = _asymptotic_words(
        "{} bootstrap replicates of the weights",
        len(found),
        delta,
        shares,
        _tested(weighter, sample, shares, source),
        f"the errors of {name} are distributed as those of its replicates, without a bias of "
        "the same order, such as that of a penalty or of cells that are too large",
        "rows of sample and population are independent draws",
        *drawn.notes,
    )
    return BootstrapRegion(ratios[rows], delta, words)


def _tested(
    weighter: Any, sample: Sample, shares: FloatArray, source: PopulationSource
) -> AssumptionTest:
    """Return the test of what the weights assume, where there is one."""
    if isinstance(weighter, CellWeighter):
        return even_selection(weighter)
    line = weighter.linearisation(sample)
    if line is None or not source.has_rows:
        return FormTest(None)
    return check_form(line, sample, shares, source.rows(weighter.columns_))

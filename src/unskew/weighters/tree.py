"""Weights by the leaves of a decision tree on the labels: the paper's *Clustered*."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import check_random_state

from unskew.errors import InputError, ParameterError
from unskew.numerics.cell_routing import TreeRouting
from unskew.numerics.joint_region import choose_granularity, estimation_bound, expected_noise
from unskew.numerics.typing import IntArray
from unskew.numerics.weight_vectors import effective_sample_size
from unskew.population.progress import tell
from unskew.rows.sample import Sample
from unskew.weighters.cells import Cells, CellWeighter, CountedCells
from unskew.weighters.parameters import OneOrMore, TwoOrMore

FINEST_LEAF = 4
"""The smallest leaf that min_samples_leaf="bound" tries: the paper's."""

DELTA = 0.05
"""The level of the bound by which it chooses."""

MAX_CLASSES = 20
"""Whole numbers with more distinct values than this are taken for quantities, not for classes."""


class TreeWeights(CellWeighter):
    r"""Weights :math:`|C \cap U| / |C \cap S|` in the leaves C of a decision tree on the labels.

    The paper's *Clustered* column. Rows with similar features and labels share a leaf, on the
    assumption that they also share a probability of selection. The tree is CART, a regression tree
    for quantities and a classification tree for classes.

    Parameters
    ----------
    min_samples_leaf : int or "bound", default=4
        The smallest number of sample rows in a leaf, the paper's "minimum count of 4". Larger
        leaves lower the variance of the weights and raise their bias. "bound" grows trees with at
        least 4, 8, 16, ... rows a leaf, counts them all in one pass, and keeps the one with the
        smallest sum of a bound on the estimation error of its counts and an estimate of its
        smoothing bias (:mod:`unskew.numerics.joint_region`).
    max_leaf_nodes : int, optional
        The largest number of leaves.
    max_depth : int, optional
        The largest depth.
    task : {"auto", "regression", "classification"}, default="auto"
        The kind of labels. "auto" treats fractions, and whole numbers with more than 20 distinct
        values, as quantities and everything else as classes.
    honest : bool, default=False
        Grow the tree on a random half of the sample and count only the other half. The paper's
        bounds hold for a partition that was chosen independently of the rows that it counts; the
        price is counts half as large. Every row gets a weight in either case.
    <CellWeighter parameters>
    <Weighter parameters>

    Attributes
    ----------
    <Weighter attributes>
    tree_ : DecisionTreeRegressor or DecisionTreeClassifier
    min_samples_leaf_ : int
        The smallest number of sample rows in a leaf that was used.
    leaf_sizes_ : dict from int to tuple of float
        With ``min_samples_leaf="bound"``, for each size tried: a bound on the estimation error of
        the counts, and an estimate of the smoothing bias, as shares of the weights' sum.
    uncovered_ : float
        The share of the population in leaves without sample rows (honest trees have them), or with
        values that no sample row has.
    cells_ : ndarray of shape (n_samples,)
        The node number of each row's leaf; -1 where an honest tree counted no row in it.
    sample_counts_, population_counts_ : ndarray of shape (n_nodes,)
        How many rows are in each node that is a leaf; zero elsewhere.

    Notes
    -----
    Missing values follow scikit-learn's trees, which learn at each split on which side they go.
    Categories are coded by rank, and a tree can single out any of them with two splits.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import TreeWeights
    >>> sample, labels = np.array([[0.0], [1.0], [8.0], [9.0]]), [0.1, 0.2, 5.0, 5.1]
    >>> population = np.array([[0.5], [8.5], [8.6], [8.7]])
    >>> weighter = TreeWeights(min_samples_leaf=2, total="population")
    >>> weighter.fit(sample, labels, population=population).weights_
    array([0.5, 0.5, 1.5, 1.5])
    >>> weighter.weigh([[0.2], [7.0]])
    array([0.5, 1.5])
    """

    min_samples_leaf: OneOrMore | Literal["bound"] = 4
    max_leaf_nodes: TwoOrMore | None = None
    max_depth: OneOrMore | None = None
    task: Literal["auto", "regression", "classification"] = "auto"
    honest: bool = False

    _cautions = (
        "The leaves were grown on the labels that are averaged, so that the standard error is too "
        "small; honest=True grows them on other rows.",
    )
    traits = replace(
        CellWeighter.traits,
        assumes="within a leaf, every row is equally likely to be selected",
        smoothed_by=("a larger min_samples_leaf",),
        sharpened_by=("a smaller min_samples_leaf",),
    )

    @property
    def counts_one_half(self) -> bool:
        """Whether the leaves were grown on one half of the sample and count the other."""
        return bool(self.honest)

    @property
    def partition_assumption(self) -> str:
        """What a certificate has to assume of how the cells were made."""
        if self.honest:
            return (
                "the leaves were grown on one half of the sample and counted on the other, and the "
                "halves were drawn by a fair coin"
            )
        return (
            "the leaves were fixed without looking at who was selected: not true here, because "
            "they were grown on the rows that they count; honest=True grows them on others"
        )

    def _cells(self, sample: Sample) -> list[Cells]:
        if sample.labels is None:
            raise InputError(
                "y is None: TreeWeights requires y to be passed, because its leaves are grown on "
                "the labels. ClusterWeights and HistogramWeights need no labels."
            )
        if self.min_samples_leaf != "bound":
            return [self._grow(sample, int(self.min_samples_leaf))]
        rows = len(self._halves(sample, check_random_state(0))[0])
        sizes = [FINEST_LEAF << step for step in range(20) if 4 * (FINEST_LEAF << step) <= rows]
        return [self._grow(sample, size) for size in sizes or [min(FINEST_LEAF, rows)]]

    def _choose(self, sample: Sample, counted: Sequence[CountedCells]) -> CountedCells:
        chosen = counted[0]
        if self.min_samples_leaf == "bound":
            # A weighted row is no more evidence for its weight's unit, and beyond a billion times
            # the sample a population adds no error: bounds of shares only then depend on rows.
            scale = effective_sample_size(sample.design) / sample.design.sum()
            most = 1e9 * len(sample.design)
            counts = [
                (
                    one.sample_counts * scale,
                    one.population_counts * min(1.0, most / one.population_counts.sum()),
                )
                for one in counted
            ]
            cells = [one.cells.locate(sample.batch, side="sample")[0] for one in counted]
            found = choose_granularity(
                [estimation_bound(*pair, DELTA) for pair in counts],
                [expected_noise(*pair) for pair in counts],
                [
                    np.append(one.ratios, 0.0)[located]
                    for one, located in zip(counted, cells, strict=True)
                ],
            )
            sizes = [one.cells.learned.min_samples_leaf for one in counted]
            parts = zip(found.estimation, found.smoothing, strict=True)
            self.leaf_sizes_ = dict(zip(sizes, parts, strict=True))
            chosen = counted[found.chosen]
        self.tree_ = chosen.cells.learned
        self.min_samples_leaf_ = int(self.tree_.min_samples_leaf)
        return chosen

    def _grow(self, sample: Sample, least: int) -> Cells:
        values = sample.values_in(np.float32)
        random = check_random_state(self.random_state)
        grown, counted = self._halves(sample, random)
        self._check_leaf_size(least, len(grown))
        task = _task_of(sample.labels[grown]) if self.task == "auto" else self.task
        grower = DecisionTreeClassifier if task == "classification" else DecisionTreeRegressor
        tree = grower(
            min_samples_leaf=least,
            max_leaf_nodes=self.max_leaf_nodes,
            max_depth=self.max_depth,
            random_state=random,
        )
        tell(f"growing a tree on {len(grown):,} rows")
        try:
            tree.fit(values[grown], sample.labels[grown], sample_weight=sample.design[grown])
        except ValueError as error:
            raise ParameterError(
                f"A {task} tree could not be grown on these labels: {error}"
            ) from error
        encoder = sample.codes.in_precision(np.float32)
        # Our own routing finds the leaves that scikit-learn finds, also where that is missing.
        leaves = TreeRouting.from_tree(tree.tree_)
        return Cells(sample, encoder, leaves, values, self.empty, counted=counted, learned=tree)

    def _halves(self, sample: Sample, random: np.random.RandomState) -> tuple[IntArray, IntArray]:
        """Return the rows to grow the tree on and the rows to count."""
        rows = np.flatnonzero(sample.design > 0)  # the others count for nothing in either half
        if not self.honest:
            return rows, np.arange(len(sample))
        if len(rows) < 2:
            raise InputError(
                "An honest tree needs two rows or more with a positive sample_weight; got "
                f"{len(rows)} (n_samples={len(sample)})."
            )
        shuffled = random.permutation(rows)
        half = (len(rows) + 1) // 2
        return np.sort(shuffled[:half]), np.sort(shuffled[half:])

    def _check_leaf_size(self, least: int, n_grown: int) -> None:
        if least > n_grown:
            half = (
                "the half of the sample that grows an honest tree" if self.honest else "the sample"
            )
            raise ParameterError(
                f"min_samples_leaf={least} is larger than {half} (n_samples={n_grown}, without "
                "rows of sample_weight zero), so no leaf could be formed. Make it smaller."
            )


def _task_of(labels: Any) -> str:
    kind = labels.dtype.kind
    is_quantity = kind == "f" or (kind in "iu" and len(np.unique(labels)) > MAX_CLASSES)
    return "regression" if is_quantity else "classification"

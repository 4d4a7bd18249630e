"""Lemma 3, Propositions 3 and 5, Theorem 2 and what the counts say by themselves, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unskew.errors import InputError, ParameterError
from unskew.theory import (
    cell_intervals,
    cluster_bound,
    cluster_distance_bound,
    frequency_bound,
    frequency_distance_bound,
    importance_weighting_bound,
    stability_coefficient,
    worst_case_distance,
)

COUNTS = {"population_counts": [400, 100, 500], "sample_counts": [100, 50, 0]}


class TestFrequency:
    def test_by_hand(self):
        corrected = frequency_bound(**COUNTS, delta=0.1)
        assert corrected == pytest.approx(math.sqrt(math.log(2 * 3 / 0.1) / (2 * 100)))
        printed = frequency_bound(**COUNTS, delta=0.1, form="paper")
        assert printed == pytest.approx(math.sqrt(math.log(2 * 2 / 0.1) / 100))  # p0 n = 100
        known = frequency_bound(**COUNTS, delta=0.1, form="paper", smallest_mass=0.05)
        assert known == pytest.approx(math.sqrt(math.log(2 * 2 / 0.1) / 50))

    def test_more_than_one_is_vacuous(self):
        assert frequency_bound(population_counts=[1], delta=0.01).vacuous
        assert not frequency_bound(population_counts=[100], delta=0.01).vacuous

    def test_it_does_not_need_the_smallest_mass(self):
        # Conditioning on the population beats the printed form as soon as log(2k) < 2 log(2m').
        for k in (2, 20, 200):
            counts = {"population_counts": np.full(k, 50), "sample_counts": np.full(k, 10)}
            assert frequency_bound(**counts) < frequency_bound(**counts, form="paper")


class TestDistances:
    def test_proposition_3_by_hand(self):
        radius = math.sqrt(math.log(2 * 2 / 0.1) / 100)
        given = {**COUNTS, "delta": 0.1, "form": "paper"}
        assert frequency_distance_bound(**given, norm="l1") == pytest.approx(16 * radius)
        l2 = frequency_distance_bound(**given, norm="l2", largest_weight=5.0)
        assert l2 == pytest.approx(25 * radius / math.sqrt(150))

    def test_corrected_by_hand(self):
        given = {**COUNTS, "delta": 0.1}
        first, second = (math.sqrt(math.log(60) / (2 * n)) for n in (400, 100))
        errors = 1 / (0.25 - first) - 4, 1 / (0.5 - second) - 2
        l1 = frequency_distance_bound(**given, norm="l1")
        assert l1 == pytest.approx((100 * errors[0] + 50 * errors[1]) / 150)
        l2 = frequency_distance_bound(**given, norm="l2")
        assert l2 == pytest.approx(math.sqrt(100 * errors[0] ** 2 + 50 * errors[1] ** 2) / 150)
        known = frequency_distance_bound(**given, norm="l1", largest_weight=4.95)
        assert known == pytest.approx((100 * 0.95 + 50 * errors[1]) / 150)
        # Where B leaves little room above, a weight can still be too large.
        tight = frequency_distance_bound(**given, norm="l1", largest_weight=4.0)
        too_large = 4 - 1 / (0.25 + first), 2 - 1 / (0.5 + second)
        assert tight == pytest.approx((100 * too_large[0] + 50 * errors[1]) / 150)

    def test_proposition_5_by_hand(self):
        given = {**COUNTS, "delta": 0.1, "form": "paper"}
        # |C_M| = 100, k = 2 clusters with sample rows, q0 = 1/4, B = 4, n = 1000, m = 150
        square = 100 * 2 * math.log(2 * 2 / 0.1) / (0.25 * 1000 * 150)
        assert cluster_distance_bound(**given, norm="l1") == pytest.approx(16 * math.sqrt(square))
        l2 = cluster_distance_bound(**given, norm="l2")
        assert l2 == pytest.approx(16 * math.sqrt(square / 150))

    def test_corrected_clusters_and_points_are_the_same_statement(self):
        for norm in ("l1", "l2"):
            a = cluster_distance_bound(**COUNTS, norm=norm)
            assert a == frequency_distance_bound(**COUNTS, norm=norm)

    def test_the_printed_q0_does_not_see_a_small_cell(self):
        # A tiny cell leaves the smallest probability, and so the printed bound, as it is.
        printed = [
            cluster_distance_bound(
                population_counts=[1000 - small, small],
                sample_counts=[500 - small // 2, small // 2],
                norm="l1",
                form="paper",
            )
            for small in (400, 4)
        ]
        assert printed[1] < 1.5 * printed[0]
        corrected = [
            cluster_distance_bound(
                population_counts=[1000 - small, small],
                sample_counts=[500 - small // 2, small // 2],
                norm="l2",
            )
            for small in (400, 4)
        ]
        assert math.isinf(corrected[1])
        assert corrected[1].vacuous
        assert not corrected[0].vacuous

    def test_a_cell_without_evidence_is_named(self):
        bound = frequency_distance_bound(
            population_counts=[1000, 8], sample_counts=[500, 4], norm="l1"
        )
        assert math.isinf(bound)
        assert bound.terms["largest part: cell"] == 1
        assert "could be zero" in str(bound)


class TestTheorem2:
    @pytest.mark.parametrize("form", ["paper", "corrected"])
    @pytest.mark.parametrize("cells", ["points", "clusters"])
    def test_is_the_product(self, form, cells):
        learner = {"kappa": 0.5, "lam": 0.2, "lipschitz": 2.0}
        for norm, extra in (("l1", {}), ("l2", {"lambda_max": 9.0})):
            bound = cluster_bound(
                **COUNTS, **learner, norm=norm, **extra, form=form, cells=cells, delta=0.1
            )
            beta = stability_coefficient(**learner, norm=norm, **extra, form=form)
            distance = frequency_distance_bound if cells == "points" else cluster_distance_bound
            assert bound == beta * distance(**COUNTS, norm=norm, form=form, delta=0.1)
            assert bound.form == form

    def test_by_hand_as_printed(self):
        bound = cluster_bound(
            **COUNTS, kappa=0.5, lam=0.2, lipschitz=2.0, delta=0.1, cells="points", form="paper"
        )
        root = math.sqrt(math.log(2 * 2 / 0.1) / 100)
        assert bound == pytest.approx(4 * 0.25 * 16 / 0.4 * root)


class TestPosterior:
    def test_box_by_hand(self):
        lower, upper = cell_intervals(**COUNTS, delta=0.1)
        given = {**COUNTS, "delta": 0.1, "region": "box"}
        l1 = sum(
            m * max(1 / lo - n / m, n / m - 1 / hi)
            for m, n, lo, hi in zip([100, 50], [400, 100], lower, upper, strict=False)
        )
        assert worst_case_distance(**given, norm="l1") == pytest.approx(l1 / 150)
        l2 = sum(
            m * max(1 / lo - n / m, n / m - 1 / hi) ** 2
            for m, n, lo, hi in zip([100, 50], [400, 100], lower, upper, strict=False)
        )
        assert worst_case_distance(**given, norm="l2") == pytest.approx(math.sqrt(l2) / 150)

    def test_exact_intervals_are_tighter_than_hoeffdings(self):
        assert worst_case_distance(**COUNTS, norm="l1", region="box") < frequency_distance_bound(
            **COUNTS, norm="l1"
        )

    def test_the_joint_region_pays_from_a_few_cells_on(self):
        counts = {"population_counts": [200] * 30, "sample_counts": [100] * 30}
        joint = worst_case_distance(**counts, norm="l1")
        assert joint < 0.55 * worst_case_distance(**counts, norm="l1", region="box")

    @pytest.mark.parametrize(
        ("cells", "m", "n", "relative"),
        [(400, 5, 10, 9.0), (20, 100, 200, 0.28), (5, 500, 1000, 0.09)],
    )
    def test_relative_errors_of_the_survey(self, cells, m, n, relative):
        # What a survey of methods found with these counts at delta = 0.05.
        counts = {"population_counts": [n] * cells, "sample_counts": [m] * cells}
        box = worst_case_distance(**counts, norm="l1", region="box")
        assert box / (n / m) == pytest.approx(relative, rel=0.05)


class TestImportanceWeighting:
    def test_by_hand(self):
        weights = [1.0] * 500 + [3.0] * 500
        tail = math.log(1 / 0.05)
        value = 2 * 1.5 * tail / 3000 + math.sqrt(2 * 1.25 * tail / 1000)
        bound = importance_weighting_bound(weights)
        assert bound == pytest.approx(value)
        assert bound.terms["effective sample size"] == pytest.approx(800)
        given = importance_weighting_bound(
            weights, largest_weight=4.0, second_moment=2.0, n_hypotheses=10
        )
        tail = math.log(10 / 0.05)
        assert given == pytest.approx(2 * 4 * tail / 3000 + math.sqrt(2 * 2 * tail / 1000))

    def test_bad_input(self):
        with pytest.raises(ParameterError, match="second_moment=9 exceeds"):
            importance_weighting_bound([1.0, 1.0], largest_weight=2.0, second_moment=9.0)
        with pytest.raises(InputError, match="not be negative"):
            importance_weighting_bound([1.0, -1.0])


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 2.0, math.nan, "x"])
@pytest.mark.parametrize(
    "function",
    [
        lambda delta: frequency_bound(**COUNTS, delta=delta),
        lambda delta: frequency_distance_bound(**COUNTS, norm="l1", delta=delta),
        lambda delta: cluster_distance_bound(**COUNTS, norm="l1", delta=delta),
        lambda delta: cell_intervals(**COUNTS, delta=delta),
        lambda delta: worst_case_distance(**COUNTS, norm="l1", delta=delta),
        lambda delta: importance_weighting_bound([1.0], delta=delta),
    ],
)
def test_delta_must_be_a_probability(function, delta):
    with pytest.raises(ParameterError, match="delta"):
        function(delta)


@pytest.mark.parametrize(
    ("population", "sample", "message"),
    [
        ([10, 0], [5, 0], "population_counts must be at least 1 in every cell; got 0 in cell 1"),
        ([10, 10], [5], "sample_counts has 1 cells and population_counts 2"),
        ([10, 10], [5, 11], "Cell 1 has 11 sample rows and 10 population rows"),
        ([10, 10], [0, 0], "zero in every cell"),
        ([10, 10], [5, -1], "not negative; got -1.0 in cell 1"),
        ([10, 10.5], [5, 1], "whole numbers"),
        ([], [], "empty"),
        ([[10]], [[5]], "one number per cell"),
        (["a"], [5], "must be numbers"),
    ],
)
def test_bad_counts(population, sample, message):
    for function in (frequency_distance_bound, cluster_distance_bound, worst_case_distance):
        with pytest.raises(InputError, match=message):
            function(population_counts=population, sample_counts=sample, norm="l1")

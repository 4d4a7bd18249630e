"""The automatic weights: a pool that is judged on held-out rows, and explains itself."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from tests.references import reference

from unskew import (
    AutoWeights,
    CalibrationWeights,
    ClassifierWeights,
    FrequencyWeights,
    KernelMeanMatching,
    Margins,
    Population,
    TreeWeights,
    effective_sample_size,
)
from unskew.errors import ParameterError, UnskewError


def nested(seed=0, n=1500, slope=1.5, width=3):
    random = np.random.default_rng(seed)
    population = random.normal(size=(n, width))
    chance = 1 / (1 + np.exp(-slope * population[:, 0]))
    chosen = random.uniform(size=n) < chance
    weights = 1 / chance[chosen]
    return population[chosen], population, weights / weights.mean()


@pytest.fixture(scope="module")
def fitted():
    sample, population, truth = nested()
    return AutoWeights(overlap="ignore").fit(sample, population=population), sample, truth


def test_the_pool_is_near_the_true_weights(fitted):
    weighter, _, truth = fitted
    error = np.abs(weighter.weights_ - truth).mean()
    assert error < 0.25
    assert error < np.abs(1 - truth).mean() / 2
    assert weighter.detected_


def test_the_samples_own_rows_keep_their_weights(fitted):
    weighter, sample, _ = fitted
    assert weighter.weigh(sample) == pytest.approx(weighter.weights_, rel=1e-12)


def test_the_choice_explains_itself(fitted):
    weighter, *_ = fitted
    choice = weighter.choice_
    assert [one.name for one in choice.candidates] == ["equal", "logistic", "boosted", "tilt"]
    assert choice.candidates[0].held_out_loss == pytest.approx(np.log(2))
    assert choice.gain == pytest.approx(np.log(2) - choice.chosen.held_out_loss)
    assert choice.chosen.effective_share == pytest.approx(
        effective_sample_size(weighter.weights_) / len(weighter.weights_)
    )
    assert choice.chosen.imbalance < choice.candidates[0].imbalance / 3
    text = str(choice)
    for part in ("Selection was detected", "logistic", "of the effective sample", "imbalance left"):
        assert part in text
    assert "<table>" in choice._repr_html_()


def test_an_even_sample_gets_exactly_equal_weights():
    flat = 0
    for seed in range(6):
        random = np.random.default_rng(seed)
        population = random.normal(size=(600, 3))
        sample = population[random.uniform(size=600) < 0.5]
        weighter = AutoWeights().fit(sample, population=population)
        flat += bool((weighter.weights_ == 1.0).all())
        assert weighter.detected_ == (weighter.weights_ != 1.0).any()
    assert flat >= 5
    assert "No selection was detected" in str(weighter.choice_)


def test_a_cap_is_kept_and_reported():
    sample, population, _ = nested(slope=3.0)
    weighter = AutoWeights(max_weight=3.0, overlap="ignore").fit(sample, population=population)
    assert weighter.weights_.max() == pytest.approx(3.0)
    assert weighter.n_capped_ == (weighter.weights_ > 3 - 1e-9).sum() > 0
    assert "were cut at max_weight" in str(weighter.choice_)


def test_a_cap_that_no_sample_row_reaches_holds_for_new_rows():
    sample, population, _ = nested(slope=1.0)
    weighter = AutoWeights(max_weight=20.0, overlap="ignore").fit(sample, population=population)
    assert weighter.n_capped_ == 0
    assert weighter.weights_.max() < 19
    far = population.min(axis=0) * np.array([[4.0], [-4.0]])
    assert weighter.weigh(far).max() <= 20 * (1 + 1e-9)


def test_means_are_matched_exactly_and_for_new_rows():
    sample, population, _ = nested(1)
    weighter = AutoWeights(calibrate_to="means", overlap="ignore")
    weighter.fit(sample, population=population)
    means = np.average(sample, axis=0, weights=weighter.weights_)
    assert means == pytest.approx(population.mean(axis=0), abs=1e-8)
    assert weighter.weights_.max() <= 20 + 1e-9
    assert weighter.weigh(sample) == pytest.approx(weighter.weights_, rel=1e-9)


def test_calibration_is_done_where_nothing_was_detected():
    random = np.random.default_rng(3)
    population = random.normal(size=(600, 2))
    weighter = AutoWeights(calibrate_to="means").fit(population[::3], population=population)
    assert not weighter.detected_
    means = np.average(population[::3], axis=0, weights=weighter.weights_)
    assert means == pytest.approx(population.mean(axis=0), abs=1e-8)


def test_on_a_table_of_cells_it_is_no_worse_than_post_stratification():
    random = np.random.default_rng(0)
    letters = np.array(list("abcdefgh"))
    tilt = np.array([0.4, 1.0, 2.0, 1.0, 1.0, 2.0, 0.5, 1.5]) / 8
    population = pd.DataFrame({"cell": letters[random.choice(8, 4000)]})
    shares = tilt / tilt.sum()
    sample = pd.DataFrame({"cell": letters[random.choice(8, 1500, p=shares)]})
    truth = (1 / 8 / shares)[np.searchsorted(letters, sample["cell"])]
    truth /= truth.mean()
    errors = [
        np.abs(w.fit(sample, population=population).weights_ - truth).mean()
        for w in (AutoWeights(), FrequencyWeights())
    ]
    assert errors[0] < errors[1] + 0.02


def test_marks_and_design_weights_reach_the_weights():
    random = np.random.default_rng(4)
    population = random.normal(size=(2000, 2))
    chance = 1 / (1 + np.exp(-1.5 * population[:, 0]))
    chosen = random.uniform(size=2000) < chance
    weighter = AutoWeights(overlap="ignore").fit(
        population[chosen], population=Population(population, selected=chosen)
    )
    truth = 1 / chance[chosen]
    assert np.abs(weighter.weights_ - truth / truth.mean()).mean() < 0.25


def test_any_inductive_weighters_are_pooled():
    sample, population, truth = nested(5, slope=2.0)
    labels = sample[:, 0] + sample[:, 1]
    weighter = AutoWeights(
        candidates=[
            ("means", CalibrationWeights(features="means", on_infeasible="relax")),
            TreeWeights(min_samples_leaf=50),
            ClassifierWeights("logistic"),
        ],
        overlap="ignore",
    ).fit(sample, labels, population=population)
    names = [one.name for one in weighter.choice_.candidates]
    assert names == ["equal", "means", "TreeWeights", "ClassifierWeights"]
    assert (weighter.exponents_ >= 0).all()
    assert np.abs(weighter.weights_ - truth).mean() < np.abs(1 - truth).mean() / 1.5
    assert weighter.weigh(sample) == pytest.approx(weighter.weights_, rel=1e-9)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"candidates": []}, "candidates is empty"),
        ({"candidates": [KernelMeanMatching()]}, "KernelMeanMatching, which cannot weigh new rows"),
        ({"candidates": ["tree"]}, "str, which is no weighter"),
        ({"candidates": "best"}, "candidates"),
        ({"max_weight": 0.5}, "max_weight"),
        ({"calibrate_to": "margins"}, "calibrate_to"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(parameters, message):
    sample, population, _ = nested(n=60)
    with pytest.raises(ParameterError, match=message):
        AutoWeights(**parameters).fit(sample, population=population)


def test_margins_are_for_calibration():
    sample = pd.DataFrame({"sex": ["f", "m"] * 10})
    with pytest.raises(UnskewError, match="CalibrationWeights matches what they know"):
        AutoWeights().fit(sample, population=Margins(shares={"sex": {"f": 0.6, "m": 0.4}}))


def test_the_population_is_read_once():
    sample, population, _ = nested(6, n=400)
    chunks = iter([population[:200], population[200:]])
    weighter = AutoWeights(overlap="ignore", calibrate_to="means")
    once = weighter.fit(sample, population=Population(chunks)).weights_
    assert once == pytest.approx(weighter.fit(sample, population=population).weights_, rel=1e-9)


def test_the_best_candidate_detects_what_the_pool_does_not():
    # A survey with weights as the population: few effective rows, on which exponents are uncertain.
    register, survey = reference("admin"), reference("jvs")
    columns = ["private", "size", "nace", "region"]
    population = Population(survey[[*columns, "weight"]], weight="weight")
    weighter = AutoWeights(overlap="ignore").fit(register[columns], population=population)
    assert weighter.detected_
    assert weighter.gain_ > 2 * weighter.gain_error_
    # The weights must bring companies of each size nearer to their shares in the population.
    large = (survey["size"] == "L").to_numpy()
    truth = np.average(large, weights=survey["weight"])
    ours = (register["size"] == "L").to_numpy()
    corrected = np.average(ours, weights=weighter.weights_)
    assert abs(corrected - truth) < 0.5 * abs(ours.mean() - truth)


def test_rows_without_weight_take_their_category_with_them():
    random = np.random.default_rng(0)
    population = pd.DataFrame({"c": random.choice(list("abc"), size=2000, p=[0.4, 0.3, 0.3])})
    sample = pd.DataFrame({"c": random.choice(list("abc"), size=300, p=[0.1, 0.45, 0.45])})
    lost = (sample["c"] == "a").to_numpy()
    weighter = AutoWeights(overlap="ignore")
    weighter.fit(sample, population=population, sample_weight=np.where(lost, 0.0, 1.0))
    share = (population["c"] == "a").mean()
    chosen = weighter.choice_.chosen
    # Nobody stands for 'a': its whole share is left, in standard deviations of an indicator.
    assert chosen.most_imbalanced == "c=a"
    assert chosen.imbalance == pytest.approx(np.sqrt(share / (1 - share)), rel=1e-9)
    assert weighter.uncovered_ == pytest.approx(share)
    # Nor does such a row count for anything else.
    without = AutoWeights(overlap="ignore").fit(sample[~lost], population=population)
    ratio = weighter.weights_[~lost] / without.weights_
    assert ratio == pytest.approx(ratio[0], rel=1e-9)


def levels(seed, n_levels=60, m=400, n=4000, effect=1.0):
    """Rows of one column whose levels decide selection and outcome."""
    random = np.random.default_rng(seed)
    effects = random.normal(size=n_levels)
    frame = random.integers(n_levels, size=6 * n)
    odds = np.exp(0.8 * effect * effects[frame])
    chosen = random.choice(len(frame), size=m, replace=False, p=odds / odds.sum())
    names = np.array([f"level {one}" for one in range(n_levels)])
    sample, population = (
        pd.DataFrame({"c": names[frame[chosen]]}),
        pd.DataFrame({"c": names[frame[random.choice(len(frame), size=n, replace=False)]]}),
    )
    outcome = effects[frame] + random.normal(size=len(frame))
    truth = 1 / odds[chosen]
    return sample, population, outcome[chosen], outcome.mean(), truth / truth.mean()


@pytest.mark.parametrize("automatic", [AutoWeights(), ClassifierWeights()])
def test_many_categories_are_corrected_as_well_as_by_cells(automatic):
    errors, left = {"auto": [], "cells": []}, {"auto": [], "cells": []}
    for seed in range(6):
        sample, population, outcome, mean, truth = levels(seed)
        for name, weighter in (("auto", automatic), ("cells", FrequencyWeights())):
            weighter.set_params(overlap="ignore").fit(sample, population=population)
            errors[name].append(np.square(weighter.weights_ - truth).mean())
            left[name].append(np.average(outcome, weights=weighter.weights_) - mean)
    assert np.mean(errors["auto"]) < np.mean(errors["cells"])
    root = {name: np.sqrt(np.mean(np.square(one))) for name, one in left.items()}
    assert root["auto"] < root["cells"]


def test_many_categories_that_do_not_matter_leave_the_weights_equal():
    for seed in range(3):
        sample, population, *_ = levels(seed, effect=0.0)
        assert not AutoWeights(overlap="ignore").fit(sample, population=population).detected_


@pytest.mark.parametrize("weighter", [AutoWeights(), ClassifierWeights()])
def test_orders_and_scales_of_columns_change_nothing_and_the_seed_changes_the_folds(weighter):
    random = np.random.default_rng(1)
    population = pd.DataFrame(
        {"a": random.normal(size=1500), "b": random.choice(list("pqr"), size=1500)}
    )
    population["d"] = random.integers(0, 9, size=1500)
    chance = 1 / (1 + np.exp(1.5 - population["a"]))
    sample = population[random.uniform(size=1500) < chance]

    def weights(change, **parameters):
        fitted = clone(weighter).set_params(overlap="ignore", **parameters)
        return fitted.fit(change(sample), population=change(population)).weights_

    base = weights(lambda rows: rows)
    assert weights(lambda rows: rows[["d", "b", "a"]]) == pytest.approx(base, rel=1e-6)
    scaled = weights(lambda rows: rows.assign(a=3.7 * rows["a"] - 11.0, d=rows["d"] / 7))
    assert scaled == pytest.approx(base, rel=1e-6)
    # Without names, the content tells columns apart.
    numbers = weights(lambda rows: rows[["a", "d"]].to_numpy())
    turned = weights(lambda rows: rows[["d", "a"]].to_numpy())
    assert turned == pytest.approx(numbers, rel=1e-6)
    assert np.abs(weights(lambda rows: rows, random_state=1) - base).max() > 1e-3


def test_selection_by_a_product_of_two_columns_is_found():
    """Trees and sums of functions of single columns left a weight error of 0.23 in 600 rows."""
    errors = []
    for seed in range(3):
        random = np.random.default_rng(seed)
        pool, population = random.normal(size=(3000, 2)), random.normal(size=(6000, 2))
        chance = np.exp((0.8 * pool[:, 0] * pool[:, 1]).clip(-1.5, 1.5) - 1.5)
        taken = random.uniform(size=3000) < chance
        weights = AutoWeights(overlap="ignore").fit(pool[taken], population=population).weights_
        true = 1 / chance[taken]
        errors.append(np.abs(weights / weights.mean() - true / true.mean()).mean())
    assert np.mean(errors) < 0.17


def test_a_difference_that_held_out_rows_show_clearly_is_detected():
    left = []
    for seed in range(1004, 1010):
        random = np.random.default_rng(seed)
        population, people = random.normal(size=(1500, 2)), random.normal(size=(2500, 2))
        chance = 1 / (1 + np.exp(1 - 0.4 * people[:, 0]))
        sample = people[random.uniform(size=2500) < chance][:300]
        weighter = AutoWeights(overlap="ignore").fit(sample, population=population)
        left.append(np.average(sample[:, 0], weights=weighter.weights_))
    assert np.mean(left) < 0.1  # 0.27 without weights, and 0.16 where half of them kept these

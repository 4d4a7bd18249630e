"""Density ratios on a kernel basis: their closed form, their optimum, and how near they come."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from tests.weighters.shifts import shifted

from unskew import DensityRatioWeights, Population, diagnose
from unskew.errors import OverlapWarning, ParameterError

FORMS = {
    "squared": DensityRatioWeights(),
    "kl": DensityRatioWeights("kl"),
    "relative": DensityRatioWeights(relative=0.2),
}
every_form = pytest.mark.parametrize("form", FORMS)

pytestmark = pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")


def gaussian(rows, centres, bandwidth):
    return np.exp(-cdist(rows, centres, "sqeuclidean") / (2 * bandwidth**2))


def fit(form, sample, population, **options):
    from sklearn.base import clone

    given = {name: options.pop(name) for name in ("sample_weight",) if name in options}
    return clone(FORMS[form]).set_params(**options).fit(sample, population=population, **given)


@pytest.mark.parametrize("relative", [0.0, 0.3])
def test_the_squared_loss_has_its_closed_form(relative):
    sample, population = shifted(d=2, m=150, n=250)
    design, weight = np.arange(150) % 3 + 0.5, np.arange(250) % 4 + 1.0
    weighter = DensityRatioWeights(
        relative=relative,
        bandwidth=0.7,
        smoothing=0.03,
        n_centres=40,
        tilt=False,
        scaling=None,
    ).fit(sample, population=Population(population, weight=weight), sample_weight=design)
    mine = gaussian(sample, weighter.centres_, 0.7)
    theirs = gaussian(population, weighter.centres_, 0.7)
    H = (1 - relative) * (design[:, None] * mine).T @ mine / design.sum()
    H += relative * (weight[:, None] * theirs).T @ theirs / weight.sum()
    h = weight @ theirs / weight.sum()
    expected = np.linalg.solve(H + 0.03 * np.eye(40), h)
    assert weighter.coefficients_ == pytest.approx(expected, rel=1e-9, abs=1e-9)
    weights = design * np.maximum(mine @ expected, 0)
    assert weighter.weights_ == pytest.approx(weights * 150 / weights.sum())
    assert weighter.cv_scores_ == {}


def test_the_likelihood_has_its_optimum():
    sample, population = shifted(d=2, m=150, n=250)
    weighter = DensityRatioWeights("kl", bandwidth=0.7, n_centres=30, tilt=False, scaling=None).fit(
        sample, population=population
    )
    means = gaussian(sample, weighter.centres_, 0.7).mean(axis=0)
    theirs = gaussian(population, weighter.centres_, 0.7)
    alpha = weighter.coefficients_
    assert (alpha >= 0).all()
    assert means @ alpha == pytest.approx(1)
    assert weighter.objective_ == pytest.approx(np.log(theirs @ alpha).mean())
    # The optimality conditions of a concave function on a simplex.
    slopes = (theirs / (theirs @ alpha)[:, None]).mean(axis=0) / means
    assert slopes.max() <= 1 + 1e-7
    assert slopes[alpha > 1e-6] == pytest.approx(1, abs=1e-4)
    assert 0 <= weighter.gap_ <= 1e-8


@pytest.mark.parametrize("case", ["1", "5"])
@pytest.mark.parametrize("form", ["squared", "kl"])
def test_new_rows_get_the_ratio(form, case):
    """On fewer draws than the table in docs/density-ratio.md."""
    found = []
    for seed in range(5):
        random = np.random.default_rng(seed)
        d, by = (1, 1.0) if case == "1" else (5, 0.5)
        sample, population = random.normal(size=(600, d)), random.normal(by, 1, (400, d))
        new = random.normal(size=(4000, d))
        weights = fit(form, sample, population, overlap="ignore").weigh(new)
        truth = np.exp(by * new.sum(axis=1) - d * by**2 / 2)
        found.append((np.corrcoef(weights, truth)[0, 1], weights.mean()))
    correlation, mean = np.median(found, axis=0)
    assert correlation > 0.93
    assert mean == pytest.approx(1, abs=0.08)


def test_the_relative_ratio_is_bounded_and_more_even():
    sample, population = shifted(d=1, m=600, n=400)
    plain, relative = (
        fit("squared", sample, population, relative=rho, tilt=False).weights_ for rho in (0.0, 0.5)
    )
    truth = np.exp(sample[:, 0] - 0.5)
    expected = truth / (0.5 * truth + 0.5)
    assert relative == pytest.approx(expected / expected.mean(), abs=0.25)
    assert relative.std() < plain.std()


@every_form
def test_a_population_equal_to_the_sample_gives_weights_near_one(form):
    sample, _ = shifted(d=3, m=400)
    weights = fit(form, sample, sample).weights_
    assert weights.std() < 0.15
    assert weights == pytest.approx(1, abs=0.6)


@every_form
def test_design_weights_are_repeated_rows(form):
    sample, population = shifted(d=2, m=120, n=200)
    times, theirs = np.arange(120) % 3 + 1, np.arange(200) % 4 + 1
    scale = {"scaling": None}  # which is learned from rows, however much they count
    weighted = fit(
        form, sample, Population(population, weight=theirs), sample_weight=times, **scale
    )
    repeated = fit(form, sample.repeat(times, axis=0), population.repeat(theirs, axis=0), **scale)
    assert weighted.bandwidth_ == repeated.bandwidth_
    expected = repeated.weigh(sample) * times
    assert weighted.weights_ == pytest.approx(expected * 120 / expected.sum(), rel=1e-5, abs=1e-6)


@every_form
def test_the_order_of_rows_does_not_matter(form):
    sample, population = shifted(d=2, m=120, n=200)
    order = np.random.default_rng(0).permutation(120)
    one = fit(form, sample, population).weights_
    other = fit(form, sample[order], population[::-1]).weights_
    assert other == pytest.approx(one[order], rel=1e-6, abs=1e-8)


def test_held_out_losses_are_those_of_folds_drawn_at_random():
    sample, population = shifted(d=2, m=300, n=500)
    weighter = fit("squared", sample, population, tilt=False)
    table = pd.DataFrame(weighter.cv_scores_)
    assert list(table) == ["bandwidth", "tilted", "smoothing", "loss", "standard_error"]
    best = table.loc[table["loss"].idxmin()]
    mine, theirs = sample, population
    scaled = [(rows - mine.mean(axis=0)) / mine.std(axis=0) for rows in (mine, theirs)]
    bases = [gaussian(rows, weighter.centres_, best["bandwidth"]) for rows in scaled]
    # Held-out loss of the best, with folds drawn at random.
    losses = []
    for seed in range(20):
        folds = [np.random.default_rng(seed).integers(0, 5, len(basis)) for basis in bases]
        for fold in range(5):
            (train, test), (theirs_train, theirs_test) = (
                (basis[of != fold], basis[of == fold])
                for basis, of in zip(bases, folds, strict=True)
            )
            H = train.T @ train / len(train) + best["smoothing"] * np.eye(200)
            alpha = np.linalg.solve(H, theirs_train.mean(axis=0))
            losses.append(np.mean((test @ alpha) ** 2) / 2 - np.mean(theirs_test @ alpha))
    assert best["loss"] == pytest.approx(np.mean(losses), abs=3 * np.std(losses) / np.sqrt(5))


def test_a_table_of_few_cells_is_weighted_cell_by_cell():
    """Frequent values are divided over all folds: none is held out as a whole."""
    random = np.random.default_rng(0)
    cells = np.array(list("abcdefgh"))
    shares = random.dirichlet(np.full(8, 5.0)), random.dirichlet(np.full(8, 5.0))
    sample, population = (pd.DataFrame({"cell": random.choice(cells, 2000, p=p)}) for p in shares)
    counts = [frame["cell"].value_counts(normalize=True) for frame in (sample, population)]
    truth = (counts[1] / counts[0])[sample["cell"]].to_numpy()
    for form in ("squared", "kl"):
        weights = fit(form, sample, population).weights_
        assert np.abs(weights - truth).mean() < 0.1, form


@every_form
def test_hard_cases(form):
    random = np.random.default_rng(0)
    many = [
        pd.DataFrame(
            {"id": random.integers(0, 5000, size).astype(str), "x": random.normal(size=size)}
        )
        for size in (3000, 4000)
    ]
    few = shifted(d=3, m=10, n=30)
    constant = [np.column_stack([rows, np.ones(len(rows))]) for rows in shifted(d=1)]
    for sample, population in (many, few, constant):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            weights = fit(form, sample, population).weights_
        assert np.isfinite(weights).all()
        assert weights.sum() == pytest.approx(len(sample))


@every_form
def test_what_is_out_of_reach_is_told(form):
    sample, population = shifted(d=2, m=300, n=500)
    population[:150] += 100.0
    with pytest.warns(
        OverlapWarning, match=r"30\.0% of the population.*the kernel of every sample row"
    ):
        weighter = fit(form, sample, population)
    assert weighter.uncovered_ == pytest.approx(0.3)
    assert weighter.weigh([[-300.0, 300.0]]) == 0
    assert np.isfinite(weighter.weights_).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "hinge"}, "'loss' parameter"),
        ({"relative": 1.0}, "'relative' parameter"),
        ({"smoothing": 0.0}, "'smoothing' parameter"),
        ({"population_rows": "all"}, "'population_rows' parameter"),
        ({"loss": "kl", "relative": 0.1}, 'relative=0.1 is only for loss="squared"'),
        ({"constrained": True}, "constrained was removed. KernelMeanMatching"),
        ({"centres": "sample"}, "centres was removed"),
        ({"precision": "double"}, "precision was removed"),
    ],
)
def test_bad_parameters(options, message):
    sample, population = shifted(m=20)
    with pytest.raises(ParameterError, match=message):
        DensityRatioWeights(**options).fit(sample, population=population)


def test_population_rows_with_unseen_values_train_nothing():
    random = np.random.default_rng(0)
    sample = pd.DataFrame({"x": random.normal(size=300), "town": random.choice(list("ab"), 300)})
    people = pd.DataFrame({"x": random.normal(0.5, 1, 900), "town": random.choice(list("ab"), 900)})
    others = pd.DataFrame({"x": random.normal(3.0, 1, 100), "town": "c"})
    found = [
        DensityRatioWeights(overlap="ignore").fit(sample, population=population)
        for population in (people, pd.concat([people, others]))
    ]
    assert found[1].uncovered_ == pytest.approx(0.1, abs=0.02)
    both = [fitted.weights_ for fitted in found]
    assert both[1] == pytest.approx(both[0], abs=0.3)
    assert np.corrcoef(*both)[0, 1] > 0.99


def test_neither_the_order_nor_the_scale_of_columns_matters():
    random = np.random.default_rng(1)
    sample, population = random.normal(size=(200, 3)), random.normal(0.4, 1, size=(600, 3))
    found = DensityRatioWeights(overlap="ignore").fit(sample, population=population).weights_
    sample, population = (3.0 - 2.0 * rows[:, ::-1] for rows in (sample, population))
    again = DensityRatioWeights(overlap="ignore").fit(sample, population=population).weights_
    assert again == pytest.approx(found, rel=1e-4)


def test_weights_are_judged_on_rows_held_out_and_a_saved_file_holds_no_folds():
    random = np.random.default_rng(1)
    sample, population = random.normal(size=(200, 2)), random.normal(0.4, 1, size=(600, 2))
    weighter = DensityRatioWeights().fit(sample, population=population)
    diagnosis = diagnose(sample, population=population, weights=weighter)
    assert "each fifth of the sample" in str(diagnosis.to_dict())
    assert not len(weighter.folds_.held_out)

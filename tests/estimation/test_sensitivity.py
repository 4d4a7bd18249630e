"""What hidden selection changes: published numbers, identities, and what is refused."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from tests.references import reference

from unskew import (
    CalibrationWeights,
    FrequencyWeights,
    KernelMeanMatching,
    KnownProbability,
    LabelShiftWeights,
    Margins,
    Population,
    Unweighted,
    estimate,
    estimate_score,
)
from unskew.errors import InputError, ParameterError

MEANS = CalibrationWeights(features="means", overlap="ignore")
LALONDE = ["age", "educ", "race", "married", "nodegree", "re74", "re75"]
# R bootsens (get.extrema) with 1/p of a logistic regression; HiGHS with the balance kept.
PLAIN = {1.0: (6422.838961,) * 2, 1.5: (5747.633665, 7086.487804), 2.0: (5253.923728, 7564.636147)}
CALIBRATED = {
    1.2: ((6108.856646, 6707.172227), (6190.478486, 6644.430999)),
    1.5: ((5735.379805, 7070.837578), (5943.003983, 6953.228493)),
    2.0: ((5242.063439, 7546.926170), (5674.991161, 7361.592929)),
}


def controls():
    rows = reference("lalonde")
    return rows[rows.treat == 0], rows


def test_lalonde_by_inverse_probabilities():
    sample, rows = controls()
    features = pd.get_dummies(rows[LALONDE], drop_first=True).astype(float)
    features = (features - features.mean()) / features.std()
    model = LogisticRegression(C=np.inf, tol=1e-12, max_iter=1000).fit(features, rows.treat == 0)
    chance = model.predict_proba(features)[(rows.treat == 0).to_numpy(), 1]
    found = estimate(
        sample[LALONDE],
        sample.re78,
        population=rows[LALONDE],
        weighter=KnownProbability(chance),
        finite_population=True,
    ).sensitivity(odds=list(PLAIN))
    assert found.nested
    for row in found.bounds:
        assert row.plain == pytest.approx(PLAIN[row.odds], rel=1e-8)
    assert found.columns == ()  # known weights were not fitted to columns
    assert "Known weights" in found.notes[0]


def test_lalonde_with_the_balance_kept():
    sample, rows = controls()
    weighter = CalibrationWeights(distance="propensity", features="means", overlap="ignore")
    marks = Population(rows[LALONDE].assign(control=rows.treat == 0), selected="control")
    made = estimate(sample[LALONDE], sample.re78, population=marks, weighter=weighter)
    assert made.value == pytest.approx(6409.196966, rel=1e-9)
    found = made.sensitivity(odds=list(CALIBRATED), threshold=6000)
    assert found.nested
    for row in found.bounds:
        plain, sharp = CALIBRATED[row.odds]
        assert row.plain == pytest.approx(plain, rel=1e-9)
        assert row.sharp == pytest.approx(sharp, rel=1e-9)
    # The bound at the breakdown is the threshold.
    again = made.sensitivity(odds=[found.breakdown_plain, found.breakdown], benchmark=False)
    assert again.bounds[0].plain[0] == pytest.approx(6000, rel=1e-7)
    assert again.bounds[1].sharp[0] == pytest.approx(6000, rel=1e-7)
    assert 1 == found.breakdown_with_error < found.breakdown_plain < found.breakdown
    assert found.strongest.column == "race"


@pytest.fixture(scope="module")
def survey():
    random = np.random.default_rng(0)
    people = pd.DataFrame(
        {"age": random.normal(45, 15, 4000), "region": random.choice(["north", "south"], 4000)}
    )
    answers = random.uniform(size=4000) < 0.3 / (1 + np.exp((people["age"] - 40) / 12))
    spends = 50 + people["age"] + 8 * (people["region"] == "north") + random.normal(0, 9, 4000)
    return people[answers], spends[answers].to_numpy(), people


def made(survey, **options):
    sample, y, people = survey
    options = {"population": people, "weighter": MEANS, **options}
    return estimate(sample, options.pop("y", y), **options)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"statistic": "total"},
        {"outcome": LinearRegression(), "weighter": CalibrationWeights(columns=["age"])},
        {"weighter": FrequencyWeights(columns=["region"], overlap="ignore")},
        {"weighter": Unweighted()},
        {"finite_population": True},
    ],
)
def test_without_hidden_selection_it_is_the_estimate(survey, options):
    if "outcome" in options:
        sample, y, people = survey
        survey = sample[["age"]], y, people[["age"]]
    found = made(survey, **options)
    (row,) = found.sensitivity(odds=1, benchmark=False).bounds
    for pair in (row.plain, row.sharp):
        assert pair == pytest.approx((found.value, found.value), rel=1e-12)
    for pair in (row.plain_interval, row.sharp_interval):
        assert pair == pytest.approx(found.interval, rel=1e-9)


@pytest.mark.parametrize("nested", [True, False])
def test_linearised_intervals_follow_those_of_the_bootstrap(survey, nested):
    options = {"odds": 1.5, "nested": nested, "benchmark": False}
    one = made(survey, variance="m_estimator")
    other = made(survey, variance="bootstrap", replicates=60)
    rows = [found.sensitivity(**options).bounds[0] for found in (one, other)]
    for kind in ("plain", "sharp"):
        ends = [getattr(row, kind) for row in rows]
        assert ends[0] == ends[1]
        widths = [np.subtract(getattr(row, f"{kind}_interval"), ends[0]) for row in rows]
        # The same replicates make the same error in the estimate.
        scale = one.standard_error / other.standard_error
        assert widths[0] == pytest.approx(scale * widths[1], rel=0.15)


def test_groups_and_classes(survey):
    sample, y, _ = survey
    for label, one in made(survey, by="region").items():
        (row,) = one.sensitivity(odds=1.3, benchmark=False).bounds
        own = (sample["region"] == label).to_numpy()
        assert y[own].min() < row.plain[0] < row.sharp[0] < one.value < row.sharp[1] < row.plain[1]
    # A group that no weights know need not keep the balance.
    wave = np.arange(len(y)) % 2
    found = made(survey, by=wave)[0].sensitivity(odds=1.3, benchmark=False)
    assert found.bounds[0].sharp is None
    assert "plain" in found.notes[0]
    shares = made(survey, y=np.where(y > 95, "much", "little"), statistic="proportion")
    rows = [
        shares[one].sensitivity(odds=2, benchmark=False).bounds[0] for one in ("much", "little")
    ]
    assert rows[0].sharp[0] == pytest.approx(1 - rows[1].sharp[1])
    assert rows[0].plain[1] == pytest.approx(1 - rows[1].plain[0])
    assert found.survey_bias is None


def test_margins_and_the_columns_that_they_know(survey):
    sample, y, people = survey
    census = Margins.from_population(people, ["region"])
    found = made((sample[["region"]], y, people), population=census).sensitivity()
    # Cells and their margins are the same balance, and leaving out the only column unweights.
    cells = FrequencyWeights(columns=["region"], overlap="ignore")
    other = made(survey, weighter=cells).sensitivity()
    for one, two in zip(found.bounds, other.bounds, strict=True):
        assert one.sharp == pytest.approx(two.sharp)
    share = (people["region"] == "north").mean(), (sample["region"] == "north").mean()
    ratios = share[0] / share[1], (1 - share[0]) / (1 - share[1])
    assert found.columns[0].largest == pytest.approx(np.exp(np.abs(np.log(ratios)).max()))


def test_columns_without_names_are_left_out_by_position(survey):
    sample, y, people = survey
    named = made((sample[["age"]], y, people[["age"]])).sensitivity(odds=2)
    ages, all_ages = sample[["age"]].to_numpy(), people[["age"]].to_numpy()
    noise = np.random.default_rng(0).normal(size=(len(all_ages), 1))
    wide = np.hstack([ages, noise[: len(ages)]]), y, np.hstack([all_ages, noise])
    found = made(wide).sensitivity(odds=2)
    assert [one.column for one in found.columns] == ["x0", "x1"]
    assert found.columns[0].largest == pytest.approx(named.columns[0].largest, rel=0.2)
    assert found.columns[1].largest < 2


def test_weights_that_are_not_linearised_keep_the_means_of_the_columns(survey):
    sample, y, people = survey
    small = sample[:150], y[:150], people[:300]
    weighter = KernelMeanMatching(overlap="ignore")
    found = made(small, weighter=weighter, replicates=5)
    (row,) = found.sensitivity(odds=1.5, benchmark=False).bounds
    assert row.plain[0] < row.sharp[0] < found.value < row.sharp[1] < row.plain[1]


def test_the_bias_of_a_survey_is_what_regression_corrects(survey):
    weighter = CalibrationWeights(distance="linear", features="means", negative="allow")
    found = made(survey, weighter=weighter)
    bias = made(survey).sensitivity(benchmark=False).survey_bias
    assert found.unweighted - bias.mub[0] == pytest.approx(found.value)
    assert bias.informative
    assert bias.smub[1] ** 2 == pytest.approx(bias.smub[0] * bias.smub[2])


def test_scores_that_are_means(survey):
    sample, y, people = survey
    model = LinearRegression().fit(sample[["age"]], y)
    common = {"population": people[["age"]], "weighter": MEANS, "method": "weighted"}
    score = estimate_score(model, sample[["age"]], y, scoring="neg_mean_squared_error", **common)
    found = score.sensitivity(odds=1.5, threshold=-150)
    errors = -((y - model.predict(sample[["age"]])) ** 2)
    same = estimate(sample[["age"]], errors, population=people[["age"]], weighter=MEANS)
    (ours,), (theirs,) = found.bounds, same.sensitivity(odds=1.5).bounds
    # But for the order of sums, which depends on where arrays lie in memory.
    for name in ("plain", "plain_interval", "sharp", "sharp_interval"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), rel=1e-12)
    other = estimate_score(model, sample[["age"]], y, scoring="r2", replicates=5, **common)
    with pytest.raises(InputError, match="r2 is not a mean over rows.*neg_log_loss"):
        other.sensitivity()


def test_weights_by_the_label_keep_no_means_of_columns():
    random = np.random.default_rng(0)
    ill, hidden = random.uniform(size=300) < 0.5, random.uniform(size=900) < 0.1
    patients, screened = (
        random.normal(size=(len(one), 2)) + 1.5 * one[:, None] for one in (ill, hidden)
    )
    weighter = LabelShiftWeights()
    made_of = estimate(patients, ill * 1.0, population=screened, weighter=weighter, replicates=3)
    found = made_of.sensitivity(odds=1.5)
    assert "if rows differ in their odds of selection from what the weights say" in str(found)
    assert found.columns == found.weighed_by == ()
    # With their total alone, the largest share has the factor 1.5 on as much weight as it may.
    assert found.bounds[0].sharp[1] == pytest.approx(1.5 * made_of.value)


def test_how_it_is_shown(survey):
    found = made(survey).sensitivity(odds=[1.2, 2])
    assert "could change if rows with the same age and region differ in their odds" in str(found)
    assert "leaving out 'age', the strongest column, changes odds by a factor of at most" in str(
        found
    )
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["breakdown"] == found.breakdown
    assert plain["bounds"][1]["sharp"] == list(found.bounds[1].sharp)
    assert plain["sentence"] == found.sentence
    never = made(survey).sensitivity(odds=2, threshold=1e6, benchmark=False)
    assert "no odds of selection that are off by a factor of up to 1,000 change it" in str(never)
    assert never.to_dict()["breakdown"] is None
    curve = found.to_svg()
    assert curve.startswith("<svg")
    assert "var(--" not in curve
    assert curve in found._repr_html_()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"odds": 0.9}, "odds must be at least 1 .* got 0.9"),
        ({"odds": [1.5, np.nan]}, "odds must be at least 1"),
        ({"odds": np.inf}, "odds must be at least 1"),
        ({"odds": []}, "a number or a list"),
        ({"odds": "two"}, "odds must be numbers"),
        ({"odds": 1e9}, "at most 1,000"),
        ({"threshold": "half"}, "threshold must be a number"),
        ({"threshold": np.nan}, "threshold must be a number"),
    ],
)
def test_wrong_parameters(survey, options, message):
    with pytest.raises(ParameterError, match=message):
        made(survey).sensitivity(**options)


@pytest.mark.filterwarnings("ignore::unskew.errors.EstimateWarning")
def test_what_has_no_sensitivity(survey):
    with pytest.raises(InputError, match="share of rows below a number"):
        made(survey, statistic="quantile", q=0.5).sensitivity()
    with pytest.raises(InputError, match="Estimate it again"):
        pickle.loads(pickle.dumps(made(survey))).sensitivity()
    sample, y, people = survey
    linear = CalibrationWeights(
        distance="linear", negative="allow", features=["age"], overlap="ignore"
    )
    old = people.assign(age=people["age"] + 40)
    with pytest.raises(InputError, match="negative"):
        made((sample, y, old), weighter=linear).sensitivity()

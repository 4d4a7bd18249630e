"""The panel of the population's answer: numbers, drawing, text that stays text."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from tests.report.examples import HOSTILE, example, page_of
from tests.report.test_charts import fields

from unskew import CalibrationWeights, ClassifierWeights, Margins, diagnose, estimate
from unskew.numerics.design_variance import skewed_ends
from unskew.report import charts, to_html, to_markdown
from unskew.report.answers import TITLE


def survey(seed=0):
    """Rows that answer more often the larger their first column is."""
    random = np.random.default_rng(seed)
    population = random.normal(size=(2000, 2))
    X = population[random.uniform(size=2000) < 0.3 / (1 + np.exp(-population[:, 0]))]
    return X, X[:, 0] + random.normal(size=len(X)), population


@pytest.mark.parametrize(
    "weighter",
    [
        CalibrationWeights(features="means", overlap="ignore"),
        ClassifierWeights(
            "logistic", penalty=0.0, rate="odds", cv=None, calibration=None, overlap="ignore"
        ),
    ],
)
def test_the_interval_is_that_of_estimate(weighter):
    X, y, population = survey()
    found = estimate(X, y, population=population, weighter=weighter)
    outcome = diagnose(X, population, weighter.fit(X, population=population), y=y).outcome
    assert outcome.after[0] == pytest.approx(found.value)
    assert outcome.after_error[0] == pytest.approx(found.standard_error)
    assert outcome.after_interval[0] == pytest.approx(found.interval)
    ((value, low, high),) = outcome.answers("before")
    assert value == pytest.approx(y.mean())
    assert high - low == pytest.approx(2 * 1.96 * y.std() / np.sqrt(len(y)))


def test_the_curve_of_hidden_selection_is_that_of_the_estimate():
    X, y, population = survey()
    weighter = CalibrationWeights(features="means", overlap="ignore")
    found = estimate(X, y, population=population, weighter=weighter)
    expected = found.sensitivity(sharp=False, benchmark=False)
    diagnosis = diagnose(X, population, weighter.fit(X, population=population), y=y)
    shown = diagnosis.outcome.sensitivity
    assert shown.breakdown == pytest.approx(expected.breakdown)
    for mine, theirs in zip(shown.bounds, expected.bounds, strict=True):
        assert mine.plain == pytest.approx(theirs.plain)
    assert "the strongest column, changes odds by a factor of at most" in shown.sentence
    assert shown.sentence in to_markdown(diagnosis)
    assert 'data-chart="sensitivity"' in to_html(diagnosis)
    even = diagnose(X, population, weighter.weights_, y=y)  # known only as numbers
    assert even.outcome.sensitivity is None


def test_weights_that_cannot_be_linearised_have_a_curve():
    X, y, population = survey()
    weighter = ClassifierWeights(overlap="ignore").fit(X, population=population)
    diagnosis = diagnose(X, population, weighter, y=y)
    assert diagnosis.outcome.after_interval is None
    shown = diagnosis.outcome.sensitivity
    assert shown.value == pytest.approx(np.average(y, weights=weighter.weights_))
    # The interval at the factor one is that of known weights.
    share = weighter.weights_ / weighter.weights_.sum()
    terms = share * (y - shown.value) / (1 - share)
    error = np.sqrt((terms**2).sum())
    ends = skewed_ends(1.97, (terms**3).sum() / error**3)
    assert np.diff(shown.interval)[0] == pytest.approx(sum(ends) * error, rel=0.02)
    text = to_markdown(diagnosis)
    assert shown.sentence in text
    assert "treat the weights as fixed" in text


def test_shares_and_margins_have_intervals_and_plain_weights_are_fixed():
    X, y, population = survey()
    frame = pd.DataFrame(X, columns=["x0", "x1"])
    known = Margins.from_population(population, ["x0", "x1"])
    weighter = CalibrationWeights().fit(frame, population=known)
    outcome = diagnose(frame, known, weighter, y=y > 1).outcome
    shares = estimate(frame, y > 1, population=known, statistic="proportion")
    for label, interval in zip(outcome.labels, outcome.after_interval, strict=True):
        assert interval == pytest.approx(shares[label == "True"].interval)
    text = to_markdown(diagnose(frame, known, weighter, y=y > 1))
    assert "count that the weights were estimated" in text
    plain = diagnose(frame, known, weighter.weights_, y=y)
    assert plain.outcome.after_interval is None
    assert "treat the weights as fixed" in to_markdown(plain)
    bare = to_markdown(diagnose(frame, known, y=y))
    assert "No weights were given. These are the sample's answers" in bare


def test_the_chart_holds_values_and_ends():
    outcome = example("survey").outcome
    (row,) = charts.answers(outcome, ["Mean"], {"before": ["a"], "after": ["b"]})["data"]["values"]
    assert row["before"] == pytest.approx(11565.29, rel=1e-5)
    assert row["after_low"] == pytest.approx(11347.7 - 1.96 * 34.6, rel=1e-5)
    assert row["after_high"] == pytest.approx(11347.7 + 1.96 * 34.6, rel=1e-5)


def test_no_class_becomes_a_field_or_an_expression():
    outcome = example("hostile").outcome
    names = list(outcome.labels)
    spec = charts.answers(outcome, names, {"before": names, "after": names})
    assert fields(spec) <= {
        *("category", "label_text", "before_text", "after_text", "before", "after"),
        *("before_low", "before_high", "after_low", "after_high"),
    }
    rest = str({key: part for key, part in spec.items() if key != "data"})
    assert not [bad for bad in HOSTILE if bad.strip() and bad in rest]


@cache
def two_classes():
    """A diagnosis with labels of which one looks like markup."""
    X, y, population = survey()
    classes = np.where(y > 1, "<b onclick=alert(1)>yes</b>", "no")
    weighter = CalibrationWeights(features="means").fit(X, population=population)
    return diagnose(X, population, weighter, y=classes)


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_panel_is_drawn_in_the_browser(opened, static, scheme):
    with opened(to_html(two_classes(), static=static), color_scheme=scheme) as page:
        panel = page.locator("section", has=page.get_by_role("heading", name=TITLE))
        assert panel.count() == 1
        size = panel.locator(".chart svg:visible").first.bounding_box()
        assert size["width"] > 200
        assert size["height"] > 50
        drawn = panel.locator(".chart svg:visible").first
        colours = drawn.locator(".mark-rule.role-mark line").evaluate_all(
            "lines => lines.map((line) => getComputedStyle(line).stroke)"
        )
        assert len(colours) == 4  # two classes, before and after
        assert len(set(colours)) == 2
        assert panel.locator("b").count() == 0
        assert "<b onclick=alert(1)>yes</b>" in panel.inner_text()
        assert panel.locator("#answer-table tbody tr").count() == 2


def test_hostile_classes_are_inert_under_the_pointer(opened):
    with opened(page_of("hostile")) as page:
        for mark in page.locator("[data-chart='answers'] .mark-symbol path").all()[:3]:
            mark.hover(force=True)
            assert page.locator("#tip :not(div, span, bdi)").count() == 0
        assert page.evaluate("window.hit") is None

from __future__ import annotations

import copy
import dataclasses
import math
import pickle

import numpy as np
import pytest

import unskew
from unskew.theory import Bound


def bound(value=2.0, **changes):
    fields = {
        "terms": {"first": 1.0, "second": 4.0},
        "assumptions": ("all is well",),
        "vacuous": False,
        "reference": "Somebody (2008), Theorem 1",
        "form": "corrected",
        "statement": "The change",
    }
    return Bound(value, **{**fields, **changes})


def test_a_bound_is_its_number():
    assert bound() == 2.0
    assert bound() * 3 == 6.0
    assert bound() < 2.5
    assert f"{bound():.3f}" == "2.000"
    assert np.isfinite(bound())
    assert max([bound(1.0), bound(3.0)]).value == 3.0
    assert bound() == pytest.approx(2.0)


def test_nothing_of_it_can_be_changed():
    one = bound()
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.value = 3.0
    with pytest.raises(TypeError):
        one.terms["first"] = 3.0


def test_it_prints_as_an_explanation():
    text = str(bound())
    assert text.splitlines()[0] == "The change: at most 2"
    for part in ("first", "all is well", "Theorem 1", "corrected"):
        assert part in text


def test_a_vacuous_or_infinite_bound_says_so():
    text = str(bound(math.inf, vacuous=True, reason="nothing is known"))
    assert "no bound" in text
    assert "This bound is vacuous: nothing is known." in text


def test_html_is_escaped():
    html = bound(statement="<script>alert(1)</script>", terms={"a<b": 1.0})._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "a&lt;b" in html


def test_copies_and_pickles_are_the_same():
    one = bound(remarks=("and this",))
    for other in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one), copy.copy(one)):
        assert other == one
        assert str(other) == str(one)
        assert dict(other.terms) == dict(one.terms)


def test_theory_is_a_public_module():
    assert unskew.theory.Bound is Bound
    assert "theory" in unskew.__all__
    for name in unskew.theory.__all__:
        assert getattr(unskew.theory, name).__doc__


def test_the_certificate_of_hidden_selection_names_its_replacement():
    with pytest.raises(AttributeError, match="sensitivity"):
        _ = unskew.theory.hidden_selection_certificate

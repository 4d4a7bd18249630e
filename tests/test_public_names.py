"""The public names are few, and those that have moved still work for a release."""

import pytest

import unskew
from unskew import errors, results


def test_the_front_has_what_people_call():
    assert len(unskew.__all__) <= 50
    named = {*unskew.__all__} - {"errors", "results", "theory"}
    assert not named & {*errors.__all__, *results.__all__}


@pytest.mark.parametrize("name", [*errors.__all__, *results.__all__])
def test_a_name_that_has_moved_warns_and_is_the_same(name):
    home = errors if name in errors.__all__ else results
    with pytest.warns(DeprecationWarning, match=rf"unskew\.{name} is {home.__name__}\.{name} now"):
        found = getattr(unskew, name)
    assert found is getattr(home, name)


def test_a_name_that_never_was_is_an_error():
    for home in (unskew, results):
        with pytest.raises(AttributeError, match="has no attribute 'Oops'"):
            home.Oops  # noqa: B018

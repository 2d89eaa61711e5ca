"""Numbers given by users: those that are accepted, and the messages for those that are refused."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from kinetree._support.checks import items, number, numbers, plain, positive, vector, whole
from kinetree.errors import InputError


@pytest.mark.parametrize("x", [3, 2.5, np.float32(2.5), np.int8(-3), Fraction(5, 4), np.float64(1e300)])
def test_real_numbers_of_any_type_are_floats(x):
    """Read numbers of Python and NumPy as floats of the same value."""
    assert type(plain(x)) is float and plain(x) == x and number(x, "x") == x


@pytest.mark.parametrize("x", [True, np.bool_(False), "2.5", None, 1j, [1.0], np.array(1.5), object])
def test_other_things_are_no_numbers(x):
    """Refuse truth values, texts, complex numbers and lists."""
    assert plain(x) is None
    with pytest.raises(InputError, match="^the mass is .*; give a number$"):
        number(x, "the mass")


def test_integers_beyond_doubles_are_infinite():
    """Read integers of 400 digits, and refuse them where infinities are not allowed."""
    assert plain(10**400) == math.inf and plain(-(10**400)) == -math.inf
    assert number(10**400, "x", infinite=True) == math.inf
    with pytest.raises(InputError, match="^x is inf; give a finite number$"):
        number(10**400, "x")


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: number(math.nan, "x", infinite=True), "x is nan; give a finite number"),
        (lambda: number(-0.25, "x", least=0.0), "x is -0.25; give 0 or more"),
        (lambda: positive(0, "the rate"), "the rate is 0; give more than zero"),
        (lambda: whole(2.5, "n", of="links"), "n is 2.5; give a whole number of links"),
        (lambda: whole(math.nan, "n"), "n is nan; give a finite number"),
        (lambda: whole("7", "n"), "n is '7'; give a number"),
        (lambda: whole(True, "n"), "n is True; give a number"),
        (lambda: whole(-1, "levels", least=0), "levels is -1; give 0 or more"),
        (lambda: whole(0, "n", of="links"), "n is 0; give 1 or more links"),
        (lambda: whole(10**400, "n", most=2000, of="links"), "0; give no more than 2,000 links"),
        (lambda: numbers([1.5, "a"], "k"), "k is 'a'; give a number"),
        (lambda: vector([1.5, 2.5], "com"), "com has 2 numbers; give 3"),
        (lambda: vector(9.81, "gravity"), "gravity has 1 numbers; give 3"),
        (lambda: items((), "k"), "k is empty; give one number, or one per degree of freedom"),
        (lambda: items(np.ones((2, 3)), "k"), "k has shape (2, 3); give one number, or one per degree of freedom"),
    ],
)  # fmt: skip
def test_messages(check, message):
    """Read the value that was given and what is expected."""
    with pytest.raises(InputError) as error:
        check()
    assert str(error.value).endswith(message)


def test_whole_numbers_may_be_floats():
    """Read 1e6 as a million, as steps are often given, and integers of any size exactly."""
    assert whole(1e6, "max_steps") == 1_000_000 and type(whole(1e6, "max_steps")) is int
    assert whole(2**60 + 1, "n") == 2**60 + 1 and whole(np.int64(7), "n") == 7


def test_single_numbers_count_as_lists_of_one():
    """Read one number, lists and flat arrays as tuples."""
    assert numbers(1.5, "k") == (1.5,) and numbers(np.array([1.5, 2.5]), "k") == (1.5, 2.5)
    assert vector((1, 2.5, 3), "com") == (1.0, 2.5, 3.0)

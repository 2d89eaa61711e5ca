"""Fields of records split into scalars, and the pattern that several have in common."""

from __future__ import annotations

import pytest

from kinetree.algebra.spatial import Twist, Wrench
from kinetree.compiler.ir.trace import Trace
from kinetree.compiler.rolled.records import Patterns, RollError, map_scalars, scalars


class Holder:
    """A plain object, such as a pivot."""

    def __init__(self, x, note) -> None:
        """Store a scalar and something else."""
        self.x, self.note = x, note


def test_scalars_of_nested_fields():
    """Change every scalar of tuples, types of `algebra` and plain objects."""
    x = [(Twist((1.0, 2.0, 3.0), (4.0, 5.0, 6.0)), Holder(7.5, None)), "name", 8]
    assert scalars(x) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.5, 8]
    twice = map_scalars(x, lambda a: 2 * a)
    assert twice[0][0] == Twist((2.0, 4.0, 6.0), (8.0, 10.0, 12.0))
    assert (twice[0][1].x, twice[0][1].note, twice[1:]) == (15.0, None, ["name", 16])
    assert x[0][1].x == 7.5


def test_what_all_forms_share_needs_no_room():
    """Join patterns and find zeros, and scalars that are equal in all, without keys of their own."""
    t = Trace()
    a, b, c = (t.input("x", k) for k in range(3))
    p = Patterns()
    p.begin("w", Wrench())
    p.begin("t", Twist())
    assert p.join({"w": Wrench((a, b, 0.0), (a, 0.0, 2.0)), "t": Twist((a, 0.0, 0.0))})
    assert p.join({"w": Wrench((b, c, 0.0), (b, 0.0, 2.0)), "t": Twist((b, a, 0.0))})
    assert not p.join({"w": Wrench((c, c, 0.0), (c, 0.0, 2.0)), "t": Twist((c, a, 0.0))})
    filled = p.filled("w", lambda key: key)
    assert filled == Wrench((("w", 0), ("w", 1), 0.0), (("w", 0), 0.0, ("w", 5)))
    assert p.filled("t", lambda key: key).w == (("w", 0), ("t", 1), 0.0)


def test_forms_that_do_not_fit():
    """Join a field that is missing, or has a different number of scalars, and read which one."""
    p = Patterns()
    p.begin("mu", (0.0, 0.0))
    with pytest.raises(RollError, match="the parent's 'mu' is of an earlier sweep; rolled code carries"):
        p.join({})
    with pytest.raises(RollError, match="'mu' has different numbers of scalars in two classes"):
        p.join({"mu": (1.0, 2.0, 3.0)})

"""Topology of the tree: order, branches, modules and rings."""

from __future__ import annotations

import pytest
from hypothesis import given

from kinetree import Body, Joint, Loop, ModelError, UnknownNameError, build_mechanism
from kinetree.model.topology import branches, children, cut_joints, depths, modules, path
from strategies import examples, mechanisms, random_mechanism


def tree(*pairs: tuple[str, str], loops: tuple = ()):
    """Return a mechanism of revolute joints between parents and children."""
    bodies = [Body(child, 1.0) for _, child in pairs]
    joints = [Joint(f"{parent}-{child}", "revolute", parent, child) for parent, child in pairs]
    return build_mechanism("tree", bodies, joints, loops=loops)


def test_parents_come_first_and_branches_stay_whole():
    """Give parts in any order and find depth order, with siblings in the given order."""
    made = tree(("b", "c"), ("ground", "x"), ("a", "b"), ("ground", "a"), ("a", "d"), ("x", "y"))
    assert [b.name for b in made.bodies] == ["x", "y", "a", "b", "c", "d"]
    assert [j.child for j in made.joints] == [b.name for b in made.bodies]
    assert made.parents == (-1, 0, -1, 2, 3, 2)
    assert depths(made) == (1, 2, 1, 2, 3, 2)
    assert children(made) == ((1,), (), (3, 5), (4,), (), ())


def test_paths_branches_and_modules():
    """Cut a tree into chains from the ground to the tips, and into serial modules."""
    made = tree(("ground", "a"), ("a", "b"), ("b", "c"), ("b", "d"), ("d", "e"), ("ground", "f"))
    assert path(made, 4) == (0, 1, 3, 4)
    assert path(made, -1) == ()
    assert branches(made) == ((0, 1, 2), (0, 1, 3, 4), (5,))
    assert modules(made) == ((0, 1), (2,), (3, 4), (5,))


def test_cut_joints_name_their_rings():
    """Find the bodies that a loop closes into a ring, between two bodies or with the ground."""
    loops = (Loop("cross", "revolute", "c", "e"), Loop("down", "revolute", "b", "ground"))
    made = tree(("ground", "a"), ("a", "b"), ("b", "c"), ("b", "d"), ("d", "e"), loops=loops)
    assert cut_joints(made) == (("cross", (2, 4, 3)), ("down", (0, 1)))


@given(mechanisms())
@examples(50)
def test_every_tree_is_consistent(mechanism):
    """Find each parent before its children, and each body in exactly one module and on its own path."""
    assert all(parent < i for i, parent in enumerate(mechanism.parents))
    assert sorted(i for module in modules(mechanism) for i in module) == list(range(len(mechanism.bodies)))
    for i, depth in enumerate(depths(mechanism)):
        assert len(path(mechanism, i)) == depth
        assert path(mechanism, i)[-1] == i


def test_a_long_chain_needs_no_recursion():
    """Order a chain of 3,000 bodies given backwards."""
    pairs = [(f"b{k - 1}" if k else "ground", f"b{k}") for k in reversed(range(3000))]
    made = tree(*pairs)
    assert made.parents == tuple(range(-1, 2999))
    assert modules(made) == (tuple(range(3000)),)


@pytest.mark.parametrize(("pairs", "message"), [
    ([("ground", "a"), ("ground", "b"), ("a", "b")],
     "joint 'a-b': its child 'b' is already the child of joint 'ground-b'; "
     "keep one of them in the tree and make the other a loop"),
    ([("ground", "a"), ("c", "b"), ("b", "c")],
     "the joints form a circle: c -> b -> c; cut one joint of the circle and describe it as a loop"),
    ([("ground", "a"), ("b", "b")],
     "the joints form a circle: b -> b; cut one joint of the circle and describe it as a loop"),
])  # fmt: skip
def test_what_is_no_tree_is_refused(pairs, message):
    """Refuse bodies with two joints and circles of joints, and read the joint to cut."""
    bodies = [Body(name, 1.0) for name in sorted({child for _, child in pairs})]
    joints = [Joint(f"{parent}-{child}", "revolute", parent, child) for parent, child in pairs]
    with pytest.raises(ModelError) as caught:
        build_mechanism("bad", bodies, joints)
    assert str(caught.value) == message


def test_loose_bodies_are_named():
    """Leave bodies without a joint and read the name of the first and the number of others."""
    bodies = [Body("a", 1.0), Body("b", 1.0), Body("c", 1.0)]
    with pytest.raises(ModelError) as caught:
        build_mechanism("bad", bodies, [Joint("j", "revolute", "ground", "a")])
    assert str(caught.value) == (
        "body 'b' is the child of no joint (nor are 1 more); "
        "connect it to its parent, or to 'ground' by a fixed or free joint"
    )


@pytest.mark.parametrize(("parent", "child", "message"), [
    ("bse", "a", r"joint 'j', parent: no body 'bse'; did you mean 'base'\? available: base, a, ground"),
    ("ground", "ground", r"joint 'j', child: no body 'ground'; .*available: base, a, ground"),
])  # fmt: skip
def test_unknown_bodies_are_listed(parent, child, message):
    """Mistype a body of a joint and read the available ones."""
    joints = [Joint("i", "revolute", "ground", "base"), Joint("j", "revolute", parent, child)]
    with pytest.raises(UnknownNameError, match=message):
        build_mechanism("bad", [Body("base", 1.0), Body("a", 1.0)], joints)


def test_random_mechanisms_have_several_roots():
    """Attach several bodies to the ground."""
    assert random_mechanism(["revolute"] * 3, [-1, -1, 0], 1).parents == (-1, 0, -1)

"""Mechanism: immutability, counts, and hashes of the content."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, fields, replace
from types import SimpleNamespace

import pytest

import kinetree as kt
from kinetree import Body, Frame, Joint, Limits, Mechanism, Parameter, Shape, build_mechanism, joints
from kinetree.model import parse
from kinetree.model.mechanism import canonical, kept_with_mechanism, resolve_parts
from strategies import one_of_each, random_mechanism


def simple(**changes) -> Mechanism:
    """Return one body on a joint, with changes to the body."""
    return build_mechanism(
        "simple", [replace(Body("a", 1.0, (0.1, 0.0, 0.0)), **changes)], [Joint("j", "revolute", "ground", "a")]
    )


def test_counts_of_every_kind():
    """Count coordinates and velocities of a mechanism with one joint of each kind."""
    made = one_of_each()
    assert (made.nq, made.nv, len(made.bodies)) == (30, 28, 11)
    assert (simple().nq, simple().nv) == (1, 1)
    assert (build_mechanism("none", [], []).nq, build_mechanism("none", [], []).nv) == (0, 0)


def test_mechanisms_are_frozen_and_hashable():
    """Refuse to change a mechanism, and use it as a key."""
    made = simple()
    with pytest.raises(FrozenInstanceError):
        made.name = "other"  # type: ignore[misc]
    assert {made: 1}[simple()] == 1


def test_equal_content_has_one_hash():
    """Find the same hash for equal numbers of any type and origin."""
    made = simple()
    assert made.hash == simple(mass=1, com=(0.1, -0.0, 0)).hash
    assert made.hash == replace(made, source="elsewhere", description="else").hash
    assert made.hash == pickle.loads(pickle.dumps(made)).hash
    assert len(made.hash) == 64


@pytest.mark.parametrize("change", [
    {"mass": 1.0000000000000002}, {"com": (0.1, 0.0, 1e-300)}, {"inertia": (1.0, 1.0, 1.0, 0.0, 0.0, 0.0)},
    {"shapes": (Shape("sphere", (0.1,)),)}, {"mass": parse("m")},
])  # fmt: skip
def test_other_content_has_another_hash(change):
    """Change one bit of the content and find another hash."""
    made = simple()
    parameters = (Parameter("m", 1.0),) if "m" in str(change.get("mass")) else ()
    other = replace(made, bodies=(replace(made.bodies[0], **change),), parameters=parameters)
    assert other.hash != made.hash
    assert (other.motion_hash == made.motion_hash) == ("shapes" in change)


def test_every_field_counts():
    """Change each field of a mechanism except source and description, and find another hash."""
    made = one_of_each()
    changed = {
        "name": "x", "bodies": made.bodies[:-1], "joints": made.joints[:-1], "frames": (), "gravity": (0.0, 0.0, 1.0),
        "parameters": (Parameter("p", 1.0),), "scenery": (Shape("sphere", (1.0,)),),
        "loops": ("l",), "couplings": ("c",), "forces": ("f",), "guess": (("j", (1.0,)),), "contacts": ("k",),
        "actuators": ("a",), "keyframes": ("f",), "motors": ("m",),
    }  # fmt: skip
    assert set(changed) == {f.name for f in fields(Mechanism)} - {"source", "description"}
    digests = {replace(made, **{name: value}).hash for name, value in changed.items()}
    assert len(digests | {made.hash}) == len(changed) + 1


def test_hash_is_the_same_in_another_process():
    """Compute a hash in a fresh process, with another seed of Python's own hashes.

    All other variables stay: some, such as OPENBLAS_CORETYPE, decide how random numbers of the mechanism are rounded.
    """
    code = "import sys; sys.path[:0] = {path!r}; import strategies; print(strategies.one_of_each().hash)"
    done = subprocess.run(
        [sys.executable, "-c", code.format(path=sys.path)],
        capture_output=True, text=True, check=True, env=os.environ | {"PYTHONHASHSEED": "17"},
    )  # fmt: skip
    assert done.stdout.strip() == one_of_each().hash


def test_canonical_keeps_kinds_apart():
    """Get different texts for different content, and refuse values without a text."""
    texts = [canonical(x) for x in (1.0, "1.0", True, None, (1.0,), ((1.0,),), parse("a"), "a", {"a": 1.0})]
    assert len(set(texts)) == len(texts)
    with pytest.raises(TypeError, match="cannot hash a object"):
        canonical(object())


def test_frames_include_bodies_and_the_ground():
    """Find frames, bodies and the ground by name."""
    made = random_mechanism(["revolute", "fixed"], [-1, 0], 1)
    assert made.frame_names == ("tool", "b0", "b1", "ground")
    assert made.frame("b0") == Frame("b0", "b0")
    assert made.frame("ground").body == "ground"
    assert made.frame("tool").placement == made.frames[0].placement


def test_resolved_replaces_expressions_everywhere():
    """Replace expressions in nested parts and leave the rest."""
    joint = Joint(
        "j", "helical", "a", "b", pitch=parse("2*p"), axis=(parse("p"), 0.0, 1.0), limits=Limits((0.0,), (1.0,))
    )
    plain = resolve_parts(joint, {"p": 0.25})
    assert (plain.pitch, plain.axis, plain.limits) == (0.5, (0.25, 0.0, 1.0), joint.limits)


def test_values_of_parameters():
    """List parameters by name, with given numbers for the free ones."""
    made = replace(
        simple(), parameters=(Parameter("a", 1.0), Parameter("b", 2.0, free=True), Parameter("c", 3.0, free=True))
    )
    assert made.values() == {"a": 1.0, "b": 2.0, "c": 3.0}
    assert made.values([5.0, 6.0]) == {"a": 1.0, "b": 5.0, "c": 6.0}
    assert [p.name for p in made.free_parameters] == ["b", "c"]
    with pytest.raises(ValueError, match="zip"):
        made.values([5.0])


def test_what_is_kept_is_computed_once_per_kind(monkeypatch):
    """Compute a function of a mechanism once, and again after a kind was replaced; a pickle has the content alone."""
    mechanism, calls = kt.load("four_bar").mechanism, []
    count = kept_with_mechanism(lambda m: calls.append(m) or len(m.bodies))
    assert (count(mechanism), count(mechanism), len(calls)) == (3, 3, 1)
    monkeypatch.setitem(joints.KINDS, "revolute", SimpleNamespace(**vars(joints.KINDS["revolute"])))
    assert (count(mechanism), len(calls)) == (3, 2)
    monkeypatch.undo()
    copy = pickle.loads(pickle.dumps(mechanism))
    assert set(vars(copy)) == {f.name for f in fields(mechanism)} < set(vars(mechanism))
    assert copy == mechanism and copy.hash == mechanism.hash

"""Contacts from collision geometry."""

from __future__ import annotations

import pytest

import kinetree as kt
from kinetree.errors import ModelError, UnknownNameError

URDF = """<robot name="leg">
  <link name="trunk"><inertial><mass value="1.2"/><inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial>
    <collision name="belly"><geometry><box size="0.3 0.2 0.1"/></geometry></collision>
    <visual><geometry><sphere radius="0.5"/></geometry></visual></link>
  <link name="shank"><inertial><mass value="0.7"/><inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial>
    <collision><origin xyz="0 0 -0.4"/><geometry><sphere radius="0.03"/></geometry></collision>
    <collision name="skin"><geometry><mesh filename="skin.stl"/></geometry></collision></link>
  <joint name="knee" type="continuous"><parent link="trunk"/><child link="shank"/><axis xyz="0 1 0"/></joint>
</robot>"""


@pytest.fixture
def leg(tmp_path) -> kt.System:
    """Return a leg with collision geometry, on a floating base."""
    (tmp_path / "leg.urdf").write_text(URDF)
    return kt.load(tmp_path / "leg.urdf", base="free")


def test_collision_shapes_become_contacts(leg) -> None:
    """Make contacts of the box and the sphere, and report the mesh."""
    belly, foot = kt.contacts_of(leg, friction=0.8, restitution=0.1)
    assert (belly.name, belly.body, belly.shape, belly.size) == ("belly", "trunk", "box", (0.3, 0.2, 0.1))
    assert (foot.name, foot.shape, foot.placement.translation) == ("shank_sphere", "sphere", (0.0, 0.0, -0.4))
    assert (foot.friction, foot.restitution) == (0.8, 0.1)
    left = [str(e) for e in leg.report.of("dropped")]
    assert any("mesh 'skin' of body 'shank': only sphere, capsule, box, cylinder become contacts" in x for x in left)


def test_choices_of_shapes(leg) -> None:
    """Select bodies and roles, skip what a surface does not take, and refuse unknown bodies."""
    assert [c.name for c in kt.contacts_of(leg, friction=0.5, bodies=["shank"])] == ["shank_sphere"]
    assert [c.shape for c in kt.contacts_of(leg, friction=0.5, role="visual")] == ["sphere"]
    hills = kt.Surface("heights", heights=((0.0, 0.1), (0.1, 0.0)), spacing=(1.0, 1.0))
    assert [c.name for c in kt.contacts_of(leg, friction=0.5, surface=hills)] == ["belly"]
    assert "the ball of a sphere has no contact with heights" in str(leg.report)
    with pytest.raises(UnknownNameError, match="no body 'foot'; available: trunk, shank"):
        kt.contacts_of(leg, friction=0.5, bodies=["foot"])


def shaped(*kinds: str) -> kt.System:
    """Return a chain of bodies, each with a shape."""
    sizes = {"sphere": (0.1,), "capsule": (0.1, 0.3), "box": (0.1, 0.2, 0.3), "cylinder": (0.1, 0.2)}
    bodies = [
        kt.Body(f"b{k}", 1.0, inertia=(0.1, 0.1, 0.1, 0, 0, 0), shapes=(kt.Shape(x, sizes[x], role="collision"),))
        for k, x in enumerate(kinds)
    ]
    joints = [kt.Joint(f"j{k}", "revolute", f"b{k - 1}" if k else kt.GROUND, f"b{k}") for k in range(len(kinds))]
    return kt.System(kt.build_mechanism("chain", bodies, joints))


def test_shapes_of_bodies_without_a_common_joint_touch_each_other() -> None:
    """Make contacts of all such pairs, or of the named ones, with the larger kind of shape as the surface."""
    system = shaped("box", "sphere", "capsule", "cylinder", "sphere")
    found = kt.contacts_between(system, friction=0.3, restitution=0.2)
    ends = {(c.body, c.shape, c.surface.body, c.surface.kind, c.surface.size) for c in found}
    assert ends == {
        ("b2", "capsule", "b0", "box", (0.1, 0.2, 0.3)),
        ("b4", "sphere", "b0", "box", (0.1, 0.2, 0.3)),
        ("b1", "sphere", "b4", "sphere", (0.1,)),
        ("b4", "sphere", "b2", "capsule", (0.1, 0.3)),
    }
    assert {(c.friction, c.restitution) for c in found} == {(0.3, 0.2)} and len({c.name for c in found}) == 4
    assert "only sphere, capsule, box become contacts" in str(system.report)
    (named,) = kt.contacts_between(system, [("b0", "b1")], friction=0.3)
    assert (named.body, named.surface.body) == ("b1", "b0")


@pytest.mark.parametrize("pairs, message", [
    ([("b0", "b0")], r"the pair \('b0', 'b0'\); give pairs of the names of two bodies"),
    (["b0"], "the pair 'b0'; give pairs of the names of two bodies"),
    ([("b0", "b9")], "no body 'b9'"),
])  # fmt: skip
def test_impossible_pairs_are_refused(pairs, message) -> None:
    """Refuse a body with itself, single names and unknown ones."""
    with pytest.raises((ModelError, UnknownNameError), match=message):
        kt.contacts_between(shaped("box", "sphere"), pairs, friction=0.3)

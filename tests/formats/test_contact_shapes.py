"""Contacts from collision geometry."""

from __future__ import annotations

import pytest

import kinetree as kt
from kinetree.errors import UnknownNameError

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

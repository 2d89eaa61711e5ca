"""Flexible bodies in mechanisms: their parts, files, and what is refused."""

from __future__ import annotations

import pytest

import kinetree as kt
from flexible_mechanisms import random_tree
from kinetree.formats.toml import read_toml_text
from kinetree.formats.toml_writer import write_toml

SHAPE = kt.Beam(1.3, EI=2.0, mass_per_length=0.4, modes=(1, 2), damping=0.02, nodes={"mid": 0.5})
ROOT = kt.Joint("shoulder", "revolute", "ground", "boom")


def test_parts():
    """Find the frame at the joint, the deformed body, the nodes and the spring."""
    m = kt.build_mechanism("arm", [kt.Body("boom", 0.7, flexible=SHAPE)], [ROOT])
    assert [b.name for b in m.bodies] == ["boom", "boom.elastic", "boom.mid", "boom.tip"]
    assert [(j.name, j.kind) for j in m.joints] == [
        ("shoulder", "revolute"),
        ("boom.modes", "modes(y1, z1, z2)"),
        ("boom.mid", "node(mid)"),
        ("boom.tip", "node(tip)"),
    ]
    assert m.nv == 4
    assert m.bodies[0].mass == 0.7
    assert [f.name for f in m.forces] == ["boom.stiffness"]
    assert m.lengths == (1.3,)


@pytest.mark.parametrize("seed", [1, 4])
def test_files_keep_flexible_bodies(seed):
    """Write random trees as TOML, each flexible body as one table, and read the same mechanism."""
    m = random_tree(seed, foreshortening=False, damping=0.013, tip_mass=0.2)
    text = write_toml(m)
    assert "elastic" not in text
    assert text.count("[body.flexible]") == sum(b.flexible is not None for b in m.bodies)
    assert read_toml_text(text)[0].hash == m.hash


def test_errors_in_files_name_the_line():
    """Refuse a beam of negative length with the line of its number, and a key that no beam has."""
    text = write_toml(kt.build_mechanism("arm", [kt.Body("boom", flexible=SHAPE)], [ROOT]))
    with pytest.raises(kt.ModelError, match=r"<text>:8: body 'boom', flexible: the length is -1\.3; give a number"):
        read_toml_text(text.replace("length = 1.3", "length = -1.3"))
    with pytest.raises(kt.UnknownNameError, match="no key 'lenght'; did you mean 'length'"):
        read_toml_text(text.replace("length = 1.3", "lenght = 1.3"))


def build(*joints, frames=(), forces=(), bodies=()) -> kt.Mechanism:
    """Return a mechanism with a flexible body and one body more."""
    return kt.build_mechanism(
        "arm", [kt.Body("boom", flexible=SHAPE), kt.Body("load", 1.0), *bodies], [ROOT, *joints],
        frames=frames, forces=forces,
    )  # fmt: skip


def test_parts_belong_to_nodes():
    """Refuse nodes that do not exist, and parts that are attached to a deformed body."""
    with pytest.raises(kt.UnknownNameError, match=r"no body 'boom\.end'; .*available: boom, boom\.elastic, boom\.mid"):
        build(kt.Joint("wrist", "revolute", "boom.end", "load"))
    attached = r"attached to the deformed body 'boom\.elastic', .*attach it to a node, 'boom\.mid', 'boom\.tip', or to"
    with pytest.raises(kt.ModelError, match=attached):
        build(kt.Joint("wrist", "revolute", "boom.elastic", "load"))
    with pytest.raises(kt.ModelError, match=attached):
        build(kt.Joint("wrist", "revolute", "boom.tip", "load"), frames=[kt.Frame("f", "boom.elastic")])
    with pytest.raises(kt.ModelError, match=attached):
        build(
            kt.Joint("wrist", "revolute", "boom.tip", "load"),
            forces=[kt.ForceElement("f", "spring_damper", "ground", "boom.elastic")],
        )


def test_kinds_within_flexible_bodies_belong_there():
    """Refuse modes without shapes, nodes of rigid bodies, and other things than beams."""
    with pytest.raises(kt.ModelError, match="its parent 'boom' is not flexible"):
        build(kt.Joint("wrist", "node(tip)", "boom", "load"))
    with pytest.raises(kt.ModelError, match="its child 'load' has other modal coordinates: none"):
        build(kt.Joint("wrist", "modes(y1)", "boom.tip", "load"))
    with pytest.raises(kt.ModelError, match=r"body 'x': flexible is 3; give a kt\.Beam or a kt\.ModalBody"):
        kt.Body("x", flexible=3)  # type: ignore[arg-type]


def test_free_parameters_of_flexible_bodies():
    """Free the stiffness of modes, but neither the mass of the points nor the places of nodes."""
    system = kt.System(build(kt.Joint("wrist", "revolute", "boom.tip", "load", kt.Placement((0.1, 0.0, 0.0)))))
    free = kt.with_free(system, "mass.*", "length.*", "stiffness.*")
    assert [p.name for p in free.mechanism.free_parameters] == [
        "mass.boom",
        "mass.boom.mid",
        "mass.boom.tip",
        "mass.load",
        "length.wrist",
        "stiffness.boom.stiffness.1",
        "stiffness.boom.stiffness.2",
        "stiffness.boom.stiffness.3",
    ]

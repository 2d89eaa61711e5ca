"""Contacts of MJCF files: the pairs that MuJoCo itself makes, their friction, and a report of what was left."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from kinetree.errors import ModelError
from kinetree.formats.mjcf import read_mjcf_text
from tolerance import assert_close

mujoco = pytest.importorskip("mujoco")

TYPES = ("sphere", "capsule", "cylinder", "box")


def random_model(rng: np.random.Generator) -> str:
    """Return a model whose geoms are all far below two planes, with random masks, excludes, pairs and priorities."""

    def geom(name: str) -> str:
        kind = TYPES[rng.integers(len(TYPES))]
        masks = f'contype="{rng.integers(4)}" conaffinity="{rng.integers(4)}" priority="{rng.integers(2)}"'
        law = f'friction="{rng.uniform(0.1, 1):.3f} 0.01 0.001" condim="{rng.choice([1, 3, 4, 6])}"'
        place = " ".join(f"{x:.3f}" for x in rng.normal(size=3) * 0.1)
        return f'<geom name="{name}" type="{kind}" size=".1 .07 .05" pos="{place}" {masks} {law}/>'

    def body(k: int, inner: str) -> str:
        joint = f'<joint type="hinge" pos="0 .1 {0.1 * k}"/>' if k == 0 or rng.random() < 0.7 else ""
        mass = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
        return f'<body name="b{k}" pos="0 0 -.2">{joint}{mass}{geom(f"g{k}")}{geom(f"h{k}")}{inner}</body>'

    chain = body(0, body(1, body(2, "")))
    planes = "".join(
        f'<geom name="plane{k}" type="plane" size="1 1 1" pos="0 0 {9 + k}" euler="{5 * k} 3 0" '
        f'contype="{rng.integers(1, 4)}" conaffinity="{rng.integers(4)}" friction="{rng.uniform(0.1, 1):.3f} 0 0"/>'
        for k in range(2)
    )
    top = '<geom name="top" type="plane" size="1 1 1" pos="0 0 12"/>'
    table = f'<body name="table" pos="0 0 -1">{top}{geom("leg")}</body>'
    pairs = "".join(
        f'<pair geom1="plane{rng.integers(2)}" geom2="g{k}" condim="3" friction="{0.2 + k} {0.3 + k} 0 0 0"/>'
        for k in range(3)
        if rng.random() < 0.4
    )
    exclude = '<exclude body1="world" body2="b1"/><exclude body1="b2" body2="table"/>' if rng.random() < 0.6 else ""
    contact = f"<contact>{pairs}{exclude}</contact>" if pairs or exclude else ""
    return f"<mujoco><worldbody>{planes}{table}{chain}</worldbody>{contact}</mujoco>"


def made_by_mujoco(text: str) -> dict[tuple[str, str], float]:
    """Return the friction of each pair of a moving geom and a plane that MuJoCo's collision finds."""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    out = {}
    for contact in data.contact:
        a, b = sorted(map(int, (contact.geom1, contact.geom2)), key=lambda g: model.geom_type[g] != 0)
        if model.geom_type[a] == 0:
            mu = 0.0 if contact.dim == 1 else min(contact.friction[:2])
            out[model.geom(b).name, model.geom(a).name] = mu
    return out


def read_here(text: str, fixed: str) -> dict[tuple[str, str], float]:
    """Return the friction of each contact by geom and plane; planes are recognized by their height."""
    mechanism, _ = read_mjcf_text(text, contacts=True, fixed=fixed)
    planes = {9.0: "plane0", 10.0: "plane1", 11.0: "top"}
    return {
        (c.name.split("_on_")[0], planes[round(c.surface.placement.translation[2], 6)]): c.friction
        for c in mechanism.contacts
    }


@pytest.mark.parametrize("fixed", ["merge", "keep"])
def test_pairs_are_those_of_mujoco(fixed) -> None:
    """Find for random masks, excludes, pairs and priorities the pairs and friction of MuJoCo's own collisions."""
    found = 0
    for seed in range(12):
        text = random_model(np.random.default_rng(seed))
        theirs, ours = made_by_mujoco(text), read_here(text, fixed)
        assert ours.keys() == theirs.keys(), seed
        for key, mu in ours.items():
            assert_close(mu, theirs[key], 1e-15, "friction")
        found += len(ours)
    assert found > 40


FIELD = """<mujoco model="hills"><asset>
    <hfield name="hills" nrow="3" ncol="4" size="0.6 0.4 0.3 0.1" elevation="0 1 2 0  1 4 3 1  0 2 1 0"/>
    <mesh name="tetra" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>
  </asset><worldbody>
  <geom name="ground" type="hfield" hfield="hills" pos="0.1 0.2 -0.3" euler="0 0 30" friction="0.7 0 0"/>
  <geom name="block" type="box" size="1 1 1" pos="0 0 -9"/>
  <body name="trunk" pos="0 0 1"><freejoint/>
    <geom name="box" type="box" size=".1 .07 .05" condim="6"/>
    <geom name="ball" type="sphere" size=".05" pos="0 0 -.1"/>
    <geom name="egg" type="ellipsoid" size=".1 .1 .2"/>
  </body></worldbody></mujoco>"""


def test_height_fields_are_those_of_mujoco() -> None:
    """Read a height field with its place and heights, and report what has no contact with it."""
    mechanism, report = read_mjcf_text(FIELD, contacts=True)
    (box,) = mechanism.contacts
    assert (box.name, box.body, box.shape, box.size, box.friction) == ("box", "trunk", "box", (0.2, 0.14, 0.1), 1.0)
    model = mujoco.MjModel.from_xml_string(FIELD)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    R, p = np.array(box.surface.placement.rotation), np.array(box.surface.placement.translation)
    heights, (dx, dy) = np.array(box.surface.heights), box.surface.spacing
    down = np.array([0.0, 0.0, -1.0])
    for i, j in ((1, 1), (2, 1)):
        top = p + R @ [i * dx, j * dy, heights[i, j]]
        depth = mujoco.mj_rayHfield(model, data, 0, top - down, down, None)
        assert_close(depth, 1.0, 1e-6, f"height [{i}, {j}] below a ray")
    text = str(report)
    for line in (
        "1 contacts of geoms with planes and height fields",
        "torsional and rolling friction of 'box' (condim 6)",
        "the contact of 'ball' with 'ground': the ball of a sphere has no contact with heights",
        "the contact of 'egg' with 'ground': it is of the type ellipsoid",
        "3 pairs of geoms that may touch: shapes touch planes and height fields only, not each other",
        "softness of contacts (solref, solimp), their margins and gaps: contacts are rigid",
        "height field 'ground': its heights are joined by cubic splines, not by triangles",
    ):
        assert line in text, (line, text)


def test_huge_height_fields_are_refused_before_mujoco_makes_them() -> None:
    """Refuse a field of ten billion heights."""
    huge = FIELD.replace('nrow="3" ncol="4"', 'nrow="100000" ncol="100000"').replace("elevation", "unread")
    with pytest.raises(ModelError, match="has 100000 by 100000 heights; give no more than 10000"):
        read_mjcf_text(huge, contacts=True)


def test_a_loaded_robot_stands_on_its_floor(tmp_path) -> None:
    """Load a ball over a floor with contacts, and let it come to rest; without the option it has none."""
    path = tmp_path / "ball.xml"
    path.write_text(
        '<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1" pos="0 0 .3"/><body pos="0 0 .5"><freejoint/>'
        '<geom name="ball" size=".1" mass="2" friction=".4 0 0"/></body></worldbody></mujoco>'
    )
    ball = kt.load(path, contacts=True)
    run = kt.simulate(ball, [0, 0, 0.4, 0, 0, 0, 1], times=[0.0, 0.5])
    assert_close(run["contact_forces"][-1, 0], [2 * 9.81, 0, 0], 1e-9, "weight")
    assert (ball.mechanism.contacts[0].friction, ball.mechanism.contacts[0].name) == (1.0, "ball")
    plain = kt.load(path)
    assert not plain.mechanism.contacts and "contacts: friction, margins" in str(plain.report)
    off = path.read_text().replace("<worldbody>", '<option><flag contact="disable"/></option><worldbody>')
    path.write_text(off)
    assert "no contacts: the file disables them" in str(kt.load(path, contacts=True).report)


def test_other_formats_refuse_the_option(tmp_path) -> None:
    """Name the way to contacts of URDF and TOML files."""
    (tmp_path / "a.urdf").write_text('<robot name="a"><link name="l"/></robot>')
    with pytest.raises(ModelError, match="contacts=True is an option of MJCF files.*kt.contacts_of makes contacts"):
        kt.load(tmp_path / "a.urdf", contacts=True)

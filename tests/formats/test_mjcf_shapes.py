"""Geoms of MuJoCo as shapes: sizes, poses, colors, and meshes in the frame of their file."""

from __future__ import annotations

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

from interpreted import compute  # noqa: E402
from kinetree.formats.mjcf import read_mjcf, read_mjcf_text  # noqa: E402
from mujoco_peer import Peer  # noqa: E402
from pose_products import placed, transform  # noqa: E402
from strategies import State  # noqa: E402
from tolerance import assert_close  # noqa: E402

pytestmark = pytest.mark.peers

VERTICES = np.array([[0.1, 0.2, 0.05], [0.7, 0.25, 0.1], [0.15, 0.6, 0.0], [0.2, 0.3, 0.9]])
WEDGE = "".join(f"v {x} {y} {z}\n" for x, y, z in VERTICES) + "f 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"

SOLIDS = """<mujoco>
  <asset><material name="red" rgba="1 0 0 0.5"/></asset>
  <worldbody>
    <geom name="floor" type="box" size="1 2 0.1" pos="0 0 -0.1"/>
    <body name="b" pos="0.1 0.2 0.3">
      <joint name="j" pos="0.3 -0.1 0.2" axis="1 2 -1"/>
      <geom name="s" size="0.2" pos="0.1 0 0" material="red"/>
      <geom name="c" type="capsule" size="0.05 0.3" euler="10 20 30" rgba="0 1 0 1"/>
      <geom name="y" type="cylinder" fromto="0 0 0 0.3 0.4 1.2" size="0.06" group="3"/>
      <geom name="x" type="box" size="0.1 0.2 0.3" pos="0.5 0.6 0.7" euler="-40 15 0"/>
      <geom name="e" type="ellipsoid" size="0.1 0.2 0.3"/>
    </body>
  </worldbody>
</mujoco>"""


def test_solids_stand_where_mujoco_has_them():
    """Read the common kinds with full sizes, and find their poses in a rotated body."""
    mechanism, report = read_mjcf_text(SOLIDS, file="m.xml")
    model = mujoco.MjModel.from_xml_string(SOLIDS)
    p, s = Peer(mechanism, model, mujoco.MjData(model)), State(mechanism, 2, shape=())
    p.set(s.q, s.qd)
    shapes = {shape.name: shape for shape in mechanism.body("b").shapes}
    assert {name: (x.kind, x.size, x.role) for name, x in shapes.items()} == {
        "s": ("sphere", (0.2,), "visual"),
        "c": ("capsule", (0.05, 0.6), "visual"),
        "y": ("cylinder", (0.06, 1.3), "collision"),
        "x": ("box", (0.2, 0.4, 0.6), "visual"),
    }
    assert_close(shapes["s"].color, (1, 0, 0, 0.5), 1e-7, "color of a material")  # MuJoCo stores single precision
    assert shapes["c"].color == (0.0, 1.0, 0.0, 1.0)
    T = compute(mechanism, "pose", s.q, frame="b")
    for name, shape in shapes.items():
        there = p.data.geom(name)
        expected = transform(there.xmat.reshape(3, 3), there.xpos)
        assert_close(T @ placed(shape.placement), expected, 1e-13, "pose")
    (floor,) = mechanism.scenery
    assert (floor.name, floor.placement.translation) == ("floor", (0.0, 0.0, -0.1))
    assert "m.xml:11: geom 'e': the type ellipsoid is not supported" in str(report)


def test_meshes_stand_in_their_files_frames(tmp_path):
    """Undo MuJoCo's change of a mesh to principal axes, and find the file's vertices where MuJoCo draws them."""
    (tmp_path / "wedge.obj").write_text(WEDGE)
    text = (
        '<mujoco><compiler angle="radian"/><asset><mesh name="w" file="wedge.obj" scale="1.5 2 0.5"/></asset>'
        '<worldbody><body name="b" pos="1 0 0" euler="0.1 0.2 0.3"><joint name="j" pos="0.1 0.2 0.3"/>'
        '<geom name="g" type="mesh" mesh="w" pos="0.3 0.1 0.2" euler="0.5 -0.4 0.3"/></body></worldbody></mujoco>'
    )
    (tmp_path / "m.xml").write_text(text)
    mechanism, _ = read_mjcf(tmp_path / "m.xml")
    (shape,) = mechanism.body("b").shapes
    assert (shape.kind, shape.size) == ("mesh", (1.5, 2.0, 0.5))
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "m.xml"))
    p, s = Peer(mechanism, model, mujoco.MjData(model)), State(mechanism, 4, shape=())
    p.set(s.q, s.qd)
    there = p.data.geom("g")
    drawn = model.mesh_vert @ there.xmat.reshape(3, 3).T + there.xpos
    T = compute(mechanism, "pose", s.q, frame="b") @ placed(shape.placement)
    ours = (VERTICES * shape.size) @ T[:3, :3].T + T[:3, 3]
    assert_close(np.sort(ours, axis=0), np.sort(drawn, axis=0), 1e-6, "vertices")  # MuJoCo stores single precision
    I = compute(mechanism, "inertia_matrix", s.q)  # noqa: E741
    mujoco.mj_forward(model, p.data)
    M = np.zeros(1)
    mujoco.mj_mulM(model, p.data, M, np.ones(1))
    assert_close(I[0], M, 1e-12 * M[0], "inertia of the mesh")

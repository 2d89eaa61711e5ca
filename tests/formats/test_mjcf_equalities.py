"""Equalities of MuJoCo as loops and couplings: the same gaps in the same states."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

from interpreted import compute  # noqa: E402
from kinetree.formats.mjcf import read_mjcf_text  # noqa: E402
from mujoco_peer import Peer  # noqa: E402
from pose_products import placed  # noqa: E402
from strategies import State  # noqa: E402
from tolerance import assert_close  # noqa: E402

pytestmark = pytest.mark.peers

TREE = """<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body name="stand" pos="0.3 -0.1 0.2" euler="0.2 0.5 -0.1"><site name="s0" pos="0.1 0.1 0" euler="1 0 0.3"/></body>
    <body name="a" pos="0.1 0.2 0.3" quat="0.9 0.1 0.2 0.3">
      <joint name="ja" pos="0.05 0.06 0.07" axis="1 2 3" ref="0.3"/>
      <geom size="0.1"/><site name="sa" pos="0.1 0 0" quat="0.8 0.2 0.1 0.1"/>
    </body>
    <body name="b" pos="0.4 0.2 0.3" quat="0.7 0.1 -0.2 0.3">
      <joint name="jb" axis="1 -2 3" pos="0.2 0.1 0" ref="-0.7"/><joint name="jc" type="slide" axis="1 0 3"/>
      <geom size="0.1"/>
      <body name="tail" pos="0.2 0 0.1" euler="0.4 0 0">
        <geom size="0.03"/><site name="sb" pos="0.1 0.3 0" euler="0 1 2"/>
      </body>
    </body>
  </worldbody>
  <equality>
    %s
  </equality>
</mujoco>"""

LOOPS = {
    "connect": '<connect body1="a" body2="b" anchor="0.01 0.02 0.03"/>',
    "connect to a welded body": '<connect body1="tail" body2="a" anchor="0.3 -0.2 0.1"/>',
    "connect to the world": '<connect body1="b" anchor="0.01 -0.02 0.03"/>',
    "connect of sites": '<connect site1="sa" site2="sb"/>',
    "weld": '<weld body1="a" body2="b" anchor="0.01 0.02 0.03"/>',
    "weld to the world": '<weld body1="tail" anchor="0.4 0.02 0.03"/>',
    "weld by relpose": '<weld body1="a" body2="b" relpose="0.1 0.2 0.3 0.9 0.1 0.2 0.3" anchor="0.01 0.02 0.03"/>',
    "weld of sites": '<weld site1="s0" site2="sb"/>',
}


def read(equalities):
    """Return the mechanism, its report, and MuJoCo's model in a random state, with the coordinates."""
    mechanism, report = read_mjcf_text(TREE % equalities, file="m.xml")
    model = mujoco.MjModel.from_xml_string(TREE % equalities)
    p = Peer(mechanism, model, mujoco.MjData(model))
    s = State(replace(mechanism, loops=(), couplings=()), 11, shape=())  # the equalities do not hold there
    p.set(s.q, s.qd)
    mujoco.mj_forward(model, p.data)
    return mechanism, report, p.data, s.q


@pytest.mark.parametrize("name", LOOPS)
def test_gaps_of_loops(name):
    """Find MuJoCo's gap between the frames of a loop: its vector, and the sine of half the angle."""
    mechanism, report, data, q = read(LOOPS[name])
    (loop,) = mechanism.loops
    kind = "spherical" if "connect" in name else "fixed"
    assert (loop.kind, report.of("dropped")[1:]) == (kind, [])
    assert "stand" not in (loop.body_a, loop.body_b)
    a = compute(mechanism, "pose", q, frame=loop.body_a) @ placed(loop.placement_a)
    b = compute(mechanism, "pose", q, frame=loop.body_b) @ placed(loop.placement_b)
    gap = data.efc_pos[:3]
    assert np.abs(gap).max() > 0.01
    assert_close(a[:3, 3] - b[:3, 3], gap, 1e-14, "gap")  # 2e-16
    if kind == "fixed":
        cosine = (np.trace(a[:3, :3].T @ b[:3, :3]) - 1) / 2
        assert_close(np.sqrt((1 - cosine) / 2), np.linalg.norm(data.efc_pos[3:6]), 1e-14, "turn")
    else:
        assert len(data.efc_pos) == 3


@pytest.mark.parametrize(
    ("equality", "terms"),
    [
        ('<joint name="gear" joint1="ja" joint2="jb" polycoef="0.1 2.5 0 0 0"/>', (("jb", 2.5),)),
        ('<joint name="gear" joint1="jb" joint2="jc" polycoef="-0.3 -0.7 0 0 0"/>', (("jc", -0.7),)),
        ('<joint name="gear" joint1="ja" polycoef="0.4 3 2 1 0"/>', ()),
    ],
)
def test_gaps_of_couplings(equality, terms):
    """Find MuJoCo's gap of a coupling with nonzero references."""
    mechanism, _, data, q = read(equality)
    (coupling,) = mechanism.couplings
    assert (coupling.name, coupling.terms) == ("gear", terms)
    by_name = dict(zip([j.name for j in mechanism.joints], q, strict=True))
    gap = by_name[coupling.joint] - coupling.offset - sum(ratio * by_name[name] for name, ratio in coupling.terms)
    assert abs(gap) > 0.01
    assert_close([gap], data.efc_pos, 1e-14, "gap")


def test_what_is_not_taken_is_reported():
    """Report couplings that are not linear, equalities that are not active, and loops of one body with itself."""
    mechanism, report = read_mjcf_text(
        TREE
        % (
            '<joint name="cubic" joint1="ja" joint2="jb" polycoef="0 1 0 2 0"/>\n'
            '<connect name="off" body1="a" body2="b" anchor="0 0 1" active="false"/>\n'
            '<weld name="idle" body1="stand"/><weld body1="b" body2="tail"/><tendon tendon1="t"/>'
        ),
        file="m.xml",
    )
    assert (mechanism.loops, mechanism.couplings) == ((), ())
    dropped = "\n".join(map(str, report.of("dropped")))
    assert (
        "m.xml:18: the equality 'cubic': joint 'ja' follows 'jb' by a polynomial, and couplings are linear" in dropped
    )
    assert "m.xml:19: the connect 'off': it is not active" in dropped
    assert "the loop 'idle': both its ends are on 'ground'" in dropped
    assert "the loop 'weld4': both its ends are on 'b'" in dropped
    assert "m.xml:20: <tendon> in <equality>" in dropped


def test_a_flag_disables_all():
    """Drop all equalities if the file disables them."""
    text = TREE % LOOPS["weld"]
    text = text.replace("<worldbody>", '<option><flag equality="disable"/></option><worldbody>')
    mechanism, report = read_mjcf_text(text)
    assert mechanism.loops == ()
    assert "the weld 'weld1': it is not active" in str(report)

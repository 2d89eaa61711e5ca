"""Inverse and forward dynamics of the UR5, compared with other libraries that are installed."""

from __future__ import annotations

import re
import tempfile
import warnings
from pathlib import Path

import numpy as np

import kinetree as kt
from book import Section
from measure import Contender, Figure, NotMeasured, agree, interleaved, ratio
from peer_adapters import ADAPTERS, Answers
from report import Table
from robots import ROBOTS, TITLE

ROWS, BATCH, AGREE = 8, 4096, 1e-9
LINK = """<link name="{1}"><inertial><mass value="1"/><origin xyz="0.1 0 0" rpy="0 0 0"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="turn_{1}" type="revolute"><parent link="{0}"/><child link="{1}"/><origin xyz="0 0 0" rpy="0 0 0"/>
<axis xyz="0 0 1"/><limit lower="-7" upper="7" effort="9" velocity="9"/></joint>"""
SMALL = f"""\
<robot name="small"><link name="world"/><link name="stand"/>
<joint name="hold" type="fixed"><parent link="world"/><child link="stand"/><origin xyz="0 0 0" rpy="0 0 0"/></joint>
{LINK.format("stand", "one")}{LINK.format("one", "two")}</robot>
"""
"""A robot of two links, for the cost of a call by itself; the Robotics Toolbox requires more than one."""
SHAPES = re.compile(r"<(visual|collision|transmission|gazebo)\b(?:[^>]*/>|.*?</\1>)", re.DOTALL)


def section(quick: bool) -> Section:
    """Return one row per installed library, and the reasons why others are missing."""
    arm, rounds = ROBOTS[0].rigid(), 3 if quick else 9
    rows, reasons, broken, best = [], [], [], {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path, small = Path(folder) / "arm.urdf", Path(folder) / "small.urdf"
        path.write_text(SHAPES.sub("", ROBOTS[0].path.read_text()))
        small.write_text(SMALL)
        for label, (package, prepare) in ADAPTERS.items():
            try:
                whole, empty = prepare(arm, path), prepare(kt.load(small), small)
            except ImportError as error:
                reasons.append(f"{label} ({package}: {error})")
                continue
            except Exception as error:  # a peer that cannot read the arm is reported, and the run goes on
                broken.append(f"{label} ({type(error).__name__}: {error})")
                continue
            for name in whole:
                cells, figure = compare(arm, label, name, whole[name], empty[name], rounds)
                rows.append(cells)
                best.setdefault(label, []).append(figure)
    if not rows:
        raise NotMeasured(f"none is installed: {'; '.join(reasons + broken)}")
    found = ", ".join(f"{label} {min(v):,.0f} to {max(v):,.0f}" for label, v in best.items())
    note = (
        "UR5. Ours in calls of 4,096, and as one checked call. The peers are called from Python as their documentation "
        "does, by the fastest route found: Drake's plant by `SetPositionsAndVelocities` and `CalcInverseDynamics`, or "
        "its acceleration port; adam's CasADi expressions through buffers, and mapped over a batch; JaxSim compiled by "
        "XLA, and vectorized over a batch of 4,096, on one core. `less the peer's call` subtracts the same call on a "
        f"model of two links, which for the slow ones is more than the call itself; one call of ours pays for a call "
        f"as well. Results agree to {AGREE:g} relative. "
        + (f"Not installed here: {'; '.join(reasons)}. `pip install '.[peers]'` installs them all. " if reasons else "")
        + (f"These did not read the arm: {'; '.join(broken)}." if broken else "")
    )
    columns = (
        "peer", "function", "ours, batch [ns]", "ours, one call [ns]", "peer, one call [us]", "peer, batch [us]",
        "ratio of batches", "less the peer's call", "ratio of one call",
    )  # fmt: skip
    return Section(
        "Other libraries",
        f"Times as long as in a batch of ours, UR5, called from Python: {found}.",
        (Table("Further peers", columns, tuple(rows), note.rstrip()),),
    )


def compare(
    arm: kt.System, label: str, name: str, peer: Answers, empty: Answers, rounds: int
) -> tuple[tuple[str, ...], float]:
    """Return a row of the table and the ratio to a batch of Kinetree."""
    rng = np.random.default_rng(0)
    state = rng.normal(size=(3, BATCH, arm.nv))
    function, method, out = arm.function(name), getattr(arm, name), np.empty((BATCH, arm.nv))
    rows = [peer.row(*(x[k] for x in state)) for k in range(ROWS)]
    point = [empty.row(*(np.full(2, 0.1 + x) for x in range(3)))] * ROWS
    expected = function(*state[:, :ROWS])
    agree(f"{label} {name}", np.array([np.array(peer.call(*row)) for row in rows]), expected, AGREE)
    one = [np.array(x[0]) for x in state]
    contenders = {
        "ours": Contender(lambda: function.gufunc(*state, out=out), BATCH),
        "method": Contender(lambda: [method(*one) for _ in range(100)], 100),
        "peer": Contender(lambda: [peer.call(*row) for row in rows], ROWS),
        "call": Contender(lambda: [empty.call(*row) for row in point], ROWS),
    }
    if peer.many is not None:
        many = peer.many
        agree(f"{label} {name}, batch", np.array(many(*state)), function(*state), AGREE)
        contenders["batch"] = Contender(lambda: many(*state), BATCH)
    times = interleaved(contenders, rounds)
    batch = times.get("batch", times["peer"])
    whole = ratio(batch, times["ours"])
    bare = None if "batch" in times else ratio(batch, times["ours"], times["call"])
    cells = (
        label, TITLE[name], Figure.of(times["ours"]).text(), Figure.of(times["method"]).text(4),
        Figure.of(times["peer"]).times(1e-3).text(),
        Figure.of(batch).times(1e-3).text() if "batch" in times else "a loop",
        whole.text(), bare.text() if bare else "-", ratio(times["peer"], times["method"]).text(),
    )  # fmt: skip
    return cells, whole.median

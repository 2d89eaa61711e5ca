"""The action that cuts a mechanism elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.apps.studio.actions.structure import cut
from kinetree.apps.studio.tabs import Folder, Studio, Tab
from tolerance import assert_close


def centers(system: kt.System, q) -> dict[str, np.ndarray]:
    """Return the centers of mass by body."""
    return {b.name: (pose @ [*b.com, 1.0])[:3] for b, pose in zip(system.bodies, system.poses(q), strict=True)}


@pytest.mark.parametrize(
    ("name", "loop", "joint"),
    everyday.some(
        [
            ("four_bar", "pin", "crank"),
            ("slider_crank", "pin", "slider"),
            pytest.param("spatial_slider_crank", "ball", "crank", marks=pytest.mark.slow),
            pytest.param("three_rrr", "pin_a", "joint2", marks=pytest.mark.slow),
        ]
    ),
)
def test_a_mechanism_cut_elsewhere_stays_where_it_is(tmp_path, name, loop, joint):
    """Cut another joint at an assembled position: the bodies are where they were, and fall alike."""
    before = kt.load(name)
    q = before.assemble()
    studio = Studio(Folder.of(tmp_path), Tab(before))
    found = cut(studio, loop, joint, q=q.tolist())
    after, p = studio.tab.shown(), found["data"]["first"]["q"]
    assert [x.name for x in after.mechanism.loops if x.name == joint] == [joint]
    was, now = centers(before, q), centers(after, p)
    assert_close([now[b] for b in was], list(was.values()), 1e-12, "centers of mass")
    falls = [
        system.forward_dynamics(x, np.zeros(system.nv), np.zeros(system.nv)) for system, x in ((before, q), (after, p))
    ]
    power = [system.gravity_torque(x) @ qdd for system, x, qdd in ((before, q, falls[0]), (after, p, falls[1]))]
    assert_close(power[1], power[0], 1e-9 * max(1.0, abs(power[0])), "rate at which the fall gains energy")


@everyday.long
def test_lengths_of_the_page_are_kept(tmp_path):
    """Cut a four-bar whose crank the page has made longer."""
    before = kt.load("four_bar")
    studio = Studio(Folder.of(tmp_path), Tab(before))
    lengths = [0.0895, 0.1152, 0.045, 0.1152]
    cut(studio, "pin", "output", parameters=lengths)
    pin = studio.tab.shown().mechanism.joint("pin")
    assert_close(pin.placement.translation, [0.045, 0, 0], 1e-16, "pin on the crank")


def test_numbers_that_do_not_fit_are_refused(tmp_path):
    """Send positions and lengths of another mechanism."""
    studio = Studio(Folder.of(tmp_path), Tab(kt.load("four_bar")))
    with pytest.raises(kt.InputError, match=r"q are \[0\.1\]; expected 3 numbers"):
        cut(studio, "pin", "output", q=[0.1])
    with pytest.raises(kt.InputError, match=r"parameters are \[\]; expected 4 numbers"):
        cut(studio, "pin", "output", parameters=[])

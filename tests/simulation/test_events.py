"""Events: exact times, in single runs and batches, and runs that stop at them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.special import ellipk

import kinetree as kt
from closed_form_runs import PENDULUM
from kinetree.errors import InputError
from kinetree.formats.toml import read_toml_text
from kinetree.simulation.acting import smooth
from kinetree.simulation.acting.sampled import PythonControl, Sampled
from kinetree.simulation.events import TOLERANCE, Event, event_hits
from tolerance import assert_close

G = 9.81
LENGTH = 0.7


def pendulum() -> kt.System:
    """Return a point mass on a massless rod, hanging along -y at q = 0."""
    body = kt.Body("bob", 1.3, (0.0, -LENGTH, 0.0))
    joint = kt.Joint("pivot", "revolute", "ground", "bob")
    return kt.System(kt.build_mechanism("pendulum", [body], [joint], gravity=(0.0, -G, 0.0)))


def ball() -> kt.System:
    """Return a free body."""
    body = kt.Body("ball", 2.0, inertia=(0.1, 0.1, 0.1, 0, 0, 0))
    return kt.System(
        kt.build_mechanism("ball", [body], [kt.Joint("free", "free", "ground", "ball")], gravity=(0, 0, -G))
    )


def quarter(amplitude: float, length: float = LENGTH) -> float:
    """Return the time of a pendulum from rest at an amplitude to its lowest position."""
    return float(np.sqrt(length / G) * ellipk(np.sin(amplitude / 2) ** 2))


def angle(now):
    """Return the first coordinate."""
    return now.q[0]


def height(now):
    """Return the height of the ball."""
    return now.point("ball", (0, 0, 0))[0][2]


METHODS = {
    "dop853": ({"rtol": 1e-12, "atol": 1e-12}, 1e-9),
    "dopri5": ({"rtol": 1e-11, "atol": 1e-11}, 1e-8),
    "rk4": ({"dt": 1e-3}, 1e-8),
    "gauss": ({"dt": 1e-3}, 1e-8),
    "rodas5p": ({"rtol": 1e-10, "atol": 1e-12}, 1e-8),
    "bdf": ({"rtol": 1e-10, "atol": 1e-12}, 1e-8),
    "radau": ({"rtol": 1e-10, "atol": 1e-12}, 1e-8),
}


@pytest.mark.parametrize("method", METHODS)
def test_a_pendulum_passes_its_lowest_point_in_time(method):
    """Find the odd quarter periods of the elliptic integral, each with its direction."""
    options, bound = METHODS[method]
    times = np.linspace(0.0, 3.0, 37)
    events = [
        Event(angle, name="both"),
        Event(angle, direction=1, name="up"),
        Event(angle, direction=-1, name="down"),
    ]
    run = kt.simulate(pendulum(), [1.9], times=times, method=method, events=events, **options)
    assert run.finished
    hits = event_hits(run)
    exact = quarter(1.9) * np.array([1, 3, 5])
    for name, expected in (("both", exact), ("up", exact[1::2]), ("down", exact[::2])):
        assert_close([h.t for h in hits if h.name == name], expected, bound, f"{method}, {name}")
    assert_close([h.q[0] for h in hits], np.zeros(len(hits)), 10 * TOLERANCE, "angle")
    speed = 2 * np.sqrt(G / LENGTH) * np.sin(0.95)
    assert_close([abs(h.qd[0]) for h in hits], np.full(len(hits), speed), 1e-7, "speed")


def test_a_ball_stops_at_the_ground():
    """Let a body fall, end the run at height zero at sqrt(2 h / g), and keep its last state."""
    run = kt.simulate(
        ball(), [0.3, 0.1, 2.0, 0, 0, 0, 1], duration=3.0, rtol=1e-12,
        events=[Event(height, direction=-1, stop=True, name="ground"), Event(lambda now: now.qd[5] + 1.0)],
    )  # fmt: skip
    exact = np.sqrt(2 * 2.0 / G)
    assert run.status == f"stopped: event ground at t = {run.t[-1]:.12g} s"
    assert_close(run.t[-1], exact, 1e-9, "time")
    assert_close(run.q[-1], [0.3, 0.1, 0.0, 0, 0, 0, 1], 1e-9, "place")
    assert (np.diff(run.t) > 0).all()
    assert [h.name for h in event_hits(run)] == ["event2", "ground"]
    assert_close(event_hits(run)[0].t, 1.0 / G, 1e-9, "speed of 1 m/s")
    assert len(run.options["events"]) == 2
    json.dumps(run.options)
    assert run["energy"].shape == run.t.shape


def test_every_run_of_a_batch_has_its_own_events():
    """Stop two of three pendulums at different times, while the third rests and continues."""
    start = np.array([[1.9], [1.0], [0.0]])
    run = kt.simulate(pendulum(), start, duration=1.0, rtol=1e-11, events=[Event(angle, stop=True)])
    hits = event_hits(run)
    assert [h.run for h in hits] == [(0,), (1,)]
    assert_close([h.t for h in hits], [quarter(1.9), quarter(1.0)], 1e-8, "times")
    last = [np.flatnonzero(np.isfinite(q[:, 0]))[-1] for q in run.q]
    assert all(run.t[k] <= h.t < run.t[k + 1] for k, h in zip(last, hits, strict=False))
    assert last[2] == 1000
    assert run.status == f"stopped: event angle at t = {hits[0].t:.12g} s (run 0; 2 runs in all)"


def test_events_see_the_parameters_of_their_run():
    """Give pendulums different lengths and find their quarter periods."""
    system = kt.System(read_toml_text(PENDULUM)[0])
    lengths = np.array([[0.4], [0.9]])
    bob = Event(lambda now: now.point("bob", (0.0, 0.0, -1.0))[0][0], name="bob")
    run = kt.simulate(system, [[1.0], [1.0]], duration=0.6, parameters=lengths, rtol=1e-11, events=[bob])
    assert_close([h.t for h in event_hits(run)], [quarter(1.0, x) for x in lengths[:, 0]], 1e-8, "times")


@pytest.mark.parametrize(
    "control", [Sampled(kt.PD(0.0, 0.0, kt.Hold([0.0])), 30), PythonControl(lambda t, q, qd: 0 * q)]
)
def test_events_are_found_under_control_from_outside(control):
    """Find the same time under sampled control without torque, between its instants, and stop there."""
    run = kt.simulate(
        pendulum(), [1.9], duration=2.0, rtol=1e-11, atol=1e-12, control=control, events=[Event(angle, stop=True)]
    )
    assert_close(run.t[-1], quarter(1.9), 1e-8, "time")
    assert_close(run.q[-1], [0.0], 1e-9, "angle")
    assert "event angle" in run.status


def test_a_stop_saves_what_comes_after():
    """Stop a run long before its end, and find a fraction of the evaluations."""
    whole = kt.simulate(pendulum(), [1.9], duration=100.0)
    run = kt.simulate(pendulum(), [1.9], duration=100.0, events=[Event(angle, stop=True)])
    assert run.evaluations < whole.evaluations / 5
    assert_close(run.t[-1], quarter(1.9), 1e-6, "time")


def test_a_start_on_zero_is_no_crossing():
    """Start at zero and count only the returns; find no event for a function that never crosses zero."""
    run = kt.simulate(pendulum(), [0.0], [1.0], duration=1.0, events=[Event(angle)])
    assert len(event_hits(run)) == 1
    far = kt.simulate(pendulum(), [0.0], [1.0], duration=1.0, events=[Event(lambda now: now.q[0] - 5.0)])
    assert event_hits(far) == []
    assert "events" not in far.options


def test_two_crossings_between_samples_are_missed_and_finer_times_find_them():
    """Show the limit that the documentation states."""
    event = Event(lambda now: 1.8 - now.q[0], name="near the top")
    coarse = kt.simulate(pendulum(), [1.7], [3.0], times=[0.0, 3.0], events=[event])
    fine = kt.simulate(pendulum(), [1.7], [3.0], duration=3.0, events=[event])
    assert len(event_hits(coarse)) < len(event_hits(fine))


def test_events_that_cannot_be_are_refused():
    """Give a wrong event, and read the fault."""
    with pytest.raises(InputError, match="direction of an Event is 2; give \\+1, -1 or 0"):
        Event(angle, direction=2)
    with pytest.raises(InputError, match="cannot be called; give a function"):
        Event(1.0)  # type: ignore[arg-type]

    def run(*events):
        return kt.simulate(pendulum(), [1.0], duration=1.0, events=events)

    with pytest.raises(InputError, match="events have the same name: angle, angle"):
        run(Event(angle), Event(angle))
    with pytest.raises(InputError, match="the event 'event1' cannot be compiled .*of kt\\.smooth"):
        run(Event(lambda now: abs(now.q[0])))
    with pytest.raises(InputError, match=r"the event 'event1' is no function of \(now\): too many positional"):
        run(Event(lambda: 0.0))
    with pytest.raises(InputError, match="the event 'event1' returns list; expected one scalar"):
        run(Event(lambda now: now.q))
    assert event_hits(run(Event(lambda now: smooth.absolute(now.q[0]) - 0.5)))

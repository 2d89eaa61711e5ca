"""CartPole, Acrobot and Pendulum against the environments of Gymnasium."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from kinetree.environments.tasks import Equations
from kinetree.environments.vector import Batch, named_task
from tolerance import assert_close

gymnasium = pytest.importorskip("gymnasium")

ORDER = {"CartPole": (0, 2, 1, 3), "Acrobot": (0, 1, 2, 3), "Pendulum": (0, 1)}
"""The entries of Gymnasium's state that are q and then qd."""
STEPS = 500


def peer(name: str) -> gymnasium.Env:
    """Return Gymnasium's environment."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gymnasium.make(f"{name}-v1").unwrapped


def started(name: str, state: np.ndarray) -> Batch:
    """Return an environment of ours at a state of Gymnasium's, without a limit of steps."""
    task = named_task(name)
    batch, at = Batch(task.changed(max_steps=10**6), 1, "disabled"), list(ORDER[name])
    half = len(at) // 2
    batch.reset(0, state={"q": state[at[:half]], "qd": state[at[half:]]})
    return batch


def state_of(name: str, batch: Batch) -> np.ndarray:
    """Return the state in Gymnasium's order."""
    state = np.empty(len(ORDER[name]))
    state[list(ORDER[name])] = np.concatenate([batch.q[0], batch.qd[0]])
    return state


def actions(name: str, rng: np.random.Generator):
    """Yield actions for both: Gymnasium's, and ours with an axis for environments."""
    for _ in range(STEPS):
        if name == "Pendulum":
            a = rng.uniform(-2.4, 2.4, 1)  # some are clipped
            yield a, a[None]
        else:
            a = int(rng.integers(2 if name == "CartPole" else 3))
            yield a, np.array([a])


@pytest.mark.parametrize("name", ORDER)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_step_equals_gymnasiums(name, seed):
    """Take each of 500 steps of an episode from Gymnasium's own state: state, observation, reward and end."""
    rng, theirs = np.random.default_rng(seed), peer(name)
    theirs.reset(seed=seed)
    theirs.state = np.array(theirs.state, dtype=float)
    ours, at = started(name, theirs.state), list(ORDER[name])
    half = len(at) // 2
    for given, mine in actions(name, rng):
        if name == "CartPole":  # stays upright
            s = theirs.state
            given = int(s[2] + 0.3 * s[3] + 0.02 * s[0] + 0.06 * s[1] > 0)
            mine = np.array([given])
        before = np.array(theirs.state, dtype=float)
        ours.q[0], ours.qd[0] = before[at[:half]], before[at[half:]]
        observation, reward, terminated, _, _ = theirs.step(given)
        found, own, ended, cut = ours.step(mine)
        assert_close(state_of(name, ours), np.array(theirs.state), 1e-12, "state")
        assert_close(found[0], observation.astype(float), 1e-6, "observation, which is theirs in float32")
        assert_close(own[0], reward, 1e-12 * max(1.0, abs(reward)), "reward")
        assert (ended[0], cut[0]) == (terminated, False)
        if terminated:
            theirs.reset()
            theirs.state = np.array(theirs.state, dtype=float)


@pytest.mark.parametrize("name", ORDER)
def test_free_motions_stay_together(name):
    """Run 500 steps freely from the same state where the motion does not amplify rounding: a pole hangs.

    Above the cart, the same 500 steps amplify it by exp(40), as any two programs find.
    """
    theirs = peer(name)
    theirs.reset(seed=5)
    start = {"CartPole": [0.1, 0.2, np.pi - 0.4, 0.3], "Acrobot": [0.05, -0.03, 0.07, 0.02], "Pendulum": [3.0, 0.1]}
    theirs.state = np.array(start[name])
    ours, worst = started(name, theirs.state), 0.0
    theirs.steps_beyond_terminated = 1  # no warning about steps after the end
    for given, mine in actions(name, np.random.default_rng(7)):
        if name == "Acrobot":  # without torque: those at random make it amplify rounding
            given, mine = 1, np.array([1])
        theirs.step(given)
        ours.step(mine)
        worst = max(worst, float(np.abs(state_of(name, ours) - theirs.state).max()))
    assert_close(worst, 0.0, 1e-12 * max(1.0, np.abs(theirs.state).max()), "largest difference over 500 steps")


@pytest.mark.parametrize("name", ORDER)
def test_steps_are_those_of_the_mechanisms_that_are_drawn(name):
    """Compare steps with forward dynamics of the mechanisms: explicit and semi-implicit Euler, and Runge-Kutta."""
    task, rng, n = named_task(name), np.random.default_rng(2), 50
    assert isinstance(task.motion, Equations) and task.motion.system is not None
    system, dt = task.motion.system, task.motion.dt
    batch = Batch(task, n, "disabled")
    q, qd = rng.uniform(-1.0, 1.0, (n, system.nq)), rng.uniform(-1.0, 1.0, (n, system.nv))
    a = rng.uniform(-2.0, 2.0, (n, 1)) if name == "Pendulum" else rng.integers(2, size=n)
    batch.reset(0, state={"q": q, "qd": qd})
    batch.step(a)
    tau = {
        "CartPole": lambda: np.column_stack([np.where(a == 1, 10.0, -10.0), np.zeros(n)]),
        "Acrobot": lambda: np.column_stack([np.zeros(n), a - 1.0]),
        "Pendulum": lambda: a,
    }[name]()
    if name == "Acrobot":
        wanted = system.stepper(dt=dt, method="rk4", control="torque")(q, qd, tau)
    else:
        after = qd + dt * system.forward_dynamics(q, qd, tau)
        wanted = q + dt * (qd if name == "CartPole" else after), after
    assert_close(batch.q, wanted[0], 1e-14 * 10, "coordinates")
    assert_close(batch.qd, wanted[1], 1e-13 * 30, "velocities")

"""Rolled code against unrolled code, for every algorithm and kind of joint, with branches and free parameters."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given

import everyday
import kinetree as kt
from interpreted import relative
from kinetree import InputError, System
from kinetree.compiler.lower.build import CLOSING, UNROLLED, Request, build
from kinetree.dynamics import ALGORITHMS
from kinetree.model import GROUND, Body, Frame, Joint, Mechanism, Parameter, Placement, build_mechanism, parse
from kinetree.runtime.function import Function
from strategies import ALL, State, examples, moving_mechanisms, random_mechanism
from tolerance import assert_close

TREES = [name for name, a in ALGORITHMS.items() if name not in CLOSING and len(a.outputs) == 1 and not a.unrolled]
"""The algorithms with one output that run as loops over bodies and do not depend on loops."""


def bushy(n: int, seed: int, kinds=ALL, armature: bool = True) -> Mechanism:
    """Return a random tree: chains of some length, with branches, of all kinds of joints."""
    rng = np.random.default_rng(seed)
    chosen = [str(x) for x in rng.choice(kinds, n)]
    parents = [-1] + [k - 1 if rng.random() < 0.7 else int(rng.integers(-1, k)) for k in range(1, n)]
    return random_mechanism(chosen, parents, seed, armature=armature, geometry="mixed")


def rolled(system: System, name: str, **options) -> Function:
    """Return a rolled function, for the frame of the tool if it requires one, with wrenches if it depends on them."""
    algorithm = ALGORITHMS[name]
    frame = "tool" if algorithm.frame else None
    return system.function(name, frame=frame, wrenches=algorithm.wrenches, lowering="rolled", **options)


def arguments(function: Function, s: State) -> list[np.ndarray]:
    """Return random arrays for the inputs of a function."""
    known = {"q": s.q, "q2": np.roll(s.q, 1, axis=0), "qd": s.qd, "qdd": s.qdd, "tau": s.tau, "wrenches": s.wrenches}
    known["added"] = np.abs(s.qdd)
    return [known[a.name] for a in function.inputs if a.name in known]


def unrolled(function: Function, given_: list[np.ndarray]) -> np.ndarray:
    """Return the result of the same request as straight-line code, in plain NumPy."""
    return build(function.mechanism, function.request).interpret(*given_)[0]


BUSH, SHRUB = System(bushy(64, 4)), System(bushy(24, 4))


@pytest.mark.parametrize(
    "name",
    everyday.seldom(
        everyday.only(TREES, ("inverse_dynamics", "inertia_matrix", "kinetic_energy")),
        ("inverse_dynamics", "inertia_matrix"),
    ),
)
def test_every_algorithm_is_that_of_unrolled_code(name):
    """Run every algorithm on a tree of 64 bodies of all kinds (matrices: 24), rolled, and unrolled in plain NumPy."""
    system = SHRUB if ALGORITHMS[name].shape == ("nv", "nv") else BUSH
    f = rolled(system, name)
    given_ = arguments(f, State(system.mechanism, 1, 2))
    expected, found = unrolled(f, given_), f(*given_)
    assert_close(relative(found, expected), 0.0, 4e-14, name)  # 3e-15
    assert_close(relative(f.program.interpret(*given_)[0], found), 0.0, 4e-14, f"{name}, interpreted")


@pytest.mark.parametrize("name", everyday.some([name for name in TREES if ALGORITHMS[name].axes]))
@pytest.mark.parametrize("axes", ["body", "world"])
def test_both_axes_of_frames(name, axes):
    """Compute a frame's twists and Jacobians in the axes of the body and of the ground."""
    system = System(bushy(9, 7))
    f = rolled(system, name, axes=axes)
    given_ = arguments(f, State(system.mechanism, 2))
    assert_close(relative(f(*given_), unrolled(f, given_)), 0.0, 2e-14, f"{name} {axes}")  # 8e-16


@given(moving_mechanisms(most=12))
@examples(5)
def test_random_mechanisms(mechanism):
    """Run inverse and forward dynamics of random trees, rolled and unrolled."""
    system, s = System(mechanism), State(mechanism, shape=3)
    for name in ("inverse_dynamics", "forward_dynamics"):
        f = rolled(system, name)
        given_ = arguments(f, s)
        expected = unrolled(f, given_)
        condition = float(np.linalg.cond(build(mechanism, Request("inertia_matrix")).interpret(s.q)[0]).max())
        assert_close(relative(f(*given_), expected), 0.0, max(1e-13, 4e-15 * condition), name)


@everyday.long
@pytest.mark.parametrize("geometry", everyday.only(["general", "neat", "mixed"], ["mixed"]))
def test_chains_of_joints_of_one_axis(geometry):
    """Run chains with frames of Denavit and Hartenberg, for general and for special axes."""
    for seed in range(3):
        kinds = [str(x) for x in np.random.default_rng(seed).choice(["revolute", "prismatic"], 40)]
        system = System(random_mechanism(kinds, range(-1, 39), seed, geometry=geometry))
        s = State(system.mechanism, seed)
        for name in ("inverse_dynamics", "poses"):
            f = rolled(system, name)
            given_ = arguments(f, s)
            assert_close(relative(f(*given_), unrolled(f, given_)), 0.0, 1e-13, name)  # 8e-15


def parametric() -> Mechanism:
    """Return a chain of several kinds whose numbers are formulas of free parameters, some of them shared."""
    kinds = ["revolute", "spherical", "prismatic", "helical", "revolute", "universal"]
    bodies = [
        Body(f"b{k}", parse("mass/2" if k % 2 else "mass"), (parse("l/2"), 0.01, 0.02),
             (1e-3, parse("mass*l^2/12"), parse("mass*l^2/12"), 0.0, 0.0, 0.0))
        for k in range(6)
    ]  # fmt: skip
    joints = [
        Joint(
            f"j{k}", what, f"b{k - 1}" if k else GROUND, f"b{k}", Placement((parse("l"), 0.1, 0.0)),
            axis=(0.3, parse("2*l"), 1.0), pitch=parse("l/3"), armature=(parse("mass/100"),) if k == 0 else (),
        )
        for k, what in enumerate(kinds)
    ]  # fmt: skip
    tool = Frame("tool", "b4", Placement((parse("1.1*l"), 0.1, 0.0)))
    parameters = [Parameter("l", 0.3, free=True), Parameter("mass", 1.3, free=True)]
    return build_mechanism("formulas", bodies, joints, frames=[tool], parameters=parameters)


@pytest.mark.parametrize(
    "name", everyday.some(["inverse_dynamics", "forward_dynamics", "inertia_matrix", "jacobian", "integrate"])
)
def test_free_parameters(name):
    """Give each sample its own parameters, and find the numbers of unrolled code and the bits of single calls."""
    system = System(parametric())
    f = rolled(system, name)
    given_ = [*arguments(f, State(system.mechanism, 3, 11)), np.random.default_rng(3).uniform(0.5, 1.5, size=(11, 2))]
    out = f(*given_)
    assert_close(relative(out, unrolled(f, given_)), 0.0, 2e-14, name)  # 2e-15
    assert all(np.array_equal(f(*(a[k] for a in given_)), out[k]) for k in range(11))


@everyday.long
@pytest.mark.peers
def test_long_chain_against_pinocchio():
    """Compare forward and inverse dynamics, and the inertia matrix, of a chain of 200 links with Pinocchio's."""
    pin = pytest.importorskip("pinocchio")
    from pinocchio_peer import peer

    system = System(random_mechanism(["revolute"] * 200, range(-1, 199), 11))
    s, other = State(system.mechanism, 5, 1), peer(system.mechanism)
    q, qd, qdd, tau = s.q[0], s.qd[0], s.qdd[0], s.tau[0]
    assert system.function("forward_dynamics").request.lowering == "rolled"
    expected = pin.rnea(other.model, other.data, q, qd, qdd)
    assert_close(
        system.inverse_dynamics(q, qd, qdd) / abs(expected).max(), expected / abs(expected).max(), 1e-13, "ID"
    )  # 6e-15
    inertia = np.triu(pin.crba(other.model, other.data, q))
    inertia = inertia + np.triu(inertia, 1).T
    found = system.inertia_matrix(q)
    assert np.array_equal(found, found.T)
    assert_close(found / inertia.max(), inertia / inertia.max(), 1e-13, "I")  # 6e-15
    qdd = pin.aba(other.model, other.data, q, qd, tau)
    condition = np.linalg.cond(inertia)
    assert_close(
        relative(system.forward_dynamics(q, qd, tau)[None], qdd[None]), 0.0, 1e-18 * condition, "FD"
    )  # 3e-14 of 1e-11


def test_the_same_code_serves_chains_of_any_length(tmp_path, monkeypatch):
    """Compile for a chain of 70 links and find the object code used again for 1,000."""
    monkeypatch.setenv("KINETREE_CACHE_DIR", str(tmp_path))
    kt.chain(71, length=0.0371).function("forward_dynamics")  # of no other test: what is known of it would be kept
    before = sorted(tmp_path.iterdir())
    assert len(before) == 2  # forward dynamics, and the search for joints that nothing resists
    long = kt.chain(1000, length=0.03, mass=0.7)
    assert long.function("forward_dynamics").request.lowering == "rolled"
    assert sorted(tmp_path.iterdir()) == before


def test_the_number_of_bodies_decides():
    """Find short chains unrolled and long ones rolled, unless a lowering is given."""
    assert kt.chain(UNROLLED).function("gravity_torque").request.lowering == "unrolled"
    assert kt.chain(UNROLLED + 1).function("gravity_torque").request.lowering == "rolled"
    assert kt.chain(3).function("gravity_torque", lowering="rolled").request.lowering == "rolled"
    with pytest.raises(InputError, match="lowering is 'curled'; expected 'auto', 'unrolled' or 'rolled'"):
        kt.chain(3).function("gravity_torque", lowering="curled")


MEMORY = """
import resource, numpy as np, kinetree as kt
chain = kt.chain(20_000)
x = np.zeros((3, 20_000))
chain.function("gravity_torque")(x[0])
f = chain.function("forward_dynamics")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(3):
    f(*x)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / 20_000)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="counts memory as Linux does")
def test_a_link_needs_little_memory():
    """Run a chain of 20,000 links in a fresh process and find less than 2 kB per link allocated for a single sample."""
    done = subprocess.run([sys.executable, "-c", MEMORY], stdout=subprocess.PIPE, text=True, check=True)
    assert float(done.stdout) < 2000  # 140
    f = kt.chain(100).function("forward_dynamics", lowering="rolled")
    assert f.workspace == 8 * f.executor.workspace > 0
    assert f.executor.workspace * 8 / 100 < 400  # 140

"""WebAssembly of Programs, in Node, in Chromium and in wasmtime, against the gufuncs."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import hypothesis
import numpy as np
import pytest

import interpreted
import kinetree as kt
from closed_mechanisms import closed_mechanisms, motion
from kinetree.library import names as library_names
from kinetree.model import Mechanism
from kinetree.targets.wasm import Wasm
from public_robots import calculable, public_robots
from rounding_scales import dynamics_scale
from strategies import State, examples, moving_mechanisms
from tolerance import assert_close
from wasm_hosts import Call, in_chromium, in_node, in_wasmtime, needs_chromium, needs_node, needs_wasmtime

EPS = float(np.finfo(float).eps)


def states(system: kt.System):
    """Return three states of a mechanism, which are closed if it has loops, and forces."""
    s = State(system.mechanism, 4)
    q, qd = s.q, s.qd
    if system.closures:
        q = np.tile(system.assemble(), (3, 1))
        qd = system.closing_speed(q, qd)
    return q, qd, s.tau


class ForcedMechanism:
    """Calls of both dynamics of a mechanism, and the answers of the gufuncs or, quicker, of NumPy."""

    def __init__(self, mechanism: Mechanism, *state, native: bool = True) -> None:
        self.mechanism, self.state, self.native = mechanism, state, native
        self.names = ("forward_dynamics", "inverse_dynamics")[: 1 if mechanism.closures else 2]
        programs = [interpreted.program(mechanism, name) for name in self.names]
        self.calls = [Call(Wasm().emit(p, "float64"), p.name, state) for p in programs]

    def check(self, results) -> None:
        """Compare the results of a host."""
        for name, (found,) in zip(self.names, results, strict=True):
            expected = (
                kt.System(self.mechanism).function(name)(*self.state)
                if self.native
                else interpreted.compute(self.mechanism, name, *self.state)
            )
            scale = dynamics_scale(self.mechanism, name, *self.state)
            assert_close(found, expected, 20 * EPS * scale, name)


def check_all(made: list[ForcedMechanism], host) -> None:
    """Run the calls of many mechanisms in one process of a host."""
    results = host([c for d in made for c in d.calls])
    for d in made:
        d.check(results[: len(d.calls)])
        results = results[len(d.calls) :]


@needs_node
def test_library_mechanisms_in_node(tmp_path):
    """Run the dynamics of mechanisms of the library, open and closed."""
    names = ("stanford", "space_robot_3r", "four_bar")
    made = [ForcedMechanism(system.mechanism, *states(system)) for system in map(kt.load, names)]
    check_all(made, lambda calls: in_node(calls, tmp_path))


@pytest.mark.slow
@needs_chromium
def test_library_mechanisms_in_chromium(tmp_path):
    """Run the dynamics of an arm and of a loop in a browser."""
    made = [ForcedMechanism(system.mechanism, *states(system)) for system in map(kt.load, ("planar_2r", "four_bar"))]
    check_all(made, lambda calls: in_chromium(calls, tmp_path))


@pytest.mark.slow
@needs_node
def test_the_whole_library_in_node(tmp_path):
    """Run the dynamics of every mechanism of the library, with the given values of its parameters."""
    made = []
    for system in map(kt.load, library_names()):
        fixed = tuple(replace(p, free=False) for p in system.mechanism.parameters)
        made.append(ForcedMechanism(replace(system.mechanism, parameters=fixed), *states(system)))
    check_all(made, lambda calls: in_node(calls, tmp_path))


@needs_wasmtime
@examples(6)
@hypothesis.given(mechanism=moving_mechanisms(most=5))
def test_random_trees_in_wasmtime(mechanism):
    """Run the dynamics of random trees without JavaScript."""
    s = State(mechanism, 4)
    check_all([ForcedMechanism(mechanism, s.q, s.qd, s.tau, native=False)], in_wasmtime)


@needs_wasmtime
@examples(4)
@hypothesis.given(made=closed_mechanisms(most=4))
def test_random_closed_mechanisms_in_wasmtime(made):
    """Run the dynamics of random mechanisms with loops without JavaScript."""
    mechanism, q = made
    qd, tau = motion(mechanism, q)
    check_all([ForcedMechanism(mechanism, q[None], qd[None], tau[None], native=False)], in_wasmtime)


@needs_wasmtime
def test_dynamics_in_single_precision():
    """Run forward dynamics of an arm in float32."""
    system = kt.load("stanford")
    state = states(system)
    program = interpreted.program(system.mechanism, "forward_dynamics")
    (found,) = in_wasmtime([Call(Wasm().emit(program, "float32"), program.name, state)])[0]
    assert found.dtype == np.float32
    scale = dynamics_scale(system.mechanism, "forward_dynamics", *state)
    expected = program.interpret(*state)[0]
    assert_close(found, expected, 20 * float(np.finfo(np.float32).eps) * scale, "float32")


@pytest.mark.slow
@needs_node
@pytest.mark.parametrize("base", ["fixed", "free"])
def test_public_robots_in_node(base, tmp_path):
    """Run the dynamics of twenty public robots."""
    systems = list(islice(calculable(public_robots(), base), 20))
    assert len(systems) == 20
    made = [ForcedMechanism(system.mechanism, *states(system), native=False) for system in systems]
    check_all(made, lambda calls: in_node(calls, tmp_path))

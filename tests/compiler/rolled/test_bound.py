"""Rolled programs with their numbers: interpreted, counted and written as text."""

from __future__ import annotations

import json
import re
from collections import Counter

import numpy as np
import pytest

import everyday
import kinetree as kt
from interpreted import relative
from kinetree import InputError, System
from kinetree.compiler.ir.operations import COSTS, OPERATIONS, Op
from kinetree.compiler.rolled.bound import BoundProgram
from kinetree.compiler.rolled.program import CLASS, COUNT, RolledUnit
from kinetree.model import Body, Joint, Parameter, Placement, build_mechanism, parse
from kinetree.runtime.function import Function
from kinetree.runtime.rolled import MatrixProgram
from strategies import State, random_mechanism
from tolerance import assert_close

KINDS = ["revolute", "revolute", "spherical", "revolute", "helical", "prismatic", "revolute", "free"]
TREE = System(random_mechanism(KINDS, [-1, 0, 1, 2, 0, 4, 5, -1], 21))


def with_parameters() -> System:
    """Return a chain whose lengths and masses are formulas of free parameters."""
    bodies = [
        Body(f"b{k}", parse("m/2"), (parse("l/2"), 0.01, 0.02), (1e-3, 2e-3, 2e-3, 0.0, 0.0, 0.0)) for k in (0, 1)
    ]
    joints = [
        Joint(f"j{k}", "revolute", f"b{k - 1}" if k else "ground", f"b{k}", Placement((parse("l*l"), 0.1, 0.0)))
        for k in (0, 1)
    ]
    return System(
        build_mechanism("formulas", bodies, joints, parameters=[Parameter(n, 0.7, free=True) for n in ("l", "m")])
    )


def rolled(system: System, name: str) -> tuple[Function, list[np.ndarray]]:
    """Return a rolled function, and arrays for its inputs."""
    s = State(system.mechanism, 5, 3)
    known = {"q": s.q, "q2": np.roll(s.q, 1, 0), "qd": s.qd, "qdd": s.qdd, "tau": s.tau, "added": np.abs(s.tau)}
    known["parameters"] = np.random.default_rng(4).uniform(0.5, 1.5, size=(3, 2))
    f = system.function(name, lowering="rolled", **({"frame": TREE.bodies[3].name} if name == "jacobian" else {}))
    return f, [known[a.name] for a in f.inputs]


CASES = [
    *((TREE, name) for name in ("forward_dynamics", "reactions", "momentum", "difference", "jacobian")),
    *((TREE, name) for name in ("inertia_matrix", "convective_matrix")),
    *((with_parameters(), name) for name in ("inverse_dynamics", "inverse_inertia_matrix")),
    (kt.chain(70), "inverse_dynamics"),
]


@pytest.mark.parametrize(("system", "name"), everyday.some(CASES))
def test_the_program_is_what_runs(system, name):
    """Interpret the program of a rolled function and find the numbers of native code."""
    f, given = rolled(system, name)
    found = f.program.interpret(*given)[0]
    assert_close(relative(found, f(*given)), 0.0, 1e-13, name)  # 2e-15


@pytest.mark.parametrize(("system", "name"), everyday.some(CASES))
def test_costs_are_those_of_scalars_that_count(system, name):
    """Run the program on plain numbers, count every operation, and find the cost of the function."""
    f, given = rolled(system, name)
    tally: Counter[str] = Counter()

    def apply(op: Op, *x: float) -> float:
        tally[OPERATIONS[op].cost or "signs"] += 1
        return OPERATIONS[op].function(*x)

    f.program.replay([a[0].ravel().tolist() for a in given], apply)
    assert f.cost() == f.program.cost() == {what: tally[what] for what in COSTS}


@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
def test_costs_are_those_of_the_emitted_code(name):
    """Count the products in the native loops of a chain of 300, body by body, and find those of the cost."""
    from kinetree.targets.llvm.rolled import emit_rolled

    f = kt.chain(300).function(name)
    bound = f.program
    assert isinstance(bound, BoundProgram)
    text = emit_rolled(RolledUnit(bound.program, (1,) * 4, False), "float64")
    total = 0
    for k in range(len(bound.program.loops)):
        code = re.search(rf"^define internal void @loop{k}_1\(.*?^}}", text, re.MULTILINE | re.DOTALL)
        assert code is not None
        for c in range(len(bound.program.classes)):
            body = re.search(rf"^body{c}:(.*?)^end{c}:", code[0], re.MULTILINE | re.DOTALL)
            bodies = int(bound.segments[bound.segments[:, CLASS] == c, COUNT].sum())
            total += bodies * (len(re.findall(r"= fmul | @llvm\.fma", body[1])) if body else 0)
    assert f.cost()["multiplications"] == total
    assert name == "forward_dynamics" or total == 14991
    assert f.cost()["sines"] == 600


def test_costs_count_every_body():
    """Count the operations of rolled chains and find them linear in the number of links."""
    a, b, c = (kt.chain(n).function("inverse_dynamics", lowering="rolled").cost() for n in (10, 20, 30))
    assert a["multiplications"] > 10 * 20
    assert all(c[k] - b[k] == b[k] - a[k] for k in a)


@pytest.mark.parametrize(("system", "name"), everyday.some(CASES))
def test_text_keeps_every_bit(system, name):
    """Write a program as text, read it, and find the same text, hash, cost and bits of results."""
    f, given = rolled(system, name)
    program = f.program
    assert isinstance(program, BoundProgram | MatrixProgram)
    again = type(program).loads(program.dumps())
    assert (again.dumps(), again.hash, again.cost()) == (program.dumps(), program.hash, program.cost())
    assert np.array_equal(again.interpret(*given)[0], program.interpret(*given)[0])


def test_hashes_tell_numbers_apart():
    """Find different hashes for different lengths or numbers of links, and the same hash for the same chain."""
    made = [kt.chain(n, length=x).function("gravity_torque") for n, x in ((70, 0.3), (70, 0.3), (70, 0.4), (71, 0.3))]
    a, b, c, d = (f.program.hash for f in made)
    assert a == b
    assert len({a, c, d}) == 3


def test_another_version_is_refused():
    """Read a text of another version and find both versions in the message."""
    program = kt.chain(70).function("gravity_torque").program
    data = json.loads(program.dumps())
    data["kinetree rolled"] = 99
    with pytest.raises(ValueError, match="the text is a rolled program of version 99; expected version 1"):
        BoundProgram.loads(json.dumps(data))


def test_long_closed_functions_have_no_program():
    """Request the cost of a function that is solved in NumPy, and read the remedy."""
    bridge = kt.rope(1.3, 5, ends=("pinned", "pinned"), joint="revolute", mass_per_metre=0.37, radius=0.004)
    f = bridge.function("forward_dynamics", lowering="rolled")
    with pytest.raises(InputError, match=r"forward_dynamics of .* is solved in NumPy .* lowering='unrolled'"):
        f.cost()

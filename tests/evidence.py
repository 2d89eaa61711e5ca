"""Write docs/evidence.md: what is verified against what, with the digits that the named tests measure.

`python tests/evidence.py` runs the tests of CLAIMS, records the residual of every comparison, and writes the page;
`--thorough` runs their slow cases too.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "evidence.md"
MARK = "<!-- measured: python tests/evidence.py -->"
"""Where the tables of the page begin and end."""


@dataclass(frozen=True)
class Claim:
    """What is compared, with which referee, and the tests that do it, as `FILE::TEST` below tests/."""

    what: str
    referee: str
    tests: tuple[str, ...]


CLAIMS: dict[str, tuple[Claim, ...]] = {
    "Dynamics": (
        Claim(
            "torques of random trees",
            "Newton's and Euler's equations of every body, added up about its own origin",
            ("dynamics/test_inverse.py::test_reactions_balance_every_body",),
        ),
        Claim(
            "torques of random trees",
            "Lagrange's equations, by differentiation of the energies",
            ("dynamics/test_lagrange.py::test_lagrange_gives_the_torques",),
        ),
        Claim(
            "inertia, convective terms and gravity of the planar three-link arm",
            "the closed form by hand, in cosines and sines",
            ("formulations/test_denoc.py::test_planar_arm_by_hand",),
        ),
        Claim(
            "torques, inertia and gravity of flexible trees",
            "Lagrange's equations, by differentiation of the energies",
            ("dynamics/test_flexible.py::test_equations_are_those_of_lagrange",),
        ),
        Claim(
            "accelerations of flexible trees with loops",
            "Lagrange's equations with the loop's position, both differentiated",
            ("dynamics/test_flexible.py::test_loops_of_random_trees_by_lagrange",),
        ),
        Claim(
            "a row of four-bars",
            "the exact equation of its single angle",
            ("library/test_closed.py::test_n_four_bars_are_the_benchmark",),
        ),
        Claim(
            "a cam with its follower, and a pump whose roller rolls on its cam",
            "closed forms of lift, spin, contact forces and torque",
            (
                "library/test_closed.py::test_the_cam_lifts_its_follower_by_a_cosine",
                "library/test_closed.py::test_the_roller_of_the_fuel_pump_rolls",
            ),
        ),
    ),
    "Other libraries": (
        Claim(
            "random trees written as URDF, MJCF and SDF, and read again",
            "the readers of Pinocchio and MuJoCo, with their torques and poses",
            ("formats/test_written_formats.py::test_random_trees_stay_the_same",),
        ),
        Claim(
            "accelerations of closed mechanisms",
            "Pinocchio: `constraintDynamics`",
            ("analysis/verify/peers/test_pinocchio_loops.py::test_constraint_dynamics_of_pinocchio_agrees",),
        ),
        Claim(
            "convective matrices of single joints",
            "Pinocchio: Coriolis matrices",
            ("analysis/verify/peers/test_pinocchio.py::test_convective_matrix_of_single_joints",),
        ),
        Claim(
            "hybrid dynamics on a floating base",
            "Pinocchio: inertia matrix and bias",
            ("dynamics/test_hybrid.py::test_pinocchio_gives_the_same_on_a_floating_base",),
        ),
        Claim(
            "regressors of a random chain",
            "Pinocchio: regressors, column by column",
            ("analysis/identification/test_columns.py::test_against_pinocchio",),
        ),
        Claim(
            "a biped that walks",
            "Pinocchio: `rnea` and `aba`",
            ("apps/reproduce/test_saha2013_biped.py::test_torques_and_accelerations_are_pinocchios",),
        ),
        Claim(
            "a sliding box, and one that leaves a wall",
            "MuJoCo with stiff contacts and small steps",
            (
                "simulation/engines/test_contact_peers.py::test_sliding_box_agrees",
                "simulation/engines/test_contact_peers.py::test_detachment_agrees",
            ),
        ),
        Claim(
            "the tip of an arm that slides on a floor",
            "MuJoCo with stiff contacts and small steps",
            ("simulation/engines/test_contact_peers.py::test_the_tip_of_an_arm_slides_as_in_mujoco",),
        ),
    ),
    "Derivatives": (
        Claim(
            "derivatives of the dynamics of random trees",
            "complex steps",
            ("dynamics/test_derivatives.py::test_pages_agree_with_complex_steps",),
        ),
        Claim(
            "derivatives of flexible trees",
            "Lagrange's equations, differentiated once more",
            ("dynamics/test_flexible.py::test_derivatives_are_those_of_lagrange",),
        ),
        Claim(
            "derivatives of whole runs of trees",
            "complex steps through the run",
            ("simulation/derivatives/test_forward.py::test_a_tree_by_complex_steps",),
        ),
        Claim(
            "derivatives of whole runs of closed mechanisms",
            "complex steps through the run and its projections",
            ("simulation/derivatives/test_forward.py::test_closed_loops_by_complex_steps",),
        ),
        Claim(
            "derivatives of a sprung mass",
            "the closed form",
            ("simulation/derivatives/test_forward.py::test_a_linear_oscillator_has_the_exact_derivatives",),
        ),
    ),
    "Simulation and planning": (
        Claim(
            "a pendulum over 2,000 s",
            "elliptic functions",
            ("simulation/engines/test_runs.py::test_a_pendulum_swings_for_two_thousand_seconds",),
        ),
        Claim(
            "a run with the same tolerances",
            "SciPy's integrators",
            ("simulation/engines/test_runs.py::test_scipy_is_a_referee",),
        ),
        Claim(
            "a ball that bounces to rest",
            "the geometric series of its bounces",
            ("simulation/engines/test_event_driven.py::test_bouncing_ball_comes_to_rest_at_the_zeno_time",),
        ),
        Claim(
            "a wheel of six spokes that rolls",
            "closed forms of the times and speeds of all strikes",
            ("simulation/engines/test_rolling_spokes.py::test_strikes_and_speeds_are_those_of_the_closed_form",),
        ),
        Claim(
            "straight moves within a jerk",
            "closed forms of the least time",
            ("planning/test_time_optimal.py::test_straight_moves_within_a_jerk_take_their_exact_time",),
        ),
        Claim(
            "an arm from exact accelerations, identified",
            "the parameters that made them",
            ("analysis/identification/test_identify.py::test_without_noise_it_is_exact",),
        ),
    ),
    "Compiled code": (
        Claim(
            "elementary functions of native code, in units in the last place",
            "60 digits",
            ("targets/llvm/test_elementary.py::test_functions_are_good_to_some_units",),
        ),
        Claim(
            "sine and cosine in WebAssembly, for small and huge angles",
            "exact values",
            ("targets/wasm/test_operations.py::test_sines_are_within_a_unit_of_the_last_place",),
        ),
        Claim(
            "C99, every operation in both precisions",
            "the interpreter",
            ("targets/c99/test_programs.py::test_every_operation_and_both_precisions",),
        ),
    ),
}
"""The comparisons of the page by chapter; further ones are what the thousands of other tests do."""


@dataclass(frozen=True)
class Measured:
    """The comparison of a test that comes closest to its bound, of all cases."""

    label: str
    residual: float
    bound: float
    cases: int


def measure(records: Iterable[dict[str, Any]]) -> dict[str, Measured]:
    """Return for each test, without the names of its cases, what comes closest to its bound."""
    found: dict[str, Measured] = {}
    for record in records:
        test = record["test"].split("[")[0].removeprefix("tests/")
        for label, (residual, bound) in record["residuals"].items():
            known = found.get(test, Measured(label, -1.0, 1.0, 0))
            worse = known.residual * bound <= residual * known.bound
            chosen = (label, residual, bound) if worse else (known.label, known.residual, known.bound)
            found[test] = Measured(*chosen, known.cases)
        if test in found:
            found[test] = Measured(found[test].label, found[test].residual, found[test].bound, found[test].cases + 1)
    return found


def tables(found: dict[str, Measured]) -> str:
    """Return the tables of the page."""
    lines = []
    for chapter, claims in CLAIMS.items():
        lines += [
            "",
            f"## {chapter}",
            "",
            "| what | against | largest residual | bound | test |",
            "|---|---|---|---|---|",
        ]
        for claim in claims:
            for test in claim.tests:
                m = found[test]
                cases = f", {m.cases} cases" if m.cases > 1 else ""
                worst = f"{m.residual:.1e} ({m.label}{cases})"
                lines.append(f"| {claim.what} | {claim.referee} | {worst} | {m.bound:.1e} | `{test}` |")
    return "\n".join(lines) + "\n"


def main(*, thorough: bool = False) -> int:
    """Run the tests of CLAIMS and write their residuals into the page.

    Slow cases run where a test has no others, and with `thorough` all of them.
    """
    names = [test for claims in CLAIMS.values() for claim in claims for test in claim.tests]
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "residuals.jsonl"
        record.touch()
        found: dict[str, Measured] = {}
        for cases in ("",) if thorough else ("not slow", ""):
            left = [f"tests/{name}" for name in names if name not in found]
            command = [sys.executable, "-m", "pytest", "-q", "-m", cases, *left]
            environment = {**os.environ, "KINETREE_RESIDUALS": str(record)}
            if left and (code := subprocess.call(command, cwd=ROOT, env=environment)) != 0:
                return code
            found = measure(map(json.loads, record.read_text().splitlines()))
    before, _, after = PAGE.read_text().split(MARK)
    import numpy as np

    import kinetree as kt

    versions = f"Kinetree {kt.__version__}, Python {platform.python_version()}, NumPy {np.__version__}"
    where = f"Measured with {versions} on {platform.machine()}."
    PAGE.write_text(f"{before}{MARK}\n\n{where}\n{tables(found)}\n{MARK}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main(thorough="--thorough" in sys.argv[1:]))

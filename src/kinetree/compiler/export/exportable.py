"""The input of every writer of files: a function with the meaning of its arrays and a self-test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..._support import VERSION
from ...algebra.scalars import Numbers
from ...dynamics import ALGORITHMS
from ...errors import InputError, ModelError
from ...joints import draw_coordinates, kind
from ...model.axes import axis_labels, axis_names
from ...model.mechanism import Mechanism
from ...runtime.derived import derive
from ...targets import digest
from ..ir.operations import BOOLEANS, OPERATIONS, Op
from ..ir.program import Array, Program
from ..lanes.form import Kernel
from ..lanes.interpret import interpret
from ..lower.build import Request, signature

if TYPE_CHECKING:
    from ...runtime.function import Function


@dataclass(frozen=True)
class Meaning:
    """The meaning of an array: a text with its unit, and one label for each entry of its axes where they have names."""

    text: str
    order: tuple[str, ...] = ()


@dataclass(frozen=True)
class Exportable:
    """A function of one mechanism; `unit.name` is its name in the files.

    `meanings` are by the names of arrays. A Jacobian that CasADi loads with its function has the names and shapes of
    that function's outputs as `nominal`, which CasADi passes to it after the inputs.
    """

    unit: Program | Kernel
    dtype: str
    model: str
    summary: str
    meanings: dict[str, Meaning]
    selftest: Selftest
    nominal: tuple[tuple[str, tuple[int, ...]], ...] = ()

    def meaning(self, name: str) -> Meaning:
        """Return the meaning of an array, by default its name alone."""
        return self.meanings.get(name, Meaning(name))

    @property
    def hash(self) -> str:
        """A digest of the arithmetic, its numbers and their precision."""
        return digest(self.unit, self.dtype)

    @property
    def origin(self) -> str:
        """The model, the version of Kinetree, the precision and the hash, on one line."""
        return f"model {plain(self.model)}, Kinetree {VERSION}, {self.dtype}, hash {self.hash}"


def plain(text: str) -> str:
    """Return a text as one line of ASCII that ends no comment, since names may come from untrusted files."""
    shown = "".join(c if c.isprintable() else " " for c in text).encode("ascii", "backslashreplace").decode()
    return shown.replace("*/", "* /").replace("/*", "/ *").replace("\\", "/").replace("??", "? ?")


# --- Units with distinct names of arrays and with a name of their own ---


def distinct(program: Program, name: str) -> Program:
    """Return a Program under another name; outputs that are named like an input get the ending _out."""
    taken = {a.name for a in program.inputs}
    outputs = tuple(Array(f"{a.name}_out", a.shape) if a.name in taken else a for a in program.outputs)
    return replace(program, name=name, outputs=outputs)


# --- The meaning of the arrays of functions: a text with units, and the order of the entries ---

EFFORTS = {"rad": "N m", "m": "N", "C": "V"}
"""Units of torques and forces by the unit of the displacement."""

RESULTS = {
    "inverse_dynamics": "joint torques of the motion [N m, N]",
    "bias_torque": "joint torques without acceleration: velocities, gravity and external wrenches [N m, N]",
    "gravity_torque": "joint torques that hold the mechanism at rest [N m, N]",
    "reactions": "wrench [n; f] of the parent on each body at its joint's origin, in the body's frame [N m, N]",
    "regressor": "Y of tau = Y pi: ten columns per body, m, m c, then Ixx, Ixy, Iyy, Ixz, Iyz, Izz about its origin",
    "forward_dynamics": "accelerations [rad/s^2, m/s^2]",
    "implicit_dynamics": "accelerations [rad/s^2, m/s^2]",
    "inertia_matrix": "generalized inertia matrix [kg m^2, kg m, kg]",
    "inverse_inertia_matrix": "inverse of the generalized inertia matrix",
    "inertia_logdet": "logarithm of the determinant of the generalized inertia matrix of the open tree",
    "convective_matrix": "matrix of convective inertia",
    "pose": "pose of the frame in the ground's frame, a homogeneous 4 x 4 matrix [1, m]",
    "poses": "pose of each body in the ground's frame, homogeneous 4 x 4 matrices [1, m]",
    "twist": "[omega; v] of the frame at its origin [rad/s, m/s]",
    "twists": "[omega; v] of each body at its joint's origin, in its frame [rad/s, m/s]",
    "twist_rate": "[domega; dv] of the frame at its origin [rad/s^2, m/s^2]",
    "twist_rates": "[domega; dv] of each body at its joint's origin, in its frame [rad/s^2, m/s^2]",
    "jacobian": "Jacobian J of the frame: [omega; v] = J qd",
    "jacobian_rate": "rate dJ/dt of the Jacobian of the frame along qd",
    "kinetic_energy": "kinetic energy [J]",
    "potential_energy": "potential energy of gravity [J]",
    "momentum": "[angular; linear] momentum about the ground's origin, in its axes [N m s, N s]",
    "center_of_mass": "center of mass in the ground's frame [m]",
    "closure_residual": "residual of each equation of the loops [m, rad]",
    "closure_jacobian": "Jacobian J of the equations of the loops: J qd = 0",
    "closure_bias": "dJ/dt qd of the equations of the loops",
    "multipliers": "multipliers of the equations of the loops [N, N m]",
    "closing_step": "displacement that closes the loops to first order [rad, m]",
    "closing_speed": "velocities that keep the loops closed [rad/s, m/s]",
    "integrate": "coordinates after the displacement [rad, m]",
    "difference": "displacement from the first coordinates to the second [rad, m]",
    "coordinate_rate": "rates of the coordinates [rad/s, m/s, 1/s]",
}
"""The outputs of functions; functions that are not listed are described by the docstring of their page."""


def labels(mechanism: Mechanism, which: int, unit: str = "{}") -> tuple[str, ...]:
    """Return the label and unit of each coordinate (0), velocity (1) or force (2)."""
    units = [unit.format(EFFORTS.get(u, u) if which == 2 else u) for _, _, u in axis_names(mechanism, which)]
    return tuple(f"{name} [{u}]" for name, u in zip(axis_labels(mechanism, which), units, strict=True))


def common(mechanism: Mechanism) -> dict[str, Meaning]:
    """Return the meanings of inputs that many functions have."""
    bodies = tuple(b.name for b in mechanism.bodies)
    values = tuple(f"{p.name} [{p.unit}]" if p.unit else p.name for p in mechanism.free_parameters)
    return {
        "t": Meaning("time [s]"),
        "q": Meaning("coordinates", labels(mechanism, 0)),
        "q2": Meaning("other coordinates, in the same order"),
        "qd": Meaning("velocities", labels(mechanism, 1, "{}/s")),
        "qdd": Meaning("accelerations", labels(mechanism, 1, "{}/s^2")),
        "tau": Meaning("joint torques", labels(mechanism, 2)),
        "added": Meaning("inertias added to the degrees of freedom [kg m^2, kg]", labels(mechanism, 1)),
        "wrenches": Meaning(
            "external wrench [n; f] on each body about its joint's origin, in its frame [N m, N]; rows", bodies
        ),
        "parameters": Meaning("free parameters", values),
    }


def meanings(mechanism: Mechanism, function: str) -> dict[str, Meaning]:
    """Return the meanings of the arrays of a function of the table of algorithms, by their names in files."""
    algorithm = ALGORITHMS[function]
    found = common(mechanism)
    if function == "integrate":
        found["qd"] = Meaning("displacement [rad, m]", axis_labels_of(mechanism))
    orders = {
        "nq": tuple(axis_labels(mechanism, 0)),
        "nv": axis_labels_of(mechanism),
        "nb": tuple(b.name for b in mechanism.bodies),
    }
    for k, (name, shape) in enumerate(algorithm.outputs):
        text = RESULTS.get(function) if len(algorithm.outputs) == 1 else None
        named = [orders[n] for n in shape if n in orders]
        text = text or f"output {k + 1} of {function}: {summary(function)}"
        found[f"{name}_out" if name in algorithm.inputs else name] = Meaning(text, named[0] if named else ())
    return found


def axis_labels_of(mechanism: Mechanism) -> tuple[str, ...]:
    """Return the labels of the degrees of freedom."""
    return tuple(axis_labels(mechanism, 1))


def summary(function: str) -> str:
    """Return a line about a function."""
    if function in RESULTS:
        return RESULTS[function]
    return ((ALGORITHMS[function].page.__doc__ or function).strip().splitlines() or [function])[0]


# --- The self-test: inputs with the results that are expected ---


SAMPLES = 3
"""The samples of a self-test: the best conditioned of all candidates."""
DRAWS = 8
"""The repetitions with random errors."""
ERROR = 2.0**-30
"""The relative error of each operation in a repetition: far above rounding, and small enough to be linear."""
FACTOR = 20.0
"""The tolerance in units of rounding, multiplied by the growth of errors."""


@dataclass(frozen=True)
class Selftest:
    """Samples of inputs and outputs [SAMPLES, *shape], and one tolerance per output and sample [SAMPLES]."""

    inputs: dict[str, Numbers]
    outputs: dict[str, Numbers]
    tolerances: dict[str, Numbers]

    @property
    def count(self) -> int:
        """The number of samples."""
        return len(next(iter(self.inputs.values())))


def selftest(
    unit: Program | Kernel, dtype: str, candidates: Mapping[str, Numbers], floors: Mapping[str, float] | None = None
) -> Selftest:
    """Return the self-test with the best conditioned of the candidates, which are [count, *shape] by name of input.

    `floors` are the least tolerances of outputs, by name, relative to their largest entry.
    """
    given = {name: np.asarray(x, dtype=dtype).astype(float) for name, x in candidates.items()}
    arrays = list(given.values())
    if isinstance(unit, Kernel):
        names = [a.name for a in unit.arguments if a.output]
        outputs, growth = _grown_kernel(unit, dtype, arrays)
    else:
        names = [a.name for a in unit.outputs]
        outputs, growth = unit.interpret(*arrays), _grown(unit, arrays)
    eps = float(np.finfo(dtype).eps)
    flat = [np.abs(y).reshape(len(y), -1).max(axis=1, initial=0.0) for y in outputs]
    least = [(floors or {}).get(name, eps) for name in names]
    tolerances = [np.fmax(FACTOR * eps * g, x * size) for g, size, x in zip(growth, flat, least, strict=True)]
    chosen = _best(outputs, tolerances, flat, unit.name)
    pick = lambda xs: {name: x[chosen] for name, x in zip(names, xs, strict=True)}  # noqa: E731
    return Selftest({name: x[chosen] for name, x in given.items()}, pick(outputs), pick(tolerances))


def _best(outputs: Sequence[Numbers], tolerances: Sequence[Numbers], sizes: Sequence[Numbers], name: str) -> list[int]:
    """Return the indices of the candidates with the smallest relative tolerances, in order; only finite ones."""
    finite = np.all([np.isfinite(y).reshape(len(y), -1).all(axis=1) for y in outputs], axis=0)
    with np.errstate(all="ignore"):
        worst = np.max([t / np.where(s > 0, s, 1.0) for t, s in zip(tolerances, sizes, strict=True)], axis=0)
    order = np.argsort(np.where(finite & np.isfinite(worst), worst, np.inf), kind="stable")
    good = [int(k) for k in order if finite[k] and np.isfinite(worst[k])][:SAMPLES]
    if not good:
        raise InputError(f"{name}: no sample state has finite results, so no self-test can be written; check the model")
    return sorted(good)


def _grown(program: Program, arrays: Sequence[Numbers]) -> list[Numbers]:
    """Return the largest differences of each output [count] under random errors, in units of the errors."""
    rng = np.random.default_rng(20)
    count = len(arrays[0])

    def rough(x: Numbers) -> Numbers:
        return x * (1.0 + ERROR * rng.uniform(-1.0, 1.0, size=(DRAWS, count)))

    def apply(op: Op, *x: Numbers) -> Numbers:
        y = OPERATIONS[op].array(*x)
        return y if op in BOOLEANS or op is Op.NEG else rough(y)

    flat = [np.moveaxis(a.reshape(count, -1), 1, 0)[:, None] for a in arrays]
    with np.errstate(all="ignore"):
        perturbed = program.replay(flat, apply, lambda x: rough(np.full((1, 1), x)))
        exact = program.replay([x[:, 0] for x in flat], lambda op, *x: OPERATIONS[op].array(*x))
        return [
            np.max([np.abs(p - e).max(axis=0) for p, e in zip(ps, es, strict=True)], axis=0, initial=0.0) / ERROR
            if ps
            else np.zeros(count)
            for ps, es in zip(perturbed, exact, strict=True)
        ]


def _grown_kernel(kernel: Kernel, dtype: str, arrays: Sequence[Numbers]) -> tuple[list[Numbers], list[Numbers]]:
    """Return the outputs of a kernel, and their largest differences under random errors of the inputs of each run."""
    rng = np.random.default_rng(21)
    error = 1024.0 * float(np.finfo(dtype).eps)
    inputs = [a for a in kernel.arguments if not a.output]
    given = []
    for a, x in zip(inputs, arrays, strict=True):
        if a.shared:  # the same for all runs
            given.append(x[0])
            continue
        noise = rng.uniform(-1.0, 1.0, size=(DRAWS + 1, *x.shape)) if a.shape else np.zeros((DRAWS + 1, *x.shape))
        noise[0] = 0.0
        given.append(x * (1.0 + error * noise))
    results = interpret(kernel, *given, dtype=dtype)
    outputs = [np.asarray(y[0], dtype=float) for y in results]
    spread = [np.abs(np.asarray(y[1:], dtype=float) - y[0]).max(axis=0) / error for y in results]
    return outputs, [x.reshape(len(x), -1).max(axis=1, initial=0.0) for x in spread]


# --- A compiled function as an exportable one: its Program, the meaning of its arrays, and a self-test ---

# --- Random inputs of functions for self-tests: awkward numbers, and states whose loops are closed ---

CANDIDATES = 16
"""The number of candidates for the samples of a self-test."""
STARTS = 96
"""The random positions from which Newton's method starts to close loops; the candidates are the best closed ones."""
ROUNDS = 40
"""The steps of Newton's method."""


def sample_inputs(
    mechanism: Mechanism, inputs: Iterable[Array], function: Callable[[str], object], count: int = CANDIDATES
) -> dict[str, Numbers]:
    """Return arrays [count, *shape] by name; `function(name)` returns the functions that close loops.

    Coordinates and velocities belong to closed positions, as far as Newton's method finds them.
    """
    rng = np.random.default_rng(11)
    nominal = np.array([p.value for p in mechanism.free_parameters], dtype=float)
    values = nominal * (1.0 + 0.02 * rng.uniform(-1.0, 1.0, size=(count, len(nominal))))
    more = (values,) if len(nominal) else ()
    q, qd = states(mechanism, rng, count, more, function)
    known = {"q": q, "qd": qd, "parameters": values}

    def drawn(a: Array) -> Numbers:
        if a.name in known:
            return known[a.name]
        if a.name == "q2":
            return states(mechanism, rng, count, more, function)[0]
        x = rng.normal(size=(count, *a.shape))
        return np.abs(x) if a.name in ("added", "t") else x

    return {a.name: drawn(a) for a in inputs}


def states(mechanism: Mechanism, rng: np.random.Generator, count: int, more: tuple, function) -> tuple:
    """Return random coordinates [count, nq] and velocities [count, nv] of closed positions."""
    joints = [(joint, kind(joint.kind)) for joint in mechanism.resolved_joints]
    if not mechanism.closures:
        return draw_coordinates(joints, rng, (count,)), rng.normal(size=(count, mechanism.nv))
    tries = -(-STARTS // count) * count
    q, qd = draw_coordinates(joints, rng, (tries,)), rng.normal(size=(tries, mechanism.nv))
    given = tuple(np.tile(x, (tries // count, 1)) for x in more)
    try:
        step, integrate, speed, gap = (
            function(name) for name in ("closing_step", "integrate", "closing_speed", "closure_residual")
        )
    except ModelError:  # the inertia matrix is singular, so that no step is nearest
        return q[:count], qd[:count]
    with np.errstate(all="ignore"):
        for _ in range(ROUNDS):
            q = integrate(q, step(q, *given), *given)
        open_by = np.nan_to_num(np.abs(gap(q, *given)).max(axis=-1), nan=np.inf, posinf=np.inf)
        qd = speed(q, qd, *given)
    # The best closed positions among those that share the parameters of a candidate.
    groups = open_by.reshape(tries // count, count)
    best = np.argmin(groups, axis=0) * count + np.arange(count)
    return q[best], qd[best]


def exportable(
    mechanism: Mechanism, request: Request, program: Program, name: str, function: Callable[[str], object]
) -> Exportable:
    """Return the exportable function of a request under a name; `function(name)` returns other compiled functions."""
    refuse_empty(mechanism, program)
    unit = distinct(program, name)
    found = meanings(mechanism, request.name)
    about = summary(request.name) if request.derivative is None else request.title
    if request.frame:
        about += f"; frame {request.frame}" + (f", {request.axes} axes" if request.axes else "")
    if request.forces:
        about += "; springs, dampers and friction of the mechanism act"
    if request.derivative is not None:
        found |= _derivative_meanings(mechanism, replace(request, derivative=None))
    test = selftest(unit, request.dtype, sample_inputs(mechanism, unit.inputs, function))
    return Exportable(unit, request.dtype, mechanism.name, about, found, test)


def jacobian_exportable(function: Function, program: Program, name: str) -> Exportable:
    """Return the Jacobian of a function with respect to all its inputs, for files, under the name that CasADi expects.

    Coordinates are displaced entry by entry, as CasADi does.
    """
    plain = derive(function, "jacobian", None, tangent=False).exportable(f"jac_{name}")
    unit = distinct(program, name)
    return replace(plain, nominal=tuple((a.name, a.shape) for a in unit.outputs))


def _derivative_meanings(mechanism: Mechanism, request: Request) -> dict[str, Meaning]:
    inputs, outputs = signature(mechanism, request)
    return {
        f"d{o.name}_d{a.name}": Meaning(f"the derivative of {o.name} with respect to {a.name}, output entries first")
        for o in outputs
        for a in inputs
    }


def refuse_empty(mechanism: Mechanism, program: Program) -> None:
    """Raise InputError for arrays without entries, which C does not have."""
    for a in (*program.inputs, *program.outputs):
        if not a.size:
            raise InputError(f"{program.name} of {mechanism.name!r} is not exported: its array {a.name} has no entries")

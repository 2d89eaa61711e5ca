"""Operation counts of a function, from the Program that runs, by the rules of the papers.

M counts multiplications and divisions, A additions and subtractions. A product with a constant counts, a change of
sign does not. Sines, cosines and roots are counted separately, as in the papers' tables.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from .._support.tables import Displayed, Table
from ..algebra.rotations import from_rpy
from ..algebra.vectors import to_moments
from ..compiler.lower.build import Request, build
from ..dynamics import ALGORITHMS
from ..errors import InputError, unknown_name
from ..joints import JointKind, kind
from ..model import GROUND, Body, Joint, Mechanism, Placement, build_mechanism
from ..model.parts import Frame
from ..model.topology import split_joints
from ..runtime.compiled import CompiledMechanism
from ..runtime.singularity import refuse_singular


@dataclass(frozen=True, repr=False)
class Cost(Displayed):
    """The number of operations of a function per sample."""

    function: str
    multiplications: int
    additions: int
    divisions: int
    roots: int
    sines: int
    others: int

    @property
    def M(self) -> int:
        """Multiplications and divisions."""
        return self.multiplications + self.divisions

    @property
    def A(self) -> int:
        """Additions and subtractions."""
        return self.additions

    def __str__(self) -> str:
        """Return the count as the papers print it."""
        return f"{self.M}M {self.A}A"

    def display(self) -> list[str | Table]:
        """Return the count as the papers print it, and the number of each sort of operation."""
        sorts = ("multiplications", "divisions", "additions", "roots", "sines", "others")
        return [f"{self.function}: {self}", Table(sorts, (tuple(getattr(self, sort) for sort in sorts),))]


def cost(
    system: CompiledMechanism | Mechanism, function: str, *, frame: str | None = None, wrenches: bool = False
) -> Cost:
    """Return the cost of a function of a System, or of a Mechanism."""
    mechanism = system if isinstance(system, Mechanism) else system.mechanism
    request = Request(function, frame, None, wrenches).checked(mechanism)
    if ALGORITHMS[request.name].inverts:
        refuse_singular(mechanism, request)
    return Cost(function, **build(mechanism, request).cost())


def generic_robot(n: int, kinds: Sequence[str] = ("revolute",), *, branches: int = 1, seed: int = 1) -> Mechanism:
    """Return n bodies on joints of the given kinds in turn, with generic numbers: no right angles and no zeros.

    The result is a chain, or with `branches` a body that carries that many chains. As in the papers' tables, the frame
    of the ground is that of the first joint (alpha, a and b of the first row are zero). Gravity has all three
    components.
    """
    if n < 1 or branches < 1 or not kinds:
        raise InputError(f"n = {n}, branches = {branches}, {len(kinds)} kinds; expected 1 or more of each")
    rng = np.random.default_rng(seed)
    bodies, joints = [], []
    for k in range(n):
        what = kinds[k % len(kinds)]
        kind(what)
        parent = GROUND if k == 0 else f"link{max(1, k + 1 - branches)}"
        bodies.append(_body(f"link{k + 1}", rng))
        joints.append(
            Joint(
                f"joint{k + 1}",
                what,
                parent,
                f"link{k + 1}",
                Placement() if k == 0 else _placement(rng, what),
                axis=(0.0, 0.0, 1.0),
                axis2=(1.0, 0.0, 0.0) if "axis2" in kind(what).DATA else None,
                pitch=0.1 if "pitch" in kind(what).DATA else 0.0,
            )
        )
    gravity = _vector(rng.uniform(2.0, 6.0, 3))
    return build_mechanism(f"generic_{n}", bodies, joints, frames=[Frame("tool", f"link{n}")], gravity=gravity)


def in_revolutes(mechanism: Mechanism) -> Mechanism:
    """Return the same mechanism with each universal, spherical or Euler joint as revolute joints on massless bodies.

    A program without joints of several degrees of freedom requires this form. A spherical joint becomes three axes with
    Euler angles, which allow the same motion.
    """
    joints = tuple(
        replace(j, kind=kind(j.kind).ANGLES) if kind(j.kind).QUATERNION == 0 else j for j in mechanism.joints
    )
    return split_joints(replace(mechanism, name=f"{mechanism.name}_split", joints=joints))[0]


def _body(name: str, rng: np.random.Generator) -> Body:
    """Return a body with generic numbers that are physically possible."""
    mass = float(rng.uniform(1.0, 5.0))
    second = rng.uniform(0.01, 0.05, 3) * mass
    R = _rotation(*rng.uniform(0.3, 1.2, 3))
    tensor = R @ np.diag(second.sum() - second) @ R.T
    com = _vector(rng.uniform(0.05, 0.3, 3))
    return Body(name, mass, com, tuple(float(x) for x in to_moments(tensor.tolist())))


def _placement(rng: np.random.Generator, what: str) -> Placement:
    """Return Rx(alpha) Tx(a) Tz(b) of modified DH for one axis, or a generic pose for several axes."""
    alpha, a, b = rng.uniform(0.3, 1.2), *rng.uniform(0.2, 0.6, 2)
    if _one_axis(kind(what)):
        R = _rotation(alpha, 0.0, 0.0)
        place = R @ (a, 0.0, b)
    else:
        R, place = _rotation(*rng.uniform(0.3, 1.2, 3)), rng.uniform(0.2, 0.6, 3)
    x, y, z = map(_vector, R)
    return Placement(_vector(place), (x, y, z))


def _one_axis(kind: JointKind) -> bool:
    return "axis" in kind.DATA and "axis2" not in kind.DATA and not kind.FLOATS


def _vector(numbers: np.ndarray) -> tuple[float, float, float]:
    x, y, z = numbers.tolist()
    return x, y, z


def _rotation(x: float, y: float, z: float) -> np.ndarray:
    return np.array(from_rpy(x, y, z), dtype=float)


# --- Measured times of a mechanism's functions on this machine ---

DEFAULT = ("inverse_dynamics", "forward_dynamics", "inertia_matrix", "poses")
ROUNDS = 7
"""Measurements per figure, an odd number with a median that ignores a few disturbed ones."""


@dataclass(frozen=True)
class Timing:
    """Seconds until a function is ready, and nanoseconds per single call and per sample of a batch (medians)."""

    function: str
    ready: float
    single: float
    sample: float


def timings(system: CompiledMechanism, functions: tuple[str, ...] = DEFAULT, batch: int = 4096) -> list[Timing]:
    """Time functions on random states in one thread; `ready` is the time to compile, or to read the cache.

    The mechanism's own forces are left out, as in the counts of operations. Functions that require a frame are refused.
    """
    rng = np.random.default_rng(0)
    q, qd = system.tree.random_state(rng, batch)
    given = {"q": q, "qd": qd, "qdd": rng.normal(size=qd.shape), "tau": rng.normal(size=qd.shape), "q2": q}
    out = []
    for name in functions:
        if name not in ALGORITHMS or ALGORITHMS[name].frame:
            raise unknown_name("function", name, [n for n, a in ALGORITHMS.items() if not a.frame])
        start = time.perf_counter()
        function = system.function(name, forces=False)
        ready = time.perf_counter() - start
        arrays = [given[a] for a in ALGORITHMS[name].inputs]
        if system.mechanism.free_parameters:
            arrays.append(np.array([p.value for p in system.mechanism.free_parameters]))
        one = [a[0] if a.ndim > 1 else a for a in arrays]
        place = function(*arrays)
        single = _nanoseconds(lambda: function.gufunc(*one), 200)  # noqa: B023 - called at once
        whole = _nanoseconds(lambda: function.gufunc(*arrays, out=place), 3)  # noqa: B023
        out.append(Timing(name, ready, single, whole / batch))
    return out


def _nanoseconds(run: Callable[[], object], repeats: int) -> float:
    def once() -> float:
        start = time.perf_counter()
        for _ in range(repeats):
            run()
        return (time.perf_counter() - start) / repeats * 1e9

    return median(once() for _ in range(ROUNDS))

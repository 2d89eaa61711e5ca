"""Operation counts of a function: those of the Program that runs, by the rules of the papers.

M counts multiplications and divisions, A additions and subtractions. A product with a constant counts, a change of
sign does not. Sines, cosines and roots are counted separately, as in the papers' tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...algebra.rotations import from_rpy
from ...algebra.vectors import to_moments
from ...compiled import CompiledMechanism
from ...compiler.lower.build import Request, build
from ...compiler.runtime.singular_inertia import refuse_singular
from ...errors import InputError
from ...joints import JointKind, kind
from ...model import GROUND, Body, Joint, Mechanism, Placement, assemble
from ...model.parts import Frame
from ...model.splitting import split_joints


@dataclass(frozen=True)
class Cost:
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


def cost(
    system: CompiledMechanism | Mechanism, function: str, *, frame: str | None = None, wrenches: bool = False
) -> Cost:
    """Return the cost of a function of a System, or of a Mechanism."""
    mechanism = system if isinstance(system, Mechanism) else system.mechanism
    request = Request(function, frame, None, wrenches).checked(mechanism)
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
    return assemble(f"generic_{n}", bodies, joints, frames=[Frame("tool", f"link{n}")], gravity=gravity)


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

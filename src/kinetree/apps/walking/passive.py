"""Passive walkers: rimless wheel, compass gait and simplest walker, which gravity alone moves down a slope.

All walk in the xy plane along x, with y perpendicular to the slope, and rotate about z. The supporting foot is pinned
to the ground. At heel strike the other foot is pinned, without bounce or slip, and the first one comes free.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..._support.checks import number, positive, whole
from ...algebra.arrays import Numbers
from ...algebra.scalars import cos, where
from ...errors import InputError
from ...model import build_mechanism
from ...model.mechanism import Mechanism
from ...model.parts import Body, Frame, Joint, Placement
from ...simulation.events import Event
from ...system import System
from .return_maps import ReturnMap

GRAVITY = 9.81
APART = 0.05
"""The least angle between the legs at heel strike [rad]: feet that pass each other are below the slope, as the papers
accept it."""


def pinned_speeds(system: System, q: Numbers, qd: Numbers, frame: str) -> Numbers:
    """Return the velocities after a point of a mechanism in the plane was suddenly pinned, without bounce or slip.

    The velocities nearest to qd in kinetic energy with J qd = 0: qd - I^-1 J^T (J I^-1 J^T)^-1 J qd.
    """
    J = system.jacobian(q, frame)[..., 3:5, :]
    answer = system.inverse_inertia_matrix(q) @ np.swapaxes(J, -1, -2)
    impulse = np.linalg.solve(J @ answer, J @ qd[..., None])
    return qd - (answer @ impulse)[..., 0]


@dataclass(frozen=True)
class Compass:
    """A walker of two straight legs with a hip: the compass gait of [Goswami1998].

    A leg of a `length` [m] has its mass `leg` [kg] at a distance `above` [m] from its foot, without inertia of its own,
    and `hip` [kg] is at the hip. `slope` is in rad. With hip alone, `Compass.simplest(...)`, it is the simplest walker
    of [Garcia1998], whose feet have a small share of the mass.
    """

    slope: float
    leg: float = 5.0
    hip: float = 10.0
    length: float = 1.0
    above: float = 0.5
    gravity: float = GRAVITY

    def __post_init__(self) -> None:
        """Check the numbers."""
        number(self.slope, "slope")
        for name in ("leg", "hip", "length", "gravity"):
            positive(getattr(self, name), name)
        if not 0.0 <= number(self.above, "above") < self.length:
            raise InputError(f"above is {self.above}; give the height of a leg's mass, below its length {self.length}")

    @classmethod
    def simplest(cls, slope: float, *, foot: float = 1e-3) -> Compass:
        """Return the walker with all masses at the hip (1 kg) and at the feet, g = l = 1."""
        return cls(slope, leg=foot, hip=1.0, length=1.0, above=0.0, gravity=1.0)

    @cached_property
    def system(self) -> System:
        """The walker on its pinned foot: q are the angle of that leg from y, and the angle of the hip."""
        return System(self._mechanism(floating=False))

    @cached_property
    def floating(self) -> System:
        """The walker with both feet free: x and y of the first one come before the angles."""
        return System(self._mechanism(floating=True))

    def _mechanism(self, *, floating: bool) -> Mechanism:
        point = (0.0,) * 6
        total = self.leg + self.hip
        center = (self.leg * self.above + self.hip * self.length) / total
        about = self.leg * (self.above - center) ** 2 + self.hip * (self.length - center) ** 2
        bodies = [
            Body("stance", total, (0.0, center, 0.0), (about, 0.0, about, 0.0, 0.0, 0.0)),
            Body("swing", self.leg, (0.0, self.above - self.length, 0.0), point),
        ]
        z = (0.0, 0.0, 1.0)
        joints = [
            Joint("stance", "revolute", "y" if floating else "ground", "stance", axis=z),
            Joint("hip", "revolute", "stance", "swing", Placement((0.0, self.length, 0.0)), axis=z),
        ]
        if floating:
            bodies = [Body("x", 0.0, (0.0, 0.0, 0.0), point), Body("y", 0.0, (0.0, 0.0, 0.0), point), *bodies]
            joints = [
                Joint("x", "prismatic", "ground", "x", axis=(1.0, 0.0, 0.0)),
                Joint("y", "prismatic", "x", "y", axis=(0.0, 1.0, 0.0)),
                *joints,
            ]
        down = (self.gravity * np.sin(self.slope), -self.gravity * np.cos(self.slope), 0.0)
        foot = Frame("foot", "swing", Placement((0.0, -self.length, 0.0)))
        return build_mechanism("compass", bodies, joints, gravity=down, frames=[foot])

    def height(self, now):
        """Return the height of the foot above the slope, on traced scalars; -1 until the leg swings ahead."""
        a, b = now.q[0], now.q[0] + now.q[1]
        return where(now.q[1] > APART, self.length * (cos(a) - cos(b)), -1.0)

    def strike(self, q: Numbers, qd: Numbers) -> tuple[Numbers, Numbers]:
        """Return the state after heel strike, with the legs exchanged; NaN for a walker that has fallen."""
        still = np.zeros_like(q)
        whole, rates = np.concatenate([still, q], axis=-1), np.concatenate([still, qd], axis=-1)
        after = pinned_speeds(self.floating, whole, rates, "foot")[..., 2:]
        fallen = (np.abs(q[..., :1]) > np.pi / 2) | (np.abs(q[..., :1] + q[..., 1:]) > np.pi / 2)
        return exchange_legs(np.where(fallen, np.nan, q)), exchange_legs(after)

    @cached_property
    def step(self) -> ReturnMap:
        """The map from one heel strike to the next: x = (angle of the supporting leg, and both velocities)."""
        return ReturnMap(
            self.system,
            Event(self.height, direction=-1, stop=True, name="heel strike"),
            state=lambda x: (np.stack([x[..., 0], -2.0 * x[..., 0]], axis=-1), x[..., 1:]),
            jump=self.strike,
            section=lambda q, qd: np.concatenate([q[..., :1], qd], axis=-1),
            longest=8.0 * float(np.sqrt(self.length / self.gravity)),
        )


def exchange_legs(x: Numbers) -> Numbers:
    """Return angles or their rates (first leg, hip) with the legs exchanged: (a, b - a) becomes (b, a - b)."""
    return np.stack([x[..., 0] + x[..., 1], -x[..., 1]], axis=-1)


@dataclass(frozen=True)
class RimlessWheel:
    """A wheel of spokes without a rim: `mass` [kg] and `inertia` [kg m^2] at the hub, spokes of a `length` [m]."""

    slope: float
    spokes: int = 8
    mass: float = 1.0
    inertia: float = 0.1
    length: float = 1.0
    gravity: float = GRAVITY

    def __post_init__(self) -> None:
        """Check the numbers."""
        number(self.slope, "slope")
        whole(self.spokes, "spokes", least=3)
        for name in ("mass", "length", "gravity"):
            positive(getattr(self, name), name)
        number(self.inertia, "inertia", least=0.0)

    @property
    def half(self) -> float:
        """Half the angle between two spokes [rad]."""
        return float(np.pi / self.spokes)

    @property
    def loss(self) -> float:
        """The ratio of the angular velocities after and before a spoke strikes the slope."""
        inert = self.mass * self.length**2
        return float((self.inertia + inert * np.cos(2 * self.half)) / (self.inertia + inert))

    @property
    def rolling_speed(self) -> float:
        """The angular velocity after a strike in steady rolling, in closed form [rad/s]; 0 if it cannot roll."""
        inert = self.inertia + self.mass * self.length**2
        gain = 4 * self.mass * self.gravity * self.length / inert * np.sin(self.half) * np.sin(self.slope)
        speed = np.sqrt(self.loss**2 * gain / (1 - self.loss**2)) if gain > 0 and self.loss > 0 else 0.0
        over = 2 * self.mass * self.gravity * self.length / inert * (1 - np.cos(max(self.half - self.slope, 0.0)))
        return float(speed) if speed**2 > over else 0.0

    @cached_property
    def system(self) -> System:
        """The wheel on its pinned spoke: q is the angle of the hub from y, counterclockwise."""
        inertia = (self.inertia, self.inertia, self.inertia, 0.0, 0.0, 0.0)
        body = Body("wheel", self.mass, (0.0, self.length, 0.0), inertia)
        down = (self.gravity * np.sin(self.slope), -self.gravity * np.cos(self.slope), 0.0)
        joint = Joint("spoke", "revolute", "ground", "wheel", axis=(0.0, 0.0, 1.0))
        return System(build_mechanism("rimless_wheel", [body], [joint], gravity=down))

    @cached_property
    def step(self) -> ReturnMap:
        """The map from one strike to the next: x = (angular velocity of the hub); rolling downhill is negative.

        A wheel that is too slow to pass over its spoke rolls back, and does not return.
        """
        half = self.half
        return ReturnMap(
            self.system,
            Event(lambda now: now.q[0] + half, direction=-1, stop=True, name="strike"),
            state=lambda x: (np.full_like(x, half), x),
            jump=lambda q, qd: (q + 2 * half, self.loss * qd),
            section=lambda q, qd: qd,
            longest=20.0 * float(np.sqrt(self.length / self.gravity)),
        )

"""Rings of bodies that can be cut at any of their joints: the same mechanism as different trees with a loop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kinetree import System
from kinetree.algebra.vectors import to_moments
from kinetree.joints import kind
from kinetree.model import GROUND, Body, Joint, Loop, Placement, build_mechanism
from strategies import nested, rotation


@dataclass(frozen=True)
class Ring:
    """A ring of bodies: joint k, about or along z of its frame (R, x), leads from body k to body k + 1.

    Body 0 is the ground. Masses, centers of mass and inertias about them are in the ground's axes at q = 0.
    """

    kinds: tuple[str, ...]
    frames: tuple[tuple[np.ndarray, np.ndarray], ...]
    masses: tuple[float, ...]
    centers: tuple[np.ndarray, ...]
    inertias: tuple[np.ndarray, ...]
    gravity: tuple[float, float, float]

    def cut(self, at: int) -> System:
        """Return the mechanism with joint `at` cut: joints before it lead outward, those after it from the far end."""
        n = len(self.kinds)
        name = [GROUND, *(f"b{k}" for k in range(1, n))]
        stand = {GROUND: (np.eye(3), np.zeros(3))}
        bodies, joints = [], []
        order = [(k, k, k + 1) for k in range(at)] + [(k, (k + 1) % n, k) for k in range(n - 1, at, -1)]
        for k, parent, child in order:
            R, x = self.frames[k]
            Rp, xp = stand[name[parent]]
            stand[name[child]] = (R, x)
            place = Placement(nested(Rp.T @ (x - xp)), nested(Rp.T @ R))
            joints.append(Joint(f"k{k}", self.kinds[k], name[parent], name[child], place))
            I = R.T @ self.inertias[child - 1] @ R  # noqa: E741 - the papers' letter
            com = nested(R.T @ (self.centers[child - 1] - x))
            bodies.append(Body(name[child], self.masses[child - 1], com, tuple(float(v) for v in to_moments(I))))
        (R, x), ends = self.frames[at], []
        for body in (name[at], name[(at + 1) % n]):
            Rb, xb = stand[body]
            ends.append(Placement(nested(Rb.T @ (x - xb)), nested(Rb.T @ R)))
        loop = Loop(f"k{at}", self.kinds[at], name[at], name[(at + 1) % n], *ends)
        return System(build_mechanism(f"cut{at}", bodies, joints, loops=[loop], gravity=self.gravity))

    def rates(self, seed: int = 0) -> list[np.ndarray]:
        """Return velocities of all joints, each of body k + 1 in body k, that keep the ring closed."""
        columns = []
        for what, (R, x) in zip(self.kinds, self.frames, strict=True):
            turn, slide = np.concatenate([R[:, 2], np.cross(x, R[:, 2])]), np.concatenate([np.zeros(3), R[:, 2]])
            columns.append({"revolute": [turn], "prismatic": [slide], "cylindrical": [turn, slide]}[what])
        whole = np.array([c for each in columns for c in each]).T
        free = np.linalg.svd(whole)[2][np.linalg.matrix_rank(whole, 1e-9) :]
        found = np.random.default_rng(seed).normal(size=len(free)) @ free
        return np.split(found, np.cumsum([len(each) for each in columns])[:-1])

    def speeds(self, system: System, at: int, rates: list[np.ndarray]) -> np.ndarray:
        """Return qd of the cut mechanism for the velocities of all joints."""
        return np.concatenate([rates[int(j.name[1:])] * (1 if int(j.name[1:]) < at else -1) for j in system.joints])

    def pushed(self, system: System, wrenches: np.ndarray) -> np.ndarray:
        """Return wrenches [n - 1, 6] in the ground's axes about the centers of mass as wrenches in the body frames."""
        out = []
        for body, pose in zip(system.bodies, system.poses(np.zeros(system.nq)), strict=True):
            n, f = np.split(wrenches[int(body.name[1:]) - 1], 2)
            R, arm = pose[:3, :3], self.centers[int(body.name[1:]) - 1] - pose[:3, 3]
            out.append(np.concatenate([R.T @ (n + np.cross(arm, f)), R.T @ f]))
        return np.array(out)


def ring(kinds: tuple[str, ...], frames, seed: int = 0) -> Ring:
    """Return a ring with bodies of awkward masses and centers of mass outside any common plane."""
    rng = np.random.default_rng(seed)
    masses, centers, inertias = [], [], []
    for k in range(len(kinds) - 1):
        masses.append(float(np.exp(rng.normal())))
        middle = (frames[k][1] + frames[k + 1][1]) / 2
        centers.append(middle + 0.1 * rng.normal(size=3))
        R, second = np.array(rotation(rng)), 0.02 * np.exp(rng.normal(size=3))
        inertias.append(R @ np.diag(second.sum() - second) @ R.T)
    assert sum(kind(k).NV for k in kinds) >= len(kinds)
    return Ring(kinds, tuple(frames), tuple(masses), tuple(centers), tuple(inertias), (0.7, -9.2, 3.1))


def planar(places, slides: int | None = None, tilt: int = 5) -> Ring:
    """Return a planar ring with all axes along one tilted normal; joint `slides` slides in the plane."""
    T = np.array(rotation(np.random.default_rng(tilt)))
    kinds = tuple("prismatic" if k == slides else "revolute" for k in range(len(places)))
    along = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])  # z along x
    frames = [(T @ along if k == slides else T, T @ np.array([*p, 0.0])) for k, p in enumerate(places)]
    return ring(kinds, frames)


def spatial(seed: int = 8) -> Ring:
    """Return the ring of a revolute and three cylindrical joints: one degree of freedom, no redundant equation."""
    rng = np.random.default_rng(seed)
    frames = [(np.array(rotation(rng)), 0.6 * rng.normal(size=3)) for _ in range(4)]
    return ring(("revolute", "cylindrical", "cylindrical", "cylindrical"), frames, seed)


def four_bar(cut: int = 3) -> System:
    """Return a four-bar with the lengths of [Saha2013] 4.1 in a tilted plane, one of its pins cut, closed at q = 0."""
    crank, bar, base = 0.038, 0.1152, 0.0895
    a = crank * np.array([np.cos(1.1), np.sin(1.1)])
    far = np.array([base, 0.0])
    middle, half = (a + far) / 2, np.linalg.norm(far - a) / 2
    across = np.array([a[1] - far[1], far[0] - a[0]]) / (2 * half)
    return planar([(0.0, 0.0), a, middle + np.sqrt(bar**2 - half**2) * across, far]).cut(cut)


def moving(system: System, speed: float = 3.0) -> np.ndarray:
    """Return velocities that keep the loops closed at q = 0, for a mechanism with one degree of freedom."""
    free = np.linalg.svd(system.closure_jacobian(system.neutral()))[2][-1]
    return free * speed / np.abs(free).max()

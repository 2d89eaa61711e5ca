"""Centered states by NumPy: centers of mass and their velocities from the poses and twists of all bodies."""

from __future__ import annotations

import numpy as np

import kinetree as kt
from kinetree import joints as joint_kinds


class Floating:
    """The floating roots of a mechanism: bodies on the ground whose joints have translations."""

    def __init__(self, system: kt.System) -> None:
        """List the entries of the translations of each root, the bodies outboard of it, and their masses."""
        self.system, m = system, system.mechanism
        self.masses, self.coms = np.array([b.mass for b in m.bodies]), np.array([b.com for b in m.bodies])
        self.roots = []
        for k, (joint, parent) in enumerate(zip(m.joints, m.parents, strict=True)):
            pairs = joint_kinds.kind(joint.kind).FLOATS
            body = parent
            while body >= 0 and m.v_slices[body].start == m.v_slices[body].stop:
                body = m.parents[body]
            if not pairs or body >= 0:
                continue
            tree = [k]
            for i in range(k + 1, len(m.bodies)):
                if m.parents[i] in tree:
                    tree.append(i)
            places = [m.q_slices[k].start + a for a, _ in pairs]
            self.roots.append((k, tree, places, [m.v_slices[k].start + b for _, b in pairs]))

    def means(self, q, qd, tree):
        """Return the center of mass of some bodies and its velocity, in the axes of the ground."""
        T, t = self.system.poses(q)[tree], self.system.twists(q, qd)[tree]
        places = np.einsum("kij,kj->ki", T[:, :3, :3], self.coms[tree]) + T[:, :3, 3]
        velocities = np.einsum("kij,kj->ki", T[:, :3, :3], t[:, 3:] + np.cross(t[:, :3], self.coms[tree]))
        m = self.masses[tree]
        return m @ places / m.sum(), m @ velocities / m.sum()

    def axes(self, q, body, places):
        """Return the directions in which the translations of a root move it, as columns."""
        start, unit = self.system.neutral(), np.eye(len(q))
        return np.array([self._origin(start + unit[k], body) - self._origin(start, body) for k in places]).T

    def _origin(self, q, body):
        return self.system.poses(q)[body, :3, 3]

    def centered(self, q, qd):
        """Return (z, u)."""
        z, u = np.array(q), np.array(qd)
        for body, tree, places, labels in self.roots:
            A, (x, v) = self.axes(q, body, places), self.means(q, qd, tree)
            z[places] += A.T @ (x - self._origin(q, body))
            u[labels] = A.T @ v
        return z, u

    def uncentered(self, z, u):
        """Return (q, qd)."""
        q, qd = np.array(z), np.array(u)
        for body, tree, places, _ in self.roots:
            A = self.axes(q, body, places)
            q[places] -= A.T @ (self.means(z, u, tree)[0] - self._origin(z, body))
        for body, tree, places, labels in self.roots:
            A, unit = self.axes(q, body, places), np.eye(len(qd))
            others = np.where(np.isin(np.arange(len(qd)), labels), 0.0, qd)
            answers = np.array([A.T @ self.means(q, unit[k], tree)[1] for k in labels]).T
            qd[labels] = np.linalg.solve(answers, u[labels] - A.T @ self.means(q, others, tree)[1])
        return q, qd

    def rates(self, q, qdd):
        """Return du/dt without forces but gravity, from the accelerations."""
        du = np.array(qdd)
        for body, _, places, labels in self.roots:
            du[labels] = self.axes(q, body, places).T @ self.system.mechanism.gravity
        return du

    def moved(self, z, du):
        """Return z displaced: centers of mass move straight."""
        way = np.array(du)
        for _, _, _, labels in self.roots:
            way[labels] = 0.0
        out = self.system.integrate(z, way)
        for _, _, places, labels in self.roots:
            out[places] = z[places] + du[labels]
        return out

    def halfway(self, q, qd, h):
        """Return z, q and qd in the middle of a step with contacts, and qd there at its end, without impulses."""
        z, u = self.centered(q, qd)
        z = self.moved(z, u * h / 2)
        middle, speeds = self.uncentered(z, u)
        rates = self.rates(middle, self.system.forward_dynamics(middle, speeds, np.zeros(len(qd))))
        return z, middle, speeds, speeds + h * self.uncentered(z, rates)[1]

    def ended(self, z, middle, after, h):
        """Return the state at the end of the step from the velocities there with the position of the middle."""
        u = self.centered(middle, after)[1]
        return self.uncentered(self.moved(z, u * h / 2), u)

"""Energies, momentum and center of mass of the whole mechanism."""

from __future__ import annotations

from ..algebra.mass import MassMatrix
from ..algebra.spatial import Wrench, power
from ..algebra.vectors import dot, scale
from ..errors import ModelError
from .kinematics import move


def kinetic_energy(tree):
    """T = sum of t^T M t / 2 over the bodies, and of armature qd^2 / 2 over the drives."""
    move(tree)
    tree.ground.T2 = 0.0

    @tree.each
    def own(i):
        i.T2 = power(i.M @ i.t, i.t)  # twice the energy
        for armature, qd in zip(i.armature, i.qd, strict=True):
            i.T2 = i.T2 + armature * qd * qd

    @tree.inward
    def gather(i, p):
        p.T2 += i.T2

    return [tree.ground.T2 * 0.5]


def potential_energy(tree):
    """U = -g . sum of m c: zero where the center of mass is at the height of the ground's origin."""
    return [-dot(tree.gravity, whole(tree).mc)]


def center_of_mass(tree):
    """Return the center of mass in the ground's frame."""
    total = whole(tree)
    if total.m == 0.0:
        raise ModelError("nothing has mass, and so there is no center of mass", remedy="give the bodies masses")
    return scale(1.0 / total.m, total.mc)


def momentum(tree):
    """Return [angular momentum about the ground's origin; linear momentum] in the ground's axes, N_l^T M t."""
    move(tree)
    tree.ground.h = Wrench()

    @tree.each
    def own(i):
        i.h = i.M @ i.t

    @tree.inward
    def gather(i, p):
        p.h += i.A.T @ i.h

    return tree.ground.h.entries()


def whole(tree) -> MassMatrix:
    """Return the composite body of everything, about the ground's origin.                [Saha2013] (20)"""
    tree.ground.Mtilde = MassMatrix()

    @tree.each
    def begin(i):
        i.Mtilde = i.M

    @tree.inward
    def gather(i, p):
        p.Mtilde += i.A.T @ i.Mtilde @ i.A

    return tree.ground.Mtilde

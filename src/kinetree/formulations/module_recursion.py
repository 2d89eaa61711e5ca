"""Inverse and forward dynamics by modules: recursion inside each chain, and from chain to chain.   [Saha2013] 3

A module is connected to its parent at one link alone. A twist and its rate pass outward between modules, a wrench and a
mass matrix pass inward. Modules on different branches are independent of each other and could be computed in parallel.
The cost is proportional to the number of bodies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError
from ..model.mechanism import Mechanism
from .equations import Equations
from .kinematics import Matrix
from .links import Links, links
from .modules import Module, ModuleDeNOC, chains

ANGULAR = np.diag([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
"""E_k of [Saha2013] (47b)."""
PIVOT = 1e-14
"""Smallest pivot, relative to the momentum of the same motion: anything below is rounding."""


def equations(mechanism: Mechanism, q: ArrayLike, qd: ArrayLike, wrenches: ArrayLike | None = None) -> Equations:
    """Return the equations of motion: I and C by module blocks, gravity and wrenches by recursion."""
    tree = links(mechanism, q, qd)
    modules = chains(tree, mechanism)
    blocks = ModuleDeNOC(tree, modules)
    external = _gather(tree, modules, _external(tree, wrenches))
    weight = np.array([b.M @ np.concatenate([np.zeros(3), -tree.gravity]) for b in tree.each]).reshape(-1, 6)
    return Equations(blocks.I, blocks.C @ tree.qd, _gather(tree, modules, weight), external, blocks.C)


def inverse_dynamics(
    mechanism: Mechanism, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrenches: ArrayLike | None = None
) -> Matrix:
    """Return tau [nv] of a motion; wrenches [nb, 6] are external, in body axes."""
    tree = links(mechanism, q, qd)
    modules = chains(tree, mechanism)
    needed = _needed(tree, modules, _speeds("qdd", qdd, tree)) - _external(tree, wrenches)
    armature = np.concatenate([np.zeros(0), *(b.armature for b in tree.each)])
    return _gather(tree, modules, needed) + armature * np.asarray(qdd, dtype=float)


def forward_dynamics(
    mechanism: Mechanism, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, wrenches: ArrayLike | None = None
) -> Matrix:
    """Return qdd [nv] for given joint torques; wrenches [nb, 6] are external, in body axes."""
    tree = links(mechanism, q, qd)
    modules = chains(tree, mechanism)
    bias = _needed(tree, modules, np.zeros(tree.nv)) - _external(tree, wrenches)
    torques = _speeds("tau", tau, tree)
    masses, loads = {}, {}  # sums over child modules, at the last link of their parent
    done: list[Articulated] = []
    for module in reversed(modules):  # inter-modular: tips first
        last = module.links[-1]
        found = _articulate(tree, module, bias, torques, masses.get(last), loads.get(last))
        done.append(found)
        at = tree.each[module.links[0]].parent
        masses[at] = masses.get(at, 0.0) + found.M
        loads[at] = loads.get(at, 0.0) + found.w
    qdd, rates = np.zeros(tree.nv), {-1: np.zeros(6)}
    for module, found in zip(modules, reversed(done), strict=True):  # inter-modular: base first
        start = rates[tree.each[module.links[0]].parent]
        rates[module.links[-1]] = _accelerate(tree, module, found, start, qdd)
    return qdd


@dataclass(frozen=True)
class Articulated:
    """Articulated inertia M and bias wrench w of a module, about the origin of its parent's last link.

    Psi [6, k] and tautilde [k] belong to each link's joint.
    """

    M: Matrix
    w: Matrix
    Psi: dict[int, Matrix]
    tautilde: dict[int, Matrix]


def _articulate(tree: Links, module: Module, bias, tau, M_child, w_child) -> Articulated:
    """Eliminate a module, its last link first: block elimination of each joint.          [Saha2013] (28)-(32)"""
    M = np.zeros((6, 6)) if M_child is None else M_child
    w = np.zeros(6) if w_child is None else w_child
    Psi, tautilde = {}, {}
    for i in reversed(module.links):  # intra-modular
        b = tree.each[i]
        M, w = M + b.M, w + bias[i]
        Psihat = M @ b.p
        mhat = b.p.T @ Psihat + np.diag(b.armature)
        tauhat = tau[b.dofs] - b.p.T @ w
        Psi[i], tautilde[i] = _divided(b.joint, mhat, Psihat, tauhat)
        A = _inward(tree, i)
        M = A.T @ (M - Psihat @ Psi[i].T) @ A
        M = (M + M.T) / 2  # asymmetric rounding would grow along a chain
        w = A.T @ (w + Psi[i] @ tauhat)
    return Articulated(M, w, Psi, tautilde)


def _accelerate(tree: Links, module: Module, found: Articulated, mu: Matrix, qdd: Matrix) -> Matrix:
    """Fill in qdd of a module's joints, first link first; return mu of the last link.        [Saha2013] (33)"""
    for i in module.links:
        b = tree.each[i]
        mu = _inward(tree, i) @ mu
        qdd[b.dofs] = found.tautilde[i] - found.Psi[i].T @ mu
        mu = mu + b.p @ qdd[b.dofs]
    return mu


def _needed(tree: Links, modules: tuple[Module, ...], qdd: Matrix) -> Matrix:
    """Return the wrench that moves each body, [nb, 6], gravity as an acceleration of the ground. [Saha2013] (22)-(26)

    Differs from the paper: the Newton-Euler equations are (47a), about joint origins; (46b) prints m v for m v'.
    """
    out = np.zeros((len(tree), 6))
    ends = {-1: np.concatenate([np.zeros(3), -tree.gravity])}  # twist rates of the modules' last links
    for module in modules:  # inter-modular: base first
        dt = ends[tree.each[module.links[0]].parent]
        for i in module.links:  # intra-modular
            b = tree.each[i]
            before = np.zeros(6) if b.parent < 0 else tree.each[b.parent].t
            dt = _inward(tree, i) @ dt + _rate(tree, i) @ before + b.p @ qdd[b.dofs] + b.dp @ tree.qd[b.dofs]  # (23)
            out[i] = b.M @ dt + b.Omega @ b.M @ ANGULAR @ b.t  # (47a)
        ends[module.links[-1]] = dt
    return out


def _gather(tree: Links, modules: tuple[Module, ...], wrenches: Matrix) -> Matrix:
    """Return N^T w, collected inside each module from its last link, then from module to module. [Saha2013] (25)"""
    tau, carried = np.zeros(tree.nv), {}
    for module in reversed(modules):
        w = carried.get(module.links[-1], np.zeros(6))
        for i in reversed(module.links):
            w = w + wrenches[i]
            tau[tree.each[i].dofs] = tree.each[i].p.T @ w
            w = _inward(tree, i).T @ w
        at = tree.each[module.links[0]].parent
        carried[at] = carried.get(at, np.zeros(6)) + w
    return tau


def _inward(tree: Links, i: int) -> Matrix:
    """Return the propagation from a link's parent; the ground has no angular velocity to propagate."""
    parent = tree.each[i].parent
    return np.eye(6) if parent < 0 else tree.propagation(i, parent)


def _rate(tree: Links, i: int) -> Matrix:
    parent = tree.each[i].parent
    return np.zeros((6, 6)) if parent < 0 else tree.propagation_rate(i, parent)


def _divided(joint: str, mhat: Matrix, Psihat: Matrix, tauhat: Matrix) -> tuple[Matrix, Matrix]:
    """Return Psihat mhat^-1 and mhat^-1 tauhat."""
    least = np.linalg.eigvalsh(mhat).min(initial=np.inf)
    if not least > PIVOT * max(np.abs(Psihat).max(initial=0.0), np.abs(mhat).max(initial=0.0)):
        raise InputError(
            f"joint {joint!r} moves nothing that has inertia (pivot {least:.3g}); give the bodies behind it mass, or"
            " the joint armature, or leave a singular position"
        )
    solved = np.asarray(np.linalg.solve(mhat, np.column_stack([Psihat.T, tauhat])), dtype=float)
    return solved[:, :6].T, solved[:, 6]


def _external(tree: Links, wrenches: ArrayLike | None) -> Matrix:
    given = np.zeros((len(tree), 6)) if wrenches is None else np.asarray(wrenches, dtype=float)
    if given.shape != (len(tree), 6):
        raise InputError(f"wrenches have shape {given.shape}; expected {(len(tree), 6)}")
    turned = [(*(b.R @ w[:3]), *(b.R @ w[3:])) for b, w in zip(tree.each, given, strict=True)]
    return np.array(turned).reshape(-1, 6)


def _speeds(name: str, x: ArrayLike, tree: Links) -> Matrix:
    array = np.asarray(x, dtype=float)
    if array.shape != (tree.nv,):
        raise InputError(f"{name} has shape {array.shape}; expected ({tree.nv},)")
    return array

"""The DeNOC matrices of small chains and trees in symbols: N_l, N_d, psi, m^, U, D, I = U D U^T and its inverse.

All vectors are in the axes of the ground and about the origins of the joints, as in [Saha2013] section 3. Poses, joint
motions and the inertia matrix are those of `equations`; the rest follows from them by the papers' recursions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..errors import InputError, unknown_name
from ..joints import kind
from ..model.mechanism import Mechanism, resolve_parts
from ..runtime.compiled import CompiledMechanism
from .equations import LONGEST, SymbolicFunction, equations, textbook
from .fourier import exact, freed_numbers, import_sympy

MATRICES = ("N_l", "N_d", "N", "psi", "mhat", "U", "D", "I", "inverse")
"""The matrices by name."""
SHORT = 40
"""The operations of an expression up to which it is simplified: SymPy takes seconds beyond."""
LETTERS = {
    "psi": r"\boldsymbol{\psi}", "mhat": r"\hat{\mathbf{m}}", "inverse": r"\mathbf{I}^{-1}", "N_l": r"\mathbf{N}_l",
    "N_d": r"\mathbf{N}_d",
}  # fmt: skip


@dataclass(frozen=True, repr=False)
class SymbolicDeNOC:
    """The DeNOC matrices of a tree in SymPy, each computed on first use.

    `inertia` is the generalized inertia matrix as `arm.equations("inertia_matrix")` returns it, with its parameters and
    legend. `origins` and `axes` are those of the bodies, `motions` [6] the joint motions p_i, and `masses` [6, 6] the
    mass matrices M_i, all in the ground's axes. `parents` are the numbers of the bodies' parents, -1 for the ground.
    """

    inertia: SymbolicFunction
    parents: tuple[int, ...]
    origins: tuple[Any, ...]
    motions: tuple[Any, ...]
    masses: tuple[Any, ...]
    armatures: tuple[Any, ...]

    @property
    def parameters(self) -> dict[Any, float]:
        """The symbols of numbers of the mechanism, with their values."""
        return self.inertia.parameters

    def propagation(self, i: int, j: int) -> Any:
        """Return A_ij, by which the twist of body j moves body i with it: [omega; v].            [Saha2013] (8)"""
        sympy = import_sympy()
        return sympy.Matrix(sympy.BlockMatrix([
            [sympy.eye(3), sympy.zeros(3)],
            [_cross(self.origins[j] - self.origins[i]), sympy.eye(3)],
        ]))  # fmt: skip

    @cached_property
    def N_l(self) -> Any:
        """The lower block triangular matrix of propagations [6 n, 6 n].                          [Saha2013] (44)"""
        sympy, n = import_sympy(), len(self.parents)
        out = sympy.zeros(6 * n, 6 * n)
        for i in range(n):
            j = i
            while j >= 0:
                out[6 * i : 6 * i + 6, 6 * j : 6 * j + 6] = self.propagation(i, j)
                j = self.parents[j]
        return out

    @cached_property
    def N_d(self) -> Any:
        """The block diagonal matrix of joint motions [6 n, n].                                   [Saha2013] (45)"""
        return import_sympy().diag(*self.motions)

    @cached_property
    def N(self) -> Any:
        """The natural orthogonal complement, t = N qd [6 n, n].                                 [Saha2013] (9a)"""
        return self.N_l * self.N_d

    @cached_property
    def articulated(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The columns psi_i = M^_i p_i / m^_i [6] and pivots m^_i of all joints.     [Saha1999] (50), [Saha2013] (31)

        The articulated bodies M^_i = M_i + sum of A^T (M^_c - m^_c psi_c psi_c^T) A over the children c.
        """
        sympy, total, columns, pivots = import_sympy(), list(self.masses), [], []
        for i in reversed(range(len(self.parents))):
            p = self.motions[i]
            momentum = total[i] * p
            pivot = _short((p.T * momentum)[0] + self.armatures[i])
            psi = (momentum / pivot).applyfunc(sympy.together)
            columns.insert(0, psi)
            pivots.insert(0, pivot)
            j = self.parents[i]
            if j >= 0:
                A = self.propagation(i, j)
                total[j] += A.T * (total[i] - pivot * psi * psi.T) * A
        return tuple(columns), tuple(pivots)

    @cached_property
    def psi(self) -> Any:
        """The columns M^_i p_i / m^_i side by side [6, n].                                      [Saha1999] (43)"""
        return import_sympy().Matrix.hstack(*self.articulated[0])

    @cached_property
    def mhat(self) -> Any:
        """The pivots m^_i = p_i^T M^_i p_i, with armatures, as a column [n].                     [Saha2013] (31)"""
        return import_sympy().Matrix(self.articulated[1])

    @cached_property
    def _factors(self) -> tuple[Any, Any]:
        """U and D by elimination of the entries of I, the last column first.            [Saha1999] appendix B"""
        sympy, n, rest = import_sympy(), len(self.parents), self.I.as_mutable()
        U, D = sympy.eye(n), sympy.zeros(n)
        for k in reversed(range(n)):
            D[k, k] = _short(rest[k, k])
            for i in range(k):
                U[i, k] = rest[i, k] / D[k, k]
            for i in range(k):
                for j in range(k):
                    rest[i, j] = sympy.together(rest[i, j] - U[i, k] * D[k, k] * U[j, k])
        return U, D

    @property
    def U(self) -> Any:
        """The upper triangular factor of I, with ones on the diagonal [n, n].                   [Saha1999] (35)"""
        return self._factors[0]

    @property
    def D(self) -> Any:
        """The diagonal factor of I [n, n]: the pivots m^ from the entries of I.                 [Saha1999] (35)"""
        return self._factors[1]

    @property
    def I(self) -> Any:  # noqa: E743 - the papers' letter
        """The generalized inertia matrix, U D U^T [n, n].                                       [Saha2013] (21)"""
        return self.inertia.expression

    @cached_property
    def inverse(self) -> Any:
        """The inverse of I, U^-T D^-1 U^-1 [n, n].                                              [Saha1999] (58)"""
        sympy, n = import_sympy(), len(self.parents)
        back = sympy.eye(n)  # U^-1, column by column
        for k in range(n):
            for i in reversed(range(k)):
                back[i, k] = -sum(self.U[i, j] * back[j, k] for j in range(i + 1, k + 1))
        pivots = sympy.diag(*(1 / self.D[k, k] for k in range(n)))
        return (back.T * pivots * back).applyfunc(sympy.together)

    def __getitem__(self, name: str) -> Any:
        """Return a matrix by its name, such as "N_l"."""
        if name not in MATRICES:
            raise unknown_name("matrix", str(name), MATRICES)
        return getattr(self, name)

    def latex(self, *names: str) -> str:
        """Return equations in LaTeX, by default U, D and I."""
        sympy, symbols = import_sympy(), self.inertia._names()
        parts = [
            f"{LETTERS.get(name, rf'{chr(92)}mathbf{{{name}}}')} = {sympy.latex(self[name], symbol_names=symbols)}"
            for name in names or ("U", "D", "I")
        ]
        return r",\quad ".join(parts)

    def text(self, *names: str) -> str:
        """Return the entries that are not zero, one per line, by default those of U, D and I."""
        lines = []
        for name in names or ("U", "D", "I"):
            matrix = self[name]
            rows = [(k // matrix.cols, k % matrix.cols, x) for k, x in enumerate(matrix) if x != 0]
            lines += [f"{name}[{i}][{j}] = {x}" if matrix.cols > 1 else f"{name}[{i}] = {x}" for i, j, x in rows]
        return "\n".join(lines)

    def __repr__(self) -> str:
        """Return U, D and I, for consoles."""
        return self.text()

    def _repr_latex_(self) -> str | None:
        """Return U, D and I for notebooks; None if they are too long to be read, and their lines are shown instead."""
        text = self.latex()
        return f"$\\displaystyle {text}$" if len(text) <= LONGEST else None


def symbolic_denoc(system: CompiledMechanism, *, symbols: str = "declared") -> SymbolicDeNOC:
    """Return the DeNOC matrices of a small chain or tree in symbols; `symbols` as in `equations`."""
    sympy, m = import_sympy(), system.mechanism
    _require_tree(m)
    inertia = equations(system, "inertia_matrix", symbols=symbols)
    freed, kept, _ = freed_numbers(m, symbols)
    known = {p.name: sympy.Symbol(p.name, real=True) if p.name in kept else _number(p.value) for p in freed.parameters}
    bodies, joints = resolve_parts(freed.bodies, known), resolve_parts(freed.joints, known)
    origins, motions, masses = [], [], []
    for k, body in enumerate(m.bodies):
        pose = equations(system, "pose", symbols=symbols, frame=body.name).expression
        origins.append(pose[:3, 3])
        motions.append(equations(system, "jacobian", symbols=symbols, frame=body.name).expression[:, k])
        masses.append(_mass_matrix(pose[:3, :3], bodies[k]))
    parents = tuple(m.body_indices.get(j.parent, -1) for j in m.joints)
    armatures = tuple(_number(j.armature[0]) if j.armature else sympy.Integer(0) for j in joints)
    return SymbolicDeNOC(inertia, parents, tuple(origins), tuple(motions), tuple(masses), armatures)


def _require_tree(m: Mechanism) -> None:
    """Refuse loops, and joints without exactly one degree of freedom."""
    if m.loops or m.couplings:
        raise InputError(
            f"{m.name!r} has loops; matrices in symbols are those of trees, and "
            "arm.equations('inertia_matrix').reduced() has G^T I G of the closed mechanism"
        )
    for joint in m.joints:
        if kind(joint.kind).NV != 1:
            raise InputError(
                f"the joint {joint.name!r} has {kind(joint.kind).NV} degrees of freedom; matrices in symbols are those "
                "of joints with one"
            )


def _mass_matrix(R: Any, body: Any) -> Any:
    """Return the mass matrix of a body about its joint's origin, in the ground's axes.           [Saha2013] (14)"""
    sympy = import_sympy()
    mass, (xx, yy, zz, xy, yz, zx) = _number(body.mass), map(_number, body.inertia)
    com = sympy.Matrix([_number(x) for x in body.com])
    inner = sympy.Matrix([[xx, xy, zx], [xy, yy, yz], [zx, yz, zz]]) - mass * _cross(com) * _cross(com)
    first = mass * _cross(R * com)
    return sympy.Matrix(
        sympy.BlockMatrix([[(R * inner * R.T).applyfunc(_short), first], [first.T, mass * sympy.eye(3)]])
    )


def _number(x: Any) -> Any:
    """Return a number exactly, and a symbol or an expression as it is."""
    return textbook(exact(float(x)), {}, set()) if isinstance(x, int | float) else x


def _cross(v: Any) -> Any:
    """Return the matrix of v x."""
    x, y, z = v
    return import_sympy().Matrix([[0, -z, y], [z, 0, -x], [-y, x, 0]])


def _short(x: Any) -> Any:
    """Return an expression with squares of sines and cosines joined, if it is not long."""
    sympy = import_sympy()
    return sympy.trigsimp(sympy.together(x)) if x.count_ops() < SHORT else x

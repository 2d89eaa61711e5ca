"""Loads of many designs of a closed mechanism along one motion, where all designs have the same geometry.

The loads are then linear in the forces of each design, with matrices that depend on the position alone. They are
computed once for all designs: W = M1 W0 + M2 (needed torque - acting torque), where W0 are the reactions of the tree
for the motion.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...algebra.arrays import Numbers
from ...compiled import CompiledMechanism
from ...compiler.ir.program import Program
from ...compiler.ir.trace import Op
from ...model.parameters import names_in
from .constraints import Split, split
from .load_sharing import relief, transmission


def geometry(system: CompiledMechanism) -> frozenset[int] | None:
    """Return the free parameters, by entry, on which poses of bodies or frames of loops depend; None if unknown."""
    free = system.mechanism.free_parameters
    program = system.function("poses").program
    if not isinstance(program, Program):  # rolled code is not examined
        return None
    group = [array.name for array in program.inputs].index("parameters") if free else -1
    used = {op[2] for op in program.ops if op[0] is Op.INPUT and op[1] == group}
    named = names_in((system.mechanism.loops, system.mechanism.couplings))
    return frozenset(used | {k for k, p in enumerate(free) if p.name in named})


def same_geometry(system: CompiledMechanism, parameters: Numbers) -> bool:
    """Return whether the parameters [n, np] that differ affect neither poses of bodies nor frames of loops."""
    differing = np.flatnonzero((parameters != parameters[:1]).any(axis=0)).tolist()
    own = geometry(system)
    return own is not None and not own & set(differing)


def common_loads(
    system: CompiledMechanism,
    q: Numbers,
    qd: Numbers,
    qdd: Numbers,
    *,
    tau: Numbers,
    wrenches: Numbers | None,
    parameters: Numbers,
) -> tuple[Numbers, Numbers]:
    """Return the wrenches at joints [n, nt, nb, 6] and at loops [n, nt, nl, 6] for one motion, [nt, .] each.

    `tau` [n, nt, nv], `wrenches` [n, nt, nb, 6] and `parameters` [n, np] are those of each design.
    """
    options: dict[str, Any] = {"parameters": parameters[:, None, :]} | (
        {} if wrenches is None else {"wrenches": wrenches}
    )
    rest = system.tree.inverse_dynamics(q, qd, qdd, **options) - tau
    own = system.reactions(q, qd, qdd, **options)
    of_reactions, of_torques = _matrices(system, q, parameters[0])
    found = of_reactions @ own.reshape(*own.shape[:-2], -1, 1) + of_torques @ rest[..., None]
    found = found.reshape(*own.shape[:-2], -1, 6)
    nb = len(system.bodies)
    return found[..., :nb, :], found[..., nb:, :]


def _matrices(system: CompiledMechanism, q: Numbers, parameters: Numbers) -> tuple[Numbers, Numbers]:
    """Return M1 [nt, 6 (nb + nl), 6 nb] and M2 [nt, 6 (nb + nl), nv]."""
    free, own = system.mechanism.free_parameters, geometry(system) or frozenset()
    # The other parameters act through rounding alone. They get fixed values, so that bits do not depend on the batch.
    plain = np.array([parameters[k] if k in own else p.value for k, p in enumerate(free)])
    values = np.broadcast_to(plain, (len(q), len(free)))
    at = split(system, q, values)
    T = transmission(system.mechanism, np.asarray(system.poses(q, parameters=values)), values)
    flat = T.reshape(len(q), -1, T.shape[-1])
    nb = 6 * len(system.bodies)
    of_torques = flat @ _multipliers(at)
    of_reactions = np.broadcast_to(np.eye(flat.shape[-2])[:, :nb], (len(q), flat.shape[-2], nb))
    if (at.rank < at.J.shape[-2]).any():
        kept = np.eye(flat.shape[-2]) - flat @ relief(system.mechanism, at, T)
        of_reactions, of_torques = kept[..., :nb], kept @ of_torques
    return np.ascontiguousarray(of_reactions), np.ascontiguousarray(of_torques)


def _multipliers(at: Split) -> Numbers:
    """Return the matrix of the smallest multipliers that balance torques, [nt, nc, nv]."""
    return np.stack([at.multipliers(one) for one in np.eye(at.U.shape[-1])], axis=-1)

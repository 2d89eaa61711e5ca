"""Architecture: which parameters make the inertia matrix of a mechanism constant or diagonal, or balance its weight.

The inertia matrix and the torques of gravity are linear functions of the dynamic parameters [Saha2013]: their columns
are those of the regressor at rest, under unit accelerations of the driven joints. At positions q_s, entry ij is
A_ij(q_s) pi. It is constant if (A_ij(q_s) - A_ij(q_1)) pi = 0 for all s, and zero if A_ij(q_s) pi = 0. Such equations
W pi = 0 are conditions X pi = 0 of as many combinations of parameters as W has independent columns, W = W_k X.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.checks import whole
from .._support.tables import Displayed, Table
from ..algebra.scalars import Numbers
from ..errors import AssemblyError, InputError, ModelError, UnreachableError, unknown_name
from ..model.axes import axis_labels
from ..model.scales import characteristic_length, characteristic_mass, loop_units
from ..runtime.compiled import CompiledMechanism
from .identification.base_parameters import DEPENDENT, BaseParameters, independent_columns, kept_order, rounded
from .identification.columns import dynamic_parameters, parameter_names, parameter_units, regressor
from .identification.consistency import Target, consistent, margins
from .identification.identify import with_dynamic_parameters
from .joint_entries import as_list
from .loops.actuation import dofs
from .loops.batch_assembly import assemble
from .loops.driven_motion import nearest_motion

if TYPE_CHECKING:
    from ..model.mechanism import Named

GOALS = {
    "constant": "the inertia matrix does not depend on the position",
    "diagonal": "no drive accelerates another one by inertia",
    "decoupled": "the inertia matrix is constant and diagonal: the equations of the drives are separate and linear",
    "balanced": "gravity needs no torques",
}
"""What parameters can make of a mechanism, in words."""
POSITIONS = 60
WIDEST, NARROWEST = 1.2, 0.01
"""The displacement of driven joints from the assembled position [rad, or lengths], and the least that will do."""
MET = 1e-9
"""The size of conditions, relative to mass, length and their products, at which they count as met."""
STRICT = 1e9
"""The weight of conditions in a design, against a change of a parameter by its size."""


@dataclass(frozen=True, repr=False)
class Architecture(Displayed):
    """Conditions by goal, combinations of parameters that must vanish: `conditions["constant"].groupings` name them.

    `joints` are the driven joints. `met` says which goals the mechanism meets as it is.
    """

    system: CompiledMechanism
    joints: tuple[str, ...]
    conditions: dict[str, BaseParameters]
    sizes: Numbers

    @property
    def met(self) -> dict[str, bool]:
        """Whether each goal is met by the parameters of the mechanism."""
        return {goal: bool(np.all(self._relative(goal, c.values) < MET)) for goal, c in self.conditions.items()}

    def residuals(self, goal: str, parameters: Named | None = None) -> Numbers:
        """Return the values of the conditions of a goal, for the mechanism's free parameters or as it is."""
        chosen = self._of(goal)
        return chosen.of(dynamic_parameters(self.system, parameters=parameters))

    def measure(self, goal: str) -> Callable[[Any], Numbers]:
        """Return a measure for kt.optimize and kt.study: the largest relative condition of each design, zero if met."""
        self._of(goal)

        def largest(runs: Any) -> Numbers:
            given = None if runs.parameters is None else np.atleast_2d(np.asarray(runs.parameters))
            count = int(np.prod(runs.shape, dtype=int))
            if given is None:
                return np.full(runs.shape, self._relative(goal, self.residuals(goal)).max(initial=0.0))
            rows = np.broadcast_to(given, (count, given.shape[-1])) if len(given) == 1 else given.reshape(count, -1)
            found = [self._relative(goal, self.residuals(goal, row)).max(initial=0.0) for row in rows]
            return np.array(found).reshape(runs.shape)

        largest.__name__ = goal
        return largest

    def design(self, goal: str, method: str = "log-cholesky") -> CompiledMechanism:
        """Return a mechanism that meets a goal, with bodies that are possible, as near as possible to this one.

        Raises UnreachableError where no bodies can meet it.
        """
        chosen, bodies = self._of(goal), len(self.system.bodies)
        prior = dynamic_parameters(self.system)
        R = np.diag(STRICT / np.abs(chosen.matrix * self.sizes).max(axis=1)) if len(chosen) else np.zeros((0, 0))
        none = np.zeros(len(prior), dtype=bool)
        target = Target(R, chosen.matrix, np.zeros(len(chosen)), prior, self.sizes, bodies, none)
        pi = consistent(target, method) if len(chosen) else prior
        exact = pi - self.sizes * np.linalg.lstsq(chosen.matrix * self.sizes, chosen.matrix @ pi, rcond=None)[0]
        if (margins(exact, bodies) < 0.0).any() or not (exact[::10] >= 0.0).all():
            bad = [self.system.bodies[k].name for k in np.flatnonzero(margins(exact, bodies) < 0.0)]
            raise UnreachableError(
                f"no bodies of {self.system.mechanism.name!r} make it {goal}: {' = '.join(chosen.groupings[:3])} = 0 "
                f"asks for impossible inertia ({', '.join(bad[:3])}); drive other joints, or change the axes"
            )
        return with_dynamic_parameters(self.system, exact)

    def display(self) -> list[str | Table]:
        """Return the conditions of each goal."""
        out: list[str | Table] = [f"{self.system.mechanism.name}: conditions for {', '.join(self.joints)}"]
        for goal, c in self.conditions.items():
            state = "met" if self.met[goal] else f"{len(c)} conditions"
            rows = tuple(
                (f"{text} = 0", float(x), c.units[k]) for text, x, k in zip(c.groupings, c.values, c.kept, strict=True)
            )
            out.append(f"{goal} ({GOALS[goal]}): {state}")
            if rows:
                out.append(Table(("condition", "now", "unit"), rows))
        return out

    def _of(self, goal: str) -> BaseParameters:
        if goal not in self.conditions:
            raise unknown_name("goal", str(goal), self.conditions)
        return self.conditions[goal]

    def _relative(self, goal: str, values: Numbers) -> Numbers:
        return np.abs(values) / np.maximum((np.abs(self.conditions[goal].matrix) @ self.sizes), 1e-300)


def architecture(
    system: CompiledMechanism, *, actuated: str | Iterable[str] | None = None, positions: int = POSITIONS, rng: int = 0
) -> Architecture:
    """Return which combinations of parameters must vanish for a constant, diagonal or decoupled inertia matrix.

    The inertia matrix is that of the driven joints: all of a tree, or the `actuated` ones of a closed mechanism, which
    must determine its motion. "balanced" has the conditions under which gravity needs no torques.
    """
    m = system.mechanism
    if m.closures and actuated is None:
        raise InputError(f"{m.name!r} has loops: name the driven joints, such as actuated=['crank']")
    if not m.nv:
        raise ModelError(f"{m.name!r} has no joints that move")
    driven = list(range(m.nv)) if actuated is None else dofs(m, as_list(actuated))
    joints = tuple(j.name for j in m.joints if j.kind != "fixed") if actuated is None else tuple(as_list(actuated))
    entries, gravity = _entries(system, driven, actuated, whole(positions, "positions", least=4), rng)
    n, p = len(driven), entries.shape[-1]
    changing = (entries - entries[:1]).reshape(-1, p)
    mixed = entries[:, ~np.eye(n, dtype=bool)].reshape(-1, p)
    rows = {
        "constant": changing,
        "diagonal": mixed,
        "decoupled": np.vstack([changing, mixed]),
        "balanced": gravity.reshape(-1, p),
    }
    mass, length = characteristic_mass(m), characteristic_length(m)
    sizes = np.tile([mass, *(mass * length,) * 3, *(mass * length**2,) * 6], len(m.bodies))
    return Architecture(system, joints, {goal: _conditions(system, W, sizes) for goal, W in rows.items()}, sizes)


def _entries(
    system: CompiledMechanism, driven: list[int], actuated: str | Iterable[str] | None, count: int, seed: int
) -> tuple[Numbers, Numbers]:
    """Return the regressors of the inertia matrix [positions, n, n, p] and of gravity [positions, n, p]."""
    m, rng = system.mechanism, np.random.default_rng(seed)
    units = loop_units(m)[1]
    q = _positions(system, driven, count, rng)
    more: dict[str, Any] = {} if actuated is None else {"actuated": actuated}
    rest = np.zeros((count, m.nv))
    still = nearest_motion(system, q, rest, rest)[2] if m.closures else rest
    weight = regressor(system, q, rest, still, **more)
    motions = []
    for k in driven if not m.closures else range(m.nv):
        qdd = rest.copy()
        qdd[:, k] = units[k]
        if m.closures:
            _, _, qdd = nearest_motion(system, q, rest, qdd)
        motions.append((qdd, units[:, None] * (regressor(system, q, rest, qdd, **more) - weight)))
    gravity = (units[:, None] * weight)[:, driven]
    if not m.closures:
        return np.stack([Y[:, driven] for _, Y in motions], axis=2), gravity
    # the accelerations of driven joints are u; tau = M u for nv motions, of which n are independent
    u = np.stack([qdd[:, driven] / units[driven] for qdd, _ in motions], axis=-1)  # [s, n, nv]
    tau = np.stack([Y[:, driven] for _, Y in motions], axis=-1)  # [s, n, p, nv]
    short = np.linalg.svd(u, compute_uv=False)
    if (short[:, -1] < 1e-6 * short[:, 0]).any():
        raise InputError(
            f"the driven joints do not determine the motion of {m.name!r} at all positions; drive as many joints "
            "as there are degrees of freedom"
        )
    return np.einsum("sipk,skj->sijp", tau, np.linalg.pinv(u)), gravity


def _positions(system: CompiledMechanism, driven: list[int], count: int, rng: np.random.Generator) -> Numbers:
    """Return positions: random ones of a tree, and those of a closed mechanism that its assembled one leads to."""
    m = system.mechanism
    if not m.closures:
        return system.random_state(rng, count)[0]
    start, labels, names = assemble(system), list(axis_labels(m, 0)), axis_labels(m, 1)
    lengths, reach = loop_units(m)[1], WIDEST
    ways = np.cumsum(rng.normal(size=(count, len(driven))), axis=0)
    ways /= np.abs(ways).max(axis=0)
    while reach > NARROWEST:
        hold = {names[k]: start[labels.index(names[k])] + reach * lengths[k] * ways[:, n] for n, k in enumerate(driven)}
        try:
            return assemble(system, start, hold, follow=True)
        except AssemblyError:
            reach *= 0.5
    raise InputError(
        f"{m.name!r} cannot move from its assembled position by the driven joints; choose others, or give a [guess] "
        "away from singular positions"
    )


def _conditions(system: CompiledMechanism, W: Numbers, sizes: Numbers) -> BaseParameters:
    """Return the combinations X pi that vanish where W pi does."""
    m = system.mechanism
    names, units = parameter_names(m), parameter_units(m)
    scaled = W * sizes
    lengths = np.linalg.norm(scaled, axis=0)
    usual = max(float(np.abs(scaled).max(initial=0.0)), 1e-300)
    scaled = np.where(lengths > DEPENDENT * usual * np.sqrt(max(len(W), 1)), scaled, 0.0)
    kept, X = independent_columns(scaled, kept_order(len(m.bodies), len(names)))
    spectrum = np.linalg.svd(scaled, compute_uv=False) if len(kept) else np.zeros(1)
    X = np.where(np.abs(X) > DEPENDENT, X, 0.0)
    K = rounded(X / sizes * sizes[kept, None]) if kept else np.zeros((0, len(names)))
    pi = dynamic_parameters(system)
    return BaseParameters(m.name, names, units, tuple(kept), K, K @ pi, spectrum / max(spectrum[0], 1e-300))

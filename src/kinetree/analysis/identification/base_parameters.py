"""Base parameters: the combinations of parameters on which torques depend, found by numeric rank, with their groupings.

Regressors of random states are stacked as W, its columns scaled to unit length. A column that depends on those kept
before it is grouped into them: W_d = W_k X gives W pi = W_k (pi_k + X pi_d). Within a body, first moments are kept
before moments of inertia and these before the mass, and bodies near the ground before the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._support.tables import Displayed, Table, figure
from ...algebra.scalars import Numbers
from ...dynamics.regressor import PARAMETERS
from ...errors import InputError, ModelError
from ...model.mechanism import Named, one_set, resolve_parts
from ...model.parameters import Expression, Parameter
from ...model.parts import Limits
from ...model.scales import characteristic_length, loop_units
from ...runtime.compiled import CompiledMechanism
from ..joint_entries import as_list
from ..loops.actuation import dofs
from ..loops.driven_motion import nearest_motion
from .columns import column_names, dynamic_parameters, parameter_names, parameter_units, regressor

DEPENDENT = 1e-9
"""The part of a column that others do not give, below which it depends on them; rounding errors are some 1e-15."""
GAP = 1e-6
"""The least singular value, and the least size of a column, that count as independent without doubt."""
PER_PARAMETER = 6
"""The number of equations of random states per parameter."""
LEAST_STATES = 40
EXTRA, POLYNOMIAL = 4, 1e-7
"""Further lengths by which formulas are checked, and the largest difference that is rounding."""
ORDER = (1, 2, 3, 4, 5, 6, 7, 8, 9, 0)
"""The order in which the parameters of a body are kept: first moments, inertias, the mass."""


@dataclass(frozen=True, repr=False)
class BaseParameters(Displayed):
    """The base parameters beta = K pi of a mechanism, with Y pi = Y[..., kept] beta for every motion.

    `names` [p] and `units` [p] are those of all parameters pi, and `kept` [b] the indices of those whose columns are
    independent. `matrix` K [b, p] has the groupings, and `values` [b] are K pi for the mechanism as it is described.
    `singular_values` [p] are those of the scaled columns of random states, relative to the largest; `columns` and
    `actuated` are the options with which the regressor is called. `formulas` are the groupings with the lengths of the
    mechanism as symbols, if these were asked for.
    """

    mechanism: str
    names: tuple[str, ...]
    units: tuple[str, ...]
    kept: tuple[int, ...]
    matrix: Numbers
    values: Numbers
    singular_values: Numbers
    columns: tuple[str, ...] = ()
    actuated: tuple[str, ...] | None = None
    formulas: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Return the number of base parameters."""
        return len(self.kept)

    @property
    def groupings(self) -> tuple[str, ...]:
        """Each base parameter as a sum: "link1.Izz + link2.Iyy + 0.1864 link3.m"."""
        return tuple(self._sum(row, k) for row, k in zip(self.matrix, self.kept, strict=True))

    @property
    def without_effect(self) -> tuple[str, ...]:
        """The parameters on which no torque depends."""
        return tuple(name for name, column in zip(self.names, self.matrix.T, strict=True) if not column.any())

    def of(self, parameters: ArrayLike) -> Numbers:
        """Return the base parameters of others, K pi for pi [..., p]."""
        return np.asarray(parameters, dtype=float) @ self.matrix.T

    def display(self) -> list[str | Table]:
        """Return the count and a table of the groupings."""
        rows = tuple(
            zip(
                self.formulas or self.groupings,
                map(float, self.values),
                (self.units[k] for k in self.kept),
                strict=True,
            )
        )
        text = (
            f"{self.mechanism}: {len(self)} base parameters of {len(self.names)}; "
            f"{len(self.without_effect)} have no effect on the torques"
        )
        return [text, Table(("base parameter", "value", "unit"), rows)]

    def _sum(self, row: Numbers, own: int) -> str:
        """Return a row of K as a sum, the parameter that is kept first."""
        text = self.names[own]
        for k in np.flatnonzero(row):
            if k != own:
                factor = "" if abs(row[k]) == 1.0 else f"{figure(abs(float(row[k])))} "
                text += f" {'-' if row[k] < 0 else '+'} {factor}{self.names[k]}"
        return text


def base_parameters(
    system: CompiledMechanism,
    columns: str | Iterable[str] = (),
    *,
    actuated: str | Iterable[str] | None = None,
    rng: int = 0,
    parameters: Named | None = None,
    symbolic: bool = False,
) -> BaseParameters:
    """Return the base parameters of a mechanism: which parameters its torques determine, and in which combinations.

    `columns` are further sorts of parameters, as in `regressor`. For a closed mechanism `actuated` are the joints whose
    torques are measured. Joint limits are left out, so that the result holds for every motion. With `symbolic`, the
    result has `formulas`, in which x2, y2 and z2 are the distances of the second joint from the origin of its parent.
    """
    if symbolic:
        plain = base_parameters(system, columns, actuated=actuated, rng=rng, parameters=parameters)
        return replace(plain, formulas=_formulas(system, plain, rng))
    m = system.mechanism
    values = one_set(m, parameters, "base_parameters")
    chosen = column_names(columns)
    names = parameter_names(m, chosen)
    if not m.nv:
        raise ModelError(f"{m.name!r} has no joints that move, and so no torques depend on its parameters")
    if actuated is None and m.closures:
        raise InputError(
            f"{m.name!r} has loops: base parameters depend on the joints whose torques are measured; name them, "
            "such as actuated=['crank'], or use arm.tree for those of the open tree"
        )
    driven = None if actuated is None else tuple(as_list(actuated))
    W = random_regressors(system, chosen, driven, rng, values)
    sizes, expected = np.linalg.norm(W, axis=0), _expected_sizes(system, len(names)) * np.sqrt(len(W))
    acts = sizes > DEPENDENT * expected  # the rest are rounding errors
    scaled = W * np.divide(1.0, sizes, out=np.zeros_like(sizes), where=acts)
    kept, X = independent_columns(scaled, kept_order(len(m.bodies), len(names)))
    spectrum = np.linalg.svd(scaled, compute_uv=False)
    rank = int((spectrum > DEPENDENT * spectrum[0]).sum())
    smallest = min(spectrum[rank - 1] / spectrum[0], float((sizes / expected)[acts].min()))
    if rank != len(kept) or smallest < GAP:
        raise InputError(
            f"base parameters of {m.name!r} cannot be counted: columns are independent by {smallest:.0e} of their size "
            "alone, because axes or lengths of the mechanism are almost, but not exactly, special; give exact angles "
            "and lengths"
        )
    K = rounded(np.where(np.abs(X) > DEPENDENT, X, 0.0) * sizes / sizes[kept, None])
    pi = dynamic_parameters(system, chosen, parameters=values)
    return BaseParameters(
        m.name, names, parameter_units(m, chosen), tuple(kept), K, K @ pi, spectrum / spectrum[0], chosen, driven
    )


def random_regressors(
    system: CompiledMechanism,
    columns: tuple[str, ...],
    actuated: tuple[str, ...] | None,
    rng: int,
    values: Numbers | None,
) -> Numbers:
    """Return the regressors of random states, one below the other [rows, p]; forces are multiplied by the length."""
    m, random = system.mechanism, np.random.default_rng(rng)
    rows = m.nv if actuated is None else len(dofs(m, actuated))
    count = max(LEAST_STATES, -(-PER_PARAMETER * len(parameter_names(m, columns)) // max(rows, 1)))
    more: dict[str, Any] = {} if values is None else {"parameters": values}
    if m.closures:
        q, qd = system.random_state(random, count)
        q, qd, qdd = nearest_motion(system, q, qd, random.normal(size=qd.shape), **more)
    else:
        without_limits = replace(m, joints=tuple(replace(j, limits=Limits()) for j in m.joints))
        q, qd = CompiledMechanism(without_limits).random_state(random, count)
        qdd = random.normal(size=qd.shape)
    units = loop_units(m)[1]
    if not m.closures:
        qd, qdd = qd * units, qdd * units
    Y = units[:, None] * regressor(system, q, qd, qdd, columns=columns, actuated=actuated, **more)
    return (Y if actuated is None else Y[:, dofs(m, actuated)]).reshape(-1, Y.shape[-1])


def _expected_sizes(system: CompiledMechanism, count: int) -> Numbers:
    """Return the sizes of entries of regressors of random states, by the length of the mechanism and gravity."""
    m = system.mechanism
    length = characteristic_length(m)
    pull = length + float(np.linalg.norm(resolve_parts(m.gravity, m.values())))  # of accelerations of 1 rad/s^2
    body = [length * pull, *(pull,) * 3, *(1.0,) * 6]
    out = np.ones(count)
    out[: len(body) * len(m.bodies)] = np.tile(body, len(m.bodies))
    return out


def independent_columns(W: Numbers, order: Iterable[int]) -> tuple[list[int], Numbers]:
    """Return the columns that are independent of those before them, sorted, and X with W = W[:, kept] X.

    Gram and Schmidt, twice for each column so that rounding errors do not grow.
    """
    kept: list[int] = []
    Q = np.zeros((0, len(W)))
    for k in order:
        size = np.linalg.norm(W[:, k])
        rest = W[:, k].copy()
        for _ in range(2):
            rest -= Q.T @ (Q @ rest)
        left = np.linalg.norm(rest)
        if left > DEPENDENT * max(size, 1e-300) and size > 0.0:
            kept.append(k)
            Q = np.vstack([Q, rest / left])
    kept.sort()
    X = np.linalg.lstsq(W[:, kept], W, rcond=None)[0] if kept else np.zeros((0, W.shape[1]))
    return kept, X


def kept_order(bodies: int, count: int) -> list[int]:
    """Return the order in which columns are kept: bodies, then further columns."""
    size = len(PARAMETERS)
    return [size * body + k for body in range(bodies) for k in ORDER] + list(range(size * bodies, count))


def rounded(K: Numbers) -> Numbers:
    """Return groupings with whole numbers and halves exact."""
    near = np.round(2.0 * K) / 2.0
    return np.where(np.abs(K - near) < DEPENDENT, near, K)


# --- Groupings as polynomials of the lengths of a mechanism, by interpolation: K has degree 2 in them


def _formulas(system: CompiledMechanism, base: BaseParameters, rng: int) -> tuple[str, ...]:
    """Return the groupings with lengths as symbols: K of other lengths, fitted by polynomials of the second degree."""
    m, random = system.mechanism, np.random.default_rng(rng)
    if m.closures or m.free_parameters:
        raise InputError(f"{m.name!r} has loops or free parameters; formulas are those of trees with numbers")
    symbols: list[tuple[str, float]] = []
    joints = []
    for k, joint in enumerate(m.joints, 1):
        place = []
        for letter, x in zip("xyz", joint.placement.translation, strict=True):
            value = float(x)  # pyright: ignore
            if value:
                symbols.append((f"{letter}{k}", value))
            place.append(Expression("name", (f"{letter}{k}",)) if value else 0.0)
        joints.append(replace(joint, placement=replace(joint.placement, translation=tuple(place))))
    if not symbols:
        return base.groupings
    parameters = tuple(Parameter(name, value, free=True) for name, value in symbols)
    freed = CompiledMechanism(replace(m, joints=tuple(joints), parameters=parameters))
    n = len(symbols)
    powers = [(), *((i,) for i in range(n)), *((i, k) for i in range(n) for k in range(i, n))]
    usual = np.array([value for _, value in symbols])
    samples = usual * random.uniform(0.5, 1.5, (len(powers) + EXTRA, n))
    A = np.stack([np.prod(samples[:, list(p)], axis=1) for p in powers], axis=1)
    found = []
    for values in samples:
        other = base_parameters(freed, base.columns, actuated=base.actuated, rng=rng, parameters=values)
        if other.kept != base.kept:
            raise InputError(
                f"the base parameters of {m.name!r} are others where lengths differ from those that it has; print "
                "groupings, with numbers"
            )
        found.append(other.matrix)
    K = np.stack(found)
    scale = np.linalg.norm(A, axis=0)
    C = np.linalg.lstsq(A / scale, K.reshape(len(K), -1), rcond=None)[0]
    if np.abs((A / scale) @ C - K.reshape(len(K), -1)).max() > POLYNOMIAL * max(1.0, float(np.abs(K).max())):
        raise InputError(f"groupings of {m.name!r} are no polynomials of its lengths; print groupings, with numbers")
    C = (C / scale[:, None]).reshape(len(powers), *base.matrix.shape)
    C = np.where(np.abs(C) > POLYNOMIAL / scale[:, None, None], C, 0.0)
    near = np.round(2.0 * C) / 2.0
    C = np.where(np.abs(C - near) < POLYNOMIAL, near, C)
    names = [name for name, _ in symbols]
    return tuple(
        " + ".join([base.names[own], *(
            f"{_polynomial(C[:, row, k], powers, names)}{base.names[k]}"
            for k in range(len(base.names)) if k != own and C[:, row, k].any())])
        .replace("+ -", "- ")
        for row, own in enumerate(base.kept)
    )  # fmt: skip


def _polynomial(coefficients: Numbers, powers: list[tuple[int, ...]], names: list[str]) -> str:
    """Return a factor before a parameter: "2 x2 z3 ", "-", or "(x2^2 + z2^2) "."""
    terms = []
    for c, power in zip(coefficients, powers, strict=True):
        if not c:
            continue
        letters = [names[i] for i in power]
        text = f"{letters[0]}^2" if len(letters) == 2 and letters[0] == letters[1] else " ".join(letters)
        size = "" if abs(c) == 1.0 and text else f"{abs(float(c)):.4g}"
        terms.append(("-" if c < 0 else "", " ".join(x for x in (size, text) if x)))
    first = "".join(terms[0])
    if len(terms) == 1:
        return {"1": "", "-1": "-"}.get(first, f"{first} ")
    rest = "".join(f" {sign or '+'} {text}" for sign, text in terms[1:])
    return f"({first}{rest}) "

"""Requests to compile an algorithm, and the Program of an algorithm for one mechanism."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ...algebra.scalars import Scalar
from ...dynamics import ALGORITHMS
from ...dynamics.force_laws import passive_forces
from ...errors import Advice, InputError, unknown_name
from ...model.axes import entries
from ...model.mechanism import Mechanism
from ...model.topology import split_joints
from ..ir.program import Array, Program
from ..ir.trace import Trace
from .loop_pattern import DEPENDENT_SINGLE, ROUNDING_SINGLE, Closing, closing_pattern
from .sweeps import Tree

# --- Requests for derivatives: their kinds, the inputs that they are with respect to, and their arrays ---

KINDS = ("jacobian", "jvp", "vjp", "hvp")
"""Jacobians, products of the Jacobian with tangents and with cotangents, and derivatives of the latter."""
COORDINATES = ("q", "q2")
"""The inputs that are coordinates, whose directions are those of joint velocities."""


@dataclass(frozen=True)
class Derivative:
    """A derivative of a function with respect to the inputs `wrt`; () in a request stands for all.

    Coordinates are displaced in the tangent space, as `integrate` does. Otherwise, with `tangent=False`, they are
    displaced entry by entry. Derivatives that do not exist at singular positions of loops are NaN there, unless they
    are wanted `everywhere`.
    """

    kind: str
    wrt: tuple[str, ...] = ()
    tangent: bool = True
    everywhere: bool = False

    def checked(self, name: str, inputs: Sequence[str]) -> Derivative:
        """Return the derivative with its inputs filled in; InputError with the possible ones for an unknown input."""
        for x in self.wrt:
            if x not in inputs:
                raise unknown_name(f"input of {name}", x, inputs)
        if len(set(self.wrt)) < len(self.wrt):
            raise InputError(f"wrt is {', '.join(self.wrt)}; expected each input once")
        return replace(self, wrt=self.wrt or tuple(inputs))


def inputs_of(wrt: object) -> tuple[str, ...]:
    """Return the inputs of a derivative as names, given as None, one name or several."""
    names = () if wrt is None else (wrt,) if isinstance(wrt, str) else tuple(wrt) if isinstance(wrt, Iterable) else None
    if names is None or not all(isinstance(x, str) for x in names) or (wrt is not None and not names):
        raise InputError(f"wrt is {repr(wrt)[:60]}; give the names of inputs, such as 'q' or ('q', 'qd')")
    return names


def derived_arrays(
    derivative: Derivative, inputs: Sequence[Array], outputs: Sequence[Array], nv: int
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Return the inputs and outputs of a derivative of a function with these inputs and outputs."""
    known = {a.name: a for a in inputs}
    along = [_directions(known[name], derivative.tangent, nv) for name in derivative.wrt]
    tangents = [Array(f"tangent_{a.name}", a.shape) for a in along]
    cotangents = [Array(f"cotangent_{a.name}", a.shape) for a in outputs]
    gradients = tuple(Array(f"cotangent_{a.name}", a.shape) for a in along)
    if derivative.kind == "jacobian":
        return tuple(inputs), tuple(Array(f"d{o.name}_d{a.name}", (*o.shape, *a.shape)) for o in outputs for a in along)
    if derivative.kind == "jvp":
        return (*inputs, *tangents), tuple(Array(f"tangent_{a.name}", a.shape) for a in outputs)
    if derivative.kind == "vjp":
        return (*inputs, *cotangents), gradients
    return (*inputs, *cotangents, *tangents), tuple(Array(f"tangent_{a.name}", a.shape) for a in gradients)


def _directions(a: Array, tangent: bool, nv: int) -> Array:
    return Array(a.name, (nv,)) if tangent and a.name in COORDINATES else a


# --- The tree of a mechanism with loops, which also has the pattern of the equations of its loops ---


class ClosedTree(Tree):
    """A tree on which the algorithms of closed mechanisms run; without loops it behaves as a Tree."""

    dtype = "float64"
    """The precision of the code, on which tolerances depend."""

    @cached_property
    def closing(self) -> Closing:
        """The equations of the loops that take part, and the tolerances for those that depend on others."""
        found = closing_pattern(self.mechanism)
        if self.dtype == "float32":
            return replace(found, tolerance=DEPENDENT_SINGLE, rounding=ROUNDING_SINGLE)
        return found


# --- Algorithms with the forces of the mechanism itself: its force elements, and damping and friction of its joints.
#
# They act by wrenches on bodies and by torques in joints. What they contribute in a joint, its drive does not have to.

TORQUES = ("tau", "h", "g")
"""The names of outputs that are torques of drives."""

Scalars = list[Scalar]


def with_forces(mechanism: Mechanism, inputs: Mapping[str, Scalars]) -> tuple[dict[str, Scalars], Scalars]:
    """Return the inputs of a tree on which the forces act, and their torques in the joints."""
    state = {name: x for name, x in inputs.items() if name in ("q", "qd", "parameters")}
    torques, wrenches = passive_forces(ClosedTree(mechanism, state))
    out = dict(inputs)
    out["wrenches"] = _sums(inputs["wrenches"], wrenches) if "wrenches" in inputs else wrenches
    if "tau" in inputs:
        out["tau"] = _sums(inputs["tau"], torques)
    return out, torques


def torques_of_drives(
    names: Sequence[str], results: Sequence[Scalars], torques: Scalars, inputs: Mapping[str, Scalars], driven: frozenset
) -> list[Scalars]:
    """Return results whose torques of drives are without those of the forces; given torques stay as they are given."""
    out = []
    for name, values in zip(names, results, strict=True):
        if name in TORQUES:
            values = [x - y for x, y in zip(values, torques, strict=True)]
            if "tau" in inputs:
                values = [x if k in driven else inputs["tau"][k] for k, x in enumerate(values)]
        out.append(values)
    return out


def _sums(a: Scalars, b: Scalars) -> Scalars:
    return [x + y for x, y in zip(a, b, strict=True)]


UNROLLED = 64
"""The largest number of bodies for which code is unrolled by default; longer code takes long to compile."""
LARGE = 3000
"""The largest number of output entries for which code is unrolled by default.

The inertia matrix of 60 degrees of freedom, with 3600 entries, took a minute to compile."""
LOWERINGS = ("auto", "unrolled", "rolled")
CLOSING = ("closure_residual", "closure_jacobian", "closure_bias", "multipliers", "closing_step", "closing_speed")
"""The functions of the equations of loops."""
RIGID = {
    "regressor": "its torques are not linear in ten numbers per body; free those of rigid bodies and joints by "
    "kt.with_free, and differentiate inverse_dynamics with respect to parameters",
    "energy_regressor": "kinetic_energy and potential_energy have its energies",
}
"""The functions of rigid bodies alone, each with what to say to those who have flexible ones."""
DRIVEN = ("forward_dynamics", "implicit_dynamics")
"""The functions of a mechanism whose results depend on its loops."""
FEW, MANY = 128, 256
"""The largest numbers of degrees of freedom for which functions that depend on loops are unrolled by default.

The first is for mechanisms with few loops for their size, such as a hanging bridge, the second for those with many. The
rolled functions are Python that calls rolled sweeps for each equation, so they suit few equations."""


def is_long(mechanism: Mechanism, *, closed: bool | None = None) -> bool:
    """Return whether functions of a mechanism are rolled by default.

    The answer is for functions that depend on loops, with `closed=False` for all others.
    """
    count, equations = len(mechanism.bodies), len(mechanism.closures)
    if mechanism.has_flexible:  # of which rolled code knows nothing
        return False
    if not equations or closed is False:
        return count > UNROLLED
    return mechanism.nv > (MANY if 4 * equations > count else FEW)


@dataclass(frozen=True)
class Request:
    """An algorithm to compile, with its options; `lowering` is "auto", "unrolled" or "rolled" (see the glossary).

    `driven` are joints or axes by name, or entries of qd; a checked request has the entries. With `forces`, the force
    elements of the mechanism act, and damping and friction of its joints.
    """

    name: str
    frame: str | None = None
    axes: str | None = None
    wrenches: bool = False
    dtype: str = "float64"
    lowering: str = "auto"
    driven: tuple[str | int, ...] = ()
    forces: bool = False
    derivative: Derivative | None = None

    @property
    def title(self) -> str:
        """The name of the algorithm, or of its derivative."""
        return self.name if self.derivative is None else f"{self.derivative.kind} of {self.name}"

    def checked(self, mechanism: Mechanism) -> Request:
        """Return the request with defaults filled in, or raise an error with the possible values."""
        if not isinstance(self.name, str) or self.name not in ALGORITHMS:
            raise unknown_name("function", self.name, ALGORITHMS)
        algorithm = ALGORITHMS[self.name]
        if algorithm.frame:
            if not isinstance(self.frame, str):
                given = "" if self.frame is None else f" by name, not {repr(self.frame)[:60]}"
                names = ", ".join(mechanism.frame_names)
                raise InputError(
                    Advice(
                        f"{self.name} needs a frame{given}: one of {names}",
                        f"{self.name} needs --frame: one of {names}",
                    )
                )
            mechanism.frame(self.frame)
        elif self.frame is not None:
            raise InputError(f"{self.name} takes no frame")
        axes = algorithm.axes if self.axes is None else self.axes
        if self.axes is not None and algorithm.axes is None:
            raise InputError(f"{self.name} has no choice of axes")
        if axes not in (None, "body", "world"):
            raise InputError(f"axes is {axes!r}; expected 'body' or 'world'")
        if self.wrenches and not algorithm.wrenches:
            raise InputError(f"{self.name} does not depend on external wrenches")
        if not isinstance(self.forces, bool):
            raise InputError(f"forces is {repr(self.forces)[:60]}; expected True, for the forces of the mechanism")
        if self.forces and not algorithm.wrenches:
            raise InputError(f"{self.name} does not depend on forces")
        if self.dtype not in ("float64", "float32"):
            raise InputError(f"dtype is {self.dtype!r}; expected 'float64' or 'float32'")
        if self.driven and not algorithm.driven:
            raise InputError(f"{self.name} takes no driven joints; hybrid_dynamics does")
        places = sorted({k for x in self.driven for k in ([x] if isinstance(x, int) else entries(mechanism, x, 1))})
        if mechanism.has_flexible and self.name in RIGID:
            raise InputError(
                f"{self.name} does not know flexible bodies such as {mechanism.flexible_name!r}; {RIGID[self.name]}"
            )
        lowering = self._lowered(mechanism)
        plain = Request(self.name, self.frame, axes, self.wrenches, self.dtype, lowering, tuple(places), self.forces)
        if self.derivative is None:
            return plain
        inputs, _ = signature(mechanism, plain)
        return replace(plain, derivative=self.derivative.checked(self.name, [a.name for a in inputs]))

    def _lowered(self, mechanism: Mechanism) -> str:
        """Return "unrolled" or "rolled"."""
        if self.lowering == "rolled" and mechanism.has_flexible:
            raise InputError(
                f"{self.name} of {mechanism.name!r}: code with loops over the bodies does not know flexible ones "
                f"such as {mechanism.flexible_name!r}; use lowering='unrolled'"
            )
        if self.lowering not in LOWERINGS:
            raise InputError(f"lowering is {self.lowering!r}; expected 'auto', 'unrolled' or 'rolled'")
        if self.derivative is not None:
            self._refuse_long(mechanism)
            return "unrolled"
        if self.forces:
            if self.lowering == "rolled":
                raise InputError(f"{self.name} with forces has no rolled code; use lowering='unrolled'")
            return "unrolled"
        if self.name in CLOSING and not mechanism.closures:
            return "unrolled"  # there is nothing to compute
        if ALGORITHMS[self.name].unrolled:
            self._refuse_long(mechanism)
            return "unrolled"
        if len(ALGORITHMS[self.name].outputs) > 1:
            if self.lowering == "rolled":
                raise InputError(
                    f"{self.name} has several outputs, and rolled code has only one; use lowering='unrolled'"
                )
            return "unrolled"
        if self.lowering == "auto":
            closed = self.name in (*CLOSING, *DRIVEN)
            if mechanism.has_flexible:
                return "unrolled"
            large = not closed and sum(a.size for a in signature(mechanism, self)[1]) > LARGE
            return "rolled" if large or is_long(mechanism, closed=closed) else "unrolled"
        return self.lowering

    def _refuse_long(self, mechanism: Mechanism) -> None:
        """Raise InputError for derivatives and regressors of rolled code: very long straight-line code."""
        if self.lowering == "rolled" or (self.lowering == "auto" and len(mechanism.bodies) > UNROLLED):
            what = "regressors" if self.derivative is None else "derivatives"
            raise InputError(
                f"{self.title} of {mechanism.name!r}: {what} are straight-line code, and a function of "
                f"{len(mechanism.bodies)} bodies is compiled with loops over them by default; make the function with "
                "lowering='unrolled'"
            )


def forces_act(mechanism: Mechanism, name: str, given: object, lowering: str = "auto") -> Any:
    """Return whether the forces of a mechanism act in a function: they do by default, as in a simulation.

    Rolled code has none of them. InputError where it would be chosen, unless the caller leaves them out.
    """
    if not isinstance(name, str) or name not in ALGORITHMS or not ALGORITHMS[name].wrenches:
        return False if given is None else given
    if not mechanism.has_forces:
        return False if given is None or given is True else given
    if given is None and Request(name, lowering=lowering)._lowered(mechanism) == "rolled":
        named = [f"{f.kind} {f.name!r}" for f in mechanism.forces]
        named += [f"damping or friction of {j.name!r}" for j in mechanism.joints if any(j.damping) or any(j.friction)]
        more = f" and {len(named) - 2} more" if len(named) > 2 else ""
        raise InputError(
            f"{name} of {mechanism.name!r}: code with loops over its {len(mechanism.bodies)} bodies does not contain "
            f"its own forces ({', '.join(named[:2])}{more}); give forces=False to leave them out"
        )
    return True if given is None else given


def names_of(driven: object) -> tuple[str | int, ...]:
    """Return the driven joints of a request: one name, or several names of joints or of their axes."""
    names = (driven,) if isinstance(driven, str) else tuple(driven) if isinstance(driven, Iterable) else None
    if names is None or not all(isinstance(x, str) for x in names):
        raise InputError(f"driven is {repr(driven)[:60]}; give the names of joints, such as ['shoulder', 'elbow']")
    return names


def signature(mechanism: Mechanism, request: Request) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Return the inputs and outputs of a request, with their shapes."""
    algorithm = ALGORITHMS[request.name]
    count = len(mechanism.bodies)
    sizes = {"nq": mechanism.nq, "nv": mechanism.nv, "nb": count, "10 nb": 10 * count, "nc": len(mechanism.closures)}
    shapes: dict[str, tuple[str | int, ...]] = {
        name: ("nq" if name in ("q", "q2") else "nv",) for name in algorithm.inputs
    }
    if request.wrenches:
        shapes["wrenches"] = ("nb", 6)
    inputs = [Array(name, _sized(shape, sizes)) for name, shape in shapes.items()]
    if mechanism.free_parameters:
        inputs.append(Array("parameters", (len(mechanism.free_parameters),)))
    outputs = [Array(name, _sized(shape, sizes)) for name, shape in algorithm.outputs]
    if request.derivative is None:
        return tuple(inputs), tuple(outputs)
    return derived_arrays(request.derivative, inputs, outputs, mechanism.nv)


def build(mechanism: Mechanism, request: Request) -> Program:
    """Return the Program of an algorithm, traced on a mechanism; derivatives of it are made by derive/build.py."""
    algorithm = ALGORITHMS[request.name]
    inputs, outputs = signature(mechanism, request)
    trace = Trace()
    scalars = {a.name: [trace.input(g, k) for k in range(a.size)] for g, a in enumerate(inputs)}
    given, torques = with_forces(mechanism, scalars) if request.forces else (scalars, [])
    lean = algorithm.lumps and not mechanism.free_parameters
    tree = lean_tree(mechanism, given) if lean else ClosedTree(mechanism, given)
    tree.dtype = request.dtype
    options: dict[str, object] = {"frame": request.frame} if algorithm.frame else {}
    if algorithm.axes:
        options["axes"] = request.axes
    if algorithm.driven:
        options["driven"] = frozenset(request.driven)
    results = algorithm.page(tree, **options)
    scalars_out = [list(results)] if len(outputs) == 1 else [list(x) for x in results]
    if request.forces:
        names, driven = [a.name for a in outputs], frozenset(request.driven)
        scalars_out = torques_of_drives(names, scalars_out, torques, scalars, driven)
    return Program.of_trace(request.name, inputs, outputs, trace, scalars_out)


def lean_tree(mechanism: Mechanism, inputs: Mapping[str, Any]) -> ClosedTree:
    """Return a tree for joint torques and accelerations alone: joints with several axes split, masses lumped.

    Its bodies are not those of the mechanism, but its coordinates, velocities and torques are.
    """
    parts, origin = split_joints(mechanism)
    if "wrenches" in inputs:
        given, none = inputs["wrenches"], (0.0,) * 6
        moved = [x for k in origin for x in (none if k is None else given[6 * k : 6 * k + 6])]
        inputs = {**inputs, "wrenches": moved}
    tree = ClosedTree(parts, inputs)
    tree.lump()
    return tree


def tree_maker(mechanism: Mechanism, dtype: str = "float64") -> Callable[..., ClosedTree]:
    """Return the function (mechanism, inputs) -> tree for joint torques and accelerations in a precision.

    Masses are lumped unless they depend on free parameters.
    """

    def make(of: Mechanism, inputs: Mapping[str, object]) -> ClosedTree:
        tree = ClosedTree(of, inputs) if mechanism.free_parameters else lean_tree(of, inputs)
        tree.dtype = dtype
        return tree

    return make


def _sized(shape, sizes) -> tuple[int, ...]:
    return tuple(sizes.get(n, n) for n in shape)

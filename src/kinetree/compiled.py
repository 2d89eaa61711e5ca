"""CompiledMechanism: a Mechanism with its compiled functions, which every analysis takes as its argument."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import joints as joint_kinds
from .compiler.lower.build import Request
from .compiler.runtime.function import Function
from .errors import InputError
from .formats.report import Report
from .joints.random_states import drawn_coordinates, generator, leading_shape
from .model.mechanism import Closure, Mechanism, resolved
from .model.parts import Body, Joint

Numbers = NDArray[np.floating]


class CompiledMechanism:
    """A mechanism that computes: every method takes arrays with any leading shape and is one native call.

    q has shape [..., nq]; qd, qdd and tau have [..., nv]. Options of every method, by keyword: `wrenches` [..., nb, 6],
    external wrenches [n; f] on each body about its joint's origin in its frame [N m, N], where they matter;
    `parameters` [..., np], values of the free parameters; `out`, an array for the result; `check=False` to let
    NaN through; `threads`, for large batches (0: all cores); `dtype`, "float64" or "float32".
    """

    def __init__(self, mechanism: Mechanism, report: Report | None = None) -> None:
        """Hold a mechanism; functions are compiled when they are first called."""
        if not isinstance(mechanism, Mechanism):
            raise InputError(f"mechanism is {repr(mechanism)[:80]}; expected a Mechanism, as assemble returns it")
        self.mechanism = mechanism
        self.report = report or Report()
        self._functions: dict[Request, Function] = {}
        self._plain = _Ready(self)

    @property
    def nq(self) -> int:
        """The number of coordinates."""
        return self.mechanism.nq

    @property
    def nv(self) -> int:
        """The number of degrees of freedom."""
        return self.mechanism.nv

    @property
    def closures(self) -> tuple[Closure, ...]:
        """The equations of all loops and couplings, in the order of residuals and multipliers; () for a tree."""
        return self.mechanism.closures

    @cached_property
    def tree(self) -> Self:
        """The same mechanism with its loops and couplings left out: every cut joint open."""
        return type(self)(replace(self.mechanism, loops=(), couplings=()), self.report) if self.closures else self

    def fixed(self, parameters: ArrayLike) -> Self:
        """Return the same mechanism with its free parameters at these values [np], no longer inputs: for analyses."""
        values, count = np.asarray(parameters, dtype=float), len(self.mechanism.free_parameters)
        if values.shape != (count,):
            raise InputError(f"parameters have shape {values.shape}; expected [{count}]")
        return type(self)(self.mechanism.fixed(values), self.report)

    @property
    def bodies(self) -> tuple[Body, ...]:
        """The bodies, parents first; joint i carries body i."""
        return self.mechanism.bodies

    @property
    def joints(self) -> tuple[Joint, ...]:
        """The joints, in the order of q and qd."""
        return self.mechanism.joints

    def __repr__(self) -> str:
        """Return the name and the sizes."""
        m = self.mechanism
        return f"<{type(self).__name__} {m.name!r}: {len(m.bodies)} bodies, nq = {m.nq}, nv = {m.nv}{m.closed_by}>"

    def __reduce__(self):
        """Pickle the mechanism; functions are compiled, or found in the cache, on the other side."""
        return (type(self), (self.mechanism, self.report))

    def function(
        self,
        name: str,
        *,
        frame: str | None = None,
        axes: str | None = None,
        wrenches: bool = False,
        dtype: str | type = "float64",
        lowering: str = "auto",
    ) -> Function:
        """Return a compiled function: `.gufunc` is the gufunc, `.program` its arithmetic, `.cost()` the count of it.

        `lowering` is how a page of sweeps becomes code: "unrolled", straight-line code made for the mechanism's
        numbers; "rolled", loops over bodies, for long chains; "auto", whichever suits the number of bodies.
        """
        request = Request(name, frame, axes, wrenches, _dtype_name(dtype), lowering)
        function = self._functions.get(request)
        if function is None:
            function = self._functions[request] = Function(self.mechanism, request)
        return function

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, **options) -> Numbers:
        """Return the torques tau of a motion: I qdd + C qd + g - N^T w_ext [N m, N], shape [..., nv].

        In a closed mechanism these are the torques with every joint driven, so that the loops carry nothing.
        """
        return (self._with("inverse_dynamics", **options) if options else self._plain["inverse_dynamics"])(q, qd, qdd)

    def forward_dynamics(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, **options) -> Numbers:
        """Return the accelerations qdd under torques, in O(n) by I = U D U^T [rad/s^2, m/s^2], shape [..., nv].

        Loops and couplings stay closed, for q and qd that are.
        """
        return (self._with("forward_dynamics", **options) if options else self._plain["forward_dynamics"])(q, qd, tau)

    def implicit_dynamics(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, added: ArrayLike, **options) -> Numbers:
        """Return forward dynamics with inertias added to the degrees of freedom [kg m^2, kg], shape [..., nv].

        With h^2 k + h c of springs and dampers these are the accelerations of an implicit step h, in O(n).
        """
        return (self._with("implicit_dynamics", **options) if options else self._plain["implicit_dynamics"])(
            q, qd, tau, added
        )

    def inertia_matrix(self, q: ArrayLike, **options) -> Numbers:
        """Return the generalized inertia matrix I (GIM), shape [..., nv, nv]."""
        return (self._with("inertia_matrix", **options) if options else self._plain["inertia_matrix"])(q)

    def inverse_inertia_matrix(self, q: ArrayLike, **options) -> Numbers:
        """Return the inverse of the inertia matrix, from its factors, shape [..., nv, nv]."""
        return (self._with("inverse_inertia_matrix", **options) if options else self._plain["inverse_inertia_matrix"])(
            q
        )

    def convective_matrix(self, q: ArrayLike, qd: ArrayLike, **options) -> Numbers:
        """Return the matrix of convective inertia C (MCI), with dI/dt - 2 C skew, shape [..., nv, nv]."""
        return (self._with("convective_matrix", **options) if options else self._plain["convective_matrix"])(q, qd)

    def gravity_torque(self, q: ArrayLike, **options) -> Numbers:
        """Return the torques that hold the mechanism at rest [N m, N], shape [..., nv]."""
        return (self._with("gravity_torque", **options) if options else self._plain["gravity_torque"])(q)

    def bias_torque(self, q: ArrayLike, qd: ArrayLike, **options) -> Numbers:
        """Return the torques of a motion with qdd = 0: C qd + g [N m, N], shape [..., nv]."""
        return (self._with("bias_torque", **options) if options else self._plain["bias_torque"])(q, qd)

    def reactions(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, **options) -> Numbers:
        """Return the wrench [n; f] of the parent on each body at its joint, in the body's frame, [..., nb, 6]."""
        return (self._with("reactions", **options) if options else self._plain["reactions"])(q, qd, qdd)

    def pose(self, q: ArrayLike, frame: str, **options) -> Numbers:
        """Return the pose of a frame (or body) in the ground's, shape [..., 4, 4]."""
        return self._with("pose", frame=frame, **options)(q)

    def poses(self, q: ArrayLike, **options) -> Numbers:
        """Return the poses of all bodies in the ground's frame, shape [..., nb, 4, 4]."""
        return (self._with("poses", **options) if options else self._plain["poses"])(q)

    def twist(self, q: ArrayLike, qd: ArrayLike, frame: str, **options) -> Numbers:
        """Return [omega; v] of a frame at its origin, in its axes (axes="world": the ground's), shape [..., 6]."""
        return self._with("twist", frame=frame, **options)(q, qd)

    def twists(self, q: ArrayLike, qd: ArrayLike, **options) -> Numbers:
        """Return [omega; v] of every body at its joint's origin, in its frame, shape [..., nb, 6]."""
        return (self._with("twists", **options) if options else self._plain["twists"])(q, qd)

    def twist_rate(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, frame: str, **options) -> Numbers:
        """Return [domega; dv] of a frame, the accelerations at its origin, in its axes or "world", shape [..., 6]."""
        return self._with("twist_rate", frame=frame, **options)(q, qd, qdd)

    def twist_rates(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, **options) -> Numbers:
        """Return [domega; dv] of every body at its joint's origin, in its frame, shape [..., nb, 6]."""
        return (self._with("twist_rates", **options) if options else self._plain["twist_rates"])(q, qd, qdd)

    def jacobian(self, q: ArrayLike, frame: str, **options) -> Numbers:
        """Return J, t = J qd of a frame at its origin, in the ground's axes or (axes="body") its own, [..., 6, nv]."""
        return self._with("jacobian", frame=frame, **options)(q)

    def jacobian_rate(self, q: ArrayLike, qd: ArrayLike, frame: str, **options) -> Numbers:
        """Return dJ/dt along qd, in the same axes as the Jacobian, shape [..., 6, nv]."""
        return self._with("jacobian_rate", frame=frame, **options)(q, qd)

    def kinetic_energy(self, q: ArrayLike, qd: ArrayLike, **options) -> Numbers:
        """Return the kinetic energy [J], shape [...]."""
        return (self._with("kinetic_energy", **options) if options else self._plain["kinetic_energy"])(q, qd)

    def potential_energy(self, q: ArrayLike, **options) -> Numbers:
        """Return the energy of gravity, zero with the mass centre at the ground's origin [J], shape [...]."""
        return (self._with("potential_energy", **options) if options else self._plain["potential_energy"])(q)

    def momentum(self, q: ArrayLike, qd: ArrayLike, **options) -> Numbers:
        """Return [angular; linear] momentum about the ground's origin, in its axes, shape [..., 6]."""
        return (self._with("momentum", **options) if options else self._plain["momentum"])(q, qd)

    def center_of_mass(self, q: ArrayLike, **options) -> Numbers:
        """Return the mass centre of the whole in the ground's frame [m], shape [..., 3]."""
        return (self._with("center_of_mass", **options) if options else self._plain["center_of_mass"])(q)

    def integrate(self, q: ArrayLike, dq: ArrayLike, **options) -> Numbers:
        """Return q moved on by dq [..., nv], quaternions staying unit, shape [..., nq]."""
        return (self._with("integrate", **options) if options else self._plain["integrate"])(q, dq)

    def difference(self, qa: ArrayLike, qb: ArrayLike, **options) -> Numbers:
        """Return the dq with integrate(qa, dq) = qb, shape [..., nv]."""
        return (self._with("difference", **options) if options else self._plain["difference"])(qa, qb)

    def coordinate_rate(self, q: ArrayLike, qd: ArrayLike, **options) -> Numbers:
        """Return dq/dt for speeds qd; the same as qd but for quaternions and free bodies, shape [..., nq]."""
        return (self._with("coordinate_rate", **options) if options else self._plain["coordinate_rate"])(q, qd)

    def closure_residual(self, q: ArrayLike, **options) -> Numbers:
        """Return the residual of every equation of the loops, zero where they are closed [m, rad], [..., nc]."""
        return (self._with("closure_residual", **options) if options else self._plain["closure_residual"])(q)

    def closure_jacobian(self, q: ArrayLike, **options) -> Numbers:
        """Return J of the loops' equations, J qd = 0 where they stay closed, shape [..., nc, nv]."""
        return (self._with("closure_jacobian", **options) if options else self._plain["closure_jacobian"])(q)

    def closure_bias(self, q: ArrayLike, qd: ArrayLike, **options) -> Numbers:
        """Return dJ/dt qd: J qdd + dJ/dt qd = 0 where the loops stay closed, shape [..., nc]."""
        return (self._with("closure_bias", **options) if options else self._plain["closure_bias"])(q, qd)

    def multipliers(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, **options) -> Numbers:
        """Return lambda with I qdd = tau - h + J^T lambda [N, N m], zero for equations that others imply, [..., nc].

        Rolled functions of long mechanisms return the least lambda where equations imply each other.
        """
        return (self._with("multipliers", **options) if options else self._plain["multipliers"])(q, qd, tau)

    def closing_step(self, q: ArrayLike, **options) -> Numbers:
        """Return the dq that closes the loops to first order, least as the masses weigh it, shape [..., nv]."""
        return (self._with("closing_step", **options) if options else self._plain["closing_step"])(q)

    def closing_speed(self, q: ArrayLike, qd: ArrayLike, **options) -> Numbers:
        """Return the speeds with J qd = 0 that are nearest to qd in kinetic energy, shape [..., nv]."""
        return (self._with("closing_speed", **options) if options else self._plain["closing_speed"])(q, qd)

    def neutral(self) -> Numbers:
        """Return the coordinates of no displacement, shape [nq]."""
        joints = self._resolved_joints
        return np.array([x for j in joints for x in joint_kinds.kind(j.kind).neutral(j)], dtype=float)

    def random_state(
        self, rng: np.random.Generator | int | None = None, shape: int | Iterable[int] = ()
    ) -> tuple[Numbers, Numbers]:
        """Return (q, qd): coordinates inside the limits, or anywhere near, and normal speeds; for a leading shape."""
        rng, lead = generator(rng), leading_shape(shape)
        joints = ((joint, joint_kinds.kind(joint.kind)) for joint in self._resolved_joints)
        return drawn_coordinates(joints, rng, lead), rng.normal(size=(*lead, self.nv))

    @cached_property
    def _resolved_joints(self) -> tuple[Joint, ...]:
        return resolved(self.joints, self.mechanism.values())

    @cached_property
    def _nominal(self) -> Numbers | None:
        free = self.mechanism.free_parameters
        return np.array([p.value for p in free]) if free else None

    def _with(
        self,
        name: str,
        *,
        frame: str | None = None,
        axes: str | None = None,
        wrenches: ArrayLike | None = None,
        parameters: ArrayLike | None = None,
        dtype: str | type = "float64",
        check: bool = True,
        out: Numbers | None = None,
        threads: int | None = None,
    ) -> Callable[..., Numbers]:
        """Return a function of the arrays alone, for one call with options."""
        function = self.function(name, frame=frame, axes=axes, wrenches=wrenches is not None, dtype=dtype)
        more = () if wrenches is None else (wrenches,)
        if self._nominal is not None:
            more += (self._nominal if parameters is None else parameters,)
        elif parameters is not None:
            raise InputError(
                f"{self.mechanism.name!r} has no free parameters; declare them with free = true in the mechanism"
            )
        run = function.checked if check else function.unchecked

        def call(*arrays):
            arguments = arrays + more
            if _dtype_name(dtype) == "float32":
                arguments = tuple(np.asanyarray(a, dtype=np.float32) for a in arguments)
            return run(arguments, out=out, threads=threads)

        return call


def _dtype_name(dtype: str | type) -> str:
    """Return the name of a dtype; what is none keeps its text, for the error to come."""
    try:
        return np.dtype(dtype).name
    except TypeError:
        return str(dtype)


class _Ready(dict):
    """Functions without options by name, each compiled when it is first asked for.

    From then on the object has it in the place of the method, which saves a single call a tenth of its time.
    """

    def __init__(self, system: CompiledMechanism) -> None:
        super().__init__()
        self._system = system

    def __missing__(self, name: str):
        system = self._system
        constant = () if system._nominal is None else (system._nominal,)
        method = getattr(type(system), name)
        quick = system.function(name).quick(constant, method.__get__(system))
        self[name] = system.__dict__[name] = functools.update_wrapper(quick, method)
        return quick

"""CompiledMechanism: a mechanism with its compiled functions, the argument of every analysis."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from .. import joints as joint_kinds
from .._support.checks import generator, read_shape
from .._support.tables import count_text
from ..algebra.scalars import Numbers
from ..compiler.lower.build import Request, forces_act, names_of
from ..errors import InputError, unknown_name
from ..formats.report import Report
from ..joints import draw_coordinates
from ..model.mechanism import Closure, Mechanism, Named, in_order, one_set, without_parameters
from ..model.parts import Body, Joint
from ..model.topology import check_depth_order
from .function import Function
from .methods import (
    AxesOptions,
    CallOptions,
    DrivenOptions,
    Options,
    WrenchOptions,
    compiled_method,
    complete,
    jacobians,
)
from .native import CompiledParts


class CompiledMechanism:
    """A mechanism with its compiled functions; every method takes arrays with any leading shape and is one native call.

    q has shape [..., nq]; qd, qdd and tau have shape [..., nv]. Options of the methods, by keyword: `wrenches`
    [..., nb, 6], external wrenches [n; f] on each body about its joint's origin in its frame [N m, N], if the result
    depends on them; `parameters`, values of the free parameters, all in order [..., np] or some by name {"l1": 0.4};
    `out`, an array for the result; `check=False` to let NaN pass; `threads`, for large batches (0: all cores); `dtype`,
    "float64" or "float32".

    The forces of the mechanism itself (its force elements, damping and friction of its joints) act in all functions as
    they do in `simulate`: torques are what the drives alone exert. `forces=False` leaves them out.
    """

    def __init__(self, mechanism: Mechanism, report: Report | None = None) -> None:
        """Store a mechanism, or the mechanism of a System; functions are compiled when they are first called."""
        if isinstance(mechanism, CompiledMechanism):
            report, mechanism = report or mechanism.report, mechanism.mechanism
        if not isinstance(mechanism, Mechanism):
            raise InputError(f"mechanism is {repr(mechanism)[:80]}; expected a Mechanism, the result of assemble")
        check_depth_order(mechanism)
        self.mechanism = mechanism
        self.report = report or Report()
        self._functions: dict[Request, Function] = {}
        self._calls: dict[str, Callable[..., Any]] = {}
        self._parts_kept = CompiledParts(mechanism)

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
        """The same mechanism without its loops and couplings: every cut joint is open."""
        return type(self)(replace(self.mechanism, loops=(), couplings=()), self.report) if self.closures else self

    def fixed(self, parameters: Named) -> Self:
        """Return the same mechanism with its free parameters fixed, no longer inputs: at values [np], or by name."""
        values = one_set(self.mechanism, parameters, "fixed")
        return type(self)(self.mechanism.fixed([] if values is None else values), self.report)

    @property
    def bodies(self) -> tuple[Body, ...]:
        """The bodies, parents first; joint i carries body i."""
        return self.mechanism.bodies

    @property
    def joints(self) -> tuple[Joint, ...]:
        """The joints, in the order of q and qd."""
        return self.mechanism.joints

    def __repr__(self) -> str:
        """Return the name and the numbers of bodies, coordinates and degrees of freedom."""
        m = self.mechanism
        bodies = count_text(len(m.bodies), "body", "bodies")
        return f"<{type(self).__name__} {m.name!r}: {bodies}, nq = {m.nq}, nv = {m.nv}{m.closed_by}>"

    def __reduce__(self):
        """Pickle the mechanism; after unpickling, functions are compiled or read from the cache."""
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
        driven: str | Iterable[str] = (),
        forces: bool | None = None,
    ) -> Function:
        """Return a compiled function: `.gufunc` is the gufunc, `.program` its arithmetic, `.cost()` its operations.

        `lowering` is the form of the code: "unrolled", straight-line code for the numbers of the mechanism; "rolled",
        loops over bodies, for long chains; "auto", chosen by the numbers of bodies and of output entries. `driven` are
        the driven joints of hybrid_dynamics. The forces of the mechanism itself act unless `forces` is False.
        """
        acting = forces_act(self.mechanism, name, forces, lowering)
        request = Request(name, frame, axes, wrenches, _dtype_name(dtype), lowering, names_of(driven), acting)
        try:
            function = self._functions.get(request)
        except TypeError:  # not hashable: refused below, with a message
            function = None
        if function is None:
            function = self._functions[request] = Function(self.mechanism, request)
        return function

    @property
    def _parts(self) -> CompiledParts:
        """The compiled parts of analyses and runs that are kept for the present mechanism."""
        if self._parts_kept.mechanism is not self.mechanism:
            self._parts_kept = CompiledParts(self.mechanism)
        return self._parts_kept

    @compiled_method
    def inverse_dynamics(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, **options: Unpack[WrenchOptions]
    ) -> Numbers:
        """Return the joint torques tau of a motion: I qdd + C qd + g - N^T w_ext [N m, N], shape [..., nv].

        What the mechanism's own forces contribute is subtracted, unless forces=False. In a closed mechanism these are
        the torques with every joint driven, so that the loops transmit no force.
        """
        ...

    @compiled_method
    def regressor(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, **options: Unpack[Options]) -> Numbers:
        """Return Y with tau = Y pi, [..., nv, 10 nb], for the inertial parameters pi of all bodies.

        Those of a body are m, m cx, m cy, m cz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz: Pinocchio's order, about the origin of
        the body's frame, in its axes. Inertia of drives and the forces of the mechanism have no part in Y. In a closed
        mechanism tau is that of every joint driven.
        """
        ...

    @compiled_method
    def energy_regressor(self, q: ArrayLike, qd: ArrayLike, **options: Unpack[Options]) -> tuple[Numbers, Numbers]:
        """Return (K, V): the kinetic and potential energies K pi and V pi [J], [..., 10 nb] each, pi as in regressor.

        Inertia of drives has no part in K.
        """
        ...

    @compiled_method
    def forward_dynamics(
        self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, **options: Unpack[WrenchOptions]
    ) -> Numbers:
        """Return the accelerations qdd under joint torques, in O(n) by I = U D U^T [rad/s^2, m/s^2], shape [..., nv].

        Loops and couplings stay closed if q and qd satisfy their equations. At a singular position of the loops, an
        equation that depends on the others is left out for that instant.
        """
        ...

    @compiled_method
    def hybrid_dynamics(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, tau: ArrayLike, **options: Unpack[DrivenOptions]
    ) -> tuple[Numbers, Numbers]:
        """Return (qdd, tau) of all joints, from qdd of the `driven` ones and tau of the others, both [..., nv].

        `driven` are names of joints or of their axes, by default none. Entries of qdd at free joints and of tau at
        driven joints are not read: they may be any finite numbers. A floating base that is not driven moves by the
        reactions of the joints. Loops stay closed, and transmit forces.
        """
        ...

    @compiled_method
    def implicit_dynamics(
        self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, added: ArrayLike, **options: Unpack[WrenchOptions]
    ) -> Numbers:
        """Return the accelerations with inertias `added` to the degrees of freedom [kg m^2, kg], shape [..., nv].

        With added = h^2 k + h c of springs and dampers, these are the accelerations of an implicit step h, in O(n).
        """
        ...

    @compiled_method
    def inverse_recursion(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, **options: Unpack[Options]
    ) -> tuple[Numbers, ...]:
        """Return (t, dt, w, wtilde, tau), the steps of inverse dynamics: four arrays [..., nb, 6] and one [..., nv].

        All are about the origin of each body's own frame, in its axes: the twist, its rate with gravity as an upward
        acceleration, the wrench of the body's own motion, and the wrench of the body with all bodies outward of it.
        """
        ...

    @compiled_method
    def forward_recursion(
        self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, **options: Unpack[Options]
    ) -> tuple[Numbers, ...]:
        """Return (Mhat, psi, mhat, tauhat, mu, qdd), the steps of forward dynamics by I = U D U^T, without loops.

        Mhat [..., nb, 6, 6] are the articulated bodies, psi [..., nv, 6], mhat and tauhat [..., nv] belong to the
        columns that are eliminated, and mu [..., nb, 6] are the twist rates by qdd alone.
        """
        ...

    @compiled_method
    def inertia_matrix(self, q: ArrayLike, **options: Unpack[Options]) -> Numbers:
        """Return the generalized inertia matrix I (GIM), shape [..., nv, nv]."""
        ...

    @compiled_method
    def inverse_inertia_matrix(self, q: ArrayLike, **options: Unpack[Options]) -> Numbers:
        """Return the inverse of the inertia matrix, computed from its factors, shape [..., nv, nv]."""
        ...

    @compiled_method
    def inertia_logdet(self, q: ArrayLike, **options: Unpack[Options]) -> Numbers:
        """Return log det I of the open tree in O(n), shape [...]; its gradient is `function(...).jacobian()`."""
        ...

    @compiled_method
    def convective_matrix(self, q: ArrayLike, qd: ArrayLike, **options: Unpack[Options]) -> Numbers:
        """Return the matrix of convective inertia C (MCI), with dI/dt - 2 C skew, shape [..., nv, nv]."""
        ...

    @compiled_method
    def gravity_torque(self, q: ArrayLike, **options: Unpack[WrenchOptions]) -> Numbers:
        """Return the joint torques that hold the mechanism at rest [N m, N], shape [..., nv]."""
        ...

    @compiled_method
    def bias_torque(self, q: ArrayLike, qd: ArrayLike, **options: Unpack[WrenchOptions]) -> Numbers:
        """Return the joint torques of a motion with qdd = 0: C qd + g [N m, N], shape [..., nv]."""
        ...

    @jacobians("inverse_dynamics", ("q", "qd", "qdd"))
    def inverse_dynamics_derivatives(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, **options: Unpack[WrenchOptions]
    ) -> tuple[Numbers, Numbers, Numbers]:
        """Return dtau/dq, dtau/dqd and dtau/dqdd = I of inverse dynamics, each [..., nv, nv].

        Positions are displaced in the tangent space: column j of dtau/dq is the derivative with respect to dq[j] of
        the torques at integrate(q, dq). External wrenches keep their components in the frames of their bodies.
        """
        ...

    @jacobians("forward_dynamics", ("q", "qd", "tau"))
    def forward_dynamics_derivatives(
        self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, **options: Unpack[WrenchOptions]
    ) -> tuple[Numbers, Numbers, Numbers]:
        """Return dqdd/dq, dqdd/dqd and dqdd/dtau of forward dynamics, each [..., nv, nv].

        Positions are displaced in the tangent space, as by integrate(q, dq). Without loops dqdd/dtau is I^-1. With
        loops, entries of q and qd are displaced one by one, so that J qdd + dJ/dt qd = 0 holds at positions that need
        not be closed: only displacements that keep the loops closed have a physical meaning. At singular positions of
        the loops there are no derivatives, and InputError is raised; with check=False they are NaN.
        """
        ...

    @compiled_method
    def reactions(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, **options: Unpack[WrenchOptions]) -> Numbers:
        """Return the wrench [n; f] of the parent on each body at its joint, in the body's frame, [..., nb, 6]."""
        ...

    @compiled_method
    def pose(self, q: ArrayLike, frame: str, **options: Unpack[Options]) -> Numbers:
        """Return the pose of a frame (or body) in the ground's frame, shape [..., 4, 4]."""
        ...

    @compiled_method
    def poses(self, q: ArrayLike, **options: Unpack[Options]) -> Numbers:
        """Return the poses of all bodies in the ground's frame, shape [..., nb, 4, 4]."""
        ...

    @compiled_method
    def twist(self, q: ArrayLike, qd: ArrayLike, frame: str, **options: Unpack[AxesOptions]) -> Numbers:
        """Return [omega; v] of a frame at its origin, in its axes (axes="world": the ground's), shape [..., 6]."""
        ...

    @compiled_method
    def twists(self, q: ArrayLike, qd: ArrayLike, **options: Unpack[Options]) -> Numbers:
        """Return [omega; v] of every body at its joint's origin, in its frame, shape [..., nb, 6]."""
        ...

    @compiled_method
    def twist_rate(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, frame: str, **options: Unpack[AxesOptions]
    ) -> Numbers:
        """Return [domega; dv] of a frame at its origin, in its axes (axes="world": the ground's), shape [..., 6]."""
        ...

    @compiled_method
    def twist_rates(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, **options: Unpack[Options]) -> Numbers:
        """Return [domega; dv] of every body at its joint's origin, in its frame, shape [..., nb, 6]."""
        ...

    @compiled_method
    def jacobian(self, q: ArrayLike, frame: str, **options: Unpack[AxesOptions]) -> Numbers:
        """Return J, t = J qd, of a frame at its origin, in the ground's axes (axes="body": its own), [..., 6, nv]."""
        ...

    @compiled_method
    def jacobian_rate(self, q: ArrayLike, qd: ArrayLike, frame: str, **options: Unpack[AxesOptions]) -> Numbers:
        """Return dJ/dt along qd, in the same axes as the Jacobian, shape [..., 6, nv]."""
        ...

    @compiled_method
    def kinetic_energy(self, q: ArrayLike, qd: ArrayLike, **options: Unpack[Options]) -> Numbers:
        """Return the kinetic energy [J], shape [...]."""
        ...

    @compiled_method
    def potential_energy(self, q: ArrayLike, **options: Unpack[Options]) -> Numbers:
        """Return the potential energy of gravity [J], zero with the center of mass at the ground's origin; [...]."""
        ...

    @compiled_method
    def momentum(self, q: ArrayLike, qd: ArrayLike, **options: Unpack[Options]) -> Numbers:
        """Return [angular; linear] momentum about the ground's origin, in its axes, shape [..., 6]."""
        ...

    @compiled_method
    def center_of_mass(self, q: ArrayLike, **options: Unpack[Options]) -> Numbers:
        """Return the center of mass of the mechanism in the ground's frame [m], shape [..., 3]."""
        ...

    @compiled_method
    def integrate(self, q: ArrayLike, dq: ArrayLike, **options: Unpack[Options]) -> Numbers:
        """Return q displaced by dq [..., nv], with unit quaternions, shape [..., nq]."""
        ...

    @compiled_method
    def difference(self, qa: ArrayLike, qb: ArrayLike, **options: Unpack[Options]) -> Numbers:
        """Return the dq with integrate(qa, dq) = qb, shape [..., nv]."""
        ...

    @compiled_method
    def coordinate_rate(self, q: ArrayLike, qd: ArrayLike, **options: Unpack[Options]) -> Numbers:
        """Return dq/dt for velocities qd, which differs from qd for quaternions and free bodies, shape [..., nq]."""
        ...

    @compiled_method
    def closure_residual(self, q: ArrayLike, **options: Unpack[Options]) -> Numbers:
        """Return the residual of every equation of the loops, zero if they are closed [m, rad], [..., nc]."""
        ...

    @compiled_method
    def closure_jacobian(self, q: ArrayLike, **options: Unpack[Options]) -> Numbers:
        """Return the Jacobian J of the loops' equations, J qd = 0 if they stay closed, shape [..., nc, nv]."""
        ...

    @compiled_method
    def closure_bias(self, q: ArrayLike, qd: ArrayLike, **options: Unpack[Options]) -> Numbers:
        """Return dJ/dt qd of the loops: J qdd + dJ/dt qd = 0 if they stay closed, shape [..., nc]."""
        ...

    @compiled_method
    def multipliers(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, **options: Unpack[WrenchOptions]) -> Numbers:
        """Return lambda with I qdd = tau - h + J^T lambda [N, N m], zero for equations that others imply, [..., nc].

        Rolled functions of long mechanisms return the lambda of least norm if equations imply each other.
        """
        ...

    @compiled_method
    def closing_step(self, q: ArrayLike, **options: Unpack[Options]) -> Numbers:
        """Return the dq that closes the loops to first order, smallest in the kinetic-energy norm, shape [..., nv]."""
        ...

    @compiled_method
    def closing_speed(self, q: ArrayLike, qd: ArrayLike, **options: Unpack[Options]) -> Numbers:
        """Return the velocities with J qd = 0 that are nearest to qd in the kinetic-energy norm, shape [..., nv]."""
        ...

    def neutral(self) -> Numbers:
        """Return the position at which the mechanism is given, [nq]: its guess, and zero displacement elsewhere."""
        return np.array(self.mechanism.neutral)

    def keyframe(self, name: str) -> tuple[Numbers, Numbers]:
        """Return (q, qd) of a named state of the mechanism; joints that it does not name are neutral and at rest."""
        m = self.mechanism
        found = next((k for k in m.keyframes if k.name == name), None)
        if found is None:
            raise unknown_name("keyframe", str(name), [k.name for k in m.keyframes])
        q, qd = self.neutral(), np.zeros(self.nv)
        at = {j.name: k for k, j in enumerate(m.joints)}
        for joint, numbers in found.q:
            q[m.q_slices[at[joint]]] = numbers
        for joint, numbers in found.qd:
            qd[m.v_slices[at[joint]]] = numbers
        return q, qd

    def random_state(
        self, rng: np.random.Generator | int | None = None, shape: int | Iterable[int] = ()
    ) -> tuple[Numbers, Numbers]:
        """Return random (q, qd) with a leading shape: q within limits where joints have them, qd normal."""
        rng, lead = generator(rng), read_shape(shape)
        joints = ((joint, joint_kinds.kind(joint.kind)) for joint in self.mechanism.resolved_joints)
        return draw_coordinates(joints, rng, lead), rng.normal(size=(*lead, self.nv))

    @cached_property
    def _nominal(self) -> Numbers | None:
        free = self.mechanism.free_parameters
        return np.array([p.value for p in free]) if free else None

    def _with(self, name: str, **options: object) -> Callable[..., Numbers]:
        """Return a function of the arrays alone, for one call with the options of CallOptions."""
        o = CallOptions.of(name, options)
        function = self.function(name, **o.code(), dtype=o.dtype)
        if o.wrt is not None:
            function = function.jacobian(o.wrt)
        more = o.arrays(())
        if self._nominal is not None:
            more += (self._nominal if o.parameters is None else in_order(self.mechanism, o.parameters),)
        elif o.parameters is not None:
            raise without_parameters(self.mechanism)
        run = function.checked if o.check else function.unchecked
        narrow = function.request.dtype == "float32"

        def call(*arrays):
            arguments = arrays + more
            if narrow:
                arguments = tuple(np.asanyarray(a, dtype=np.float32) for a in arguments)
            return run(arguments, out=o.out, threads=o.threads)

        return call


complete(CompiledMechanism)


def _dtype_name(dtype: str | type) -> str:
    """Return the name of a dtype; other objects as text, for the error message that follows."""
    if isinstance(dtype, str) and dtype == "float64":  # np.dtype takes a fifth of a call with options
        return dtype
    try:
        return np.dtype(dtype).name
    except TypeError:
        return str(dtype)

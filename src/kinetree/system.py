"""System: a mechanism with its compiled functions and its analyses as methods, the main class for users.

The functions are those of CompiledMechanism. Each analysis takes a CompiledMechanism as its argument. The methods here
import the analysis when they are first called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from numpy.typing import ArrayLike

from ._support.checks import generator, read_shape
from ._support.lazy_names import picture
from .algebra.scalars import Numbers
from .errors import InputError
from .model.mechanism import Named
from .runtime.compiled import CompiledMechanism
from .runtime.methods import Options, WrenchOptions, compiled_method

if TYPE_CHECKING:
    import numpy as np

    from .backends.cuda.system import CudaSystem
    from .backends.jax import JaxSystem
    from .backends.torch import TorchSystem


class ActuatedOptions(WrenchOptions, total=False):
    """Options of inverse dynamics, including those of `actuation`."""

    actuated: str | Iterable[str] | None
    weights: Any
    share: Any


class RegressorOptions(Options, total=False):
    """Options of regressors."""

    columns: str | Iterable[str]
    actuated: str | Iterable[str] | None
    weights: Any


class System(CompiledMechanism):
    """A mechanism with its compiled functions and its analyses as methods.

    Every compiled function takes arrays with any leading shape and is one native call: q has shape [..., nq]; qd, qdd
    and tau have shape [..., nv]. The options of all of them are listed at CompiledMechanism.
    """

    @compiled_method
    def inverse_dynamics(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, **options: Unpack[ActuatedOptions]
    ) -> Numbers:
        """Return the joint torques tau of a motion: I qdd + C qd + g - N^T w_ext [N m, N], shape [..., nv].

        What the mechanism's own forces contribute is subtracted, unless forces=False. In a closed mechanism these are
        the torques with every joint driven, so that the loops transmit no force. With `actuated`, only the joints named
        are driven and the loops move the others: see `actuation` for its options.
        """
        ...

    @compiled_method
    def regressor(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, **options: Unpack[RegressorOptions]) -> Numbers:
        """Return Y with tau = Y pi, [..., nv, p], for the parameters pi = dynamic_parameters() of the mechanism.

        These are ten numbers per body: m, m cx, m cy, m cz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz, in Pinocchio's order, about
        the origin of the body's frame, in its axes. `columns` adds sorts of parameters of joints, one number per degree
        of freedom each: "viscous" (damping), "coulomb" (friction), "offset", "armature" and "stiffness". In a closed
        mechanism tau is that of every joint driven. With `actuated`, only the joints named are driven, as in
        inverse_dynamics; `weights` are those of `actuation`.
        """
        ...

    def dynamic_parameters(self, columns: str | Iterable[str] = (), *, parameters: Named | None = None) -> Numbers:
        """Return the parameters of the mechanism in the order of the columns of `regressor`, [p]."""
        from .analysis.identification.columns import dynamic_parameters

        return dynamic_parameters(self, columns, parameters=parameters)

    def dynamic_parameter_names(self, columns: str | Iterable[str] = ()) -> tuple[str, ...]:
        """Return the names of the columns of `regressor`: "forearm.mx" of a body, "elbow.viscous" of a joint."""
        from .analysis.identification.columns import parameter_names

        return parameter_names(self.mechanism, columns)

    def base_parameters(self, columns: str | Iterable[str] = (), **options):
        """Return the base parameters: the combinations of dynamic_parameters on which torques depend, by numeric rank.

        `columns` are further sorts of parameters, as in `regressor`. Options: `actuated`, the joints of a closed
        mechanism whose torques are measured; `rng`; one set of `parameters`. The result has `kept`, `matrix` K with
        Y pi = Y[..., kept] (K pi), `values`, `groupings` as texts, and `without_effect`.
        """
        from .analysis.identification.base_parameters import base_parameters

        return base_parameters(self, columns, **options)

    def _with(self, name: str, **options: Any) -> Callable[..., Any]:
        """Return a function of the arrays alone, for one call with options."""
        if name == "regressor" and {"columns", "actuated", "weights"} & options.keys():
            from .analysis.identification.columns import regressor

            return lambda q, qd, qdd: regressor(self, q, qd, qdd, **options)
        actuated = options.pop("actuated", None)
        if actuated is None:
            return super()._with(name, **options)
        if name != "inverse_dynamics":
            raise InputError(f"{name} takes no actuated joints; inverse_dynamics and regressor do")
        from .analysis.loops.actuation import actuated_torques

        return lambda q, qd, qdd: actuated_torques(self, q, qd, qdd, actuated, **options)

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: a picture, and a table of the joints."""
        return picture("system_html")(self)

    def random_state(
        self, rng: np.random.Generator | int | None = None, shape: int | Iterable[int] = ()
    ) -> tuple[Numbers, Numbers]:
        """Return random (q, qd) with a leading shape: q within limits where joints have them, qd normal.

        Those of a mechanism with loops or couplings satisfy them: closed positions, with velocities that keep them
        closed. `system.tree.random_state` draws states of the open mechanism.
        """
        if not self.closures:
            return super().random_state(rng, shape)
        from .analysis.loops.batch_assembly import random_closed_state

        return random_closed_state(self, generator(rng), read_shape(shape))

    def page(self, path: str | Path | None = None, **options) -> Any:
        """Return a web page in which the mechanism moves and computes by itself; with a `path`, write it there.

        Notebooks show the page, and `.save("page.html")` writes it. Options: `q`, the first coordinates, and `title`.
        """
        return picture("system_page")(self, path, **options)

    def teach(self, q: ArrayLike | None = None, **options) -> Path:
        """Open a page with a slider per joint, the pose of a frame and a handle to drag it, and return its file.

        Options: `path` of the file, by default a temporary one; `meshes=True`; `show=False` to write it only.
        """
        return picture("teach")(self, q, **options)

    def dh_table(self, convention: str = "modified"):
        """Return the Denavit-Hartenberg table, "modified" or, of chains, "standard"; its `rows` are for kt.from_dh."""
        from .formats.dh_table import dh_table

        return dh_table(self.mechanism, convention)

    def on(self, device: str) -> System | CudaSystem:
        """Return the same mechanism for arrays on a device: "cuda" (any GPU), "cuda:1" (one GPU), or "cpu", itself."""
        if device == "cpu":
            return self
        from .backends.cuda.system import CudaSystem

        return CudaSystem(self, device)

    @cached_property
    def jax(self) -> JaxSystem:
        """The same functions for JAX arrays, for use in functions under jax.jit and jax.vmap; requires JAX."""
        from .backends.jax import JaxSystem

        return JaxSystem(self)

    @cached_property
    def torch(self) -> TorchSystem:
        """The same functions for torch tensors, on the CPU without copies and on GPUs; requires torch."""
        from .backends.torch import TorchSystem

        return TorchSystem(self)

    def casadi(self, name: str, *, form: str = "sx", **options) -> Any:
        """Return a function by name as a casadi.Function, for Opti and other solvers; options as in `function`.

        The form "sx" is an expression of casadi.SX, which CasADi differentiates. The form "native" calls compiled code,
        also for exact first and second derivatives. In both, derivatives are those with respect to all nq coordinates.
        """
        from .backends.casadi import casadi_function

        return casadi_function(self, name, form=form, **options)

    def inertia_logdet_gradient(self, q: ArrayLike) -> Numbers:
        """Return the derivative of log det I along each velocity of the open tree in O(n), shape [..., nv].

        The joints are of kinds whose axes are fixed in the child: all but universal, planar and those of Euler angles.
        """
        from .formulations.articulated import logdet_gradient

        return logdet_gradient(self.mechanism, q)

    def denoc(self, q: ArrayLike, qd: ArrayLike | None = None, *, about: str = "origin"):
        """Return the DeNOC matrices of the papers at one state: N_l, N_d, M, I, C, g and the rest, by name."""
        from .formulations.denoc import denoc

        return denoc(self.mechanism, q, qd, about=about)

    def verify(self, states: int = 5, *, tol: float | None = None, rng=0, routes=None, progress=None):
        """Compare the compiled functions with every other formulation, and with other libraries that are installed."""
        from .analysis.verify.referee import verify

        return verify(self, states, tol=tol, rng=rng, routes=routes, progress=progress)

    def ledger(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrenches: ArrayLike | None = None):
        """Return the contributions to the joint torques of a motion, by cause and by body."""
        from .analysis.ledger import ledger

        return ledger(self, q, qd, qdd, wrenches)

    def actuation(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, actuated: str | Iterable[str], **options):
        """Return the torques of `actuated` joints that come nearest to a motion, and the forces in the loops.

        Options: `weights` of torques and `share` of multipliers, both by joint, if these are not unique; `wrenches`;
        `forces=False` to leave out the forces of the mechanism; `parameters` [..., np], or by name.
        """
        from .analysis.loops.actuation import actuation

        return actuation(self, q, qd, qdd, actuated, **options)

    def subsystems(self, actuated: str | Iterable[str] | None = None):
        """Return the recursion between the subsystems of a closed mechanism, for drives in its `actuated` joints.

        It shows the order in which determinate and indeterminate subsystems are solved, and its cost; its
        `inverse_dynamics(q, qd, qdd)` has torques and multipliers. By default, the independent joints are driven.
        """
        from .analysis.loops.subsystems import subsystem_recursion

        return subsystem_recursion(self, actuated)

    def ground_forces(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, **options):
        """Return joint torques and ground forces in their friction cones that realize a motion, for many instants.

        The result has `tau` [..., nv], `forces` [..., nc, 3] (normal and tangents), `residual` [..., nv] where no
        forces realize the motion, and `realized` and `status` [...]. Options: `contacts`, by default those of the
        mechanism; `actuated`, by default all joints but free ones on the ground; `touching`, contacts that carry a
        force, by default those that the motion leaves on the ground; `wrenches`; `forces=False` to leave out the forces
        of the mechanism; one set of `parameters`; `tol`, 1e-6, of gaps, velocities and accelerations of contacts.
        """
        from .analysis.ground.forces import ground_forces

        return ground_forces(self, q, qd, qdd, **options)

    def zero_moment_point(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, **options) -> Numbers:
        """Return the zero-moment points of a motion on the ground [..., 3]; NaN where the ground would have to pull.

        Options: `plane`, a Surface or Placement, by default the plane of the contacts or else the level one through the
        origin; `wrenches` of forces other than gravity and the ground; one set of `parameters`.
        """
        from .analysis.ground.balance_points import zero_moment_point

        return zero_moment_point(self, q, qd, qdd, **options)

    def capture_point(self, q: ArrayLike, qd: ArrayLike, **options) -> Numbers:
        """Return the capture points of states on the ground [..., 3], over which a walker could come to rest.

        That of the linear inverted pendulum with the same center of mass. Options: `plane` and `parameters`, as above.
        """
        from .analysis.ground.balance_points import capture_point

        return capture_point(self, q, qd, **options)

    def loads(self, q: ArrayLike, qd: ArrayLike, **options):
        """Return the reactions at all joints, also cut ones, under `tau` or for a motion `qdd` of `actuated` joints.

        Further options: `share`, compliances by joint or loop, if the motion does not determine a reaction; `wrenches`;
        `forces=False` to leave out the forces of the mechanism; `parameters` [..., np], or by name.
        """
        from .analysis.loops.loads import loads

        return loads(self, q, qd, **options)

    def linearize(self, q: ArrayLike, qd: ArrayLike | None = None, tau: ArrayLike | None = None, *, dt=None, **options):
        """Return A and B of the small motions x = [dq; dqd] near a state: dx/dt = A x + B u, u added to tau.

        By default at rest, under the torques `tau` that keep qd constant; zeros are a mechanism without drives. With a
        time step `dt` [s], those of x(t + dt) = A x + B u. With loops, x has only independent degrees of freedom.
        Options: `forces=False` to leave out springs, dampers and friction; `parameters`; `wrenches`.
        """
        from .analysis.linearization import linearize

        return linearize(self, q, qd, tau, dt=dt, **options)

    def modes(self, q: ArrayLike | None = None, *, tau: ArrayLike | None = None, **options):
        """Return the modes of vibration about a position of equilibrium q: frequencies, damping ratios and shapes.

        By default, a stable position is found by kt.equilibrium. `tau` are constant torques. Options: `forces=False`
        to leave out springs, dampers and friction; `parameters`.
        """
        from .analysis.modes import modes

        return modes(self, q, tau=tau, **options)

    def cost(self, function: str, *, frame: str | None = None, wrenches: bool = False):
        """Return the number of operations of a function, counted as in the papers."""
        from .analysis.cost import cost

        return cost(self, function, frame=frame, wrenches=wrenches)

    def symbolic_denoc(self, *, symbols: str = "declared"):
        """Return the DeNOC matrices, I = U D U^T and its inverse of a small tree in SymPy; symbols as in equations."""
        from .analysis.symbolic_denoc import symbolic_denoc

        return symbolic_denoc(self, symbols=symbols)

    def equations(self, function: str = "inertia_matrix", *, symbols: str = "declared", frame: str | None = None):
        """Return the equations of a function in symbols, for SymPy, LaTeX or Python; requires SymPy."""
        from .analysis.equations import equations

        return equations(self, function, symbols=symbols, frame=frame)

    def assemble(
        self,
        q_guess: ArrayLike | None = None,
        hold=(),
        *,
        tolerance: float = 1e-12,
        parameters: Named | None = None,
        follow: bool = False,
        on_failure: str = "raise",
    ) -> Numbers:
        """Return closed positions near guesses, [..., nq], with the joints of `hold` at exactly their given positions.

        `hold` has names of joints, or their positions: {"crank": 0.5}. These, guesses and parameters may be arrays.
        With `follow`, the last axis is a motion, and each position continues the one before. AssemblyError if the loops
        do not close; with on_failure="nan", positions that do not close are NaN.
        """
        from .analysis.loops.batch_assembly import assemble

        return assemble(
            self, q_guess, hold, tolerance=tolerance, parameters=parameters, follow=follow, on_failure=on_failure
        )

    def assembly_modes(
        self, q_guess: ArrayLike | None = None, hold=None, *, tries: int = 64, rng=0, parameters=None
    ) -> list[Numbers]:
        """Return one closed position per assembly mode, found from random starts with the joints of `hold` fixed."""
        from .analysis.loops.assembly import assembly_modes

        return assembly_modes(self, q_guess, hold, tries=tries, rng=rng, parameters=parameters)

    def inverse_kinematics(
        self, T: ArrayLike, frame: str, *, q0: ArrayLike | None = None, all: bool = False, **options
    ):
        """Return positions at which a frame has the poses T [..., 4, 4], or its origin is at the points T [..., 3].

        Poses may also be (x, y, z, roll, pitch, yaw) [..., 6]. Damped least squares within the joints' limits, from q0
        [..., nq], then from random starts. The result has `q`, `position` and `rotation` (errors), `converged`,
        `iterations` and `restarts`. Options: `weights` [..., 6] of the errors [rotation; position] in the target's
        axes, zero for free ones; `hold`, joints that stay as in q0; `limits=False` to ignore limits; `prefer="middle"`
        to move redundant arms toward the middle of their ranges; `restarts`, 100; `iterations` of each, 100;
        `tolerance`, 1e-12 rad and characteristic lengths; `rng`; `parameters`; `on_failure`: "raise" an
        UnreachableError, return the "nearest" positions, or "nan". With `all`,
        every solution of one target: in closed form for spherical wrists and planar arms, else by searches.
        """
        from .analysis.kinematics.all_solutions import all_solutions
        from .analysis.kinematics.inverse_kinematics import PoseOptions, inverse_kinematics

        return (all_solutions if all else inverse_kinematics)(self, T, frame, PoseOptions(q0=q0, **options))

    def cartesian_motion(
        self, poses: ArrayLike, frame: str, *, times: ArrayLike | None = None, duration=None, samples=101, **options
    ):
        """Return t, q, qd and qdd of an arm whose frame moves along poses [k, 4, 4], or its origin along points [k, 3].

        With `times` [k], along a spline through the poses; with two poses and a `duration` [s], along the straight line
        between them, at rest at both ends, at so many `samples`. Options are those of inverse_kinematics, such as `q0`.
        """
        from .analysis.kinematics.cartesian_motion import cartesian_motion
        from .analysis.kinematics.inverse_kinematics import PoseOptions

        given = {"times": times, "duration": duration, "samples": samples}
        return cartesian_motion(self, poses, frame, PoseOptions(**options), **given)

    def workspace(self, frame: str, **options):
        """Return points that a frame reaches, sampled over the ranges of the joints, with `plot` and `manipulability`.

        Options: `samples`, 20,000; `limits=False` to ignore limits; `rng`; `parameters`.
        """
        from .analysis.kinematics.workspace import workspace

        return workspace(self, frame, **options)

    def beam_loads(self, q: ArrayLike, body: str, *, count: int = 51, parameters=None):
        """Return deflection, bending moment, shear, torque, tension and strain along a beam, with `plot`."""
        from .analysis.beam_loads import beam_loads

        return beam_loads(self, q, body, count=count, parameters=parameters)

    def independent(self, q: ArrayLike | None = None, *, prefer=(), parameters=None):
        """Return the independent degrees of freedom at a closed position, and G with qd = G qd_independent."""
        from .analysis.loops.independence import independent

        return independent(self, q, prefer=prefer, parameters=parameters)

    def consistent_speeds(self, q: ArrayLike, speeds, *, parameters=None) -> Numbers:
        """Return qd with J qd = 0 and the given velocities, {"crank": 2.0}; if not unique, of least kinetic energy."""
        from .analysis.loops.independence import consistent_speeds

        return consistent_speeds(self, q, speeds, parameters=parameters)

    def consistent_accelerations(self, q: ArrayLike, qd: ArrayLike, accelerations, *, parameters=None) -> Numbers:
        """Return qdd with J qdd + dJ/dt qd = 0 and the given accelerations, {"crank": 0.0}."""
        from .analysis.loops.independence import consistent_accelerations

        return consistent_accelerations(self, q, qd, accelerations, parameters=parameters)

    def driven_motion(self, positions, speeds=None, accelerations=None, **options):
        """Return the motion of all joints, and actuator torques, from the motion of driving joints, [..., nt] each.

        `positions`, `speeds` and `accelerations` are by joint: {"crank": [0.0, 0.1]}; numbers are one instant. Options:
        `actuated`, by default the driving joints; `forces=False` to leave out the forces of the mechanism; `parameters`
        [..., 1, np] of many designs, or by name; `q_guess`; on_failure="nan" to mark positions at which the loops do
        not close.
        """
        from .analysis.loops.driven_motion import driven_motion

        return driven_motion(self, positions, speeds, accelerations, **options)

    def balance(self, over, **options):
        """Return the torques that hold the mechanism at rest over one joint or two, {"elbow": (-1.5, 1.5)}.

        They are computed with and without the forces of the mechanism, such as springs. Options: `actuated`, the joints
        that hold it; `q`, the position of the others; one set of `parameters`; `samples`, 61 per joint. The result has
        `peak`, `rms` and `plot`.
        """
        from .analysis.balance import balance

        return balance(self, over, **options)

    def shaking(self, q, qd, qdd, **options):
        """Return the shaking force and moment of a motion: what it exerts on the ground beside the weight, [..., 3].

        The accelerations of a closed mechanism are those of all joints. Options: `about`, the point of the moment, by
        default the origin; `parameters`. The result has `force`, `moment`, `peaks` and `rms`.
        """
        from .analysis.balance import shaking

        return shaking(self, q, qd, qdd, **options)

    def architecture(self, **options):
        """Return which combinations of parameters must vanish for a constant, diagonal or decoupled inertia matrix.

        Options: `actuated`, the driven joints of a closed mechanism; `positions` and `rng` of the samples. The result
        has `conditions` by goal, also "balanced" for weight, `met`, `measure(goal)` for `kt.optimize`, and
        `design(goal)`, the nearest mechanism of possible bodies that meets it.
        """
        from .analysis.architecture import architecture

        return architecture(self, **options)

    def stepper(self, *, dt: float, substeps: int = 1, **options) -> Any:
        """Return a time step as a function, `q, qd = step(q, qd, tau)`: one native call, without preparation.

        It advances by `dt` [s] in so many `substeps`, and gives the bits of `kt.simulate` with the same steps. Without
        `control`, or with "torque", the torques tau are an argument that is held over the step. Arrays may have any
        leading axes, `out`, `threads`, and `parameters` of each sample. Options, as those of `simulate`: `control` (()
        for none), `forces`, `passive`, `contacts`, `parameters`, `method` with fixed steps, and `loops`. With
        `device="cuda"`, as `system.on("cuda").stepper`, it takes arrays of CuPy, torch or JAX in the memory of a GPU.
        """
        return picture("stepper")(self, dt=dt, substeps=substeps, **options)

    def cycle(self, drive: str, *, speed: float, **options):
        """Return a closed cycle of a mechanism with one degree of freedom, driven at constant speed [rad/s].

        The run has positions, velocities, accelerations, the torque of the drive ("control") and the reactions at
        joints and loops. Options: `start`, the angle [rad]; `samples`, 361; `revolutions`, 1; `parameters`, `passive`,
        `forces` and methods as in `simulate`.
        """
        return picture("cycle")(self, drive, speed=speed, **options)

    def doctor(self, q: ArrayLike | None = None, qd: ArrayLike | None = None, *, drives=(), parameters=None):
        """Return the diagnosis of the loops: gaps, mobility, redundant equations, singular positions, and advice.

        With leading shapes of q, qd or parameters, it is an array of diagnoses.
        """
        from .analysis.loops.doctor import doctor

        return doctor(self, q, qd, drives=drives, parameters=parameters)

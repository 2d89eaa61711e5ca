"""A time step of a mechanism as a function of states, and the steps of which it is made in unfinished kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .._support.checks import positive, whole
from ..compiler.ir.operations import Op
from ..compiler.ir.program import Program
from ..compiler.lanes.expressions import Builder, Value
from ..compiler.lanes.form import Kernel
from ..compiler.lower.build import is_long
from ..compiler.lower.contacts import candidate_names
from ..errors import InputError, brief
from ..model.contacts import Contact
from ..model.mechanism import Mechanism, Named, in_order, inputs_of, one_set
from ..runtime.kernels import KernelFunction
from ..system import System
from .acting.driven import combine_controls
from .acting.drives import drives_of
from .acting.instants import Controller, Force
from .acting.point_forces import forces_of
from .acting.rates import ForcedMechanism
from .closing import Loops, Minimal, require_projection
from .contact.cone_solves import larger
from .engines.held_torques import HeldTorque, held_as_parameters
from .engines.time_stepping import MEASURES, MOST_OF_A_THREAD, PASSING, ManyMoreau, Moreau, time_steps
from .methods.lane_states import LaneStates, builder_of
from .methods.protocol import FixedScheme, Step
from .methods.stepper import stepper as make_stepper
from .methods.table import Method, names_of
from .options import choose, control_of, flag, list_acting, method_name, with_contacts
from .problem import key_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..backends.cuda.system import CudaSystem
    from .device_steps import DeviceStepFunction

QUICK = {"out", "threads"}
"""The options of a step that change no inputs."""
TORQUE = "torque"
"""The control whose torques are an argument of each step."""


@dataclass(frozen=True)
class Stepping:
    """The steps of a mechanism under forces and control by a method: what an unfinished kernel needs to write them.

    The last parameters of the `program` are `held` inputs, such as torques. `memory` is the number of entries of a
    state after its velocities: impulses of contacts and measures of their solution. `method` is the name of the method.
    With `alone`, a lane runs alone, as a thread of a graphics card does, whose memory is small.
    """

    mechanism: Mechanism
    program: Program
    integrator: FixedScheme | Moreau | ManyMoreau
    quaternions: tuple[int, ...]
    closing: Program | None
    held: int
    memory: int
    method: str
    dtype: str = "float64"
    alone: bool = False

    @property
    def free(self) -> int:
        """The number of free parameters."""
        return len(self.mechanism.free_parameters)

    @property
    def timed(self) -> bool:
        """Whether a step depends on the time."""
        centering = getattr(self.integrator, "centering", None)
        parts = [self.program, self.closing, *((centering.center, centering.uncenter) if centering else ())]
        return any(op[0] is Op.INPUT and op[1] == 0 for part in parts if part for op in part.ops)

    def builder(self, name: str) -> Builder:
        """Return an empty kernel that calls the rates and, with loops, their closing."""
        return builder_of(name, self.program, self.closing)

    def states(self, k: Builder) -> LaneStates:
        """Declare the memory of a state in a kernel."""
        stages = self.integrator.memory if isinstance(self.integrator, FixedScheme) else 1
        return LaneStates(k, self.program, stages, self.quaternions, self.closing, self.dtype)

    def step(self, states: LaneStates, longest: Callable[[], Value]) -> Step:
        """Return the code of one step; `longest` returns the length of the longest one."""
        if isinstance(self.integrator, FixedScheme):
            return self.integrator.step(states, self.program)
        if isinstance(self.integrator, ManyMoreau) and self.alone:
            return self.integrator.steps(states, self.program, longest, MOST_OF_A_THREAD).step
        return self.integrator.steps(states, self.program, longest).step


def stepping_of(
    mechanism: Mechanism,
    method: Method,
    forces: Sequence[Force],
    control: Controller | None,
    loops: Loops | None = None,
    dtype: str = "float64",
    *,
    alone: bool = False,
) -> Stepping:
    """Return the steps of a method with fixed ones. Inputs of a control with the name HELD are held over a step."""
    held = sum(a.size for a in getattr(control, "inputs", ()))
    dynamics = ForcedMechanism(mechanism, forces, control, loops, dtype)
    if method.name == "moreau":
        made = time_steps(dynamics)
        integrator: Any = made.method
        memory = integrator.rows + len(MEASURES)
    else:
        made, memory = make_stepper(dynamics, method.scheme), 0
        integrator = made.method
    program = held_as_parameters(made.program, mechanism) if held else made.program
    return Stepping(
        mechanism, program, integrator, made.quaternions, made.closing, held, memory, method.name, dtype, alone
    )


def fixed_method(mechanism: Mechanism, name: str, dt: float) -> Method:
    """Return a method with native fixed steps; `auto` is moreau with contacts, and rk4 without."""
    name = "moreau" if method_name(name) == "auto" and mechanism.contacts else name
    method = choose(name, dt, 1e-8)
    if method.name != "moreau" and (method.adaptive or not method.native):
        raise InputError(f"method is {name!r}: a stepper takes {names_of(adaptive=False)}, or moreau for contacts")
    if mechanism.contacts and method.name != "moreau":
        raise InputError(f"method is {name!r}, and {mechanism.name!r} has contacts: use moreau, or contacts=()")
    if method.name == "moreau" and not mechanism.contacts:
        raise InputError(f"method is 'moreau', and {mechanism.name!r} has no contacts; give contacts=[kt.Contact(...)]")
    if is_long(mechanism):
        raise InputError(f"{mechanism.name!r} is too long for a stepper, whose steps are straight-line code")
    return method


def suitable_loops(loops: object, method: Method, control: object) -> Loops | None:
    """Return the way to keep loops closed; InputError for one that steps do not support."""
    if isinstance(loops, Minimal) or not isinstance(loops, Loops | None):
        raise InputError(f"loops is {brief(loops)}; a stepper takes Projection() or Baumgarte(rate)")
    if method.name == "moreau" or drives_of(control) is not None:
        require_projection(loops)
    return loops


# --- The kernel of a step ---


def step_kernel(stepping: Stepping) -> Kernel:
    """Return (q, qd[, tau][, t][, impulses][, parameters], settings) -> (q_next, qd_next[, impulses_next, residual]).

    The settings are the length of a step and the number of steps of a call.
    """
    s, m = stepping, stepping.mechanism
    k = s.builder("step")
    q, qd = k.array("q", m.nq), k.array("qd", m.nv)
    tau = k.array("tau", s.held) if s.held else None
    t = k.array("t") if s.timed else None
    count = len(candidate_names(m)) if s.memory else 0
    before = k.array("impulses", count, 3) if count else None
    parameters = k.array("parameters", s.free) if s.free else None
    settings = k.array("settings", 2, shared=True)
    after = k.array("q_next", m.nq, output=True), k.array("qd_next", m.nv, output=True)
    pushed = k.array("impulses_next", count, 3, output=True) if count else None
    residual = k.array("residual", output=True) if count else None
    states, begin = s.states(k), k.block("begin")
    impulses = m.nq + m.nv
    begin.value = 0.0
    with k.each_lane():
        if t:
            begin.value = t[()]
        _copy(k, m.nq, lambda j: q[j], lambda j, x: states.y.__setitem__(j, x))
        _copy(k, m.nv, lambda j: qd[j], lambda j, x: states.y.__setitem__(j + m.nq, x))
        if before:
            with k.loop(count) as c:
                for i in range(3):
                    states.y[c * 3 + (impulses + i)] = before[c, i]
            for i in range(len(MEASURES)):
                states.y[impulses + 3 * count + i] = 0.0
        states.give(parameters)
        states.give(tau, shift=s.free)
    length = settings[0]
    step = s.step(states, lambda: length)
    with k.loop(k.whole(settings[1])) as n:
        step(begin.value, length, n)
    with k.each_lane():
        _copy(k, m.nq, lambda j: states.y[j], lambda j, x: after[0].__setitem__(j, x))
        _copy(k, m.nv, lambda j: states.y[j + m.nq], lambda j, x: after[1].__setitem__(j, x))
        if pushed and residual:
            with k.loop(count) as c:
                for i in range(3):
                    pushed[c, i] = states.y[c * 3 + (impulses + i)]
            residual[()] = larger(*(states.y[impulses + 3 * count + i] for i in range(PASSING)))
    return k.kernel()


def _copy(k: Builder, count: int, read: Callable[[Value], Value], write: Callable[[Value, Value], None]) -> None:
    """Write a loop that copies entries."""
    with k.loop(count) as j:
        write(j, read(j))


# --- The function that users hold ---


@dataclass(frozen=True)
class StepJacobian:
    """A state (q, qd) after a step, and its derivatives with respect to the state before it, torques and parameters.

    They are `state` [..., 2 nv, 2 nv], `tau` [..., 2 nv, nv] and `parameters` [..., 2 nv, np]; None for a step without
    torques or free parameters.
    """

    q: np.ndarray
    qd: np.ndarray
    state: np.ndarray
    tau: np.ndarray | None
    parameters: np.ndarray | None


class StepFunction:
    """A time step as a function, made by `system.stepper(...)`: states in, states out, in one native call.

    `names` are its arrays in order: q [..., nq], qd [..., nv], and as far as the step has them the torques tau
    [..., nv], the time t [...] at the beginning, and the impulses [..., n, 3] of the contacts in the last step.
    It returns q and qd at the end, and with contacts their impulses [N s] in the last of the substeps, and the
    largest residual of the laws of contact in any of them.
    """

    def __init__(self, system: System, made: tuple[KernelFunction, Stepping], dt: float, substeps: int, **more: Any):
        """Store the compiled step and its settings; use system.stepper(...)."""
        self.system, self.dt, self.substeps = system, dt, substeps
        self._function, self._stepping = made
        self._options, self._again = more["options"], more["again"]
        self._constants: tuple[np.ndarray, ...] = (np.array([dt / substeps, float(substeps)]),)
        self.parameters: np.ndarray | None = more["parameters"]
        if self.parameters is not None:
            self._constants = (np.ascontiguousarray(self.parameters, dtype=float), *self._constants)
        hidden = len(self._constants)
        self.names = tuple(a.name for a in self._function.inputs[: len(self._function.inputs) - hidden])
        self._call = self._function.direct(self, self._constants, self._plain)

    def __call__(self, *arrays: ArrayLike, **options: Any) -> tuple[np.ndarray, ...]:
        """Return the state after a step: (q, qd), or (q, qd, impulses, residual) with contacts.

        Leading axes of the arrays broadcast. Arrays may be given by name. Impulses that are left out are zero.
        `parameters` are values of free parameters for this call, [..., np] or by name, `out` the arrays of the
        results, and `threads` the number of threads, 0 for all cores. The start of closed loops must be closed; a
        state that is not finite, or whose loops cannot be closed again, gives NaN.
        """
        if not options:
            return self._call(*arrays)
        if len(arrays) == len(self.names) and options.keys() <= QUICK:
            return self._function.run(arrays, self._constants, options.get("out"), options.get("threads"))
        return self._chosen(arrays, options)

    def _plain(self, *arrays: ArrayLike, out: object = None) -> tuple[np.ndarray, ...]:
        return self._chosen(arrays, {} if out is None else {"out": out})

    def _chosen(self, arrays: tuple, options: dict[str, Any]) -> tuple[np.ndarray, ...]:
        """Run a call with arrays by name or with options, or one that a direct call does not take."""
        options = dict(options)
        out, threads, given = (options.pop(name, None) for name in ("out", "threads", "parameters"))
        by_name = dict(zip(self.names, arrays, strict=False))
        for name, value in options.items():
            if name not in self.names:
                known = ", ".join((*self.names, "parameters", "out", "threads"))
                raise TypeError(f"step() got an unexpected keyword argument {name!r}; it takes {known}")
            if name in by_name:
                raise TypeError(f"step() got multiple values for argument {name!r}")
            by_name[name] = value
        if "impulses" in self.names and "impulses" not in by_name:
            by_name["impulses"] = np.zeros((len(candidate_names(self.system.mechanism)), 3))
        if len(arrays) > len(self.names) or len(by_name) < len(self.names):
            count = max(len(arrays), len(by_name))
            raise InputError(f"step takes {len(self.names)} arrays ({', '.join(self.names)}), not {count}")
        constants = self._constants
        if given is not None:
            constants = (self._parameter_values(given), constants[-1])
        found = tuple(by_name[name] for name in self.names)
        if options and out is None and threads is None and given is None:
            return self._call(*found)
        return self._function.run(found, constants, out, threads)

    # --- derivatives

    def jacobian(self, *arrays: ArrayLike, parameters: Named | None = None) -> StepJacobian:
        """Return the derivatives of a step, of the state [q; qd] after it with respect to that before it and others.

        They are those of the substeps themselves, to rounding, as `kt.simulation_derivatives` has them for runs; rows
        and columns of positions are directions of the tangent space. Steps with contacts have none.
        """
        from .derivatives.of_runs import simulation_derivatives

        given, options = dict(zip(self.names, arrays, strict=False)), dict(self._options)
        if len(given) != len(self.names) or len(arrays) > len(self.names):
            raise InputError(f"step takes {len(self.names)} arrays ({', '.join(self.names)}), not {len(arrays)}")
        begin = np.unique(np.asarray(given.get("t", 0.0), dtype=float))
        if len(begin) != 1:
            raise InputError("t has several times; derivatives of a step are those at one time")
        substeps, tau = options.pop("substeps"), given.get("tau")
        options |= {"dt": self.dt / substeps, "method": self._stepping.method}
        if parameters is None:
            parameters = self.parameters
        elif self.parameters is not None:
            parameters = self._parameter_values(parameters)
        options |= {"parameters": parameters, "control": None if tau is not None else options["control"]}
        wrt = ["q0", "qd0", *(["tau"] if tau is not None else []), *(["parameters"] if self._stepping.free else [])]
        found = simulation_derivatives(
            self._again,
            given["q"],
            given["qd"],
            wrt=wrt,
            times=[begin[0], begin[0] + self.dt],
            progress=False,
            torques=None if tau is None else np.asarray(tau, dtype=float)[..., None, :],
            **options,
        )
        end = {name: found[name][..., -1, :, :] for name in wrt}
        state = np.concatenate([end["q0"], end["qd0"]], axis=-1)
        return StepJacobian(
            found.run.q[..., -1, :], found.run.qd[..., -1, :], state, end.get("tau"), end.get("parameters")
        )

    def jvp(self, arrays: Sequence[ArrayLike], tangents: Sequence[ArrayLike], **options: Any) -> tuple[np.ndarray, ...]:
        """Return the change (dq, dqd) of the state after a step along changes (dq, dqd[, dtau]) of what it begins with.

        All dq are directions of the tangent space, [..., nv].
        """
        matrix, nv = self._inputs_jacobian(arrays, len(tangents), options), self.system.nv
        change = np.concatenate(np.broadcast_arrays(*(np.asarray(x, dtype=float) for x in tangents)), axis=-1)
        out = (matrix @ change[..., None])[..., 0]
        return out[..., :nv], out[..., nv:]

    def vjp(self, arrays: Sequence[ArrayLike], adjoints: Sequence[ArrayLike], **options: Any) -> tuple[np.ndarray, ...]:
        """Return the gradient (q, qd[, tau]) of a function of the state after a step from its own (q, qd) there."""
        count, nv = 3 if "tau" in self.names else 2, self.system.nv
        matrix = self._inputs_jacobian(arrays, count, options)
        adjoint = np.concatenate(np.broadcast_arrays(*(np.asarray(x, dtype=float) for x in adjoints)), axis=-1)
        out = (adjoint[..., None, :] @ matrix)[..., 0, :]
        return tuple(out[..., k * nv : (k + 1) * nv] for k in range(count))

    def _inputs_jacobian(self, arrays: Sequence[ArrayLike], count: int, options: dict[str, Any]) -> np.ndarray:
        """Return the derivatives with respect to the state and, for three inputs, to the torques."""
        found, most = self.jacobian(*arrays, **options), 3 if "tau" in self.names else 2
        if not 2 <= count <= most:
            raise InputError(f"{count} tangents; give those of q and qd{', and of tau' if most == 3 else ''}")
        return found.state if count == 2 or found.tau is None else np.concatenate([found.state, found.tau], axis=-1)

    def _parameter_values(self, given: Named) -> np.ndarray:
        """Return values of all free parameters, [..., np]; those that are not named are those of the stepper."""
        mechanism = self.system.mechanism
        if isinstance(given, Mapping) and self.parameters is not None:
            names = [p.name for p in mechanism.free_parameters]
            given = dict(zip(names, self.parameters.tolist(), strict=True)) | dict(given)
        values = np.asarray(in_order(mechanism, given), dtype=float)
        if self.parameters is None or values.shape[-1:] != self.parameters.shape:
            inputs_of(mechanism, given)  # raises the error of their number
        return values

    def __reduce__(self) -> tuple[Callable[..., StepFunction], tuple[System, dict[str, object]]]:
        """Pickle the system and the options; unpickling compiles the step or reads it from the cache."""
        return (_remade, (self._again, self._options))

    def __repr__(self) -> str:
        """Return the arrays and the length of the step."""
        return describe_step(self.system.mechanism.name, self.names, self.dt, self.substeps)


def describe_step(mechanism: str, names: Sequence[str], dt: float, substeps: int, place: str = "") -> str:
    """Return the arrays and the length of a step."""
    count = f" in {substeps} substeps" if substeps > 1 else ""
    return f"<step of {mechanism}: ({', '.join(names)}), {dt:g} s{count}{place}>"


def _remade(system: System, options: dict[str, Any]) -> StepFunction:
    made = stepper(system, **options)
    assert isinstance(made, StepFunction), "the options have no device"
    return made


def stepper(
    system: System | CudaSystem,
    *,
    dt: float,
    substeps: int = 1,
    control: Controller | Sequence[Controller] | str | None = None,
    forces: Force | Sequence[Force] | None = None,
    passive: bool = True,
    contacts: Contact | Sequence[Contact] | None = None,
    parameters: Named | None = None,
    method: str = "auto",
    loops: Loops | None = None,
    device: str | None = None,
) -> StepFunction | DeviceStepFunction:
    """Return a time step of a system as a function; `System.stepper` describes it."""
    if not isinstance(system, System) and device not in (None, system.place):
        raise InputError(f"device is {brief(device)}, and the system is on {system.place}; leave it out")
    found_on = system.on(device or "cpu") if isinstance(system, System) else system
    gpu = None if isinstance(found_on, System) else found_on
    system = system if isinstance(system, System) else cast(System, system.system)
    options = {
        "dt": dt,
        "substeps": substeps,
        "control": control,
        "forces": forces,
        "passive": passive,
        "contacts": contacts,
        "parameters": parameters,
        "method": method,
        "loops": loops,
    }
    dt, substeps = positive(dt, "dt"), whole(substeps, "substeps")
    again, system = system, with_contacts(system, contacts)
    mechanism = system.mechanism
    chosen = fixed_method(mechanism, method, dt)
    acting = (*(forces_of(mechanism) if flag(passive, "passive") else ()), *list_acting(forces, "forces", "apply"))
    values = one_set(mechanism, parameters, "stepper")
    values = inputs_of(mechanism, values)
    law: Controller | None = None
    if control is None or (isinstance(control, str) and control == TORQUE):
        law, key = HeldTorque(mechanism.nv), (TORQUE, key_of(mechanism, acting))
    else:
        law = compiled_control(mechanism, control)
        key = ("", key_of(mechanism, acting, law))
    loops = suitable_loops(loops, chosen, law)
    if gpu is not None:
        from .device_steps import DeviceStepFunction

        def steps(dtype: str) -> Stepping:
            name = ("step on a GPU", dtype, chosen.name, loops, key)
            return system._parts.part(
                name, lambda: stepping_of(mechanism, chosen, acting, law, loops, dtype, alone=True)
            )

        return DeviceStepFunction(gpu, steps, dt, substeps, values)

    def made() -> tuple[KernelFunction, Stepping]:
        stepping = stepping_of(mechanism, chosen, acting, law, loops)
        return KernelFunction(step_kernel(stepping)), stepping

    found = system._parts.part(("step", chosen.name, loops, key), made)
    return StepFunction(system, found, dt, substeps, options=options, again=again, parameters=values)


def compiled_control(mechanism: Mechanism, control: object) -> Controller | None:
    """Return controllers as one that is compiled with the step; InputError for others, None for an empty list."""
    law = combine_controls(mechanism, control_of(control))
    if getattr(law, "outside", False):
        raise InputError(
            f"{type(law).__name__} computes torques outside of compiled code; give control={TORQUE!r} and the torques "
            "to each step, or a compiled controller such as kt.PD or kt.TorqueFunction"
        )
    drives = drives_of(law)
    if drives is not None and drives.couplings:
        raise InputError("control drives couplings, which only kt.simulate does; drive the joints instead")
    return law

"""`run_function`: runs as functions of arrays, with gradients in torch and JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from ..._support import optional
from ..._support.checks import leading_shape, real_array
from ..._support.progress import show_progress
from ..._support.tables import Displayed, Table
from ...algebra.scalars import Numbers, Scalar
from ...backends.autograd import Node, needs_gradient, record_node
from ...backends.jax_products import called_back
from ...backends.mirrored import parameter_argument
from ...errors import AssemblyError, InputError, KinetreeError, brief, unknown_name
from ...model.axes import axis_labels
from ...model.mechanism import Mechanism, in_order
from ...results.trajectory import Trajectory
from ...runtime.derived import summed_to
from ...system import System
from ..acting.instants import HINT, Instant
from ..options import system_of
from ..run_states import output_times
from .adjoint import Samples, gradient
from .of_runs import added_torques, differentiable, loaded_run
from .programs import refuse

Cores = dict[str, tuple[int, ...]]
"""The shapes of arguments behind their leading axes, by name and in order."""
WHO = "run_function"
FORWARD = (
    f"{WHO}: {{}} differentiates runs in reverse mode; forward derivatives of a run are those of "
    "kt.simulation_derivatives"
)
"""The error for derivatives of runs in forward mode."""


Tensor = Any
"""An array of NumPy, torch or JAX; None for a default."""


class RunFunction:
    """A function (q0, qd0) -> (q, qd) of whole runs, with gradients in torch and JAX, returned by `run_function`.

    `times` are the output times [nt] in seconds, and `options` those of the runs.
    """

    def __init__(self, system: System, times: Numbers, options: dict[str, Any]) -> None:
        """Store the options of the runs."""
        self.system, self.times, self.options = system, times, options
        self._jax_calls: dict[tuple[str, ...], Callable[..., Any]] = {}

    def __call__(
        self, q0: Tensor, qd0: Tensor = None, *, parameters: Tensor = None, torques: Tensor = None
    ) -> tuple[Tensor, Tensor]:
        """Return the states at the output times, q [..., nt, nq] and qd [..., nt, nv].

        All arrays are of one library, NumPy, torch or JAX, in float64, with any leading shapes that fit together. `qd0`
        is zero by default. `parameters` are the values of all free parameters [..., np], or of some by name. `torques`
        [..., nt - 1, nv] are added to those that act, each during an output interval. Gradients with respect to q0 are
        those of its entries.
        """
        given = [q0, qd0, torques, *(parameters.values() if isinstance(parameters, dict) else [parameters])]
        owners = {type(x).__module__.partition(".")[0] for x in given}
        added, cores = () if torques is None else (torques,), self._cores(torques)
        if "torch" in owners:
            return self._on_torch(cores, q0, qd0, parameters, added)
        if owners & {"jax", "jaxlib"}:
            return self._on_jax(cores, q0, qd0, parameters, added)
        free = self.system.mechanism.free_parameters
        values = [] if not free else [in_order(self.system.mechanism, {} if parameters is None else parameters)]
        if parameters is not None and not free:
            parameter_argument(self.system.mechanism, parameters, numbers=tuple, columns=tuple)
        arrays = [q0, np.zeros(self.system.nv) if qd0 is None else qd0, *values, *added]
        return self._run(cores, [real_array(x, name) for x, name in zip(arrays, cores, strict=True)])[0]

    def __repr__(self) -> str:
        """Return the name of the mechanism, the number of output times, and the time between the first and the last."""
        span = self.times[-1] - self.times[0]
        return f"<RunFunction of {self.system.mechanism.name!r}: {len(self.times)} output times, {span:g} s>"

    def _cores(self, torques: Tensor) -> Cores:
        """Return the shapes of the arguments behind their leading axes, by name; torques are one if they are given."""
        s, free = self.system, len(self.system.mechanism.free_parameters)
        cores: Cores = {"q0": (s.nq,), "qd0": (s.nv,)}
        if free:
            cores["parameters"] = (free,)
        if torques is not None:
            cores["torques"] = (len(self.times) - 1, s.nv)
        return cores

    def _checked(self, cores: Cores, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """Return the common leading shape of arguments; raise InputError for other shapes."""
        given = zip(cores.items(), shapes, strict=True)
        return leading_shape(((name, shape, core) for (name, core), shape in given), WHO)

    def _run(self, cores: Cores, arrays: Sequence[Numbers]) -> tuple[tuple[Numbers, Numbers], Samples]:
        """Return the states at the output times, and the run from which they are differentiated."""
        lead = self._checked(cores, [x.shape for x in arrays])
        named = {
            name: np.ascontiguousarray(np.broadcast_to(x, lead + core))
            for x, (name, core) in zip(arrays, cores.items(), strict=True)
        }
        options = self.options | ({"parameters": named["parameters"]} if "parameters" in named else {})
        problem, _ = differentiable(self.system, named["q0"], named["qd0"], "qd0", options)
        samples = Samples(problem, added_torques(problem, named.get("torques")))
        if samples.run.failures:
            k = min(samples.run.failures)
            which = f"run {k} of {samples.run.evaluations.size}" if lead else "the run"
            raise KinetreeError(f"{WHO}: {which} failed: {samples.run.failures[k].text}")
        return (samples.run.q, samples.run.qd), samples

    def _pulled(self, samples: Samples, cotangents: Sequence[Numbers]) -> tuple[Numbers, ...]:
        """Return the cotangents of all arguments, with the leading shape of the runs."""
        found = samples.pull(*(np.ascontiguousarray(x) for x in cotangents))
        return tuple(x for x in found if x is not None)

    def _on_torch(
        self, cores: Cores, q0: Tensor, qd0: Tensor, parameters: Tensor, added: tuple[Tensor, ...]
    ) -> tuple[Tensor, Tensor]:
        from ...backends import torch as on_torch  # with a compiler for GPUs, which importing kinetree leaves out

        torch = optional.torch()
        qd0 = torch.zeros(self.system.nv, dtype=torch.float64) if qd0 is None else qd0
        more = parameter_argument(
            self.system.mechanism,
            parameters,
            numbers=lambda values: on_torch.tensor_of(values, "float64"),
            columns=on_torch.columns_of("float64"),
        )
        tensors = [q0, qd0, *more, *added]
        for name, x in zip(cores, tensors, strict=True):
            if isinstance(x, torch.Tensor) and x.device.type != "cpu":
                raise InputError(
                    f"{WHO}: {name} is on the device {str(x.device)!r}, and runs with gradients are computed on the "
                    "CPU; give x.cpu()"
                )
        if on_torch.common_dtype(WHO, tensors) != "float64":
            raise InputError(f"{WHO}: the tensors have dtype torch.float32; runs are in float64, so give x.double()")
        known: list[Samples] = []

        def run(*given: Tensor) -> tuple[Tensor, Tensor]:
            states, samples = self._run(cores, [on_torch.numbers_of(x) for x in given])
            known[:] = [samples]
            return on_torch.tensors_of(states)

        def pull(*given: Tensor) -> tuple[Tensor, ...]:
            count = len(tensors)
            found = self._pulled(known[0], [on_torch.numbers_of(x) for x in given[count:]])
            return tuple(
                on_torch.tensors_of(summed_to(x, tuple(a.shape))) for x, a in zip(found, given[:count], strict=True)
            )

        if not needs_gradient(tensors):
            return run(*tensors)
        axes = [len(core) for core in cores.values()]
        return record_node(Node(run, lambda: pull, _refuse_forward, axes, [2, 2]), tensors)

    def _on_jax(
        self, cores: Cores, q0: Tensor, qd0: Tensor, parameters: Tensor, added: tuple[Tensor, ...]
    ) -> tuple[Tensor, Tensor]:
        from ...backends import jax as on_jax

        jnp = optional.jax().numpy
        qd0 = np.zeros(self.system.nv) if qd0 is None else qd0
        more = parameter_argument(
            self.system.mechanism,
            parameters,
            numbers=np.array,
            columns=lambda values: jnp.stack(jnp.broadcast_arrays(*map(jnp.asarray, values)), axis=-1),
        )
        arrays = [jnp.asarray(x) for x in (q0, qd0, *more, *added)]
        if on_jax.common_dtype(WHO, arrays) != "float64":
            raise InputError(
                f"{WHO}: the arrays have dtype float32; runs are computed in float64, so begin with "
                'jax.config.update("jax_enable_x64", True) and give float64'
            )
        self._checked(cores, [x.shape for x in arrays])
        if (names := tuple(cores)) not in self._jax_calls:
            self._jax_calls[names] = self._jax_call(cores)
        return self._jax_calls[names](*arrays)

    def _jax_call(self, cores: Cores) -> Callable[..., Any]:
        count, nt = len(cores), len(self.times)

        def pull(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
            return self._pulled(self._run(cores, arrays[:count])[1], arrays[count:])

        return called_back(
            lambda *arrays: self._run(cores, arrays)[0],
            pull,
            tuple(cores.values()),
            [(nt, self.system.nq), (nt, self.system.nv)],
            forward=FORWARD.format("JAX"),
        )


def _refuse_forward() -> NoReturn:
    raise InputError(FORWARD.format("torch"))


def run_function(
    system: System | Mechanism, *, duration: float | None = None, times: ArrayLike | None = None, **options: Any
) -> RunFunction:
    """Return a run as a function of its start, its parameters and added torques, for NumPy, torch and JAX.

    The options are those of `simulation_gradient` without `parameters`, which are an argument of the function: control,
    forces, method, dt, rtol, atol. All native methods are allowed. Gradients in torch and JAX are those of the steps,
    by their reverse, whatever the number of arguments. A run that fails raises an error that names it.
    """
    if "parameters" in options:
        raise InputError(f"{WHO}: parameters are an argument of the function that it returns; leave them out here")
    found = system_of(system, WHO)
    made = RunFunction(found, output_times(duration, times), options | {"duration": duration, "times": times})
    with suppress(AssemblyError):  # the start is given later, and all options are checked again with it
        refuse(differentiable(found, None, None, "qd0", dict(made.options))[0])
    return made


# --- `simulation_gradient`: the gradient of an objective of a run ---

Cost = Callable[[Instant], Scalar]
"""A function of `now` that returns a number."""


@dataclass(frozen=True, eq=False, repr=False)
class RunGradient(Displayed):
    """The value of an objective of a run [...], and its gradients with respect to everything that determines it.

    `q0` and `qd0` are [..., nv], that of q0 in the tangent space; `parameters` are [..., np], None without free ones;
    `torques` are [..., nt - 1, nv], None if none were given.
    """

    run: Trajectory
    value: Numbers
    q0: Numbers
    qd0: Numbers
    parameters: Numbers | None
    torques: Numbers | None

    def display(self) -> list[str | Table]:
        """Return the value of one run and its gradient by the names of what it belongs to, or the shape of many."""
        mechanism = self.run.system.mechanism
        if np.ndim(self.value):
            return [f"objectives {list(np.shape(self.value))} of {self.run!r}, and their gradients"]
        axes, free = axis_labels(mechanism, 1), [p.name for p in mechanism.free_parameters]
        rows = [(f"q0 of {name}", float(x)) for name, x in zip(axes, self.q0, strict=True)]
        rows += [(f"qd0 of {name}", float(x)) for name, x in zip(axes, self.qd0, strict=True)]
        given = () if self.parameters is None else zip(free, self.parameters, strict=True)
        rows += [(name, float(x)) for name, x in given]
        more = [] if self.torques is None else [f"and by torques {list(self.torques.shape)}"]
        table = Table(("with respect to", "gradient"), tuple(rows))
        return [f"objective {float(self.value):.6g} of {self.run!r}", table, *more]

    def __getitem__(self, name: str) -> Numbers:
        """Return the derivative with respect to a free parameter by its name, [...]."""
        names = [p.name for p in self.run.system.mechanism.free_parameters]
        if self.parameters is None or name not in names:
            raise unknown_name("free parameter", name, names)
        return self.parameters[..., names.index(name)]


def simulation_gradient(
    system: System | Mechanism,
    q0: ArrayLike | None = None,
    qd0: ArrayLike | None = None,
    *,
    terminal: Cost | None = None,
    running: Cost | None = None,
    torques: ArrayLike | None = None,
    progress: bool | None = None,
    **options: object,
) -> RunGradient:
    """Return the gradient of an objective of a run, by its steps in reverse order, in native code.

    The objective is `terminal` at the end plus the integral of `running` over time [s]. Both are functions of `now`, as
    those of events: they read `now.t`, `now.q`, `now.qd`, `now.point(...)`, and the torques of control `now.control`,
    and are compiled. `torques` [..., nt - 1, nv] are added to those that act, each during an output interval.

    The options are those of `simulate` for native methods, without events. The gradient is the exact one of the steps,
    to rounding. Adaptive methods end steps at the output times, and the lengths of the accepted steps are held fixed.
    The cost is a few runs, whatever the number of parameters and torques.
    """
    if terminal is None and running is None:
        raise InputError("terminal and running: give at least one of them, a function of `now` that returns a number")
    problem, _ = differentiable(system, q0, qd0, "qd0", options, torques)
    costs = [_checked(name, x) for name, x in (("terminal", terminal), ("running", running))]
    added = added_torques(problem, torques)
    with show_progress(progress) as show:
        found = gradient(problem, costs[0], costs[1], added, show)
    run = loaded_run(problem, found.run, added)
    return RunGradient(run, found.value, found.q0, found.qd0, found.parameters, found.torques)


def _checked(name: str, cost: Cost | None) -> Cost | None:
    """Return a function of `now` that explains why another one cannot be compiled; None without a cost."""
    if cost is None:
        return None
    if not callable(cost):
        raise InputError(f"{name} is {repr(cost)[:60]}; give a function of `now` that returns a number")

    def value(now: Instant) -> Scalar:
        try:
            found = cost(now)
        except (TypeError, AttributeError) as error:
            raise InputError(f"{name} cannot be compiled ({error}); {HINT}") from error
        if found is None or isinstance(found, str | list | tuple | np.ndarray):
            what = brief(found) if found is None or isinstance(found, str) else f"{np.size(found)} values"
            raise InputError(f"{name} returns {what}; give a function of `now` that returns one number")
        try:
            return found + 0.0
        except TypeError as error:
            raise InputError(f"{name} cannot be compiled ({error}); {HINT}") from error

    return value

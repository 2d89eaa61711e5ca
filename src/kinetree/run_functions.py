"""`run_function`: runs as functions of arrays, with gradients in torch and JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from .algebra.arrays import Numbers
from .compiler.runtime import optional
from .compiler.runtime.gradients import summed_to
from .devices.autograd import Node, needs_gradient, recorded
from .devices.callbacks import called_back
from .devices.parameters import parameter_argument
from .errors import AssemblyError, InputError, KinetreeError
from .model.mechanism import Mechanism
from .model.parameter_values import in_order
from .numbers import real_array
from .run_derivatives import added_torques, differentiable
from .simulation.array_arguments import output_times
from .simulation.derivatives.adjoint import Samples
from .simulation.derivatives.adjoint_parts import scheme_of
from .simulation.option_arguments import system_of
from .system import System

Cores = dict[str, tuple[int, ...]]
"""The shapes of arguments behind their leading axes, by name and in order."""
WHO = "run_function"
FORWARD = (
    f"{WHO}: {{}} differentiates runs in reverse mode; forward derivatives of a run are those of "
    "kt.simulation_derivatives"
)
"""The error for derivatives of runs in forward mode."""


class RunFunction:
    """A function (q0, qd0) -> (q, qd) of whole runs, with gradients in torch and JAX, returned by `run_function`.

    `times` are the output times [nt] in seconds, and `options` those of the runs.
    """

    def __init__(self, system: System, times: Numbers, options: dict[str, Any]) -> None:
        """Store the options of the runs."""
        self.system, self.times, self.options = system, times, options
        self._jax_calls: dict[tuple[str, ...], Callable[..., Any]] = {}

    def __call__(self, q0: Any, qd0: Any = None, *, parameters: Any = None, torques: Any = None) -> tuple[Any, Any]:
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

    def _cores(self, torques: Any) -> Cores:
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
        leads = []
        for (name, core), shape in zip(cores.items(), shapes, strict=True):
            if len(shape) < len(core) or shape[len(shape) - len(core) :] != core:
                raise InputError(f"{WHO}: {name} has shape {shape}; expected [..., {', '.join(map(str, core))}]")
            leads.append(shape[: len(shape) - len(core)])
        try:
            return np.broadcast_shapes(*leads)
        except ValueError:
            listed = ", ".join(f"{name} {lead}" for name, lead in zip(cores, leads, strict=True))
            raise InputError(f"{WHO}: the leading shapes do not fit together: {listed}") from None

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
            raise KinetreeError(f"{WHO}: {which} failed: {samples.run.failures[k]}")
        return (samples.run.q, samples.run.qd), samples

    def _pulled(self, samples: Samples, cotangents: Sequence[Numbers]) -> tuple[Numbers, ...]:
        """Return the cotangents of all arguments, with the leading shape of the runs."""
        found = samples.pull(*(np.ascontiguousarray(x) for x in cotangents))
        return tuple(x for x in found if x is not None)

    def _on_torch(self, cores: Cores, q0: Any, qd0: Any, parameters: Any, added: tuple[Any, ...]) -> tuple[Any, Any]:
        from .devices import torch as on_torch  # with a compiler for GPUs, which importing kinetree leaves out

        torch = optional.torch()
        qd0 = torch.zeros(self.system.nv, dtype=torch.float64) if qd0 is None else qd0
        more = parameter_argument(
            self.system.mechanism, parameters,
            numbers=lambda values: on_torch.tensor_of(values, "float64"), columns=on_torch.columns_of("float64"),
        )  # fmt: skip
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

        def run(*given: Any) -> tuple[Any, Any]:
            states, samples = self._run(cores, [on_torch.numbers_of(x) for x in given])
            known[:] = [samples]
            return on_torch.tensors_of(states)

        def pull(*given: Any) -> tuple[Any, ...]:
            count = len(tensors)
            found = self._pulled(known[0], [on_torch.numbers_of(x) for x in given[count:]])
            return tuple(
                on_torch.tensors_of(summed_to(x, tuple(a.shape))) for x, a in zip(found, given[:count], strict=True)
            )

        if not needs_gradient(tensors):
            return run(*tensors)
        axes = [len(core) for core in cores.values()]
        return recorded(Node(run, lambda: pull, _refuse_forward, axes, [2, 2]), tensors)

    def _on_jax(self, cores: Cores, q0: Any, qd0: Any, parameters: Any, added: tuple[Any, ...]) -> tuple[Any, Any]:
        from .devices import jax as on_jax

        jnp = optional.jax().numpy
        qd0 = np.zeros(self.system.nv) if qd0 is None else qd0
        more = parameter_argument(
            self.system.mechanism, parameters, numbers=np.array,
            columns=lambda values: jnp.stack(jnp.broadcast_arrays(*map(jnp.asarray, values)), axis=-1),
        )  # fmt: skip
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
            lambda *arrays: self._run(cores, arrays)[0], pull, tuple(cores.values()),
            [(nt, self.system.nq), (nt, self.system.nv)], forward=FORWARD.format("JAX"),
        )  # fmt: skip


def _refuse_forward() -> Any:
    raise InputError(FORWARD.format("torch"))


def run_function(
    system: System | Mechanism, *, duration: float | None = None, times: Any = None, **options: Any
) -> RunFunction:
    """Return a run as a function of its start, its parameters and added torques, for NumPy, torch and JAX.

    The options are those of `simulation_gradient` without `parameters`, which are an argument of the function: control,
    forces, method, dt, rtol, atol. Methods are "rk4", "euler", "midpoint" and "gauss" with `dt`, "dopri5", "dop853" and
    "rodas5p". Gradients in torch and JAX are those of the steps, by their reverse, whatever the number of arguments. A
    run that fails raises an error that names it.
    """
    if "parameters" in options:
        raise InputError(f"{WHO}: parameters are an argument of the function that it returns; leave them out here")
    found = system_of(system, WHO)
    made = RunFunction(found, output_times(duration, times), options | {"duration": duration, "times": times})
    with suppress(AssemblyError):  # the start is given later, and all options are checked again with it
        scheme_of(differentiable(found, None, None, "qd0", dict(made.options))[0])
    return made

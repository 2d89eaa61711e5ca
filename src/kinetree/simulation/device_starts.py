"""Starts that are arrays on a GPU, and stay there if the samples of their runs do."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ..system import System
from .array_arguments import check_finite, check_rotations, check_shape, common_lead

if TYPE_CHECKING:
    from ..compiler.runtime.cuda.libraries import Library
    from ..compiler.targets.ptx.driver import Device


def stays(library: Library, system: System, device: Device | None, arrays: tuple[Any, Any]) -> bool:
    """Return whether q0 and qd0 are arrays of a library on a GPU that need nothing from the CPU.

    Starts of closed mechanisms do: their loops are closed there. So do arrays of integers, and a qd0 elsewhere.
    """
    from ..compiler.runtime.cuda.views import DTYPES

    given, module = [x for x in arrays if x is not None], sys.modules[library.module]
    if system.closures or not all(hasattr(x, "__cuda_array_interface__") and library.owns(module, x) for x in given):
        return False
    views = [library.view(x, "simulate: the start") for x in given]
    return all(device is not None and view.device == device.index and view.dtype in DTYPES for view in views)


def device_start(system: System, library: Library, arrays: tuple[Any, Any], dtype: str) -> tuple[Any, Any]:
    """Return q [..., nq] and qd [..., nv] with a common leading shape, as views of new arrays [entries, runs].

    Without qd0, velocities are zero.
    """
    names, sizes, (q0, qd0) = ("q0", "qd0"), (system.nq, system.nv), arrays
    if qd0 is None:
        qd0 = library.columns([0.0] * system.nv, dtype, library.view(q0, "simulate: q0").device)
    arrays = q0, qd0
    shapes = [tuple(x.shape) for x in arrays]
    for name, shape, size in zip(names, shapes, sizes, strict=True):
        check_shape(name, shape, size)
    lead = common_lead(system, shapes[0], shapes[1])
    made = [library.entries_first(x, lead, dtype) for x in arrays]
    for name, x in zip(names, made, strict=True):
        check_finite(name, bool(library.finite(x).all()))
    check_rotations(system, lambda at: bool(library.nonzero(made[0][at : at + 4]).all()))
    q, qd = (runs_first(x, lead) for x in made)
    return q, qd


def runs_first(x: Any, lead: tuple[int, ...]) -> Any:
    """Return a view [..., core] of an array [core, runs] of CuPy or torch."""
    wide = x.reshape((*x.shape[:-1], *lead))
    core = len(x.shape) - 1
    axes = (*range(core, core + len(lead)), *range(core))
    return wide.permute(axes) if hasattr(wide, "permute") else wide.transpose(axes)

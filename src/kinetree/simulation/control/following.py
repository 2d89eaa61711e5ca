"""The reference that a controller follows, at given times."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...model.axes import axis_names
from ...model.mechanism import Mechanism
from ..references import sampled
from .controllers import Saturated, Sum
from .driven import Driven, DrivenControl, resolved_control
from .sampled import Sampled


def followed(mechanism: Mechanism, control: Any, times: np.ndarray) -> np.ndarray | None:
    """Return the reference of a controller [nt, nq], NaN for joints that are not driven; None without a reference."""
    control = resolved_control(mechanism, (control,)) if isinstance(control, Driven) else control
    if isinstance(control, DrivenControl):
        return _driven(mechanism, control, times)
    leading = next((c for c in _parts(control) if hasattr(c, "reference")), None)
    if leading is None:
        return None
    try:
        wanted = sampled(leading.reference, times)[0]
    except Exception:  # a user's function may accept traced scalars only; the run does not need the samples
        return None
    joints = getattr(leading, "joints", None)
    if joints is None:
        return wanted if wanted.shape[-1] == mechanism.nq else None
    names = [joint for joint, _, _ in axis_names(mechanism, 0)]
    places = [k for joint in joints for k, name in enumerate(names) if name == joint]
    out = np.full((len(times), mechanism.nq), np.nan)
    out[:, places] = wanted
    return out


def _driven(mechanism: Mechanism, control: DrivenControl, times: np.ndarray) -> np.ndarray | None:
    """Return the motion of the drives, beside the reference of the other controller."""
    out = followed(mechanism, control.controller, times)
    out = np.full((len(times), mechanism.nq), np.nan) if out is None else out.copy()
    try:
        out[:, list(control.drives.q)] = sampled(control.drives.at, times)[0]
    except Exception:  # a user's function may accept traced scalars only; the run does not need the samples
        return None
    return out


def _parts(control: Any) -> list[Any]:
    """Return the controllers inside Sum, Saturated and Sampled."""
    if isinstance(control, Sum):
        return [part for c in control.controllers for part in _parts(c)]
    return _parts(control.controller) if isinstance(control, Saturated | Sampled) else [control]

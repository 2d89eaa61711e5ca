"""Workspaces: the points that a frame reaches, sampled over the ranges of the joints in one batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._support.checks import generator, whole
from ..._support.lazy_names import picture
from ..._support.tables import Displayed, Table
from ...algebra.scalars import Numbers
from ...errors import AssemblyError
from ...model.mechanism import Named, inputs_of
from ...runtime.compiled import CompiledMechanism
from ..loops.batch_assembly import assemble
from .joint_ranges import Ranges, scaled_jacobian
from .pose_search import moving_frame

SAMPLES = 20_000
"""The default number of positions: enough for a dense cloud."""
PART = 50_000
"""Number of positions whose Jacobians are in memory at a time; Ctrl-C is noticed between two parts."""


@dataclass(frozen=True, repr=False)
class Workspace(Displayed):
    """Points that the origin of a frame reaches [n, 3] at positions q [n, nq], with their manipulability [n].

    The manipulability is the product of the singular values of the frame's Jacobian for its translation, as many as it
    can have, in units of the characteristic length: zero at singular positions.
    """

    system: CompiledMechanism
    frame: str
    points: Numbers
    q: Numbers
    manipulability: Numbers

    @property
    def lower(self) -> Numbers:
        """The least coordinates of the points [m], shape [3]."""
        return self.points.min(axis=0)

    @property
    def upper(self) -> Numbers:
        """The largest coordinates of the points [m], shape [3]."""
        return self.points.max(axis=0)

    def display(self) -> list[str | Table]:
        """Return the extent of the points along the axes of the ground."""
        head = f"{len(self.points):,} points that {self.frame!r} of {self.system.mechanism.name!r} reaches"
        if not len(self.points):
            return [head]
        rows = zip("xyz", map(float, self.lower), map(float, self.upper), strict=True)
        return [head, Table(("", "least", "largest"), tuple(rows), ("", "m", "m"))]

    def plot(self, path: object = None, **options: object) -> Any:
        """Draw the points in three views, colored by their manipulability; return the figure, or write it to `path`."""
        return picture("workspace_plot")(self, path, **options)


def workspace(
    system: CompiledMechanism,
    frame: str,
    *,
    samples: int = SAMPLES,
    limits: bool = True,
    rng: object = 0,
    parameters: Named | None = None,
) -> Workspace:
    """Return the points that a frame reaches with random positions of the joints, within their limits.

    Joints without limits take all angles, or lengths up to a meter. In closed mechanisms, random positions are
    assembled, and those that do not close are left out.
    """
    moving_frame(system, frame)
    ranges = Ranges.of(system, limits=limits, hold=())
    values, q = inputs_of(system.mechanism, parameters), ranges.starts(whole(samples, "samples"), generator(rng))
    more: dict[str, Any] = {} if values is None else {"parameters": values}
    if system.closures:
        q = assemble(system, q, on_failure="nan", **more)
        q = q[np.isfinite(q).all(axis=-1) & ranges.inside(q, 1e-9)]
        if not len(q):
            raise AssemblyError(f"none of {samples} random positions of {system.mechanism.name!r} closes its loops")
    shared = None if values is None else np.broadcast_to(values, (len(q), values.shape[-1]))
    used = (False, False, False, True, True, True)
    parts = (slice(k, k + PART) for k in range(0, len(q), PART))
    each = ((q[at], None if shared is None else shared[at]) for at in parts)
    jacobians = (_translation(scaled_jacobian(system, frame, used, *some), len(system.closures)) for some in each)
    s = np.concatenate([np.linalg.svd(J)[1] for J in jacobians])
    rank = max(1, int((s > 1e-9 * s.max()).sum(axis=-1).max()))
    points = system.pose(q, frame, **more)[..., :3, 3]
    return Workspace(system, frame, points, q, s[..., :rank].prod(axis=-1))


def _translation(J: Numbers, closures: int) -> Numbers:
    """Return the Jacobian of the frame's translation for motions that keep loops closed, [n, 3, k]."""
    if not closures:
        return J
    _, s, V = np.linalg.svd(J[..., 3:, :])
    full = np.zeros((*s.shape[:-1], J.shape[-1]))
    full[..., : s.shape[-1]] = s
    free = np.swapaxes(V, -1, -2) * (full <= 1e-7 * s.max(axis=-1, keepdims=True))[..., None, :]
    return J[..., :3, :] @ free

"""The camera, a viewpoint on a sphere about a target that shows a whole motion, and the frames that it takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import atan2, cos, radians, sin
from typing import TYPE_CHECKING

import numpy as np

from ..algebra.scalars import Numbers
from ..errors import InputError
from .skeleton import Scene

if TYPE_CHECKING:
    from ..results.trajectory import Trajectory

FIELD = radians(32.0)
"""The vertical angle of view [rad], narrow enough for little distortion by perspective."""
ASPECT = 4.0 / 3.0
"""Width over height of the picture, which a motion is fitted to."""


@dataclass(frozen=True)
class Camera:
    """An eye at a distance [m] from a target [m], by azimuth and elevation [rad]; the third row of `axes` is up."""

    target: Numbers
    distance: float
    azimuth: float
    elevation: float
    axes: Numbers

    @property
    def direction(self) -> Numbers:
        """The unit vector from the target to the eye."""
        c = cos(self.elevation)
        return np.array([c * cos(self.azimuth), c * sin(self.azimuth), sin(self.elevation)]) @ self.axes

    @property
    def view(self) -> Numbers:
        """The axes of the picture as rows: right, up, toward the eye."""
        back = self.direction
        right = np.cross(self.axes[2], back)
        right /= np.linalg.norm(right)
        return np.stack([right, np.cross(back, right), back])

    def project(self, points: Numbers) -> tuple[Numbers, Numbers]:
        """Return positions in the picture [..., 2], whose height is 2, and distances in front of the eye [...]."""
        seen = (points - self.target) @ self.view.T
        depth = np.maximum(self.distance - seen[..., 2], 1e-3 * self.distance)
        return seen[..., :2] / (depth[..., None] * np.tan(FIELD / 2.0)), depth


@dataclass(frozen=True)
class Sight:
    """A camera for a motion, the height of the floor along `up` [m], and whether the camera follows the bodies.

    A mechanism in a horizontal plane, which is seen from above, has no floor.
    """

    camera: Camera
    floor: float | None
    follows: bool

    def at(self, poses: Numbers) -> Camera:
        """Return the camera for bodies at poses [nb, 4, 4]."""
        return replace(self.camera, target=_middle(poses)) if self.follows else self.camera


def fit(scene: Scene, poses: Numbers) -> Sight:
    """Return a sight of a motion through poses [nt, nb, 4, 4].

    A planar mechanism is viewed face on, another motion in a vertical plane almost perpendicular to the plane. A motion
    over a long distance is followed.
    """
    some = poses[:: max(1, len(poses) // 24)]
    points = _points(scene, some)
    heights = points @ scene.up
    floor = float(heights.min())
    if floor > -2.0 * scene.size and float(heights.max()) < 3.0 * scene.size:
        floor = min(floor, 0.0)
    low, high = points.min(axis=(0, 1)), points.max(axis=(0, 1))
    follows = poses.shape[1] > 0 and float(np.linalg.norm(high - low)) > 4.0 * scene.size
    if follows:
        points = points - _middle(some)[:, None]
    target = np.zeros(3) if follows else (low + high) / 2.0
    axes = _axes(scene.up)
    flat = points.reshape(-1, 3)
    camera = Camera(target, 4.0 * scene.size, _azimuth(flat, axes), radians(18.0), axes)
    if scene.normal is not None:
        camera = _face_plane(camera, scene.normal)
    for _ in range(4):  # adapt the distance until the motion just fits
        places = np.abs(camera.project(flat)[0])
        share = max(float(places[:, 0].max()) / (0.85 * ASPECT), float(places[:, 1].max()) / 0.85, 0.05)
        camera = replace(camera, distance=max(camera.distance * share, 1.2 * scene.size))
    lies = scene.normal is not None and abs(float(scene.normal @ scene.up)) > 0.5
    level = None if lies else floor - 0.002 * scene.size
    return Sight(replace(camera, target=_middle(poses[0])) if follows else camera, level, follows)


def _points(scene: Scene, poses: Numbers) -> Numbers:
    """Return points [nt, n, 3] that enclose all solids."""
    fixed = [r for r in (*scene.rods, *scene.shells) if r.pin or r.a == r.b < 0]
    held = [p for r in fixed for k, p in ((r.a, r.point_a), (r.b, r.point_b)) if k < 0]
    feet = [np.zeros((1, 3))] if _stands_on_ground(scene) else []
    ground = np.concatenate([scene.bodies[-1].vertices, *([p] for p in held), *feet])
    out = [np.broadcast_to(ground, (len(poses), *ground.shape))]
    for i, mesh in enumerate(scene.bodies[:-1]):
        corners = np.concatenate([mesh.vertices, np.zeros((1, 3)), *[[p] for k, p in scene.tips if k == i]])
        out.append(np.einsum("tij,nj->tni", poses[:, i, :3, :3], corners) + poses[:, i, None, :3, 3])
    return np.concatenate(out, axis=1)


def _stands_on_ground(scene: Scene) -> bool:
    return len(scene.bodies) == 1 or any(rod.a < 0 for rod in scene.rods)


def _middle(poses: Numbers) -> Numbers:
    return poses[..., :3, 3].mean(axis=-2)


def _axes(up: Numbers) -> Numbers:
    """Return two horizontal directions and up, as rows."""
    first = np.array([1.0, 0.0, 0.0]) if abs(up[0]) < 0.9 else np.array([0.0, 1.0, 0.0])
    first = first - (first @ up) * up
    first /= np.linalg.norm(first)
    return np.stack([first, np.cross(up, first), up])


def _face_plane(camera: Camera, normal: Numbers) -> Camera:
    """Return the camera that looks at a plane face on, with the vertical or the second axis of the ground upwards."""
    up = camera.axes[2]
    if abs(float(normal @ up)) > 0.5:
        up = np.eye(3)[(int(np.argmax(np.abs(normal))) + 2) % 3]
        return Camera(camera.target, camera.distance, 0.0, 0.0, np.stack([normal, np.cross(up, normal), up]))
    if normal @ np.cross(up, [1.0, 0.0, 0.0]) > 0:  # the first axis of the ground to the right where it is in the plane
        normal = -normal
    azimuth = float(np.arctan2(normal @ camera.axes[1], normal @ camera.axes[0]))
    return Camera(camera.target, camera.distance, azimuth, 0.0, camera.axes)


def _azimuth(points: Numbers, axes: Numbers) -> float:
    flat = (points - points.mean(axis=0)) @ axes[:2].T
    spread, directions = np.linalg.eigh(flat.T @ flat)
    if not spread[0] < 0.1 * spread[1]:
        return radians(-60.0)
    normal = directions[:, 0] * (1.0 if directions[1, 0] < 0 else -1.0)  # of the vertical plane of motion
    return atan2(normal[1], normal[0]) + radians(24.0)


def floor_cell(size: float) -> float:
    """Return the edge of a square of the floor [m]: 1, 2 or 5 times a power of ten, about a fifth of the size."""
    power = 10.0 ** np.floor(np.log10(size / 5.0))
    return float(max(k for k in (1.0, 2.0, 5.0) if k * power <= size / 5.0 * (1 + 1e-9)) * power)


# --- The frames of an animation: poses at equidistant times, up to the last finite sample of the run ---

MOST = 20_000
"""The most frames of one animation, to bound its memory and the size of its file."""


def finite(run: Trajectory) -> Trajectory:
    """Return a single run up to its last finite sample."""
    good = np.isfinite(run.q).all(axis=-1) & np.isfinite(run.qd).all(axis=-1)
    count = len(run) if good.all() else int(np.argmin(good))
    if not count:
        raise InputError("the run has no sample with finite numbers to draw")
    return run if count == len(run) else run[:count]


def even_frames(run: Trajectory, fps: float, speed: float = 1.0) -> tuple[Numbers, Numbers]:
    """Return times [n] and poses [n, nb, 4, 4] of a single run, for frames per second and the speed of the replay."""
    if run.shape:
        raise InputError(f"the batch has shape {run.shape}; choose one of its runs with run(i) to draw it")
    if not (0 < fps <= 1000 and 0 < speed < np.inf):
        raise InputError(f"fps is {fps} and speed {speed}; expected up to 1000 frames per second, and a speed above 0")
    run = finite(run)
    span = float(run.t[-1] - run.t[0])
    frames = int(np.floor(span * fps / speed + 1e-9)) + 1
    if frames > MOST:
        raise InputError(f"{frames} frames are too many for one animation; lower fps, raise speed or draw a slice")
    times = np.minimum(run.t[0] + np.arange(frames) * (speed / fps), run.t[-1])
    return times, np.asarray(run.at(times)["poses"])

"""Animations of a run as files: GIF, or MP4 if ffmpeg is installed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .._support.atomic import replacing
from ..algebra.scalars import Numbers
from ..errors import InputError
from .camera import Camera, even_frames, fit, floor_cell
from .figures import _figure, _style, save_picture
from .links import Rod, at
from .meshes import Mesh, cylinder, join_meshes, solid, sphere
from .skeleton import Scene, scene

if TYPE_CHECKING:
    from matplotlib.animation import AbstractMovieWriter

    from ..results.trajectory import Trajectory

PAPER, LINES, SHADOW = "#ffffff", "#dfe3e8", "#d5d9df"
LIGHT = np.array([-0.35, 0.45, 0.82])
"""The direction to the light in the picture's axes (right, up, toward the eye): from the upper left."""
CELLS = 12
"""Squares of the floor from its center to an edge; more would crowd the picture."""


def animate(
    run: Trajectory,
    path: str | Path = "run.gif",
    *,
    fps: float = 25.0,
    speed: float = 1.0,
    size: tuple[int, int] = (640, 480),
) -> Path:
    """Write a run as an animation, .gif or .mp4, and return the file; a speed of 1 is real time.

    Bodies are drawn with their shapes or, if they have none, as rods between joints.
    """
    path = Path(path)
    times, poses = even_frames(run, fps, speed)
    writer = _writer(path, fps)
    stage = _Stage(scene(run), poses, size)
    with _style(), replacing(path) as written:
        with writer.saving(stage.figure, str(written), dpi=100):
            for t, now in zip(times, poses, strict=True):
                stage.show(now, f"{run.system.mechanism.name}   t = {t:.2f} s")
                writer.grab_frame(facecolor=PAPER)
    return path


def snapshot(run: Trajectory, path: str | Path, *, time: float, size: tuple[int, int] = (640, 480)) -> Path:
    """Write a single picture of a run at a time [s]; return the file."""
    stage = _Stage(scene(run), even_frames(run, 10.0)[1], size)
    with _style():
        stage.show(np.asarray(run.at(time)["poses"])[0], f"{run.system.mechanism.name}   t = {time:.2f} s")
        return save_picture(stage.figure, path, dpi=100, facecolor=PAPER)


SAMPLES, AROUND = 12, 1.4
"""Random positions that a camera is fitted to, and the factor of its distance to a mechanism with loops, whose further
positions are unknown."""


class Pictures:
    """Pictures of one mechanism at positions as arrays of pixels, by a camera that is fitted to where it can be.

    The camera follows a mechanism that floats.
    """

    def __init__(self, run: Trajectory, size: tuple[int, int] = (640, 480)) -> None:
        """Fit a camera to a run, which may be a single sample, and to random positions of a tree on the ground."""
        system, floats = run.system, run.system.mechanism.joints[0].kind in ("free", "planar")
        q = run.q
        if not floats and not system.closures:
            rng = np.random.default_rng(0)
            q = np.concatenate([q, [system.random_state(rng)[0] for _ in range(SAMPLES)]])
        self.system, self.parameters = system, run.constant_parameters
        self._stage = _Stage(scene(run[:1]), system.poses(q, parameters=self.parameters), size)
        if floats or system.closures:
            sight = self._stage.sight
            farther = replace(sight.camera, distance=AROUND * sight.camera.distance)
            self._stage.sight = replace(sight, camera=farther, follows=floats)

    def pixels(self, q: Numbers, text: str) -> np.ndarray:
        """Return the picture at coordinates q [nq], [height, width, 3] in uint8."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        with _style():
            self._stage.show(self.system.poses(q, parameters=self.parameters), text)
            canvas = FigureCanvasAgg(self._stage.figure)
            self._stage.figure.set_facecolor(PAPER)
            canvas.draw()
            return np.array(canvas.buffer_rgba())[..., :3]


def _writer(path: Path, fps: float) -> AbstractMovieWriter:
    from matplotlib.animation import FFMpegWriter, PillowWriter

    ending = path.suffix.lower()
    if ending == ".gif":
        return PillowWriter(fps=fps)  # type: ignore[arg-type]
    if ending != ".mp4":
        raise InputError(f"{path}: animations end with .gif or .mp4, not {ending or 'nothing'!r}")
    if not FFMpegWriter.isAvailable():
        raise InputError(f"{path}: MP4 needs the program ffmpeg, which is not installed; install it, or write a .gif")
    return FFMpegWriter(fps=fps, bitrate=4000)  # type: ignore[arg-type]


class _Stage:
    """A figure that shows one frame after another: floor, shadows, solids from back to front."""

    def __init__(self, drawn: Scene, poses: Numbers, size: tuple[int, int]) -> None:
        from matplotlib.collections import LineCollection, PolyCollection

        self.scene = drawn
        self.sight = fit(drawn, poses)
        self.rod, self.pin = cylinder(1.0, 1.0, sides=12), sphere(1.0, sides=12)
        with _style():
            self.figure = _figure((size[0] / 100.0, size[1] / 100.0))
            self.figure.set_layout_engine("none")
            axes = self.figure.add_axes((0.0, 0.0, 1.0, 1.0))
            axes.set_axis_off()
            axes.set_ylim(-1.0, 1.0)
            axes.set_xlim(-size[0] / size[1], size[0] / size[1])
            grid = LineCollection([], colors=LINES, linewidths=0.7, zorder=1)
            shadows = PolyCollection([], facecolors=SHADOW, edgecolors=SHADOW, linewidths=0.4, zorder=2)
            solids = PolyCollection([], linewidths=0.35, edgecolors="face", zorder=3)
            for collection in (grid, shadows, solids):
                axes.add_collection(collection)
            self.grid, self.shadows, self.solids = grid, shadows, solids
            self.text = axes.text(0.02, 0.97, "", transform=axes.transAxes, va="top", fontsize=11, parse_math=False)

    def show(self, poses: Numbers, text: str) -> None:
        """Draw the bodies at poses [nb, 4, 4]."""
        camera = self.sight.at(poses)
        if self.sight.floor is not None:
            floor = floor_lines(camera, self.sight.floor, self.scene.size)
            self.grid.set_segments(list(camera.project(floor)[0]))
        corners, colors = self._faces(poses)
        if len(corners):
            self._draw(camera, corners, colors)
        self.text.set_text(text)

    def _draw(self, camera: Camera, corners: Numbers, colors: Numbers) -> None:
        up = self.scene.up
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
        if self.sight.floor is not None:
            flat = corners - ((corners @ up) - self.sight.floor)[..., None] * up
            places, _ = camera.project(flat[normals @ up > 0])
            self.shadows.set_verts(list(places))
        eye = camera.target + camera.distance * camera.direction
        seen = np.einsum("ni,ni->n", normals, eye - corners.mean(axis=1)) > 0
        corners, colors, normals = corners[seen], colors[seen], normals[seen]
        places, depth = camera.project(corners)
        order = np.argsort(-depth.mean(axis=1))
        bright = 0.42 + 0.58 * np.clip(normals @ camera.view.T @ (LIGHT / np.linalg.norm(LIGHT)), 0.0, 1.0)
        shaded = np.clip(colors * bright[:, None] + 0.10 * bright[:, None] ** 6, 0.0, 1.0)
        self.solids.set_verts(list(places[order]))
        self.solids.set_facecolor(shaded[order])

    def _faces(self, poses: Numbers) -> tuple[Numbers, Numbers]:
        """Return the triangles [n, 3, 3] of all solids, and their colors [n, 3]."""
        placed = [mesh.placed(pose[:3, :3], pose[:3, 3]) for mesh, pose in zip(self.scene.bodies, poses, strict=False)]
        placed += [
            self.scene.bodies[-1],
            *(self._rod_mesh(rod, poses) for rod in (*self.scene.rods, *self.scene.shells)),
        ]
        corners = np.concatenate([m.vertices[m.faces] for m in placed])
        return corners, np.concatenate([m.colors[m.faces[:, 0]] for m in placed])

    def _rod_mesh(self, rod: Rod, poses: Numbers) -> Mesh:
        start, end = at(poses, rod.a, rod.point_a), at(poses, rod.b, rod.point_b)
        along = end - start
        length = float(np.linalg.norm(along))
        z = along / length if length > 0 else np.array([0.0, 0.0, 1.0])
        x = np.cross(z, np.eye(3)[int(np.argmin(np.abs(z)))])
        x /= np.linalg.norm(x)
        frame = np.stack([x, np.cross(z, x), z], axis=1) * [rod.radius, rod.radius, length]
        mesh = self.rod if rod.solid == "rod" else solid(rod.solid)
        pins = [self.pin.placed(rod.pin * np.eye(3), place) for place in (start, end) if rod.pin]
        return join_meshes([mesh.placed(frame, (start + end) / 2.0), *pins]).painted(rod.color)


def floor_lines(camera: Camera, floor: float, size: float) -> Numbers:
    """Return the lines of a floor under the camera's target as points [n, 2, 3]."""
    cell = floor_cell(size)
    across = np.arange(-CELLS, CELLS + 1) * cell
    middle = np.round(camera.axes[:2] @ camera.target / cell) * cell
    edge = np.full_like(across, CELLS * cell)
    one = np.stack([np.stack([across, -edge], axis=1), np.stack([across, edge], axis=1)], axis=1) + middle
    other = np.stack([np.stack([-edge, across], axis=1), np.stack([edge, across], axis=1)], axis=1) + middle
    return np.concatenate([one, other]) @ camera.axes[:2] + floor * camera.axes[2]

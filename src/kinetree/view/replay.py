"""A web page that replays a run in 3D: a single file without server, network or external scripts."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..algebra.arrays import Numbers
from ..results.files.atomic import replacing
from .animation import floor_cell
from .arrows import Arrow, arrows_of, at_times, lengths
from .camera import FIELD, fit
from .meshes import cone, cylinder, joined
from .motion_frames import even_frames, finite
from .skeleton import scene

if TYPE_CHECKING:
    from ..results.trajectory import Trajectory


SCRIPTS = ("vectors.js", "webgl.js", "painter.js", "stage.js", "player.js")
"""The scripts of the page, each after those that it uses."""
STYLES = ("stage.css", "style.css")
"""The styles of the page: those of stage and player, and of the page around them."""


def replay(
    run: Trajectory,
    path: str | Path = "run.html",
    *,
    fps: float = 60.0,
    title: str | None = None,
    arrows: bool | str | Sequence[str] | None = None,
    share: Any = None,
) -> Path:
    """Write a page that replays a single run in any browser, and return the file.

    Drag to rotate the view, drag with the shift key to move it, and use the wheel to zoom. `run.html#t=1.5` opens the
    page at that time. `arrows` draws forces and torques: "reactions" at joints and loops, those of "drives", other
    forces on the bodies ("wrenches"), a list of these, or True for all. `share` are compliances as for `arm.loads`.
    """
    path = Path(path)
    data = replay_data(run, fps, arrows, share)
    page = _page(data, title or f"{run.system.mechanism.name}: {run.method}, {run.status}")
    with replacing(path) as written:
        written.write_text(page, encoding="utf-8")
    return path


def replay_data(
    run: Trajectory, fps: float = 60.0, arrows: bool | str | Sequence[str] | None = None, share: Any = None
) -> dict[str, Any]:
    """Return the data of the page as a table for JSON: names, sizes, and arrays in base64."""
    times, poses = even_frames(run, fps)
    drawn = scene(run)
    forces = arrows_of(finite(run), arrows, share)
    sight = fit(drawn, poses)
    solids = [*drawn.bodies, cylinder(1.0, 1.0, sides=20), *([cone(1.0, 1.0, sides=20)] if forces else [])]
    whole = joined(solids)
    counts = [3 * len(mesh.faces) for mesh in solids]
    starts = np.cumsum([0, *counts])
    camera = sight.camera
    return {
        "name": run.system.mechanism.name,
        "bodies": [body.name for body in run.system.bodies],
        "start": float(times[0]),
        "step": float(times[1] - times[0]) if len(times) > 1 else 0.0,
        "frames": len(times),
        "poses": _base64(_positions_and_quaternions(poses), "<f4"),
        "vertices": _base64(np.concatenate([whole.vertices, whole.normals, whole.colors], axis=1), "<f4"),
        "faces": _base64(whole.faces, "<u4"),
        "ranges": [[int(start), count] for start, count in zip(starts, counts, strict=False)],
        "rods": [
            {"a": r.a, "pa": _plain(r.point_a), "b": r.b, "pb": _plain(r.point_b), "radius": r.radius, "color": r.color}
            for r in drawn.rods
        ],
        **({"arrows": _arrows(forces, finite(run).t, times, drawn.size)} if forces else {}),
        "tips": [[body, _plain(point)] for body, point in drawn.tips],
        "size": drawn.size,
        "cell": floor_cell(drawn.size),
        "floor": sight.floor,
        "follows": sight.follows,
        "camera": {
            "target": _plain(camera.target),
            "distance": camera.distance,
            "azimuth": camera.azimuth,
            "elevation": camera.elevation,
            "axes": [_plain(row) for row in camera.axes],
            "field": FIELD,
        },
    }


def _arrows(forces: list[Arrow], t: Numbers, times: Numbers, size: float) -> list[dict[str, Any]]:
    """Return the arrows of the page: names, units, lengths, and rows of origin and vector for every frame."""
    per_unit = lengths(forces, size)
    return [
        {
            "name": arrow.name,
            "group": arrow.group,
            "unit": arrow.unit,
            "length": per_unit[arrow.unit],
            "rows": _base64(np.concatenate(at_times(arrow, t, times), axis=1), "<f4"),
        }
        for arrow in forces
    ]


def _page(data: dict[str, Any], title: str) -> str:
    folder = files("kinetree.view") / "replay_page"
    return filled(folder / "page.html", texts(folder, SCRIPTS), texts(folder, STYLES), data, TITLE=html.escape(title))


def texts(folder: Any, names: Sequence[str]) -> str:
    """Return files of a page, one after the other."""
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)


def filled(template: Any, script: str, style: str, data: dict[str, Any], **more: str) -> str:
    """Return a page with its script, style and data, the stage of a replay, and other parts, which are HTML already.

    Its policy lets the browser run this script and this style alone.
    """
    # "<" is written as a JSON escape, so that no text of a model can close the element.
    payload = json.dumps(data, allow_nan=False).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    parts = {
        "POLICY": f"default-src 'none'; script-src '{_fingerprint(script)}'; style-src '{_fingerprint(style)}'",
        "STYLE": style,
        "SCRIPT": script,
        "DATA": payload,
        "STAGE": texts(files("kinetree.view") / "replay_page", ["stage.html"]),
        **more,
    }
    pieces = template.read_text(encoding="utf-8").split("@@")  # text, key, text, key, ..., text
    return "".join(parts[piece] if k % 2 else piece for k, piece in enumerate(pieces))  # inserted text has no keys


def _fingerprint(text: str) -> str:
    """Return the hash of a text for the page's Content-Security-Policy, by which a browser runs no other text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _base64(values: NDArray, dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype=dtype).tobytes()).decode()


def _plain(values: Any) -> list[float]:
    return [float(x) for x in values]


def _positions_and_quaternions(poses: Numbers) -> Numbers:
    """Return poses [nt, nb, 4, 4] as [nt, nb, 7]: position and quaternion, of the sign nearest to the frame before."""
    from scipy.spatial.transform import Rotation

    if poses.shape[1] == 0:
        return np.zeros((*poses.shape[:2], 7))
    turns = Rotation.from_matrix(poses[..., :3, :3].reshape(-1, 3, 3)).as_quat().reshape(*poses.shape[:2], 4)
    steps = np.where((turns[1:] * turns[:-1]).sum(axis=-1) < 0, -1.0, 1.0)
    sides = np.cumprod(np.concatenate([np.ones((1, poses.shape[1])), steps]), axis=0)
    return np.concatenate([poses[..., :3, 3], turns * sides[..., None]], axis=-1)

"""Triangle meshes from files (STL, OBJ, DAE and others), simplified to a number of triangles; requires trimesh."""

from __future__ import annotations

import io
from functools import lru_cache
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from .._support.optional import optional
from ..errors import Advice, InputError
from ..model.parts import Shape
from ..plots.meshes import Mesh

TRIANGLES = 1500
"""The most triangles of one mesh in a page: a link is still recognized, and a page of a robot stays below 1 MB."""
KINDS = {".stl": 64_000_000, ".obj": 24_000_000, ".dae": 24_000_000, ".ply": 64_000_000, ".off": 24_000_000}
"""The largest files [bytes] by suffix: text takes trimesh half a second per megabyte. Archives are not read."""
FARTHEST = 1e12
"""The largest coordinate of a mesh [its unit]: squares of larger ones lose small triangles, or overflow."""


SPAN = 8192
"""Above the number of cells along an edge, for places of cells as one number."""
FINEST, COARSEST = 4096, 4
"""The numbers of cells along the longest edge of a mesh: with the finest, only equal points are joined."""


def read_shape(shape: Shape, color: Any) -> Mesh:
    """Return the mesh of a shape in the frame of its body, in its own color or the given one."""
    mesh = read_mesh(shape.file)
    size = np.broadcast_to(np.asarray(shape.size or (1.0,), dtype=float), (3,))
    sides = 1.0 if np.prod(size) > 0 else -1.0  # a mirrored mesh has its outside turned
    faces = mesh.faces if sides > 0 else mesh.faces[:, ::-1]
    normals = mesh.normals / np.where(size == 0, 1.0, size)
    normals = normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    stretched = Mesh(mesh.vertices * size, normals, faces, mesh.colors)
    return stretched.placed(shape.placement.rotation, shape.placement.translation).painted(shape.color or color)


@lru_cache(maxsize=256)
def read_mesh(path: str | Path) -> Mesh:
    """Return the mesh of a file, simplified."""
    file = Path(path)
    if not file.is_file():
        why = f"no file {str(path)!r} for a mesh; give"
        raise InputError(Advice(
            f"{why} roots= to load(), the folders in which its packages are, or leave meshes out",
            f"{why} --root, the folder in which its packages are, or leave --meshes out",
        ))  # fmt: skip
    trimesh = optional("trimesh", "Meshes", "meshes")
    kind = file.suffix.lower()
    if kind not in KINDS:
        raise InputError(f"the mesh {str(path)!r} has the suffix {kind!r}; meshes are read from {', '.join(KINDS)}")
    size, most = file.stat().st_size, KINDS[kind]
    if size > most:
        binary = "" if kind == ".stl" else ", or save it as binary .stl"
        raise InputError(f"the mesh {str(path)!r} has {size:,} bytes; at most {most:,} are read: simplify it{binary}")
    content = file.read_bytes()
    if kind == ".dae":
        _refuse_entities(content, path)
    try:
        # Bytes have no folder: materials and textures, which may be named by any path, are not opened.
        with np.errstate(all="ignore"):  # numbers that are not finite, or too large, are refused below
            whole = trimesh.load_scene(io.BytesIO(content), file_type=kind[1:]).to_mesh()
        vertices, faces = np.array(whole.vertices, dtype=float), np.array(whole.faces, dtype=np.int64)
    except Exception as error:
        raise InputError(f"the mesh {str(path)!r} cannot be read: {error}") from None
    if not len(faces) or not np.isfinite(vertices).all():
        raise InputError(f"the mesh {str(path)!r} has no triangles, or points that are not finite; export it again")
    if np.abs(vertices).max() > FARTHEST:
        raise InputError(
            f"the mesh {str(path)!r} has the coordinate {np.abs(vertices).max():.3g}; give {FARTHEST:g} at most"
        )
    return simplify_mesh(vertices, faces, TRIANGLES)


def _refuse_entities(content: bytes, path: str | Path) -> None:
    """Refuse XML with a document type, in which entities may grow without bound or name other files."""
    parser = expat.ParserCreate()

    def refuse(*declaration: object) -> None:
        raise InputError(f"the mesh {str(path)!r} has a document type; remove it")

    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise InputError(f"the mesh {str(path)!r} cannot be read: {error}") from None


def simplify_mesh(vertices: np.ndarray, faces: np.ndarray, most: int) -> Mesh:
    """Return a mesh with at most so many triangles: points in one cell of a grid, on sides that face alike, become one.

    Sides that face differently keep points of their own, so that edges stay sharp.
    """
    low = vertices.min(axis=0)
    size = float(np.ptp(vertices, axis=0).max()) or 1.0
    cells = FINEST
    while True:
        mesh = _clustered(vertices, faces, low, size / cells)
        if len(mesh.faces) <= most or cells <= COARSEST:
            return mesh
        # the number of triangles on a surface grows with the square of that of cells along an edge
        cells = max(COARSEST, int(min(0.9, (most / len(mesh.faces)) ** 0.5) * min(cells, 256)))


def _clustered(vertices: np.ndarray, faces: np.ndarray, low: np.ndarray, cell: float) -> Mesh:
    corners = vertices[faces]
    area = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    longest = np.abs(area).argmax(axis=1)
    side = 2 * longest + (np.take_along_axis(area, longest[:, None], axis=1)[:, 0] > 0)
    place = np.round((corners - low) / cell).astype(np.int64).reshape(-1, 3) @ np.array([1, SPAN, SPAN * SPAN])
    _, first, index = np.unique(8 * place + np.repeat(side, 3), return_index=True, return_inverse=True)
    count, index = len(first), index.reshape(-1)
    _, own = np.unique(place, return_inverse=True)  # points of a cell lie at one place, so that there are no cracks
    own = own.reshape(-1)
    sums = np.stack([np.bincount(own, weights=corners.reshape(-1, 3)[:, k]) for k in range(3)], axis=-1)
    points = (sums / np.bincount(own)[:, None])[own[first]]
    normals = np.zeros((count, 3))
    np.add.at(normals, index, np.repeat(area, 3, axis=0))
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    where = place.reshape(-1, 3)  # triangles with two corners in one cell vanish
    kept = (where[:, 0] != where[:, 1]) & (where[:, 1] != where[:, 2]) & (where[:, 0] != where[:, 2])
    made = np.unique(index.reshape(-1, 3)[kept], axis=0) if kept.any() else np.zeros((0, 3), dtype=int)
    used, again = np.unique(made, return_inverse=True)
    return Mesh(points[used], normals[used], again.reshape(-1, 3), np.zeros((len(used), 3)))

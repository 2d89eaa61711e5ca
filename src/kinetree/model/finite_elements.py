"""Flexible bodies from matrices of finite elements: mass and stiffness of nodes, reduced to a few modes."""

from __future__ import annotations

import tomllib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..algebra.nodes import Node
from ..errors import ModelError, quote
from .modal_bodies import ModalBody, Points

MOST_NODES = 2000
"""Largest number of nodes of a mesh: its matrices are dense, with nine million numbers per thousand nodes."""
MOST_BYTES = {".npz": 9 * 2 * 4 * 2 * MOST_NODES**2, ".toml": 2**22, ".csv": 2**22, ".mtx": 2**29}
"""The largest files by suffix [bytes]; of .npz, once unpacked."""
PREFIX = "node_"
"""The beginning of the names of arrays with the nodes of the mesh that a node of the body averages."""
RIGID = 1e-6
"""Largest force of a rigid motion, relative to the largest stiffness times the motion [1]: files have some digits."""
SMALL = 0.1
"""The largest valid deflection by one mode, relative to the size of the mesh."""
DEPENDENT = 1e-9
"""Shapes of which no larger part than this is new are left out [1]."""
PARALLEL = 1e-9
"""Smallest spread of points about their best line, relative to their spread, for which they have a rotation [1]."""


@dataclass(frozen=True)
class Mesh:
    """The arrays of a file: places [n, 3], mass and stiffness [3 n, 3 n], clamped nodes, groups of nodes by name."""

    x: np.ndarray
    mass: np.ndarray
    stiffness: np.ndarray
    clamped: np.ndarray
    groups: Mapping[str, np.ndarray]


def read_mesh(path: str | Path) -> Mesh:
    """Read and check the arrays of a .npz file, or of a .toml file that names the files of its matrices."""
    where = str(path)
    arrays = _described(Path(path)) if Path(path).suffix.lower() == ".toml" else _packed(path)
    for name in ("places", "mass", "stiffness", "clamped"):
        if name not in arrays:
            raise _fault(
                where, f"there is no array {name!r}", f"save it beside {', '.join(sorted(arrays)) or 'nothing'}"
            )
    x = _real(arrays["places"], "places", where)
    n = len(x) if x.ndim else 0
    if x.shape != (n, 3) or not 3 <= n <= MOST_NODES:
        raise _fault(where, f"places has shape {x.shape}", f"give [n, 3] for 3 to {MOST_NODES} nodes")
    mass, stiffness = (_matrix(arrays[name], name, n, where) for name in ("mass", "stiffness"))
    groups = {k[len(PREFIX) :]: _nodes(v, k, n, where) for k, v in arrays.items() if k.startswith(PREFIX)}
    mesh = Mesh(x, mass, stiffness, _nodes(arrays["clamped"], "clamped", n, where), groups)
    _check(mesh, where)
    return mesh


def _unreadable(path: str | Path, error: Exception, remedy: str) -> ModelError:
    return ModelError(f"the file cannot be read ({str(error)[:120]})", remedy=remedy, file=path)


def _packed(path: str | Path) -> dict[str, np.ndarray]:
    """Return the arrays of a .npz file, which may not unpack to more than the largest mesh has."""
    try:
        with zipfile.ZipFile(path) as packed:
            size = sum(part.file_size for part in packed.infolist())
        if size > MOST_BYTES[".npz"]:
            raise _fault(
                str(path), f"its arrays have {size:,} bytes", f"give at most {MOST_NODES} nodes, as dense matrices"
            )
        with np.load(path, allow_pickle=False) as data:
            return {name: data[name] for name in data.files}
    except (OSError, ValueError, EOFError, MemoryError, zipfile.BadZipFile) as error:
        raise _unreadable(path, error, "give a .npz file of numpy.savez, or a .toml file (docs/flexible.md)") from None


def _described(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a .toml file: matrices in Matrix Market files, nodes in a CSV file, numbers of nodes."""
    where = str(path)
    try:
        table = tomllib.loads(_bounded(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise _unreadable(path, error, "give a .toml file as in docs/flexible.md") from None
    known = ("nodes", "mass", "stiffness", "clamped", "groups")
    for key in table:
        if key not in known:
            raise _fault(where, f"there is a key {quote(key)}", f"give {', '.join(known)}")
    for key in known[:4]:
        if key not in table:
            raise _fault(where, f"there is no key {key!r}", f"give {', '.join(known)}")
    groups = table.get("groups", {})
    if not isinstance(groups, dict):
        raise _fault(where, "groups is no table", 'give lists of nodes by name below a line "[groups]"')
    out = {f"{PREFIX}{name}": _numbers_of_nodes(x, name, where) for name, x in groups.items()}
    out["places"] = _places(contained(table["nodes"], path.parent, "nodes", (".csv",)))
    out["clamped"] = _numbers_of_nodes(table["clamped"], "clamped", where)
    for key in ("mass", "stiffness"):
        out[key] = _market(contained(table[key], path.parent, key, (".mtx",)), 3 * len(out["places"]))
    return out


def contained(name: object, folder: Path, where: str, suffixes: tuple[str, ...]) -> Path:
    """Return the path of a file in a folder or below it, to which links and `..` must not lead from outside."""
    if not isinstance(name, str) or not 0 < len(name) <= 4096 or Path(name).suffix.lower() not in suffixes:
        given = quote(name, 80) if isinstance(name, str) else repr(name)[:80]
        raise ModelError(f"{given} is no {' or '.join(suffixes)} file", where=where, remedy="give the name of one")
    try:
        real, inside = (folder / name).resolve(), folder.resolve()
        if Path(name).is_absolute() or not real.is_relative_to(inside):
            raise ModelError(
                f"{quote(name, 80)} is not in the folder of the file that names it",
                where=where,
                remedy="put it there, or in a folder below",
            )
        if real.is_file():
            return real
    except (OSError, ValueError, RuntimeError):  # impossible names, circular links
        pass
    raise ModelError(f"there is no file {quote(name, 80)}", where=where, remedy=f"put it into {str(folder)!r}")


def _bounded(path: Path) -> Path:
    """Return a path after a look at the size of its file."""
    size, most = path.stat().st_size, MOST_BYTES[path.suffix.lower()]
    if size > most:
        raise _fault(str(path), f"the file has {size:,} bytes", f"{most:,} are the most: give a coarser mesh")
    return path


def _numbers_of_nodes(x: object, name: str, where: str) -> np.ndarray:
    if not isinstance(x, list) or not all(type(k) is int and 0 <= k < MOST_NODES for k in x):
        raise _fault(where, f"{name} is no list of nodes", "give their numbers: the first row of places is node 0")
    return np.array(x, dtype=int)


def _places(path: Path) -> np.ndarray:
    """Return the places of a CSV file with the headings x, y, z."""
    try:
        lines = _bounded(path).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error, "give a CSV file in UTF-8") from None
    if not lines or [cell.strip() for cell in lines[0].split(",")] != ["x", "y", "z"]:
        raise _fault(str(path), "the first line is not x,y,z", "give these headings, and a line for each node")
    rows = []
    for at, line in enumerate(lines[1:], start=2):
        try:
            x, y, z = map(float, line.split(","))
        except ValueError:
            raise ModelError(
                f"{quote(line, 80)} is no place",
                remedy="give three numbers with commas between them",
                file=path,
                line=at,
            ) from None
        rows.append((x, y, z))
    return np.array(rows).reshape(-1, 3)


def _market(path: Path, size: int) -> np.ndarray:
    """Return the matrix of a Matrix Market file; a symmetric one may be a triangle that its header calls so.

    SciPy's reader ends the process on some damaged files.
    """
    try:
        with _bounded(path).open(encoding="utf-8") as file:
            head = file.readline().lower().split()
            if head[:2] != ["%%matrixmarket", "matrix"] or len(head) != 5:
                raise ValueError("the first line is no header")
            layout, field, symmetry = head[2:]
            sizes = [int(x) for x in next((x for x in file if x.strip() and not x.startswith("%")), "").split()]
            if layout not in ("coordinate", "array") or len(sizes) != (3 if layout == "coordinate" else 2):
                raise ValueError("there is no line of sizes")
            if symmetry not in ("general", "symmetric"):
                raise ValueError(f"the matrix is {symmetry}")
            half = size * (size + 1) // 2 if symmetry == "symmetric" else size * size
            count = sizes[2] if layout == "coordinate" else half
            if sizes[:2] != [size, size] or not 0 <= count <= size * size:
                entries = sizes[2] if layout == "coordinate" else sizes[0] * sizes[1]
                raise _fault(
                    str(path),
                    f"the matrix is [{sizes[0]}, {sizes[1]}] with {entries} entries",
                    f"give [{size}, {size}]: x, y and z of each node in turn",
                )
            if field not in ("real", "double", "integer", "unsigned-integer"):
                raise _fault(str(path), f"its entries are {field}", "save real numbers")
            rows = np.loadtxt((x for x in file if x.strip()), comments="%", ndmin=2) if count else np.zeros((0, 3))
        return _entered(rows, count, size, layout, symmetry)
    except (OSError, ValueError, OverflowError, MemoryError) as error:
        raise _unreadable(path, error, "give a Matrix Market file, as of scipy.io.mmwrite") from None


def _entered(rows: np.ndarray, count: int, size: int, layout: str, symmetry: str) -> np.ndarray:
    """Return a matrix of the rows of a Matrix Market file: places and entries, or entries column by column."""
    if rows.shape != (count, 3 if layout == "coordinate" else 1):
        raise ValueError(f"{count} entries belong there, not {rows.shape[0]} lines of {rows.shape[1]} numbers")
    out = np.zeros((size, size))
    if layout == "coordinate":
        places = rows[:, :2] - 1
        if not np.all((places >= 0) & (places < size) & (places == np.floor(places))):
            raise ValueError("an entry has no place in the matrix")
        np.add.at(out, tuple(places.astype(int).T), rows[:, 2])
    elif symmetry == "symmetric":
        out.T[np.triu_indices(size)] = rows[:, 0]  # the lower triangle, column by column
    else:
        out = rows[:, 0].reshape(size, size).T
    return out + np.tril(out, -1).T if symmetry == "symmetric" else out


def _fault(where: str, what: str, remedy: str) -> ModelError:
    return ModelError(what, where=where, remedy=remedy)


def _real(a: np.ndarray, name: str, where: str) -> np.ndarray:
    if not np.issubdtype(a.dtype, np.number) or np.iscomplexobj(a) or not np.isfinite(a).all():
        raise _fault(where, f"{name} has entries that are no finite numbers", "save real numbers")
    return np.asarray(a, dtype=float)


def _matrix(a: np.ndarray, name: str, n: int, where: str) -> np.ndarray:
    m = _real(a, name, where)
    if m.shape != (3 * n, 3 * n):
        raise _fault(where, f"{name} has shape {m.shape}", f"give [{3 * n}, {3 * n}]: x, y and z of each node in turn")
    if np.abs(m - m.T).max() > 1e-8 * np.abs(m).max():
        raise _fault(where, f"{name} is not symmetric", "save the whole matrix, not a triangle of it")
    return (m + m.T) / 2


def _nodes(a: np.ndarray, name: str, n: int, where: str) -> np.ndarray:
    if not np.issubdtype(a.dtype, np.integer) or a.ndim != 1 or not np.all((a >= 0) & (a < n)):
        raise _fault(where, f"{name} has entries that are no nodes", f"give whole numbers from 0 to {n - 1}")
    return np.unique(a)


def _check(mesh: Mesh, where: str) -> None:
    """Refuse meshes that resist rigid motions, and groups of nodes that have no rotation."""
    turns = np.stack([np.cross(axis, mesh.x - mesh.x.mean(axis=0)) for axis in np.eye(3)])
    moves = np.concatenate([np.broadcast_to(np.eye(3)[:, None], turns.shape), turns]).reshape(6, -1)
    size = np.abs(mesh.stiffness).max()
    worst = max(np.abs(mesh.stiffness @ r).max() / (size * np.abs(r).max()) for r in moves)
    if not size > 0 or worst > RIGID:
        raise _fault(
            where,
            f"the stiffness resists rigid motions by {worst:.2g} of its largest entry",
            "save that of the free body, without supports, for the same places",
        )
    masses = lumped(mesh.mass)
    if not np.all(masses > 0):
        raise _fault(where, f"node {int(masses.argmin())} has the mass {masses.min():.3g} kg", "give every node a mass")
    for name, group in (("clamped", mesh.clamped), *((PREFIX + k, v) for k, v in mesh.groups.items())):
        spread = np.linalg.svd(mesh.x[group] - mesh.x[group].mean(axis=0), compute_uv=False) if len(group) else [0.0]
        if len(group) < 3 or spread[1] <= PARALLEL * spread[0]:
            raise _fault(where, f"{name} has {len(group)} nodes on one line", "give three or more that are not")
    for name in mesh.groups:
        if not name.isidentifier() or name in ("elastic", "modes", "stiffness"):
            raise _fault(where, f"a node has the name {name!r}", "use letters, digits and _")


def lumped(mass: np.ndarray) -> np.ndarray:
    """Return the mass of each node [n]: the sums of its rows, of which the three directions have the mean."""
    n = len(mass) // 3
    blocks = mass.reshape(n, 3, n, 3)
    return np.einsum("iaja->i", blocks) / 3


def reduced(mesh: Mesh, modes: int, damping: float) -> ModalBody:
    """Return the body with `modes` shapes of a mesh that is clamped in its frame.

    The shapes are spanned by the static ones under forces and moments at each node (six of each, so that loads at nodes
    deflect the body as in the mesh) and by its lowest vibrations. Of these, orthogonal combinations are kept.
    """
    from scipy.linalg import cho_factor, cho_solve, eigh

    masses, n = lumped(mesh.mass), len(mesh.x)
    free = np.setdiff1d(np.arange(n), mesh.clamped)
    dofs = (3 * free[:, None] + np.arange(3)).ravel()
    K, m = mesh.stiffness[np.ix_(dofs, dofs)], np.repeat(masses[free], 3)
    try:
        factor = cho_factor(K)
    except np.linalg.LinAlgError:
        raise ModelError(
            "the clamped mesh has motions without stiffness",
            where="stiffness",
            remedy="connect all nodes, or clamp more",
        ) from None
    loads = np.concatenate([_loads(mesh, group) for group in mesh.groups.values()] or [np.zeros((0, 3 * n))])[:, dofs]
    count = len(loads)
    if not count <= modes <= len(dofs):
        raise ModelError(
            f"{modes} modes",
            where="modes",
            remedy=f"give {max(count, 1)} to {len(dofs)}: six for each node, and vibrations",
        )
    scale = np.sqrt(m)
    _, vibrations = eigh(K / np.outer(scale, scale), subset_by_index=[0, modes - 1])
    shapes = np.concatenate([cho_solve(factor, loads.T) * scale[:, None], vibrations], axis=1)
    basis = _independent(shapes, modes) / scale[:, None]
    squares, turned = np.linalg.eigh(basis.T @ K @ basis)
    Phi = np.zeros((n, modes, 3))
    Phi[free] = (basis @ turned).reshape(len(free), 3, modes).transpose(0, 2, 1)
    sizes = np.abs(Phi).max(axis=(0, 2))
    Phi = Phi / sizes[:, None]
    points = Points(masses, mesh.x, Phi, np.zeros((n, modes, modes, 3)))
    stiffness = squares / sizes**2
    losses = 2 * damping * np.sqrt(squares) / sizes**2
    names = tuple(f"m{k + 1}" for k in range(modes))
    nodes = tuple(_node(mesh, name, group, Phi) for name, group in mesh.groups.items())
    size = float(np.linalg.norm(np.ptp(mesh.x, axis=0)))
    valid = (SMALL * size,) * modes
    return ModalBody(names, points.moments(), tuple(map(float, stiffness)), tuple(map(float, losses)), nodes, valid)


def _independent(shapes: np.ndarray, count: int) -> np.ndarray:
    """Return `count` orthonormal shapes that span the first of the given ones, without those that depend on others."""
    out: list[np.ndarray] = []
    for shape in shapes.T:
        new = shape / np.linalg.norm(shape)
        for _ in range(2):
            for known in out:
                new = new - known * (known @ new)
        if len(out) < count and np.linalg.norm(new) > DEPENDENT:
            out.append(new / np.linalg.norm(new))
    return np.array(out).T


def _fit(mesh: Mesh, group: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean place of a group, the places about it, and the inverse of sum |r|^2 - r r^T."""
    center = mesh.x[group].mean(axis=0)
    r = mesh.x[group] - center
    return center, r, np.linalg.inv(np.sum(r * r) * np.eye(3) - r.T @ r)


def _loads(mesh: Mesh, group: np.ndarray) -> np.ndarray:
    """Return the forces [6, 3 n] on nodes of the mesh of unit forces and moments on a group."""
    _, r, inverse = _fit(mesh, group)
    out = np.zeros((6, len(mesh.x), 3))
    for k in range(3):
        out[k, group, k] = 1.0 / len(group)
        out[3 + k, group] = np.cross(inverse[k], r)
    return out.reshape(6, -1)


def _node(mesh: Mesh, name: str, group: np.ndarray, Phi: np.ndarray) -> Node:
    """Return the node that moves as a group of nodes of the mesh in the mean, and rotates as fits them best."""
    center, r, inverse = _fit(mesh, group)
    angles = np.cross(r[:, None, :], Phi[group]).sum(axis=0) @ inverse
    rows = [tuple(tuple(map(float, row)) for row in a) for a in (Phi[group].mean(axis=0), angles)]
    none = ((0.0, 0.0, 0.0),) * Phi.shape[1]
    place = tuple(map(float, center))
    return Node(name, place, rows[0], (none,) * Phi.shape[1], rows[1])  # type: ignore[arg-type]

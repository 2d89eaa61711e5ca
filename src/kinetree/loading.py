"""`load`, `from_dh`, `chain`, `rope`, `rope_tree`, `net`, `n_four_bars`: files, tables and sizes in, a System out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import library
from .compiler.build import weightless_joints
from .errors import ModelError, unknown_name
from .formats import read
from .formats.dh import mechanism_from_dh
from .formats.report import Report
from .library.chains import chain_mechanism, rope_mechanism
from .library.closed import n_four_bars_mechanism
from .library.nets import net_mechanism, rope_tree_mechanism
from .model.mechanism import Mechanism
from .system import System


def load(
    model: str | Path,
    *,
    base: str = "fixed",
    fixed: str = "merge",
    roots: Iterable[str | Path] = (),
) -> System:
    """Return the System of a library name, or of a file: .toml, .urdf, .xml (URDF or MJCF) or .csv.

    For URDF: base="free" lets the root link float, and `roots` are the folders in which package:// paths of meshes may
    lie. For URDF and MJCF: fixed="keep" keeps what fixed joints hold as bodies of their own. MJCF needs mujoco. What
    the file held, what was changed and what was dropped is in the System's `report`.
    """
    text = str(model)
    if isinstance(model, str) and _is_name(text):
        if text not in library.names():
            raise unknown_name("library mechanism", text, library.names())
        model = library.path(text)
    mechanism, report = read(model, base=base, fixed=fixed, roots=tuple(roots))
    return _system(mechanism, report)


def from_dh(
    rows: Sequence[Mapping[str, Any]],
    *,
    convention: str = "standard",
    degrees: bool = False,
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81),
    name: str = "dh",
) -> System:
    """Return the System of a Denavit-Hartenberg table; see docs/conventions.md for the rows and the conventions."""
    mechanism = mechanism_from_dh(rows, convention=convention, degrees=degrees, gravity=gravity, name=name)
    return _system(mechanism, Report(file=name))


def n_four_bars(
    n: int, *, length: float = 1.0, mass: float = 1.0, gravity: tuple[float, float, float] = (0.0, -9.81, 0.0)
) -> System:
    """Return the System of n four-bars in a row: n + 1 upright rockers and n couplers, all slender rods.

    At q = 0 all loops are closed. For n = 2 and 40 it is benchmark A02 of the IFToMM library.
    """
    mechanism = n_four_bars_mechanism(n, length=length, mass=mass, gravity=gravity)
    return _system(mechanism, Report(file=mechanism.name))


def chain(
    n: int,
    *,
    joint: str = "revolute",
    length: float = 0.1,
    mass: float = 0.1,
    radius: float | None = None,
    planar: bool = False,
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81),
    name: str = "chain",
) -> System:
    """Return the System of n equal links in a row along x: cylinders of a length [m], mass [kg] and radius [m].

    Joints with an axis turn about y and z by turns, or all about y (`planar`). Frame "tip" is the end of the last link.
    """
    mechanism = chain_mechanism(
        n, joint=joint, length=length, mass=mass, radius=radius, planar=planar, gravity=gravity, name=name
    )
    return System(mechanism, Report(file=name))


def rope(
    length: float,
    n: int,
    *,
    mass_per_metre: float,
    radius: float,
    bending: float = 0.0,
    torsion: float = 0.0,
    damping: float = 0.0,
    ends: tuple[str, str | float] = ("pinned", "free"),
    joint: str = "universal",
    span: float | None = None,
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81),
    name: str = "rope",
) -> System:
    """Return the System of a rope of n links that hangs from the ground's origin, or of a bridge, pinned at both ends.

    `bending` is EI and `torsion` GJ [N m^2], `damping` [N m^2 s]: a joint has each of them divided by a link's length.
    ends=("pinned", 2.5) carries a load of 2.5 kg, ("pinned", "pinned") spans `span` [m] along x. Joints are
    "universal", "euler" (twist as well), "spherical" (no springs) or "revolute" (in the x-z plane).
    """
    mechanism = rope_mechanism(
        length, n, mass_per_metre=mass_per_metre, radius=radius, bending=bending, torsion=torsion, damping=damping,
        ends=ends, joint=joint, span=span, gravity=gravity, name=name,
    )  # fmt: skip
    return System(mechanism, Report(file=name))


def rope_tree(
    length: float,
    n: int,
    *,
    levels: int,
    branches: int = 2,
    angle: float = 0.6,
    mass_per_metre: float,
    radius: float,
    bending: float = 0.0,
    damping: float = 0.0,
    joint: str = "universal",
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81),
    name: str = "rope_tree",
) -> System:
    """Return the System of a rope that branches at its end, `levels` times; each rope has a length [m] and n links.

    At q = 0 the `branches` are an `angle` [rad] apart in the x-z plane. Frame "tip{k}" is the end of rope k, counted
    level by level from 1. The other numbers are those of a rope.
    """
    mechanism = rope_tree_mechanism(
        length, n, levels=levels, branches=branches, angle=angle, mass_per_metre=mass_per_metre, radius=radius,
        bending=bending, damping=damping, joint=joint, gravity=gravity, name=name,
    )  # fmt: skip
    return System(mechanism, Report(file=name))


def net(
    rows: int,
    columns: int,
    *,
    mesh: float,
    n: int = 1,
    mass_per_metre: float,
    radius: float,
    bending: float = 0.0,
    damping: float = 0.0,
    joint: str = "universal",
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81),
    name: str = "net",
) -> System:
    """Return the System of a net that hangs in the x-z plane: ropes down from the ground, tied by ropes across.

    A side of a mesh is `mesh` [m] long and has n links. Frame "knot{r}_{c}" is the knot in row r and column c, counted
    from 1. The loops are closed at q = 0. The other numbers are those of a rope.
    """
    mechanism = net_mechanism(
        rows, columns, mesh=mesh, n=n, mass_per_metre=mass_per_metre, radius=radius, bending=bending, damping=damping,
        joint=joint, gravity=gravity, name=name,
    )  # fmt: skip
    return System(mechanism, Report(file=name))


def _system(mechanism: Mechanism, report: Report) -> System:
    for joint in weightless_joints(mechanism):
        report.suspect(f"joint {joint!r} moves nothing that has inertia: forward dynamics is not possible as it is")
    return System(mechanism, report)


def _is_name(text: str) -> bool:
    if not text:
        raise ModelError("an empty model name", remedy="give a library name or the path of a file")
    return not any(mark in text for mark in "/\\.") and not Path(text).exists()

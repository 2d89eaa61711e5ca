"""Functions that make Systems (`load`, `from_dh`, `chain`, `rope`, ...), and `save`, which writes mechanism files."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import ParamSpec, TypeVar

from . import library
from ._support.atomic import replacing
from .errors import InputError, ModelError, unknown_name, warn_caller
from .formats import KNOWN, model_files, read
from .formats.contact_shapes import contacts_from_shapes, contacts_of_pairs
from .formats.dh import mechanism_from_dh
from .formats.mjcf_writer import write_mjcf
from .formats.pairs import mechanism_from_pairs
from .formats.report import Report, report_tolerated
from .formats.sdf_writer import write_sdf
from .formats.series import acting_losses
from .formats.toml_writer import write_toml
from .formats.urdf_writer import write_urdf
from .library.chains import (
    chain_mechanism,
    n_four_bars_mechanism,
    polymer_mechanism,
    rod_mechanism,
    rope_mechanism,
)
from .library.nets import net_mechanism, rope_tree_mechanism
from .model.contacts import Contact, Surface
from .model.mechanism import Mechanism
from .runtime.singularity import weightless_joints
from .system import System

P = ParamSpec("P")
T = TypeVar("T")


def load(
    model: str | Path,
    *,
    base: str = "fixed",
    fixed: str = "merge",
    roots: Iterable[str | Path] = (),
    lenient: bool | None = None,
    contacts: bool = False,
    arguments: Mapping[str, object] | None = None,
) -> System:
    """Return the System of a library name, of a robot of an installed package, or of a file.

    Files are .toml, .urdf, .xacro (with `arguments`), .sdf, .xml (URDF or MJCF), .csv or .m (ReDySim). "robot:panda" is
    a robot of example-robot-data or of robot_descriptions, with its meshes.
    For URDF and SDF: base="free" lets the root link float. For URDF, SDF and MJCF: `roots` are further folders of
    meshes and included files, and fixed="keep" keeps the children of fixed joints as bodies. MJCF requires mujoco;
    contacts=True reads the contacts of its geoms with planes and height fields of the world. For .toml, .csv and .m:
    lenient=True accepts physically impossible inertias, which the other formats always accept. The System's
    `report` lists the content of the file and all that was changed, dropped or tolerated.
    """
    if not isinstance(model, str | os.PathLike):
        raise InputError(f"model is {repr(model)[:80]}; expected a library name, or the path of a {KNOWN} file")
    if isinstance(model, str) and model.startswith(library.PREFIX):
        robot = library.robot(model.removeprefix(library.PREFIX))
        model, roots = robot.file, (*roots, *robot.folders)
        arguments = {**robot.arguments, **(arguments or {})} if robot.arguments is not None else arguments
    elif isinstance(model, str) and _is_name(model):
        if model not in library.names():
            elsewhere = {name.lower(): f"{library.PREFIX}{name}" for name in library.robots()}
            elsewhere |= {Path(file).stem.lower(): file for file in model_files(".")}
            raise unknown_name("library mechanism", model, library.names(), elsewhere=elsewhere)
        model = library.path(model)
    try:
        return _system(
            *read(
                model,
                base=base,
                fixed=fixed,
                roots=tuple(roots),
                lenient=lenient,
                contacts=contacts,
                arguments=arguments,
            )
        )
    except RecursionError:
        raise ModelError(
            "a formula is too long or too deeply nested",
            remedy="shorten it by parameters, and by numbers where nothing is free",
            file=model,
        ) from None


def contacts_of(
    system: System,
    *,
    friction: float,
    restitution: float = 0.0,
    law: str = "newton",
    surface: Surface | None = None,
    role: str | None = "collision",
    bodies: Iterable[str] | None = None,
) -> tuple[Contact, ...]:
    """Return contacts of the shapes of a System with a surface, by default the level ground z = 0.

    Spheres, capsules, boxes and cylinders become contacts; the System's `report` lists what was left, such as meshes.
    `role` selects the shapes: "collision", as URDF names them, "visual", or None for all; `bodies` some bodies by name.
    """
    if not isinstance(system, System):
        raise InputError(f"contacts_of takes a System, not {repr(system)[:80]}; load one with kt.load(name or file)")
    laws = {"friction": friction, "restitution": restitution, "law": law}
    return contacts_from_shapes(
        system.mechanism, system.report, role=role, bodies=bodies, surface=surface or Surface(), law=laws
    )


def contacts_between(
    system: System,
    pairs: Iterable[tuple[str, str]] | None = None,
    *,
    friction: float,
    restitution: float = 0.0,
    law: str = "newton",
    role: str | None = "collision",
) -> tuple[Contact, ...]:
    """Return contacts of the shapes of bodies with each other: of pairs of bodies by name, or all without a joint.

    Spheres, capsules and boxes become contacts; the System's `report` lists what was left. `role` selects the shapes:
    "collision", "visual", or None for all.
    """
    if not isinstance(system, System):
        raise InputError(
            f"contacts_between takes a System, not {repr(system)[:80]}; load one with kt.load(name or file)"
        )
    laws = {"friction": friction, "restitution": restitution, "law": law}
    return contacts_of_pairs(system.mechanism, system.report, role=role, pairs=pairs, law=laws)


def save(mechanism: Mechanism | System, path: str | Path) -> Report:
    """Write a mechanism, or that of a System, to a file that `load` can read: .toml, .urdf, .xml (MJCF) or .sdf.

    Returns a report of what the format has no place for; `load` takes the report as the path of its file. Native .toml
    has a place for every part, and the other files list the same losses in a comment on top. A warning names parts
    that act on the motion and are left out.
    """
    report = write(mechanism, path)
    if lost := acting_losses(report):
        more = f", and {len(lost) - 3} more" if len(lost) > 3 else ""
        warn_caller(f"{path} moves differently, without: {', '.join(lost[:3])}{more}; .toml has a place for every part")
    return report


def write(mechanism: Mechanism | System, path: str | Path) -> Report:
    """Write as `save` does, without a warning."""
    found = getattr(mechanism, "mechanism", mechanism)
    if not isinstance(found, Mechanism):
        what = f"mechanism is {repr(mechanism)[:80]}"
        raise InputError(f"{what}; expected a Mechanism or a System; runs have run.save(path)")
    path = Path(path)
    writer = {".toml": _toml, ".urdf": write_urdf, ".xml": write_mjcf, ".sdf": _sdf}.get(path.suffix.lower())
    if writer is None:
        what = repr(path.suffix or "a name without suffix")
        raise InputError(f"{path}: mechanisms are written as .toml, .urdf, .xml (MJCF) or .sdf, not as {what}")
    text, report = writer(found)
    with replacing(path) as written:
        written.write_text(text, encoding="utf-8")
    report.file = str(path)
    report.entries = [replace(entry, file=report.file) for entry in report.entries]
    return report


def _toml(mechanism: Mechanism) -> tuple[str, Report]:
    return write_toml(mechanism), Report(mechanism.name)


def _sdf(mechanism: Mechanism) -> tuple[str, Report]:
    """Return SDF, in which loops close at the position of the file: an assembled one."""
    if not mechanism.loops:
        return write_sdf(mechanism)
    try:
        q = System(mechanism).assemble()
    except (InputError, ModelError):  # it does not close
        return write_sdf(mechanism)
    slices = zip(mechanism.joints, mechanism.q_slices, strict=True)
    return write_sdf(mechanism, {joint.name: tuple(map(float, q[own])) for joint, own in slices})


def _plain(mechanism: Mechanism) -> System:
    return System(mechanism, Report(file=mechanism.name))


def _tolerant(mechanism: Mechanism) -> System:
    report = Report(file=mechanism.name)
    report_tolerated(mechanism, report)
    return _system(mechanism, report)


def _built(name: str, make: Callable[P, T], system: Callable[[T], System]) -> Callable[P, System]:
    """Return a function with the signature of `make` that returns a System instead of a Mechanism."""
    signature = inspect.signature(make)

    @functools.wraps(make)
    def build(*arguments: P.args, **options: P.kwargs) -> System:
        try:
            signature.bind(*arguments, **options)
        except TypeError as error:
            raise TypeError(f"{name}(): {error}; it takes {', '.join(signature.parameters)}") from None
        return system(make(*arguments, **options))

    build.__signature__ = signature.replace(return_annotation="System")  # type: ignore[attr-defined]
    build.__name__ = build.__qualname__ = name
    return build


from_dh = _built("from_dh", mechanism_from_dh, _tolerant)
from_pairs = _built("from_pairs", mechanism_from_pairs, lambda made: _system(*made))
n_four_bars = _built("n_four_bars", n_four_bars_mechanism, _plain)
chain = _built("chain", chain_mechanism, _plain)
polymer = _built("polymer", polymer_mechanism, _plain)
rod = _built("rod", rod_mechanism, _plain)
rope = _built("rope", rope_mechanism, _plain)
rope_tree = _built("rope_tree", rope_tree_mechanism, _plain)
net = _built("net", net_mechanism, _plain)


def _system(mechanism: Mechanism, report: Report) -> System:
    for joint in weightless_joints(mechanism):
        report.suspect(f"joint {joint!r} moves nothing that has inertia: forward dynamics is impossible")
    return System(mechanism, report)


def _is_name(text: str) -> bool:
    if not text:
        raise ModelError("an empty model name", remedy="give a library name or the path of a file")
    return not any(mark in text for mark in "/\\.") and not os.path.exists(text)

"""Reader of MJCF by MuJoCo's own compiler: `read_mjcf` for files, `read_mjcf_text` for text.

The XML is first checked and reduced (mjcf_xml.py), then compiled without access to files. The mechanism is read from
the compiled model, and a report lists every part that was changed or dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import InputError, ModelError
from ..model.checks import impossible_inertias
from ..model.construction import build_mechanism
from ..model.contacts import Contact
from ..model.mechanism import Mechanism
from ..model.part_fields import free_name
from ..model.parts import GROUND, Frame, Joint, Loop, Placement, Shape, compose
from .merging import merge_fixed
from .mjcf_contacts import read_contacts, read_shapes
from .mjcf_drives import read_actuators, read_keyframes, read_springs
from .mjcf_parts import Import, joints_of, read_equalities, read_guess, read_tree, vector
from .mjcf_xml import Prepared, prepare
from .report import Report
from .urdf import FIXED, MAX_LINKS
from .xml import Element, Source, parse_xml, read_bytes


def read_mjcf(path: str | Path, *, fixed: str = "merge", contacts: bool = False) -> tuple[Mechanism, Report]:
    """Return the mechanism of an MJCF file and the report of the import, or raise ModelError.

    Includes and meshes must be in the folder of the file. fixed="merge" merges bodies without joints into their parents
    and keeps their names as frames; "keep" keeps them as bodies. With `contacts`, geoms of bodies touch the planes and
    height fields of the world, by MuJoCo's rules.
    """
    return read_mjcf_text(read_bytes(path), file=str(path), folder=Path(path).parent, fixed=fixed, contacts=contacts)


def read_mjcf_text(
    text: str | bytes,
    *,
    file: str = "<text>",
    folder: Path | None = None,
    fixed: str = "merge",
    contacts: bool = False,
) -> tuple[Mechanism, Report]:
    """Return the mechanism of an MJCF text and the report; without a folder it must not refer to other files."""
    if fixed not in FIXED:
        raise InputError(f"fixed must be one of {', '.join(FIXED)}, not {fixed!r}")
    source = Source(file, Report(file))
    root = parse_xml(text, file=file)
    try:
        prepared = prepare(source, root, folder, contacts=contacts)
    except RecursionError:  # nested includes, each with deeply nested elements
        raise ModelError("the nesting is too deep", remedy="include flat files", file=file) from None
    mujoco = _mujoco(file)
    given = _named(mujoco, _compiled(mujoco, prepared, source), prepared, source.report)
    try:
        mechanism = _mechanism(given, _title(root, file), file, fixed, contacts)
    except ModelError as error:
        raise error.located(file) from None
    for name, message in impossible_inertias(mechanism):
        source.report.suspect(f"body {name!r}: {message}; the numbers are kept", prepared.line("body", name))
    source.report.read(
        f"{given.model.nbody - 1} bodies and {given.model.njnt} joints: {len(mechanism.bodies)} bodies, "
        f"{mechanism.nv} degrees of freedom, {len(mechanism.frames)} frames, {len(mechanism.loops)} loops, "
        f"{len(mechanism.couplings)} couplings"
    )
    return mechanism, source.report


def _title(root: Element, file: str) -> str:
    return root.attributes.get("model") or ("mechanism" if file == "<text>" else Path(file).stem)


def _mujoco(file: str) -> Any:
    """Return the package mujoco, or raise ModelError."""
    try:
        return import_module("mujoco")
    except ImportError:
        raise ModelError(
            "MJCF files require the package mujoco, which is not installed",
            remedy="install mujoco, or give the model as URDF or TOML",
            file=file,
        ) from None


def _compiled(mujoco: Any, prepared: Prepared, source: Source) -> Any:
    """Return the model compiled by MuJoCo, or raise ModelError with its message."""
    try:
        with _warnings(mujoco, source.report):
            model = mujoco.MjModel.from_xml_string(prepared.text, prepared.assets)
    except (ValueError, TypeError, RuntimeError, MemoryError, mujoco.FatalError, mujoco.UnexpectedError) as error:
        message = " ".join(str(error).split())
        raise ModelError(
            f"MuJoCo cannot compile it: {message[:500]}", remedy="repair the part that is named", file=source.file
        ) from None
    if model.nbody > MAX_LINKS:
        raise ModelError(f"has {model.nbody} bodies", remedy=f"use at most {MAX_LINKS}", file=source.file)
    return model


@contextmanager
def _warnings(mujoco: Any, report: Report) -> Iterator[None]:
    """Collect MuJoCo's warnings in the report, instead of a log file in the working folder."""
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda message: report.suspect(f"MuJoCo warns: {' '.join(str(message).split())[:500]}"))
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


def _named(mujoco: Any, model: Any, prepared: Prepared, report: Report) -> Import:
    """Return the model with unique names for all parts: bodies, sites and the ground share one set of names here."""
    taken = {GROUND}
    bodies, joints = [GROUND], []
    for b in range(1, model.nbody):
        name = model.body(b).name
        bodies.append(free_name(name or f"body{b}", taken))
        if name and name != bodies[-1]:
            report.changed(f"body {name!r} is renamed to {bodies[-1]!r}", prepared.line("body", name))
    known = {model.joint(j).name for j in range(model.njnt)}
    for b in range(1, model.nbody):
        for k, j in enumerate(joints_of(model, b)):
            name = model.joint(j).name
            joints.append(name or free_name(f"{bodies[b]}_joint{k + 1 if k else ''}", known))
    sites = []
    for s in range(model.nsite):
        name = model.site(s).name
        sites.append(free_name(f"{name}_site" if name in taken else name or f"site{s + 1}", taken))
        if name and name != sites[-1]:
            report.changed(f"site {name!r} is the frame {sites[-1]!r}", prepared.line("site", name))
    return Import(mujoco, model, prepared, report, tuple(bodies), tuple(joints), tuple(sites))


def _mechanism(given: Import, name: str, file: str, fixed: str, contacts: bool) -> Mechanism:
    bits = given.mujoco.mjtDisableBit
    shapes = read_shapes(given, surfaces=contacts)
    touching = read_contacts(given) if contacts else []
    if given.model.ngeom and not contacts:
        given.report.dropped("contacts: friction, margins and solver numbers of geoms are not read")
    bodies, joints, frames = read_tree(given, shapes)
    joints = _undisturbed(given, joints, bits)
    loops, couplings = read_equalities(given)
    scenery = shapes.get(0, ())
    if fixed == "merge":
        bodies, joints, frames, loops, scenery, touching = _merged(
            given, bodies, joints, frames, loops, scenery, touching
        )
    actuators = read_actuators(given)
    gravity = vector(given.model.opt.gravity)
    if given.model.opt.disableflags & bits.mjDSBL_GRAVITY:
        gravity = (0.0, 0.0, 0.0)
        given.report.changed("gravity is zero: the file disables it")
    return build_mechanism(
        name,
        bodies,
        joints,
        frames=frames,
        loops=_between_two(given, loops),
        couplings=couplings,
        gravity=gravity,
        scenery=scenery,
        source=file,
        guess=read_guess(given),
        contacts=touching,
        forces=read_springs(given, joints),
        actuators=actuators.values(),
        keyframes=read_keyframes(given, actuators),
        lenient=True,
    )


def _undisturbed(given: Import, joints: list[Joint], bits: Any) -> list[Joint]:
    """Return the joints without damping or friction that the file disables."""
    damper = bits.mjDSBL_DAMPER if hasattr(bits, "mjDSBL_DAMPER") else bits.mjDSBL_PASSIVE  # before 3.3
    for key, bit in (("damping", damper), ("friction", bits.mjDSBL_FRICTIONLOSS)):
        if given.model.opt.disableflags & bit and any(getattr(j, key) for j in joints):
            joints = [replace(j, **{key: ()}) for j in joints]
            given.report.changed(f"joints have no {key}: the file disables it")
    return joints


def _merged(given: Import, bodies, joints, frames: list[Frame], loops: list[Loop], scenery, touching: list[Contact]):
    """Return the parts with all bodies without joints merged into their parents."""
    merged = merge_fixed(bodies, joints)
    where = {frame.name: (frame.body, frame.placement) for frame in merged.frames}
    for weld in merged.welds:
        text = f"body {weld.body!r} has no joint: it is merged into {weld.carrier!r} and remains a frame"
        given.report.changed(text, given.prepared.line("body", weld.body))

    def moved(body: str, placement: Placement) -> tuple[str, Placement]:
        carrier, there = where.get(body, (body, Placement()))
        return (carrier, compose(there, placement)) if body in where else (body, placement)

    out = []
    for loop in loops:
        (body_a, a), (body_b, b) = moved(loop.body_a, loop.placement_a), moved(loop.body_b, loop.placement_b)
        out.append(replace(loop, body_a=body_a, body_b=body_b, placement_a=a, placement_b=b))
    names = {frame.name for frame in frames}
    more = [frame for frame in merged.frames if frame.name not in names]
    frames = [Frame(f.name, *moved(f.body, f.placement)) for f in frames] + more
    shapes: tuple[Shape, ...] = (*scenery, *merged.ground_shapes)
    contacts = []
    for contact in touching:
        body, placement = moved(contact.body, contact.placement)
        contacts.append(replace(contact, body=body, placement=placement))
    return merged.bodies, merged.joints, frames, out, shapes, contacts


def _between_two(given: Import, loops: list[Loop]) -> list[Loop]:
    """Return the loops between different bodies; the others are reported as dropped."""
    for loop in loops:
        if loop.body_a == loop.body_b:
            given.report.dropped(f"the loop {loop.name!r}: both its ends are on {loop.body_a!r}")
    return [loop for loop in loops if loop.body_a != loop.body_b]

"""Reader of MJCF by MuJoCo's own compiler: `read_mjcf` for files, `read_mjcf_text` for text.

The XML is first checked and reduced (mjcf_xml.py), then compiled without access to files. The mechanism is read from
the compiled model, and a report lists every part that was changed or dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from .._support.optional import pip_install
from .._support.tables import count_text
from ..errors import InputError, ModelError
from ..model.checks import impossible_inertias
from ..model.construction import build_mechanism
from ..model.contacts import Contact
from ..model.drives import Actuator, Keyframe
from ..model.mechanism import Mechanism
from ..model.part_fields import free_name
from ..model.parts import GROUND, ForceElement, Frame, Joint, Placement, Shape, compose
from .contact_shapes import read_contacts, read_shapes
from .merging import merge_fixed, move_loops
from .mjcf_parts import (
    BALL,
    FREE,
    SIZES,
    Import,
    joints_of,
    last_w,
    read_equalities,
    read_guess,
    read_tree,
    rotation_of_quaternion,
    vector,
)
from .mjcf_xml import Prepared, prepare
from .report import Group, Report, size_text
from .urdf import FIXED, MAX_LINKS
from .xml import Element, Source, parse_xml, read_bytes


def read_mjcf(
    path: str | Path, *, fixed: str = "merge", contacts: bool = False, roots: Sequence[str | Path] = ()
) -> tuple[Mechanism, Report]:
    """Return the mechanism of an MJCF file and the report of the import, or raise ModelError.

    Includes and meshes must be in the folder of the file, or in one of `roots`. fixed="merge" merges bodies without
    joints into their parents and keeps their names as frames; "keep" keeps them as bodies. With `contacts`, geoms of
    bodies touch the planes and height fields of the world, by MuJoCo's rules.
    """
    folders = [Path(path).parent, *map(Path, roots)]
    return read_mjcf_text(read_bytes(path), file=str(path), folders=folders, fixed=fixed, contacts=contacts)


def read_mjcf_text(
    text: str | bytes,
    *,
    file: str = "<text>",
    folders: Sequence[Path] = (),
    fixed: str = "merge",
    contacts: bool = False,
) -> tuple[Mechanism, Report]:
    """Return the mechanism of an MJCF text and the report; files that it refers to are inside of `folders`."""
    if fixed not in FIXED:
        raise InputError(f"fixed must be one of {', '.join(FIXED)}, not {fixed!r}")
    source = Source(file, Report(file))
    root = parse_xml(text, file=file)
    try:
        prepared = prepare(source, root, folders, contacts=contacts)
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
        f"{count_text(given.model.nbody - 1, 'body', 'bodies')} and {count_text(given.model.njnt, 'joint')}: "
        f"{size_text(mechanism)}, {count_text(len(mechanism.frames), 'frame')}, "
        f"{count_text(len(mechanism.loops), 'loop')}, {count_text(len(mechanism.couplings), 'coupling')}"
    )
    return mechanism, source.report


def _title(root: Element, file: str) -> str:
    return root.attributes.get("model") or ("mechanism" if file == "<text>" else Path(file).stem)


def _mujoco(file: str) -> ModuleType:
    """Return the package mujoco, or raise ModelError."""
    try:
        return import_module("mujoco")
    except ImportError:
        raise ModelError(
            "MJCF files require the package mujoco, which is not installed",
            remedy=f"{pip_install('mujoco')}, or give the model as URDF or TOML",
            file=file,
        ) from None


def _compiled(mujoco: ModuleType, prepared: Prepared, source: Source) -> Any:
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
def _warnings(mujoco: ModuleType, report: Report) -> Iterator[None]:
    """Collect MuJoCo's warnings in the report, instead of a log file in the working folder."""
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda message: report.suspect(f"MuJoCo warns: {' '.join(str(message).split())[:500]}"))
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


def _named(mujoco: ModuleType, model: Any, prepared: Prepared, report: Report) -> Import:
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
    scenery, carriers = shapes.get(0, ()), {}
    if fixed == "merge":
        bodies, joints, frames, carriers, scenery, touching = _merged(given, bodies, joints, frames, scenery, touching)
    loops = move_loops(loops, carriers, given.report)
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
        loops=loops,
        couplings=couplings,
        gravity=gravity,
        scenery=scenery,
        source=file,
        guess=read_guess(given),
        contacts=touching,
        forces=[*read_springs(given, joints), *read_tendons(given, carriers)],
        actuators=actuators.values(),
        keyframes=read_keyframes(given, actuators),
        lenient=True,
    )


def _undisturbed(given: Import, joints: list[Joint], bits: Any) -> list[Joint]:
    """Return the joints without damping or friction that the file disables."""
    for key, bit in (("damping", _passive(bits, "DAMPER")), ("friction", bits.mjDSBL_FRICTIONLOSS)):
        if given.model.opt.disableflags & bit and any(getattr(j, key) for j in joints):
            joints = [replace(j, **{key: ()}) for j in joints]
            given.report.changed(f"joints have no {key}: the file disables it")
    return joints


def _merged(given: Import, bodies, joints, frames: list[Frame], scenery, touching: list[Contact]):
    """Return the parts with all bodies without joints merged into their parents."""
    merged = merge_fixed(bodies, joints)
    where = {frame.name: (frame.body, frame.placement) for frame in merged.frames}
    for weld in merged.welds:
        text = f"body {weld.body!r} has no joint: it is merged into {weld.carrier!r} and remains a frame"
        group = Group("bodies without a joint are merged into others and remain frames", repr(weld.body))
        given.report.changed(text, given.prepared.line("body", weld.body), group)

    def moved(body: str, placement: Placement) -> tuple[str, Placement]:
        carrier, there = where.get(body, (body, Placement()))
        return (carrier, compose(there, placement)) if body in where else (body, placement)

    names = {frame.name for frame in frames}
    more = [frame for frame in merged.frames if frame.name not in names]
    frames = [Frame(f.name, *moved(f.body, f.placement)) for f in frames] + more
    shapes: tuple[Shape, ...] = (*scenery, *merged.ground_shapes)
    contacts = []
    for contact in touching:
        body, placement = moved(contact.body, contact.placement)
        contacts.append(replace(contact, body=body, placement=placement))
    return merged.bodies, merged.joints, frames, merged.carriers, shapes, contacts


# --- Springs, actuators and keyframes of a compiled model


def read_springs(given: Import, joints: Iterable[Joint]) -> list[ForceElement]:
    """Return the springs of hinges and slides; springs of ball and free joints are reported as dropped."""
    m, bits, own = given.model, given.mujoco.mjtDisableBit, {joint.name: joint for joint in joints}
    stiff = [j for j in range(m.njnt) if m.jnt_stiffness[j] or _has(m, "jnt_stiffnesspoly", j)]
    off = m.opt.disableflags & _passive(bits, "SPRING")
    if stiff and off:
        given.report.changed("joints have no springs: the file disables them")
        return []
    out, taken = [], set[str]()
    for j in stiff:
        name, stiffness = given.joints[j], float(m.jnt_stiffness[j])
        line = given.prepared.line("joint", name)
        if _has(m, "jnt_stiffnesspoly", j):
            given.report.dropped(f"the nonlinear stiffness of joint {name!r}", line)
        if m.jnt_type[j] in (FREE, BALL):
            sort = "free" if m.jnt_type[j] == FREE else "ball"
            given.report.dropped(f"stiffness = {stiffness:g} of the {sort} joint {name!r}", line)
        elif stiffness:
            rest = float(m.qpos_spring[m.jnt_qposadr[j]])
            numbers = (("stiffness_1", stiffness), ("rest_1", rest))
            ends = own[name].parent, own[name].child
            spring = ForceElement(free_name(f"{name}_spring", taken), "joint_spring", *ends, coefficients=numbers)
            out.append(spring)
    return out


def read_tendons(given: Import, carriers: Mapping[str, Frame]) -> list[ForceElement]:
    """Return straight tendons between two sites as springs with dampers; `carriers` has the frames of merged bodies."""
    m, bits, report = given.model, given.mujoco.mjtDisableBit, given.report
    out, taken = [], set[str]()
    no_springs, no_dampers = (m.opt.disableflags & _passive(bits, name) for name in ("SPRING", "DAMPER"))
    for k in range(m.ntendon):
        label = m.tendon(k).name
        name = free_name(label or f"tendon{k + 1}", taken)
        line = given.prepared.line("spatial", label)
        for what, present in (
            ("limit", m.tendon_limited[k]),
            ("friction", m.tendon_frictionloss[k]),
            ("armature", _has(m, "tendon_armature", k)),
            ("nonlinear stiffness", _has(m, "tendon_stiffnesspoly", k)),
            ("nonlinear damping", _has(m, "tendon_dampingpoly", k)),
        ):
            if present:
                report.dropped(f"the {what} of tendon {name!r}", line)
        low, high = map(float, m.tendon_lengthspring[k])
        stiffness, damping = float(m.tendon_stiffness[k]), float(m.tendon_damping[k])
        stiffness, damping = 0.0 if no_springs else stiffness, 0.0 if no_dampers else damping
        if stiffness and low != high:
            report.dropped(f"the spring of tendon {name!r}, which is slack from {low:g} to {high:g} m", line)
            stiffness = 0.0
        if not stiffness and not damping:
            report.dropped(f"the tendon {name!r}: it has no spring and no damper", line)
            continue
        ends = []
        for at in range(m.tendon_adr[k], m.tendon_adr[k] + 2):
            site = int(m.wrap_objid[at])
            body = int(m.site_bodyid[site])
            placement = given.placement(body, m.site_pos[site])
            frame = carriers.get(given.bodies[body])
            ends.append((frame.body, compose(frame.placement, placement)) if frame else (given.bodies[body], placement))
        (one, a), (two, b) = ends
        if one == two:
            report.dropped(f"the tendon {name!r}: both its ends are on {one!r}", line)
            continue
        numbers = (("stiffness", stiffness), ("damping", damping), ("free_length", low if stiffness else 0.0))
        coefficients = tuple(x for x in numbers if x[1])
        out.append(ForceElement(name, "spring_damper", one, two, a.translation, b.translation, coefficients))
    return out


def read_actuators(given: Import) -> dict[int, Actuator]:
    """Return the actuators of joints whose force is affine in control and motion, by MuJoCo's number."""
    m, mujoco = given.model, given.mujoco
    out, taken = dict[int, Actuator](), set[str]()
    for k in range(m.nu):
        joint = int(m.actuator_trnid[k][0])
        label = m.actuator(k).name
        name = free_name(label or f"{given.joints[joint]}_actuator", taken)
        if reason := _misfit(m, mujoco, k, joint):
            given.report.dropped(f"the actuator {name!r}: {reason}")
            continue
        if _has(m, "actuator_armature", k) or _has(m, "actuator_damping", k):
            given.report.dropped(f"armature and damping of the actuator {name!r}")
        a, b, c = m.actuator_biasprm[k][:3] if m.actuator_biastype[k] else (0.0, 0.0, 0.0)
        out[k] = Actuator(
            name,
            given.joints[joint],
            tuple(map(float, m.actuator_gear[k][: SIZES[int(m.jnt_type[joint])][1]])),
            float(m.actuator_gainprm[k][0]),
            (float(a), float(b), float(c)),
            tuple(map(float, m.actuator_ctrlrange[k])) if m.actuator_ctrllimited[k] else (),
            tuple(map(float, m.actuator_forcerange[k])) if m.actuator_forcelimited[k] else (),
        )
    if out:
        given.report.read(f"{len(out)} actuators, which act in a run with control=kt.ActuatorControl(...)")
    return out


def _misfit(m: Any, mujoco: ModuleType, k: int, joint: int) -> str:
    """Return why an actuator is not read, or ""."""
    type_, dyn, gain, bias = (int(getattr(m, f"actuator_{x}type")[k]) for x in ("trn", "dyn", "gain", "bias"))
    if dyn != mujoco.mjtDyn.mjDYN_NONE:
        return "it has a state of its own"
    if gain != mujoco.mjtGain.mjGAIN_FIXED or bias not in (mujoco.mjtBias.mjBIAS_NONE, mujoco.mjtBias.mjBIAS_AFFINE):
        return "its force is not affine"
    if m.jnt_type[joint] == FREE:
        return "it drives a free joint"
    if m.jnt_type[joint] == BALL and (type_ != mujoco.mjtTrn.mjTRN_JOINT or (bias and m.actuator_biasprm[k][1])):
        return "it drives a ball joint by its angle, or in the axes of the parent"
    return ""


def read_keyframes(given: Import, actuators: dict[int, Actuator]) -> list[Keyframe]:
    """Return the keyframes, with coordinates and velocities by joint."""
    m, out, taken = given.model, [], set[str]()
    for k in range(m.nkey):
        q, qd = {}, {}
        for j in range(m.njnt):
            type_, at, start = int(m.jnt_type[j]), int(m.jnt_qposadr[j]), int(m.jnt_dofadr[j])
            nq, nv = SIZES[type_]
            q[given.joints[j]] = _coordinates(type_, m.key_qpos[k][at : at + nq])
            qd[given.joints[j]] = _velocities(type_, m.key_qpos[k][at : at + nq], m.key_qvel[k][start : start + nv])
        control = {a.name: (float(m.key_ctrl[k][i]),) for i, a in actuators.items() if m.key_ctrl[k].any()}
        moving = {name: x for name, x in qd.items() if any(x)}
        name = free_name(m.key(k).name or f"key{k}", taken)
        out.append(
            Keyframe(
                name, tuple(q.items()), tuple(moving.items()), tuple(control.items()) if m.key_ctrl[k].any() else ()
            )
        )
    return out


def _coordinates(type_: int, qpos: Any) -> tuple[float, ...]:
    """Return the coordinates of a joint, with a unit quaternion whose w is last."""
    x = tuple(map(float, qpos))
    if type_ not in (FREE, BALL):
        return x
    place, turn = x[:-4], np.array(last_w(x[-4:]))
    return (*place, *map(float, turn / np.linalg.norm(turn)))


def _velocities(type_: int, qpos: Any, qvel: object) -> tuple[float, ...]:
    """Return the velocities of a joint; a free body's [v in the world; omega] become [omega; v] in its own axes."""
    x = np.asarray(qvel, dtype=float)
    if type_ == FREE:
        R = np.array(rotation_of_quaternion(np.asarray(qpos[3:]) / np.linalg.norm(qpos[3:])), dtype=float)
        x = np.concatenate([x[3:], R.T @ x[:3]])
    return tuple(map(float, x))


def _passive(bits: Any, name: str) -> int:
    """Return the bit that disables springs or dampers; before version 3.3 both had one."""
    return int(getattr(bits, f"mjDSBL_{name}") if hasattr(bits, f"mjDSBL_{name}") else bits.mjDSBL_PASSIVE)


def _has(m: object, array: str, at: int) -> bool:
    """Return whether an array, which only newer versions of MuJoCo have, has nonzero entries there."""
    return hasattr(m, array) and bool(np.any(getattr(m, array)[at]))

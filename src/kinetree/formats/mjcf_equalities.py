"""The equality constraints of a compiled MuJoCo model as loops and couplings."""

from __future__ import annotations

from typing import Any

from ..model.part_fields import free_name
from ..model.parts import Coupling, Loop, Placement
from .mjcf_parts import Import

CONNECT, WELD, JOINT = range(3)
"""MuJoCo's type numbers of the equalities that are read."""
TAGS = ("connect", "weld", "joint")


def read_equalities(given: Import) -> tuple[list[Loop], list[Coupling]]:
    """Return <connect>s as spherical loops, <weld>s as fixed loops and <joint>s as couplings, all of them exact."""
    m, mujoco = given.model, given.mujoco
    loops: list[Loop] = []
    couplings: list[Coupling] = []
    taken: set[str] = set()
    disabled = bool(m.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_EQUALITY)
    for e in range(m.neq):
        type_, name = int(m.eq_type[e]), m.equality(e).name
        line = given.prepared.line(TAGS[type_], name)
        name = free_name(name or f"{TAGS[type_]}{e + 1}", taken)
        if disabled or not m.eq_active0[e]:
            given.report.dropped(f"the {TAGS[type_]} {name!r}: it is not active", line)
        elif type_ == JOINT:
            couplings += _coupling(given, e, name, line)
        else:
            sites = m.eq_objtype[e] == mujoco.mjtObj.mjOBJ_SITE
            loops.append(_at_sites(given, e, name) if sites else _at_bodies(given, e, name))
    if loops or couplings:
        given.report.changed("equalities hold exactly here; solref, solimp and torquescale are not read")
    return loops, couplings


def _coupling(given: Import, e: int, name: str, line: int | None) -> list[Coupling]:
    """Return q1 - ref1 = a0 + a1 (q2 - ref2) as a coupling, or nothing if it is not linear."""
    m = given.model
    one, two = int(m.eq_obj1id[e]), int(m.eq_obj2id[e])
    constant, ratio, *higher = map(float, m.eq_data[e][:5])
    if two >= 0 and any(higher):
        given.report.dropped(
            f"the equality {name!r}: joint {given.joints[one]!r} follows {given.joints[two]!r} by a polynomial, and "
            "couplings are linear",
            line,
        )
        return []
    offset = constant + _reference(m, one)
    if two < 0:
        return [Coupling(name, given.joints[one], (), offset)]
    return [Coupling(name, given.joints[one], ((given.joints[two], ratio),), offset - ratio * _reference(m, two))]


def _reference(m: Any, joint: int) -> float:
    return float(m.qpos0[m.jnt_qposadr[joint]])


def _at_bodies(given: Import, e: int, name: str) -> Loop:
    m = given.model
    one, two, data = int(m.eq_obj1id[e]), int(m.eq_obj2id[e]), m.eq_data[e]
    if m.eq_type[e] == CONNECT:
        return _loop(
            given, name, "spherical", one, two, given.placement(one, data[:3]), given.placement(two, data[3:6])
        )
    # data is (point in body 2, point in body 1, rotation of body 2 in body 1, ...)
    a = given.placement(one, data[3:6], data[6:10])
    return _loop(given, name, "fixed", one, two, a, given.placement(two, data[:3]))


def _at_sites(given: Import, e: int, name: str) -> Loop:
    m = given.model
    ends = []
    for site in (int(m.eq_obj1id[e]), int(m.eq_obj2id[e])):
        body = int(m.site_bodyid[site])
        ends.append((body, given.placement(body, m.site_pos[site], m.site_quat[site])))
    (one, a), (two, b) = ends
    return _loop(given, name, "spherical" if m.eq_type[e] == CONNECT else "fixed", one, two, a, b)


def _loop(given: Import, name: str, kind: str, one: int, two: int, a: Placement, b: Placement) -> Loop:
    return Loop(name, kind, given.bodies[one], given.bodies[two], a, b)

"""Write a mechanism as URDF: links with inertia and shapes, joints, mimic joints, loops; frames are links as well."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from xml.sax.saxutils import quoteattr

from .. import joints as joint_kinds
from ..algebra.rotations import rpy_of
from ..algebra.scalars import Scalar
from ..model.mechanism import Mechanism, resolve_parts
from ..model.part_fields import free_name
from ..model.parts import GROUND, Body, Coupling, Frame, Joint, Loop, Placement, Shape
from .report import Report
from .series import commented, ends, ground_name, in_series, linear_couplings, report_acting, report_losses

KINDS = {"revolute": "revolute", "prismatic": "prismatic", "fixed": "fixed", "free": "floating"}
"""The joint kinds that URDF has, by the names of Kinetree; others become joints in series."""
LOOPS = {"revolute": "continuous", "prismatic": "prismatic", "spherical": "spherical", "fixed": "fixed"}
"""The loop kinds that a <loop_joint> has."""
UNBOUNDED = 1e9
"""A limit that URDF requires where the mechanism has none [rad, m, N, N m, and per s]."""

Written = Callable[[str, Sequence[Scalar]], str]
"""A function of numbers' place in the model, such as "bodies.2.com", and of the numbers, that returns their text."""


def write_urdf(mechanism: Mechanism) -> tuple[str, Report]:
    """Return the mechanism as URDF, at the values of its parameters, and a report of what is left out or changed.

    A comment on top of the text has the same list. Joints of several axes become joints in series, couplings of two
    joints <mimic>, and loops <loop_joint>. Raises ModelError for flexible bodies, motors' rotors and circuits.
    """
    report = Report(mechanism.name)
    report_losses(mechanism, report, ("loop", "coupling"), what="URDF")
    values = {p.name: p.value for p in mechanism.parameters}
    lines = _urdf_lines(mechanism, values, lambda _, numbers: _text(numbers), report)
    return commented("\n".join(lines), report), report


def urdf_template(mechanism: Mechanism, values: dict[str, Any]) -> str | None:
    """Return URDF with places such as @bodies.2.com@ instead of numbers, which the page fills; None if there is none.

    Shapes are left out. The page says what else it leaves out: springs, contacts, gravity.
    """
    if mechanism.closures or mechanism.loops or {j.kind for j in mechanism.joints} - KINDS.keys():
        return None
    bare = replace(mechanism, bodies=tuple(replace(b, shapes=()) for b in mechanism.bodies), scenery=())
    return "\n".join(_urdf_lines(bare, values, lambda place, _: f"@{place}@", Report()))


@dataclass(frozen=True)
class _Names:
    """The names that are given while the text is written: those of links and of joints, and that of the ground."""

    links: set[str]
    joints: set[str]
    root: str

    def link(self, body: str) -> str:
        return quoteattr(self.root if body == GROUND else body)


def _urdf_lines(mechanism: Mechanism, values: dict[str, Any], written: Written, report: Report) -> Iterator[str]:
    links = {b.name for b in mechanism.bodies} | {f.name for f in mechanism.frames}
    joint_names = {j.name for j in mechanism.joints}
    names = _Names(links, joint_names, root := ground_name(mechanism))
    links.add(root)
    bodies, joints = resolve_parts((mechanism.bodies, mechanism.joints), values)
    couplings = list(resolve_parts(mechanism.couplings, values))
    yield '<?xml version="1.0"?>'
    yield f"<robot name={quoteattr(mechanism.name)}>"
    yield from _link(root, "", resolve_parts(mechanism.scenery, values))
    for i, body in enumerate(bodies):
        yield from _link(body.name, _inertial(body, i, written), body.shapes)
    chains = [in_series(joint, KINDS, joint_names, report, "URDF") for joint in joints]
    couplings += [c for chain in chains for c in chain.couplings]
    mimics = _mimics(couplings, report)
    for i, chain in enumerate(chains):
        parent = chain.joints[0].parent
        for joint in chain.joints:
            child = joint.child if joint is chain.joints[-1] else free_name(joint.name, links)
            if child != joint.child:
                yield f"  <link name={quoteattr(child)}/>"
            origin = _origin(joint.placement, f"joints.{i}.placement", written)
            yield from _joint(joint, names.link(parent), child, origin, mimics.get(joint.name))
            parent = child
    for k, frame in enumerate(resolve_parts(mechanism.frames, values)):
        yield from _frame(frame, names, _origin(frame.placement, f"frames.{k}.pose", written))
    yield from _loop_joints(resolve_parts(mechanism.loops, values), names, report)
    yield from ("</robot>", "")


def _inertial(body: Body, i: int, written: Written) -> str:
    xx, yy, zz, xy, yz, zx = (f'"{written(f"bodies.{i}.inertia.{k}", [x])}"' for k, x in enumerate(body.inertia))
    return f"""    <inertial>
      <origin xyz="{written(f"bodies.{i}.com", body.com)}" rpy="0 0 0"/>
      <mass value="{written(f"bodies.{i}.mass", [body.mass])}"/>
      <inertia ixx={xx} iyy={yy} izz={zz} ixy={xy} iyz={yz} ixz={zx}/>
    </inertial>"""


def _link(name: str, inertial: str, shapes: Sequence[Shape]) -> Iterator[str]:
    if not inertial and not shapes:
        yield f"  <link name={quoteattr(name)}/>"
        return
    yield f"  <link name={quoteattr(name)}>"
    if inertial:
        yield inertial
    for shape in shapes:
        label = f" name={quoteattr(shape.name)}" if shape.name else ""
        yield f"    <{shape.role}{label}>"
        yield f"      {_origin(shape.placement, '', lambda _, numbers: _text(numbers))}"
        yield f"      <geometry><{_solid(shape)}/></geometry>"
        if shape.color is not None:
            yield f'      <material name=""><color rgba="{_text(shape.color)}"/></material>'
        yield f"    </{shape.role}>"
    yield "  </link>"


def _solid(shape: Shape) -> str:
    if shape.kind == "mesh":
        path = f"file://{shape.file}" if shape.file.startswith("/") else shape.file
        return f'mesh filename={quoteattr(path)} scale="{_text(shape.size or (1.0, 1.0, 1.0))}"'
    if shape.kind == "box":
        return f'box size="{_text(shape.size)}"'
    numbers = (f'{key}="{_text([x])}"' for key, x in zip(("radius", "length"), shape.size, strict=False))
    return f"{shape.kind} {' '.join(numbers)}"


def _mimics(couplings: Sequence[Coupling], report: Report) -> dict[str, str]:
    """Return the <mimic> elements by joint; couplings of other forms are reported."""
    out = {}
    for coupling, other, ratio in linear_couplings(couplings, report, single=True):
        numbers = f'multiplier="{_text([ratio])}" offset="{_text([coupling.offset])}"'
        out[coupling.joint] = f"    <mimic joint={quoteattr(other)} {numbers}/>"
    return out


def _joint(joint: Joint, parent: str, child: str, origin: str, mimic: str | None) -> Iterable[str]:
    low, high = ends(joint.limits.lower, -math.inf), ends(joint.limits.upper, math.inf)
    bounded = math.isfinite(low) or math.isfinite(high)
    kind = "continuous" if joint.kind == "revolute" and not bounded else KINDS[joint.kind]
    yield f'  <joint name={quoteattr(joint.name)} type="{kind}">'
    yield f"    {origin}"
    yield f"    <parent link={parent}/>"
    yield f"    <child link={quoteattr(child)}/>"
    if joint.kind in ("revolute", "prismatic"):
        axis = [float(row[2]) for row in joint_kinds.kind(joint.kind).frame(joint)]
        most = f'effort="{_bound(joint.limits.effort)}" velocity="{_bound(joint.limits.velocity)}"'
        between = f'lower="{_text([max(low, -UNBOUNDED)])}" upper="{_text([min(high, UNBOUNDED)])}" '
        yield f'    <axis xyz="{_text(axis)}"/>'
        yield f"    <limit {'' if kind == 'continuous' else between}{most}/>"
        if joint.damping or joint.friction:
            yield f'    <dynamics damping="{_text(joint.damping or [0])}" friction="{_text(joint.friction or [0])}"/>'
    if mimic:
        yield mimic
    yield "  </joint>"


def _frame(frame: Frame, names: _Names, origin: str) -> Iterable[str]:
    yield f"  <link name={quoteattr(frame.name)}/>"
    yield f'  <joint name={quoteattr(free_name(f"{frame.name}_fixed", names.joints))} type="fixed">'
    yield f"    {origin}"
    yield f"    <parent link={names.link(frame.body)}/>"
    yield f"    <child link={quoteattr(frame.name)}/>"
    yield "  </joint>"


def _loop_joints(loops: Sequence[Loop], names: _Names, report: Report) -> Iterator[str]:
    """Return loops as <loop_joint>, of which only few programs know."""
    for loop in loops:
        if loop.kind not in LOOPS:
            report_acting(report, f"{loop.kind} loop {loop.name!r}")
            continue
        report.changed(f"loop {loop.name!r} is a <loop_joint>, which few programs read: others see an open mechanism")
        yield f'  <loop_joint name={quoteattr(loop.name)} type="{LOOPS[loop.kind]}">'
        for k, (body, placement) in enumerate(((loop.body_a, loop.placement_a), (loop.body_b, loop.placement_b))):
            numbers = f'xyz="{_text(placement.translation)}" rpy="{_text(rpy_of(placement.rotation))}"'
            yield f"    <link{k + 1} link={names.link(body)} {numbers}/>"
        if loop.kind in ("revolute", "prismatic"):
            yield f'    <axis xyz="{_text(loop.axis)}"/>'
        yield "  </loop_joint>"


def _origin(placement: Placement, place: str, written: Written) -> str:
    angles = rpy_of(placement.rotation)
    return f'<origin xyz="{written(f"{place}.xyz", placement.translation)}" rpy="{written(f"{place}.rpy", angles)}"/>'


def _bound(limit: Sequence[Scalar]) -> str:
    return _text([ends(limit, UNBOUNDED)])


def _text(numbers: Sequence[Scalar]) -> str:
    return " ".join(repr(float(x)) for x in numbers)

"""Similar mechanisms of other lengths and masses: the same motion, with times in proportion to the root of lengths."""

from __future__ import annotations

from dataclasses import replace

from kinetree import joints
from kinetree.model import Body, Coupling, Joint, Loop, Mechanism, Placement
from kinetree.model.axes import axis_names
from kinetree.model.mechanism import resolve_parts


def scaled(mechanism: Mechanism, length: float, mass: float) -> Mechanism:
    """Return the similar mechanism with lengths and masses multiplied, under the same gravity."""

    def moved(p: Placement) -> Placement:
        return replace(p, translation=tuple(length * x for x in p.translation))

    def body(b: Body) -> Body:
        moments = tuple(mass * length**2 * x for x in b.inertia)
        return Body(b.name, mass * b.mass, tuple(length * x for x in b.com), moments)

    def joint(j: Joint) -> Joint:
        units = joints.kind(j.kind).UNITS
        armature = tuple(mass * a * (length**2 if u == "rad" else 1.0) for a, u in zip(j.armature, units, strict=False))
        return Joint(
            j.name, j.kind, j.parent, j.child, moved(j.placement), j.axis, j.axis2, length * j.pitch, j.sequence,
            armature=armature,
        )  # fmt: skip

    def loop(x: Loop) -> Loop:
        return replace(
            x,
            placement_a=moved(x.placement_a),
            placement_b=moved(x.placement_b),
            pitch=length * x.pitch,
            length=length * x.length,
        )

    bodies, joints_, loops = resolve_parts((mechanism.bodies, mechanism.joints, mechanism.loops), mechanism.values())
    units: dict[str, list[float]] = {}
    for name, _, unit in axis_names(mechanism, 0):
        units.setdefault(name, []).append(length if unit == "m" else 1.0)

    def coupling(c: Coupling) -> Coupling:
        (own,) = units[c.joint]
        terms = tuple((n, ratio * own / units[n][0]) for n, ratio in c.terms)
        return replace(c, terms=terms, offset=own * c.offset)

    couplings = tuple(map(coupling, resolve_parts(mechanism.couplings, mechanism.values())))
    guess = tuple((n, tuple(x * u for x, u in zip(q, units[n], strict=True))) for n, q in mechanism.guess)
    return replace(
        mechanism,
        bodies=tuple(map(body, bodies)),
        joints=tuple(map(joint, joints_)),
        loops=tuple(map(loop, loops)),
        couplings=couplings,
        forces=(),
        parameters=(),
        frames=(),
        guess=guess,
    )

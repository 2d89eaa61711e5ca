"""Numbers of mechanisms as free parameters: values, names, formulas, and what cannot be freed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import kinetree as kt
from kinetree.errors import InputError
from kinetree.model.freeing import adjustable
from kinetree.model.mechanism import resolve_parts
from tolerance import assert_close

RNG = np.random.default_rng(5)


def named(system: kt.System) -> list[str]:
    """Return the names of the free parameters."""
    return [p.name for p in system.mechanism.free_parameters]


@pytest.mark.parametrize("name", ["stanford", "four_bar", "charmie_torso", "gear_train", "differential_drive"])
def test_every_number_stays_as_it_is_and_changes_alone(name):
    """Free each adjustable number, find the same mechanism at its value, and one changed number at another."""
    system = kt.load(name)
    plain = resolve_parts(replace(system.mechanism, parameters=()), system.mechanism.values())
    found = adjustable(system.mechanism)
    assert len(found) > 20 and len({x.name for x in found}) == len(found)
    for x in found:
        freed = kt.with_free(system, x.name)
        assert isinstance(freed, kt.System) and named(freed) == [*named(system), x.name]
        own = freed.mechanism
        values = own.values()
        same = resolve_parts(replace(own, parameters=()), values)
        assert _numbers(same) == pytest.approx(_numbers(plain), rel=1e-15, abs=1e-15)
        other = resolve_parts(replace(own, parameters=()), values | {x.name: 1.7 * x.value + 0.3})
        assert _numbers(other) != pytest.approx(_numbers(plain), rel=1e-12, abs=1e-12)


def _numbers(x) -> list[float]:
    """Return all numbers of a mechanism in order, with zeros where tuples may be empty."""
    if isinstance(x, float | int) and not isinstance(x, bool):
        return [float(x)]
    if isinstance(x, tuple | list):
        return [y for item in x for y in _numbers(item)]
    if hasattr(x, "__dataclass_fields__"):
        out = []
        for key in x.__dataclass_fields__:
            value = getattr(x, key)
            if key in ("damping", "friction", "armature"):
                value = (sum(value), sum(v * v for v in value))
            out += _numbers(value)
        return out
    return []


def test_dynamics_of_freed_numbers_are_those_of_other_mechanisms():
    """Vary mass, inertia, center of mass and length of an imported arm, against mechanisms with these numbers."""
    arm = kt.load("puma560")
    freed = kt.with_free(arm, "mass.*", "inertia.link3", "com.link2", "length.joint4", "damping.joint5")
    free = named(freed)
    assert free[:6] == [f"mass.link{k}" for k in range(1, 7)] and "inertia.link3" in free and "com.link2.y" in free
    values = {
        "mass.link4": 1.93,
        "inertia.link3": 1.41,
        "com.link2.y": 0.037,
        "length.joint4": 0.51,
        "damping.joint5": 0.7,
    }
    m = arm.mechanism

    def body(b: kt.Body) -> kt.Body:
        if b.name == "link4":
            return replace(b, mass=1.93)
        if b.name == "link3":
            return replace(b, inertia=tuple(1.41 * x for x in b.inertia))
        return replace(b, com=(b.com[0], 0.037, b.com[2])) if b.name == "link2" else b

    def joint(j: kt.Joint) -> kt.Joint:
        if j.name == "joint4":
            way = np.array(j.placement.translation)
            return replace(j, placement=kt.Placement(tuple(way * 0.51 / np.linalg.norm(way)), j.placement.rotation))
        return replace(j, damping=(0.7,)) if j.name == "joint5" else j

    other = kt.System(replace(m, bodies=tuple(map(body, m.bodies)), joints=tuple(map(joint, m.joints))))
    q, qd, qdd = RNG.normal(size=(3, 6))
    expected = other.inverse_dynamics(q, qd, qdd)
    found = freed.inverse_dynamics(q, qd, qdd, parameters=values)
    assert_close(found, expected, 1e-12 * np.abs(expected).max(), "torques")
    assert np.abs(expected - arm.inverse_dynamics(q, qd, qdd)).max() > 1e-2
    by_mass = freed.function("inverse_dynamics").jacobian("parameters")(
        q, qd, qdd, [p.value for p in freed.mechanism.free_parameters]
    )
    h = 0.01  # torques are linear in masses
    slope = freed.inverse_dynamics(
        q, qd, qdd, parameters={"mass.link4": m.body("link4").mass + h}
    ) - arm.inverse_dynamics(q, qd, qdd)
    assert_close(by_mass[:, 3], slope / h, 1e-9 * np.abs(slope / h).max(), "derivative with respect to a mass")


def test_patterns_name_stems_and_entries():
    """Find what patterns select, and the same kind of object as was given."""
    arm = kt.load("stanford")
    assert named(kt.with_free(arm, "inertia.link[23]")) == ["inertia.link2", "inertia.link3"]
    assert named(kt.with_free(arm, "inertia.*.xx", "gravity")) == [
        *(f"inertia.link{k}.xx" for k in range(1, 7)), *(f"gravity.{x}" for x in "xyz"),
    ]  # fmt: skip
    assert all("." not in name.removeprefix("length.") for name in named(kt.with_free(arm, "length.*")))
    assert named(kt.with_free(arm, "length.joint1.z")) == ["length.joint1.z"]
    assert isinstance(kt.with_free(arm.mechanism, "mass.link1"), kt.Mechanism)
    bars = kt.load("parallelogram")
    fixed = [p.name for p in bars.mechanism.parameters if not p.free]
    assert fixed and named(kt.with_free(bars, fixed[0])) == fixed[:1]


def test_freed_mechanisms_are_saved_and_loaded(tmp_path):
    """Write names with dots, and with characters that formulas need braces for, and read the same mechanism."""
    m = kt.load("planar_2r").mechanism
    dashed = tuple(replace(b, name=b.name + " 1-a") for b in m.bodies)
    renamed = {b.name: b.name + " 1-a" for b in m.bodies}
    joints = tuple(replace(j, parent=renamed.get(j.parent, j.parent), child=renamed[j.child]) for j in m.joints)
    frames = tuple(replace(f, body=renamed.get(f.body, f.body)) for f in m.frames)
    for given in (m, replace(m, bodies=dashed, joints=joints, frames=frames)):
        freed = kt.with_free(given, "mass.*", "inertia.*", "length.*")
        kt.save(freed, tmp_path / "x.toml")
        again = kt.load(tmp_path / "x.toml")
        assert again.mechanism.hash == freed.hash


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        (["mass.lnk3"], "no number of 'stanford' matches 'mass.lnk3'; available: mass.link3, mass.link"),
        (["weight.*"], "no number of 'stanford' matches 'weight.*'; kinds: mass, com, inertia, length, damping"),
        (
            ["inertia.link3", "inertia.link3.xx"],
            "'inertia.link3' and 'inertia.link3.xx' change the same numbers of",
        ),
        ([3], "with_free takes patterns of names such as 'mass.*', not 3"),
    ],
)
def test_unknown_patterns_are_refused(patterns, message):
    """List what is available, nearest first."""
    with pytest.raises(InputError) as caught:
        kt.with_free(kt.load("stanford"), *patterns)
    assert str(caught.value).startswith(message)


def test_studies_free_what_they_vary():
    """Vary masses of a library arm in a study and an optimum, against runs of a freed one."""
    arm = kt.load("planar_2r")
    first, second = (b.name for b in arm.bodies)
    options = {
        "measures": {"most": kt.peak(f"control.{arm.joints[0].name}")},
        "motion": {j.name: kt.Cycloid(0.1, 1.2, 0.8) for j in arm.joints}, "duration": 0.8,
    }  # fmt: skip
    found = kt.study(arm, {f"mass.{first}": kt.grid([0.7, 1.9])}, **options)
    freed = kt.with_free(arm, "mass.*")
    again = kt.study(freed, {f"mass.{first}": kt.grid([0.7, 1.9])}, **options)
    assert_close(found["most"], again["most"], 1e-12, "peaks")
    assert found["most"][1] > found["most"][0] * 1.05
    fixed = kt.study(freed, {f"length.{arm.joints[1].name}": kt.grid([0.4])}, parameters=[2.0, 3.0], **options)
    by_name = kt.study(
        kt.with_free(freed, "length.*"), {f"length.{arm.joints[1].name}": kt.grid([0.4])},
        parameters={f"mass.{first}": 2.0, f"mass.{second}": 3.0}, **options,
    )  # fmt: skip
    assert_close(fixed["most"], by_name["most"], 1e-12, "given values of parameters that were free before")
    best = kt.optimize(arm, {f"mass.{second}": (0.4, 2.0)}, minimize="most", **options)
    assert_close(best.values[f"mass.{second}"], 0.4, 1e-6, "the lightest link")

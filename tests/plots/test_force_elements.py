"""Drawings of springs, dampers and actuators: between the points of their bodies, in pictures and in pages."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import kinetree as kt
from browser import browser, needs_browser, opened
from kinetree.page import kernel
from kinetree.page.data import page_scene
from kinetree.page.table import placements_program
from kinetree.plots import animation, links, meshes
from kinetree.plots.camera import fit
from kinetree.plots.links import rgb
from kinetree.plots.meshes import MARKS
from kinetree.plots.skeleton import scene
from kinetree.results import Trajectory
from tolerance import assert_close

SPRUNG = """\
[mechanism]
name = "carriages"
gravity = [0, 0, -9.81]

[parameters]
high = { value = 1.2, free = true, unit = "m" }

[[body]]
name = "upper"
mass = 2.1
inertia = [0.011, 0.012, 0.013, 0, 0, 0]

[[body]]
name = "lower"
mass = 1.3
inertia = [0.005, 0.006, 0.007, 0, 0, 0]

[[joint]]
name = "up"
kind = "prismatic"
parent = "ground"
child = "upper"
axis = "z"

[[joint]]
name = "down"
kind = "prismatic"
parent = "upper"
child = "lower"
translation = [0.01, 0.02, -0.1]
axis = "z"

[[force]]
name = "coil"
kind = "spring_damper"
body_a = "ground"
body_b = "upper"
point_a = [0.03, 0.04, "high"]
coefficients = { stiffness = 210, damping = 1.1, free_length = 0.4 }

[[force]]
name = "dashpot"
kind = "spring_damper"
body_a = "ground"
body_b = "lower"
point_a = [0.3, 0, "high"]
point_b = [0.06, 0.02, 0]
coefficients = { damping = 3.1 }

[[force]]
name = "cylinder"
kind = "linear_actuator"
body_a = "upper"
body_b = "lower"
point_b = [-0.07, 0, 0.01]
coefficients = { force = 3.3 }

[[force]]
name = "inner"
kind = "joint_spring"
body_a = "upper"
body_b = "lower"
coefficients = { stiffness_1 = 80, rest_1 = -0.4 }
"""


@pytest.fixture(name="run")
def sprung(tmp_path) -> Trajectory:
    """Return a run of two carriages with an element of each kind."""
    (tmp_path / "sprung.toml").write_text(SPRUNG)
    t = np.array([0.0, 0.7])
    q = np.array([[0.61, -0.32], [0.43, -0.21]])
    return Trajectory(kt.load(tmp_path / "sprung.toml"), t, q, np.zeros((2, 2)), parameters=[1.4])


def test_elements_lead_from_point_to_point(run):
    """Draw a spring with a damper inside, a damper, an actuator, and the spring of a sliding joint, at their points."""
    drawn = [(r.solid, r.a, r.point_a, r.b, r.point_b) for r in scene(run).rods if r.pin]
    assert drawn == [
        ("spring", -1, (0.03, 0.04, 1.4), 0, (0.0, 0.0, 0.0)),
        ("damper", -1, (0.03, 0.04, 1.4), 0, (0.0, 0.0, 0.0)),
        ("damper", -1, (0.3, 0.0, 1.4), 1, (0.06, 0.02, 0.0)),
        ("actuator", 0, (0.0, 0.0, 0.0), 1, (-0.07, 0.0, 0.01)),
        ("spring", 0, (0.01, 0.02, -0.1), 1, (0.0, 0.0, 0.0)),
    ]


def test_the_view_shows_their_points(run):
    """Fit the view to points of the ground at which elements are held, and measure the mechanism by them."""
    drawn = scene(run)
    assert drawn.size > 1.4
    places, _ = fit(drawn, run["poses"]).camera.project(np.array([[0.03, 0.04, 1.4], [0.3, 0.0, 1.4]]))
    assert (np.abs(places) <= [4 / 3, 1.0]).all()


def test_bodies_reach_the_points_of_their_elements():
    """Draw a rod to a point of a body to which a spring is attached, unless the body's box contains it."""
    inertia = (0.01, 0.01, 0.01, 0.0, 0.0, 0.0)
    element = kt.ForceElement("s", "spring_damper", kt.GROUND, "b", (0, 0, 1), (0, 0, 0.9), (("stiffness", 3.0),))
    for point, rods in (((0.0, 0.3, 0.9), 1), ((0.0, 0.01, 0.02), 0)):
        body, slide = kt.Body("b", 1.0, (0, 0, 0), inertia), kt.Joint("j", "free", kt.GROUND, "b")
        near = kt.ForceElement(**{**vars(element), "point_b": point})
        system = kt.System(kt.build_mechanism("m", [body], [slide], forces=[near]))
        still = Trajectory(system, np.zeros(1), system.neutral()[None], np.zeros((1, 6)))
        assert [r.point_b for r in scene(still).rods if r.a == r.b == 0] == [point] * rods


def test_springs_of_hinges_are_left_out():
    """Draw no line for a spring that resists a rotation."""
    joint = kt.Joint("j", "revolute", kt.GROUND, "b")
    element = kt.ForceElement("s", "joint_spring", kt.GROUND, "b", coefficients=(("stiffness_1", 3.0),))
    assert links.between_points([element], [joint]) == []


def test_a_coil_is_wound_about_its_line():
    """Find a coil of unit radius and length, whose wire has normals away from its middle line."""
    coil = meshes.solid("spring")
    low, high = coil.vertices.min(axis=0), coil.vertices.max(axis=0)
    wire = meshes.WIRE[0]
    assert_close([low[2], high[2]], [-0.5, 0.5], 2e-3, "length")
    assert_close([-low[0], high[0], -low[1], high[1]], [1 + wire] * 4, 0.06, "radius")
    stretched = np.array([1.0, 1.0, wire / meshes.WIRE[1]])  # where the wire is round
    a, b, c = np.moveaxis((coil.vertices * stretched)[coil.faces], 1, 0)
    outward = np.einsum("ni,nki->nk", np.cross(b - a, c - a), (coil.normals / stretched)[coil.faces])
    assert (outward > 0).mean() > 0.99


def test_pictures_have_springs(run):
    """Draw the springs of a picture in steel, from their upper points to the bodies where they are now."""
    stage = animation._Stage(scene(run), run["poses"], (320, 240))
    corners, colors = stage._faces(run["poses"][1])
    steel = corners[(colors == rgb(links.STEEL)).all(axis=-1)]
    assert_close([steel[..., 2].min(), steel[..., 2].max()], [0.43 - 0.1 - 0.21, 1.4], 0.02, "heights")


def test_pages_have_their_solids(run):
    """Give a page the solids that its rods use, and no others."""
    drawn = scene(run)
    found = page_scene(drawn, run["poses"], standing=False)
    used = {r.solid for r in (*drawn.rods, *drawn.shells)}
    assert list(found["solids"])[:3] == ["rod", "cone", "ball"] and set(found["solids"]) == used | {*MARKS}
    assert used >= {"spring", "damper", "actuator"}
    assert len(found["ranges"]) == len(run.system.bodies) + 1 + len(found["solids"])
    bare = replace(drawn, rods=tuple(r for r in drawn.rods if r.solid == "rod"), shells=())
    assert list(page_scene(bare, run["poses"], standing=False)["solids"]) == ["rod", "cone", "ball"]


def test_the_energy_of_springs_is_a_function_of_the_page(run):
    """Compute the energy of a spring between points and of one in a joint; mechanisms without springs have none."""
    program = kernel.MADE["spring_energy"](run.system, "")
    (energy,) = program.interpret(np.zeros(1), run.q[0], np.zeros(2), np.array([1.4]))
    length = np.linalg.norm([0.03, 0.04, 1.4 - 0.61])
    assert_close(energy, [0.5 * 210 * (length - 0.4) ** 2 + 0.5 * 80 * 0.08**2], 1e-13, "energy")
    assert kernel.MADE["spring_energy"](kt.load("planar_2r"), "") is None


def test_points_follow_parameters(run):
    """Compute the points of elements for another parameter."""
    program = placements_program(run.system.mechanism)
    assert program is not None
    (points,) = program.interpret(np.array([1.7]))
    expected = [[0.03, 0.04, 1.7], [0, 0, 0], [0.3, 0, 1.7], [0.06, 0.02, 0], [0, 0, 0], [-0.07, 0, 0.01],
                [0.01, 0.02, -0.1], [0, 0, 0]]  # fmt: skip
    assert_close(np.reshape(points, (8, 3)), expected, 1e-16, "points")


def test_rods_of_elements_know_their_element(run):
    """Number the rods of elements as the elements of a page are, so that each follows the points of its own."""
    numbers = [r["element"] for r in page_scene(scene(run), run["poses"], standing=False)["rods"] if r["pin"]]
    assert numbers == [0, 0, 1, 2, 3]
    assert {r.element for r in scene(run).rods if not r.pin} == {-1}


BESIDE = SPRUNG.replace("[[body]]", """beside = { value = 0.06, free = true, unit = "m" }
zero = { value = 0, free = true, unit = "m" }

[[body]]""", 1).replace("point_b = [0.06,", 'point_b = ["beside",').replace(
    "point_b = [-0.07, 0, 0.01]", "point_a = [\"zero\", 0, 0]\npoint_b = [-0.07, 0, 0.01]"
) + """
[[frame]]
name = "eye"
body = "lower"
translation = [0.06, 0.02, 0]
"""  # fmt: skip
"""Carriages with a damper at the place of a frame, and an actuator at an origin, until their parameters change."""


@pytest.mark.slow
@needs_browser
def test_points_at_the_place_of_others(tmp_path):
    """Move the point of a damper away from a frame, and that of an actuator from an origin, by their parameters."""
    (tmp_path / "beside.toml").write_text(BESIDE)
    system = kt.load(tmp_path / "beside.toml")
    file = system.page(q=[0.61, -0.32]).save(tmp_path / "page.html")
    ends = "kinetree.data.scene.rods.filter((rod) => rod.pin).map((rod) => [rod.pa, rod.pb])"
    with browser() as chromium, opened(chromium, file) as page:
        values = {"high": 1.2, "beside": 0.16, "zero": 0.11}
        numbers = [values[p.name] for p in system.mechanism.free_parameters]
        page.evaluate(f"kinetree.store.set({{ parameters: Float64Array.from({numbers}) }})")
        found = page.evaluate(ends)
        assert_close(found[2], [[0.3, 0, 1.2], [0.16, 0.02, 0]], 1e-15, "damper")
        assert_close(found[3], [[0.11, 0, 0], [-0.07, 0, 0.01]], 1e-15, "actuator")


@pytest.mark.slow
@needs_browser
def test_springs_move_in_a_page(run, tmp_path):
    """Move a body and a parameter in a browser: the spring stays between its points."""
    file = run.system.page(q=[0.61, -0.32]).save(tmp_path / "page.html")
    ends = """() => {
        kinetree.stage.draw();
        const { first } = kinetree.stage.solid("spring");
        const { matrix: m } = kinetree.stage.items.find((item) => item.first === first);
        return [-0.5, 0.5].map((s) => [0, 1, 2].map((k) => m[12 + k] + s * m[8 + k]));
    }"""
    with browser() as chromium, opened(chromium, file) as page:
        assert_close(page.evaluate(ends), [[0.03, 0.04, 1.2], [0, 0, 0.61]], 1e-6, "at first")
        page.evaluate("kinetree.store.set({ q: Float64Array.from([0.83, -0.32]) })")
        assert_close(page.evaluate(ends), [[0.03, 0.04, 1.2], [0, 0, 0.83]], 1e-6, "moved")
        page.evaluate("kinetree.store.set({ parameters: Float64Array.from([1.9]) })")
        assert_close(page.evaluate(ends), [[0.03, 0.04, 1.9], [0, 0, 0.83]], 1e-6, "held higher")


@pytest.mark.slow
@needs_browser
def test_the_energy_of_springs_is_counted(tmp_path):
    """Let a mass swing on an undamped spring in a browser: the sum of its energies stays, with that of the spring."""
    body = kt.Body("b", 1.7, (0, 0, 0), (0.01, 0.01, 0.01, 0, 0, 0))
    spring = kt.ForceElement(
        "s", "spring_damper", kt.GROUND, "b", (0, 0, 1.1), (0, 0, 0), (("stiffness", 90.0), ("free_length", 0.3))
    )
    system = kt.System(
        kt.build_mechanism("m", [body], [kt.Joint("j", "prismatic", kt.GROUND, "b", axis="z")], forces=[spring])
    )
    file = system.page(q=[0.4], editable=False).save(tmp_path / "page.html")
    swing = """() => {
        kinetree.store.set({ mode: "Simulate" });
        const motion = kinetree.store.get("motion");
        motion.extend(1.0, { patience: 1e5 });
        const column = motion.columns.find((x) => x.name === "energy");
        return [kinetree.kernel.energies([0.4], [0]), column.labels, column.values.map((x) => Array.from(x))];
    }"""
    with browser() as chromium, opened(chromium, file) as page:
        energies, labels, values = page.evaluate(swing)
        assert labels == ["kinetic", "potential", "springs", "total"]
        assert_close(energies["springs"], 0.5 * 90.0 * 0.4**2, 1e-12, "energy of the spring")
        assert_close(energies["total"], 0.5 * 90.0 * 0.4**2 + 1.7 * 9.81 * 0.4, 1e-12, "sum")
        assert len(values[3]) > 50 and np.ptp(values[2]) > 1.0
        assert_close(values[3], [energies["total"]] * len(values[3]), 1e-8, "sum over time")

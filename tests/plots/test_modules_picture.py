"""The picture of the kinematic modules: its content for trees, long chains, loops and awkward names."""

from __future__ import annotations

import pytest
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

import everyday
import kinetree as kt
from kinetree.model import Body, Joint, Loop, Mechanism, build_mechanism
from kinetree.plots.modules_picture import modules_picture


def words(figure) -> list[str]:
    """Return every text on a figure."""
    return [t.get_text() for t in figure.axes[0].texts]


@pytest.mark.parametrize(
    ("name", "modules", "first"), everyday.some([("biped", 3, 0), ("charmie", 8, 1), ("quadruped", 5, 0)])
)
def test_every_link_and_module_is_drawn(name, modules, first, tmp_path):
    """Find each link's name once, each module's label, and one box for each link and module; write the file."""
    mechanism = kt.load(name).mechanism
    figure = modules_picture(mechanism, tmp_path / "modules.png")
    text = words(figure)
    assert all(text.count(body.name) == 1 for body in mechanism.bodies)
    assert [t for t in text if t.startswith("$M")] == [f"$M_{{{k}}}$" for k in range(first, first + modules)]
    boxes = [p for p in figure.axes[0].patches if isinstance(p, FancyBboxPatch)]
    assert len(boxes) == modules + len(mechanism.bodies)
    assert f"{name}: {modules} modules, {len(mechanism.bodies)} links, {mechanism.nv} degrees of freedom" in text
    assert (tmp_path / "modules.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("ending", "start"), everyday.some([("svg", b"<?xml"), ("pdf", b"%PDF"), ("PNG", b"\x89PNG"), ("jpg", b"\xff")])
)
def test_pictures_have_the_format_of_their_ending(ending, start, tmp_path):
    """Write a picture in formats whose metadata have different keys, or none."""
    modules_picture(kt.load("biped").mechanism, tmp_path / f"modules.{ending}")
    assert (tmp_path / f"modules.{ending}").read_bytes().startswith(start)


@pytest.mark.parametrize("name", ["biped", "charmie", "quadruped", "gripper", "space_robot_dual_arm"])
def test_modules_do_not_overlap_and_stay_on_the_page(name):
    """Measure the boxes of the modules: none overlap, and none exceed the page."""
    figure = modules_picture(kt.load(name).mechanism)
    axes = figure.axes[0]
    boxes = [p for p in axes.patches if isinstance(p, FancyBboxPatch) and p.get_alpha() is not None]
    spans = [(p.get_x(), p.get_y(), p.get_x() + p.get_width(), p.get_y() + p.get_height()) for p in boxes]
    (right, top) = axes.get_xlim()[1], axes.get_ylim()[1]
    for k, (a, b, c, d) in enumerate(spans):
        assert a > 0.1 and b > 0.5 and c < right - 0.1 and d < top - 0.3
        for e, f, g, h in spans[:k]:
            assert c < e or g < a or d < f or h < b


def test_the_middle_of_a_long_chain_is_left_out():
    """Draw 60 links and find the first and the last ones, and dots between."""
    bodies = [Body(f"link{k}", 1.0, (0, 0, 0), (1, 1, 1, 0, 0, 0)) for k in range(60)]
    joints = [Joint(f"j{k}", "revolute", f"link{k - 1}" if k else "ground", f"link{k}") for k in range(60)]
    text = words(modules_picture(build_mechanism("rope", bodies, joints)))
    assert {"link0", "link59", ". . ."} <= set(text) and "link30" not in text


def test_loops_and_several_roots_are_drawn():
    """Close a loop between two chains on the ground and find a dashed line."""
    bodies = [Body(name, 1.0, (0, 0, 0), (1, 1, 1, 0, 0, 0)) for name in ("crank", "coupler", "rocker")]
    joints = [
        Joint("a", "revolute", "ground", "crank"),
        Joint("b", "revolute", "crank", "coupler"),
        Joint("c", "fixed", "ground", "rocker"),
    ]
    loops = [Loop("pin", "revolute", "coupler", "rocker"), Loop("foot", "revolute", "rocker", "ground")]
    figure = modules_picture(build_mechanism("four_bar", bodies, joints, loops=loops))
    dashed = [p for p in figure.axes[0].patches if isinstance(p, FancyArrowPatch)]
    assert len(dashed) == 2 and all(p.get_linestyle() in ("--", "dashed") for p in dashed)
    assert "fixed" in words(figure)


def test_awkward_names_are_drawn_as_they_are(tmp_path):
    """Draw a name with dollars and one of a hundred letters, and no mechanism at all."""
    bodies = [Body("$a_1", 1.0, (0, 0, 0), (1, 1, 1, 0, 0, 0)), Body("n" * 100, 1.0, (0, 0, 0), (1, 1, 1, 0, 0, 0))]
    joints = [Joint("j1", "revolute", "ground", "$a_1"), Joint("j2", "revolute", "$a_1", "n" * 100)]
    figure = modules_picture(build_mechanism("$x$", bodies, joints), tmp_path / "awkward.png")
    assert "$a_1" in words(figure) and "n" * 21 + "..." in words(figure)
    assert "empty: 0 modules, 0 links, 0 degrees of freedom" in words(modules_picture(Mechanism("empty")))

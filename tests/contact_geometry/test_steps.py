"""Steps: where points and balls belong near an edge."""

import pytest

from kinetree import Surface
from kinetree.contact_geometry.surfaces import FAR, Ball, on_treads, on_walls
from tolerance import assert_close

UP = Surface("steps", edges=(0.31,), heights=(-0.07, 0.16))
DOWN = Surface("steps", edges=(0.31,), heights=(0.16, -0.07))
STILL = (0.0, 0.0, 0.0)


def gaps(surface: Surface, beyond: float, z: float, radius: float = 0.0) -> tuple[float, float]:
    """Return the gaps of floor and wall for a ball so far beyond the edge, on the side of the upper tread."""
    x = 0.31 + beyond if surface is UP else 0.31 - beyond
    ball = Ball((x, 0.2, z), STILL, radius)
    return on_treads(surface, ball).gap, on_walls(surface, ball).gap


@pytest.mark.parametrize("surface", [UP, DOWN])
@pytest.mark.parametrize("into", [0.0, 1e-16, 1e-9, 0.013])
def test_a_point_pressed_into_a_riser_is_above_the_lower_tread(surface, into) -> None:
    """Keep the floor of a point that a time step or rounding moved into a riser."""
    floor, wall = gaps(surface, into, 0.043)
    assert_close(floor, 0.043 + 0.07, 1e-15, "gap of the lower tread")
    assert_close(wall, -into, 1e-15, "gap of the riser")


@pytest.mark.parametrize("surface", [UP, DOWN])
@pytest.mark.parametrize("beyond", [0.0, 0.012])
def test_a_point_on_the_edge_stands_on_the_upper_tread(surface, beyond) -> None:
    """Let points at an edge, and up to rounding below the upper tread, touch it."""
    for z in (0.16, 0.16 - 1e-11, 0.171):
        floor, wall = gaps(surface, beyond, z)
        assert_close(floor, z - 0.16, 1e-15, "gap of the upper tread")
        assert wall == FAR


@pytest.mark.parametrize("surface", [UP, DOWN])
@pytest.mark.parametrize("below", [-1e-3, 0.0, 1e-12, 1e-3])
def test_a_ball_beside_the_top_of_a_riser_always_touches_something(surface, below) -> None:
    """Let a ball pass the height of an edge without a gap in the surface."""
    assert_close(min(gaps(surface, -0.05, 0.16 - below, 0.04)), 0.01, 2e-5, "distance of the ball")
    assert_close(min(gaps(surface, 0.0, 0.16 + 0.05, 0.04)), 0.01, 1e-15, "distance above the edge")

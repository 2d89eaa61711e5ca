"""Places where shapes meet solids: gaps against MuJoCo's distances, and rates against finite differences."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import everyday
from kinetree.contact_geometry import candidates, labels
from kinetree.contact_geometry.surfaces import FAR
from tolerance import assert_close

SIZES = {"point": (), "sphere": (0.31,), "capsule": (0.17, 0.93), "box": (0.71, 0.93, 0.47)}
OTHER = {"sphere": (0.23,), "capsule": (0.19, 0.67), "box": (0.83, 0.59, 0.41)}
RANKS = ("point", "sphere", "capsule", "box")
PAIRS = [(shape, kind) for kind in OTHER for shape in RANKS[: RANKS.index(kind) + 1]]
GEOMS = {
    "point": 'type="sphere" size="1e-9"',
    "sphere": 'type="sphere" size="{0}"',
    "capsule": 'type="capsule" size="{0} {1}"',
    "box": 'type="box" size="{0} {1} {2}"',
}


def contact_of(shape: str, kind: str, size=None) -> SimpleNamespace:
    """Return a contact of a shape with a solid."""
    solid = SimpleNamespace(kind=kind, size=OTHER[kind])
    return SimpleNamespace(name="c", shape=shape, size=SIZES[shape] if size is None else size, surface=solid)


def candidates_at(contact, r, R, w=(0.0, 0.0, 0.0), v=(0.0, 0.0, 0.0)) -> list:
    """Return the candidates at a pose given as arrays."""
    return candidates(contact, *(np.asarray(x).tolist() for x in (r, R, w, v)))


def geom(name: str, shape: str, size) -> str:
    """Return a geom of MJCF, whose sizes are half lengths."""
    given = {"capsule": (size[0], size[1] / 2), "box": [x / 2 for x in size]} if len(size) > 1 else {}
    return f'<geom name="{name}" {GEOMS[shape].format(*given.get(shape, size))}/>'


class Distances:
    """MuJoCo's distance of two shapes, one of them at the origin."""

    def __init__(self, shape: str, kind: str) -> None:
        """Compile a model."""
        self.mujoco = pytest.importorskip("mujoco")
        self.model = self.mujoco.MjModel.from_xml_string(
            f"<mujoco><worldbody>{geom('a', kind, OTHER[kind])}<body><freejoint/>{geom('b', shape, SIZES[shape])}"
            '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody></mujoco>'
        )
        self.data = self.mujoco.MjData(self.model)

    def at(self, r, R: Rotation) -> float:
        """Return the distance at a pose."""
        self.data.qpos[:3], self.data.qpos[3:] = r, R.as_quat()[[3, 0, 1, 2]]
        self.mujoco.mj_kinematics(self.model, self.data)
        return float(self.mujoco.mj_geomDistance(self.model, self.data, 0, 1, 9.0, np.zeros(6)))


@pytest.mark.parametrize("shape, kind", everyday.some(PAIRS[::-1]))
def test_least_gaps_of_bodies_that_almost_touch_are_their_distances(shape, kind) -> None:
    """Move shapes towards a solid until they almost touch, and compare the least gap with MuJoCo's distance."""
    rng, referee = np.random.default_rng(5), Distances(shape, kind)
    for _ in range(25):
        R, along = Rotation.random(random_state=rng), rng.normal(size=3)
        along /= np.linalg.norm(along)
        near, far = 0.0, 3.0
        for _ in range(60):
            middle = 0.5 * (near + far)
            near, far = (near, middle) if referee.at(middle * along, R) > 1e-4 else (middle, far)
        gaps = [x.gap for x in candidates_at(contact_of(shape, kind), far * along, R.as_matrix())]
        if shape == "point" and min(gaps) == FAR:  # beside the faces of a box, which points touch alone
            continue
        assert_close(min(gaps), referee.at(far * along, R), 1e-6, f"gap of {shape} and {kind}")


@pytest.mark.parametrize("shape, kind", everyday.some(PAIRS))
def test_disjoint_bodies_have_no_gap_below_their_distance(shape, kind) -> None:
    """Compare gaps at random poses with MuJoCo's distance, also where edges and corners pass each other."""
    rng, referee, seen = np.random.default_rng(6), Distances(shape, kind), 0
    for _ in range(150):
        R, r = Rotation.random(random_state=rng), rng.normal(size=3) * 0.7
        distance = referee.at(r, R)
        if distance > 1e-3:
            seen += 1
            gaps = [x.gap for x in candidates_at(contact_of(shape, kind), r, R.as_matrix())]
            assert min(gaps) > distance - 1e-6, (shape, kind, r, R.as_quat(), min(gaps), distance)
    assert seen > 30


@pytest.mark.parametrize("shape, kind", PAIRS)
@given(seed=st.integers(0, 2**32 - 1))
def test_rates_are_those_of_the_geometry(shape, kind, seed) -> None:
    """Compare the velocity along normals with the rate of gaps, and the rates of equations with differences."""
    rng, contact = np.random.default_rng(seed), contact_of(shape, kind)
    R, r, w, v = Rotation.random(random_state=rng), *rng.normal(size=(3, 3))

    def moved(h: float) -> list:
        return candidates_at(contact, r + h * v, (Rotation.from_rotvec(h * w) * R).as_matrix(), w, v)

    def velocity(x) -> np.ndarray:
        return np.array([np.dot(e.n, w) + np.dot(e.f, v) for e in x.equations])

    h = 1e-6
    before, now, after = moved(-h), moved(0.0), moved(h)
    assert len(now) == len(labels(contact)) == len(set(labels(contact)))
    for a, x, b in zip(before, now, after, strict=True):
        smooth = max(np.abs(np.subtract(b.axes, x.axes)).max(), np.abs(np.subtract(a.axes, x.axes)).max()) < 1e-3
        if x.gap == FAR or FAR in (a.gap, b.gap) or not smooth or abs(b.gap - 2 * x.gap + a.gap) > 1e-9:
            continue
        assert_close((b.gap - a.gap) / (2 * h), velocity(x)[0], 1e-6, "rate of a gap")
        rates = np.array([np.dot(e.dn, w) + np.dot(e.df, v) for e in x.equations])
        second = np.abs(velocity(b) - 2 * velocity(x) + velocity(a)).max()
        if second < 1e-8:
            found = (velocity(b) - velocity(a)) / (2 * h)
            assert_close(found / (1 + abs(rates).max()), rates / (1 + abs(rates).max()), 1e-6, "rates of equations")


@pytest.mark.parametrize("kind", ["capsule", "box"])
@pytest.mark.parametrize("tilt", [-1e-3, -1e-9, 0.0, 1e-9, 1e-3])
def test_capsules_lie_on_two_ends(kind, tilt) -> None:
    """Lay a capsule along a face or another capsule, a little tilted either way: the ends of the overlap carry it."""
    height = (OTHER[kind][0] / 2 if kind == "box" else OTHER[kind][0]) + SIZES["capsule"][0]
    found = candidates_at(contact_of("capsule", kind), (height, 0.03 * (kind == "box"), 0.1), turned_about_y(tilt))
    near = sorted({round(0.1 + x.arm[2], 3) for x in found if abs(x.gap) < 1e-3})
    half = OTHER[kind][-1] / 2
    assert_close(near, [0.1 - SIZES["capsule"][1] / 2 if half > 0.4 else -half, half], 1e-3, "ends of the overlap")


def turned_about_y(angle: float) -> np.ndarray:
    """Return a rotation."""
    return Rotation.from_euler("y", angle).as_matrix()


def faces(angle: float, shift: float = 0.0, gap: float = 0.0) -> np.ndarray:
    """Return the points [k, 3] at which a box lies on another one of the same base, turned about the vertical."""
    contact = contact_of("box", "box", (0.83, 0.59, 0.71))
    r = (shift, 0.3 * shift, (0.41 + 0.71) / 2 + gap)
    found = candidates_at(contact, r, Rotation.from_euler("z", angle).as_matrix())
    return np.array([np.add(r, x.arm) for x in found if abs(x.gap) < 1e-9])


@pytest.mark.parametrize("angle", [0.0, 1e-12, 3e-8, 1.5e-7, 7e-7, 2e-6, 1e-4, 0.1, 0.7, np.pi / 2 - 1e-7, 1.5])
@pytest.mark.parametrize("shift", [0.0, 1e-9, 0.1, 0.52])
def test_boxes_lie_on_the_polygon_that_their_faces_share(angle, shift) -> None:
    """Turn and shift a box on another one, and find the corners of the common polygon by clipping."""
    found = faces(angle, shift)[:, :2]
    a, b = 0.83 / 2, 0.59 / 2
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    polygon = [turn @ x + (shift, 0.3 * shift) for x in ((-a, -b), (a, -b), (a, b), (-a, b))]
    for axis, sign, limit in ((0, 1, a), (0, -1, a), (1, 1, b), (1, -1, b)):
        polygon = clipped(polygon, axis, sign, limit)
    along = np.array([[np.cos(x), np.sin(x)] for x in np.linspace(0, 2 * np.pi, 101)])
    widths = [(along @ np.array(x).T).max(axis=1) for x in (found, polygon)]
    assert_close(*widths, 3e-6, "extent of the points in all directions")


def clipped(polygon: list, axis: int, sign: int, limit: float) -> list:
    """Return the part of a polygon on one side of a line."""
    out = []
    for p, q in zip(polygon, polygon[1:] + polygon[:1], strict=True):
        x, y = limit - sign * p[axis], limit - sign * q[axis]
        if x >= 0:
            out.append(p)
        if x * y < 0:
            out.append(p + (q - p) * x / (x - y))
    return out

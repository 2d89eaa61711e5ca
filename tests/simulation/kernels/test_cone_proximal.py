"""Boxes that land on redundant corners, which cannot all stick: residuals of the laws in every step."""

from __future__ import annotations

import numpy as np
import pytest

import host_gpu
import kinetree as kt
from contacted import touching
from kinetree.simulation.contact import cone_solves

SIZE = (0.4, 0.3, 0.2)


def box(friction: float, *, restitution: float = 0.0, face: bool = True) -> kt.System:
    """Return a free box with contacts at the four corners of its lower face, or at all corners."""
    body = kt.Body("box", 2.0, (0.01, -0.02, 0.015), (0.02, 0.03, 0.04, 0.001, 0.0, 0.002))
    mechanism = kt.build_mechanism("box", [body], [kt.Joint("base", "free", "ground", "box")])
    laws: dict = {"friction": friction, "restitution": restitution}
    places = [(x, y, -0.1) for y in (-0.15, 0.15) for x in (-0.2, 0.2)]
    corners = [kt.Contact(f"c{k}", "box", "point", (), place, **laws) for k, place in enumerate(places)]
    return kt.System(touching(mechanism, *(corners if face else [kt.Contact("box", "box", "box", SIZE, **laws)])))


def landing(system: kt.System, count: int, dtype: str | None = None) -> kt.Trajectory:
    """Return runs of boxes that fall on a face, an edge or a corner, slip, rock and rest; with a dtype, on a GPU."""
    rng = np.random.default_rng(7)
    q = np.tile(system.neutral(), (count, 1))
    q[:, 2] = rng.uniform(0.1, 0.25, size=count)
    qd = rng.normal(size=(count, 6))
    start = (q, qd) if dtype is None else (q.astype(dtype), qd.astype(dtype))
    which = system if dtype is None else system.on("cuda")
    return kt.simulate(which, *start, times=np.arange(401) * 1e-3, method="moreau", dt=1e-3)


def assert_laws(run: kt.Trajectory, residual: float) -> None:
    """Bound the residuals of all steps, and the energy by that of the start."""
    assert run.status == "finished"
    pressed = (run["contact_forces"][..., 0] > 0.0).any(axis=-1)
    assert pressed.mean() > 0.2
    assert run["contact_residuals"].max() < residual
    energy = run["energy"]
    assert (energy - energy[:, :1]).max() < 1e-3 * energy.max()  # 3e-4 in flight: the order of the steps


def test_redundant_corners_satisfy_the_laws():
    """Let boxes land on four corners, and find residuals of rounding in all steps."""
    assert_laws(landing(box(1.2), 24), 1e-10)


@pytest.mark.slow
def test_proximal_steps_are_required(monkeypatch):
    """Leave out proximal steps, and find residuals in some of the same steps."""
    monkeypatch.setattr(cone_solves, "PROXIMAL", 0)
    assert landing(box(1.2), 24)["contact_residuals"].max() > 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("face", [True, False], ids=["face", "box"])
@pytest.mark.parametrize(("friction", "restitution"), [(0.2, 0.0), (0.35, 0.0), (0.8, 0.0), (1.2, 0.0), (0.5, 0.4)])
def test_many_boxes_satisfy_the_laws(face, friction, restitution):
    """Let many boxes land, with and without restitution, and find residuals of rounding in all steps."""
    assert_laws(landing(box(friction, restitution=restitution, face=face), 128), 1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "residual"), [("float64", 1e-10), ("float32", 1e-3)])
def test_boxes_satisfy_the_laws_on_a_gpu(dtype, residual, monkeypatch):
    """Let boxes land on a stand-in for a GPU, and bound the residuals of all steps."""
    host_gpu.install(monkeypatch)
    assert_laws(landing(box(0.8), 24, dtype), residual)

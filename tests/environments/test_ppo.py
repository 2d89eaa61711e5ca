"""The example that learns policies by itself."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "ppo.py"


@pytest.fixture
def ppo():
    """Return the example as a module."""
    pytest.importorskip("torch")
    spec = importlib.util.spec_from_file_location("ppo", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = sys.modules["ppo"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_cart_pole_is_learned(ppo):
    """Learn CartPole from nothing: 100 episodes have a mean return of 475."""
    curve = ppo.Learner("CartPole", seed=1).learn(300.0, quiet=True)
    assert curve[0][1] < 100.0 and curve[-1][1] >= ppo.SOLVED["CartPole"]


@pytest.mark.gpu
def test_a_quadruped_learns_on_a_gpu(ppo):
    """Learn for some seconds without the host: episodes of falling quadrupeds become walks, of 1,050 at most."""
    learner = ppo.Learner("Quadruped", "cuda", envs=4096)
    curve = learner.learn(8.0, quiet=True)
    assert curve[0][1] < 100.0 and curve[-1][1] > 500.0 and learner.worlds.lost == 0

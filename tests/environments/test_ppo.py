"""The example that learns a policy by itself."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "ppo.py"


@pytest.mark.slow
def test_cart_pole_is_learned():
    """Learn CartPole from nothing: 100 episodes in a row have a mean return of 475."""
    pytest.importorskip("torch")
    spec = importlib.util.spec_from_file_location("ppo", EXAMPLE)
    assert spec is not None and spec.loader is not None
    ppo = importlib.util.module_from_spec(spec)
    sys.modules["ppo"] = ppo
    spec.loader.exec_module(ppo)
    _, curve = ppo.learn("CartPole", 300.0, seed=1, quiet=True)
    assert curve[0][1] < 100.0 and curve[-1][1] >= ppo.SOLVED["CartPole"]

"""Optional packages that are missing: the errors of what needs them, and what works without."""

from __future__ import annotations

import subprocess
import sys

import pytest

import everyday
import kinetree as kt
from kinetree.environments.spaces import gymnasium_classes
from kinetree.errors import InputError


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("torch", r"torch cannot be imported \(.*\); install it: pip install 'kinetree\[learning\]'"),
        (
            "jax",
            r"JAX with its module jax.ffi cannot be imported \(.*\); install jax 0.5 or newer: pip install 'kinetree\[",
        ),
    ],
)
def test_missing_library(monkeypatch, module, message):
    """Refuse a call without the library, with the command that installs it."""
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=message):
        getattr(kt.load("planar_2r"), module).gravity_torque([0.3, 0.4])


def test_environments_ask_for_gymnasium_alone(monkeypatch):
    """Refuse environments without Gymnasium, with the command for this small package, not for torch and JAX."""
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    gymnasium_classes.cache_clear()
    with pytest.raises(InputError, match="Environments need the package gymnasium, .*; pip install gymnasium$"):
        kt.env("CartPole", 2)


WITHOUT_MATPLOTLIB = """
import sys
sys.modules["matplotlib"] = None                        # as if it were not installed
import kinetree as kt
from kinetree.errors import InputError

arm = kt.load("planar_2r")
run = kt.simulate(arm, [0.3, 0.4], duration=0.02)
assert "<html" in arm.page().text and "<html" in run.page().text and "<html" in run.replay("run.html").read_text()
assert "planar_2r" in arm._repr_html_() and "<img" not in arm._repr_html_() + run._repr_html_()
for draw in (run.plot, run.animate, lambda: arm.workspace("link2").plot("workspace.png")):
    try:
        draw()
    except InputError as error:
        print(error)
from kinetree.apps.cli.demonstration import draw_demo
from kinetree.apps.demo import Demo, turning
history = turning(0.1)
demo = Demo(*[None] * 7, fall=run, tracking=run, bars=history, links=None)
print([file.name for file in draw_demo(demo, __import__("pathlib").Path("."))])
"""


@everyday.long
def test_a_base_installation_computes_and_writes_pages_without_matplotlib(tmp_path):
    """Load, simulate and write pages without matplotlib; figures name the command that installs it."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_MATPLOTLIB], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    refused = "Figures need the package matplotlib, which is not installed; pip install 'kinetree[plots]'"
    pages = "['stanford_fall.html', 'kuka_tracking.html', 'four_bar.html']"
    assert done.stdout.splitlines() == [refused] * 3 + [pages]

"""Figures: prefixes of units, flat curves, one panel or many."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from kinetree.plots import figures

T = np.linspace(0.0, 1.0, 11)


@pytest.mark.parametrize(
    ("peak", "factor", "sign"),
    [(0.0, 1.0, ""), (12.0, 1.0, ""), (0.01, 1.0, ""), (9e-3, 1e3, "m"), (3e-4, 1e6, r"$\mu$"), (1e-30, 1e6, r"$\mu$")],
)
def test_prefixes_suit_the_peak(peak, factor, sign):
    """Use thousandths and millionths of the unit for small quantities, and the unit itself otherwise."""
    assert figures._prefix(peak) == (factor, sign)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_panels_of_any_number_are_drawn(tmp_path, count):
    """Draw constant, zero and small curves, also with an incomplete last row."""
    values = np.stack([np.zeros_like(T), np.full_like(T, 5.0), 1e-5 * T], axis=1)[:, :count]
    names = ["a"] * count
    file = figures.panels(tmp_path / "p.png", T, values, titles=names, symbols=names, units=["N m"] * count)
    assert file.read_bytes().startswith(b"\x89PNG")


def test_curves_share_a_panel(tmp_path):
    """Draw more curves than there are dash patterns."""
    values = np.sin(T[:, None] * np.arange(1, 6))
    file = figures.curves(tmp_path / "c.png", T, values, names=list("abcde"), label="x [m]", heading="five")
    assert file.read_bytes().startswith(b"\x89PNG")


def test_no_window_is_opened(tmp_path):
    """Write a picture without the part of Matplotlib that manages figures and windows."""
    code = "import sys, numpy as np; from kinetree.plots import figures as plots; T = np.linspace(0, 1, 3)\n"
    code += (
        "plots.curves(sys.argv[1], T, T[:, None], names=['a'], label='x'); print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "c.png"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

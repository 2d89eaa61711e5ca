"""Libraries of arrays that are missing: the errors of systems that need them."""

from __future__ import annotations

import sys

import pytest

import kinetree as kt
from kinetree.errors import InputError


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("torch", r"torch cannot be imported \(.*\); install it: pip install kinetree\[learning\]"),
        (
            "jax",
            r"JAX with its module jax.ffi cannot be imported \(.*\); install jax 0.5 or newer: pip install kinetree\[",
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

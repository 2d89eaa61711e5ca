"""PTX as files: entries with the names of functions, assembled for a GPU."""

from __future__ import annotations

import kinetree as kt
from assembler import assembled, needs_ptxas


@needs_ptxas
def test_exported_ptx_is_assembled(tmp_path):
    """Assemble a function, a time step and a run of a closed mechanism, and find their names and their origin."""
    kt.export(kt.load("four_bar"), ["forward_dynamics", "step", "run"], "ptx", tmp_path, prefix="bar_")
    for name in ("bar_forward_dynamics", "bar_time_step", "bar_run"):
        text = (tmp_path / f"{name}.ptx").read_text()
        assert text.startswith(f"// {name}: model four_bar, Kinetree {kt.__version__}, float64, hash ")
        assert f".visible .entry {name}(" in text
        assert name in assembled(text.encode(), tmp_path)

"""The line below a section: date, machine, and the load of the machine."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("share", "others", "end"),
    [
        (None, None, ""),
        (0.995, 0.03, ", the process had its core for 100% of the time, other processes had 3% of all cores"),
        (0.57, None, ", the process had its core for 57% of the time: too little for figures to be trusted"),
        (None, 0.45, ", other processes had 45% of all cores: figures of threads and of child processes suffer"),
        (0.97, 0.45, ", the process had its core for 97% of the time, other processes had 45% of all cores"),
    ],
)
def test_busy_machines_are_told_of(monkeypatch, share, others, end):
    """Report the share of other processes, and whether it spoils the figures."""
    import report

    monkeypatch.setattr(report, "commit", lambda: "1f2e3d")
    monkeypatch.setattr(report, "processor", lambda: "a machine")
    monkeypatch.setattr(report.os, "cpu_count", lambda: 7)
    monkeypatch.setattr(report.os, "getloadavg", lambda: (1.26, 0.0, 0.0), raising=False)
    text = report.measured(share, others)
    assert text[10:] == f" at commit 1f2e3d on a machine, 7 cores, load average 1.3{end}"


def test_packages_that_are_absent_are_listed(monkeypatch):
    """Split the optional peers into installed ones, with versions, and missing ones."""
    import report

    monkeypatch.setattr(report, "OPTIONAL", ("numpy", "no-such-library"))
    facts = report.environment("not pinned")
    assert facts["optional peers found"].startswith("numpy ")
    assert facts["not installed"] == "no-such-library"
    assert facts["run"] == "one thread unless stated otherwise, not pinned"

"""Tables for the screen and for the page, and the conditions of the figures: machine, versions, commit."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("kinetree", "numpy", "scipy", "casadi", "llvmlite", "pin", "mujoco", "example-robot-data")
OPTIONAL = ("drake", "exudyn", "adam-robotics", "roboticstoolbox-python", "jaxsim")
ENOUGH = 0.9
"""The least share of its core that a process must have for reliable figures; the rest is usual background load."""
ABSENT = "from the source tree"
ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Table:
    """A table with a note."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str

    def markdown(self) -> str:
        """Return the table as a part of a page."""
        lines = [f"### {self.title}", "", self.note, "", row(self.columns), row(("---",) * len(self.columns))]
        return "\n".join([*lines, *map(row, self.rows), ""])

    def show(self, console) -> None:
        """Print the table on a screen or into a pipe."""
        import rich.box
        import rich.table

        box = rich.box.SIMPLE_HEAD if console.is_terminal else None
        table = rich.table.Table(box=box, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for column in self.columns:
            table.add_column(column, overflow="fold")
        for cells in self.rows:
            table.add_row(*cells)
        console.print(f"\n{self.title}", style="bold")
        console.print(table)
        console.print(self.note, style="dim")


def environment(pinned: str) -> dict[str, str]:
    """Return the conditions of the figures: machine, versions, installed and missing peers."""
    found, absent = [], []
    for package in OPTIONAL:
        (absent if _version(package).endswith(ABSENT) else found).append(package)
    return {
        "processor": f"{processor()}, {os.cpu_count()} cores",
        "system": f"{platform.system()} {platform.machine()}",
        "versions": ", ".join([f"Python {platform.python_version()}", *map(_version, PACKAGES)]),
        "optional peers found": ", ".join(map(_version, found)) or "none",
        "not installed": ", ".join(absent) or "none",
        "run": f"one thread unless stated otherwise, {pinned}",
    }


def busy() -> float | None:
    """Return the processor time of all other processes [s], or None if the system does not report it."""
    try:
        user, nice, system, *_ = map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:])
    except OSError:
        return None
    return (user + nice + system) / os.sysconf("SC_CLK_TCK") - spent()


def spent() -> float:
    """Return the processor time of this process and of its children that ended, which compile long functions [s]."""
    own = os.times()
    return sum(own) - own.elapsed


def measured(share: float | None, others: float | None = None) -> str:
    """Return the date, commit and machine of a measurement.

    `share` is the process's share of its core, `others` that of all other processes of all cores.
    """
    load = f", load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    had = "" if share is None else f", the process had its core for {share:.0%} of the time"
    if share is not None and share < ENOUGH:
        had += ": too little for figures to be trusted"  # long calls are interrupted more often than short ones
    if others is not None:
        had += f", other processes had {others:.0%} of all cores"
        had += ": figures of threads and of child processes suffer" if share is None and others > 1 - ENOUGH else ""
    date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d")
    return f"{date} at commit {commit()} on {processor()}, {os.cpu_count()} cores{load}{had}"


def row(cells) -> str:
    """Return one line of a table in Markdown."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} {ABSENT}"


def commit() -> str:
    """Return the commit of the source tree, with a mark if the tree has local changes."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        changes = git("status", "--porcelain", "--", "src", "benchmarks", "pyproject.toml")
        return git("rev-parse", "--short=12", "HEAD") + (" with local changes" if changes else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def processor() -> str:
    """Return the processor's name."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()

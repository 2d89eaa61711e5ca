"""Tables for the screen and for docs/benchmarks.md, with the machine, the versions and the commit."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("kinetree", "numpy", "casadi", "llvmlite", "pin", "mujoco", "example-robot-data")
ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Table:
    """A table with what is to be said about it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str

    def markdown(self) -> str:
        """Return the table as a section of a page."""
        lines = [f"## {self.title}", "", self.note, "", _row(self.columns), _row(("---",) * len(self.columns))]
        return "\n".join([*lines, *map(_row, self.rows), ""])

    def show(self, console) -> None:
        """Print the table on a screen or into a pipe."""
        import rich.box
        import rich.table

        box = rich.box.SIMPLE_HEAD if console.is_terminal else None
        table = rich.table.Table(box=box, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for column in self.columns:
            table.add_column(column, overflow="fold")
        for row in self.rows:
            table.add_row(*row)
        console.print(f"\n{self.title}", style="bold")
        console.print(table)
        console.print(self.note, style="dim")


def environment(pinned: str) -> dict[str, str]:
    """Return what the figures depend on: date, commit, machine, versions, load."""
    load = f"{os.getloadavg()[0]:.2f} at the start" if hasattr(os, "getloadavg") else "unknown"
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "commit": _commit(),
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "system": f"{platform.system()} {platform.machine()}",
        "versions": ", ".join([f"Python {platform.python_version()}", *map(_version, PACKAGES)]),
        "run": f"one thread, {pinned}; load average {load}",
    }


def page(facts: dict[str, str], summary: str, tables: list[Table]) -> str:
    """Return the whole page."""
    head = "\n".join(_row(pair) for pair in (("", ""), ("---", "---"), *facts.items()))
    intro = (
        "# Benchmarks\n\n"
        "Written by `./dev bench`, which measures both libraries side by side in one run. Figures are medians with\n"
        "quartiles in parentheses; contenders run in turn, round by round, and a ratio is the median of the rounds'\n"
        "ratios.\n"
    )
    return "\n".join([intro, head, "", summary, "", *(table.markdown() for table in tables)]).rstrip() + "\n"


def _row(cells) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} from the source tree"


def _commit() -> str:
    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        changes = git("status", "--porcelain", "--", "src", "benchmarks", "pyproject.toml")
        return git("rev-parse", "--short=12", "HEAD") + (" with local changes" if changes else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()

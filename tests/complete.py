"""What only some tests need, and `./dev complete` installs: Chromium, torch and JAX."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from typing import Any

import pytest

REMEDY = "./dev complete installs it"
"""The end of the reason of each skipped test that would run after this command."""

REQUIRED = os.environ.get("KINETREE_COMPLETE", "") not in ("", "0")
"""Whether the session fails if such a test was skipped, as in `.ci/run`."""

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason=f"no Chromium on the PATH: {REMEDY}")
needs_browser = pytest.mark.skipif(
    CHROMIUM is None or find_spec("playwright") is None,
    reason=f"no Chromium on the PATH, or playwright is not installed: {REMEDY}",
)


def import_torch() -> Any:
    """Import torch, or skip the test; not when tests are collected, because it takes seconds."""
    return pytest.importorskip("torch", reason=f"torch is not installed: {REMEDY}")


def import_jax(module: str = "jax") -> Any:
    """Import JAX or a module of it, or skip the test; not when tests are collected, because it takes seconds."""
    return pytest.importorskip(module, reason=f"JAX is not installed: {REMEDY}")


def skipped(reports: list[Any]) -> list[str]:
    """Return the reasons of the tests that were skipped for want of Chromium, torch or JAX."""
    reasons = [str(report.longrepr[-1]) for report in reports if isinstance(report.longrepr, tuple)]
    return [reason for reason in reasons if reason.endswith(REMEDY)]


def summary(reasons: list[str]) -> str:
    """Return the line that tells how many tests were skipped and how to run them."""
    missing = sorted({reason.removeprefix("Skipped: ").removesuffix(f": {REMEDY}") for reason in reasons})
    return f"{len(reasons)} tests were skipped ({'; '.join(missing)}): run ./dev complete, then ./dev test"

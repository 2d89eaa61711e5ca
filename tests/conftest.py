"""Settings of all tests: a cache of compiled code, the same random examples in every run, residuals on request."""

from __future__ import annotations

import gc
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest

import complete
import tolerance
from browser import browser
from gpus import missing_gpu
from strategies import SOAK, THOROUGH, examples

hypothesis.settings.register_profile("kinetree", examples(100))
hypothesis.settings.load_profile("kinetree")

CACHE = pytest.StashKey[str]()

mujoco_warnings: list[str] = []


def pytest_configure(config: pytest.Config) -> None:
    """Set the cache of compiled code to a folder that the workers of one session share.

    The folder is temporary if every change must pass the tests (KINETREE_THOROUGH). At a developer's desk it stays for
    the next session. The names of its files contain digests of all that the code depends on.
    """
    os.environ["MPLBACKEND"] = "Agg"
    keep_bytecode()
    if hasattr(config, "workerinput"):
        return
    if THOROUGH or SOAK or not hasattr(config, "cache"):
        config.stash[CACHE] = os.environ["KINETREE_CACHE_DIR"] = tempfile.mkdtemp(prefix="kinetree-cache-")
    else:
        folder = config.cache.mkdir("kinetree")
        folder.chmod(0o700)
        os.environ["KINETREE_CACHE_DIR"] = str(folder)


def keep_bytecode() -> None:
    """Let Python keep the bytecode of modules, also where the environment says not to.

    The workers and the many processes that tests start would otherwise translate the whole package again, each of them.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the temporary folder."""
    if CACHE in config.stash:
        shutil.rmtree(config.stash[CACHE], ignore_errors=True)


def pytest_collection() -> None:
    """Collect no garbage while tests are collected: all that is made then stays."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Let the collector of garbage pass over what was made so far: a tenth of the time of the tests went into that."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests of GPUs on machines without one."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked and (reason := missing_gpu()):
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail where tests were skipped for want of what `./dev complete` installs, if none may be (KINETREE_COMPLETE)."""
    if complete.REQUIRED and session.exitstatus == pytest.ExitCode.OK and _skipped(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(config: pytest.Config) -> None:
    """Say in one line which tests were skipped for want of a browser, torch or JAX, and how to run them."""
    if reasons := _skipped(config):
        config.pluginmanager.getplugin("terminalreporter").write_line(complete.summary(reasons), yellow=True)


def _skipped(config: pytest.Config) -> list[str]:
    """Return the reasons of skipped tests that `./dev complete` would let run; workers leave them to their session."""
    reporter = config.pluginmanager.getplugin("terminalreporter")
    return complete.skipped(reporter.stats.get("skipped", [])) if reporter else []


def pytest_runtest_setup() -> None:
    """Collect the warnings of MuJoCo, which otherwise writes them to MUJOCO_LOG.TXT in the current folder."""
    if mujoco := sys.modules.get("mujoco"):
        mujoco_warnings.clear()
        mujoco.set_mju_user_warning(mujoco_warnings.append)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item):
    """Fail tests with warnings of MuJoCo, and if bounds are scaled to zero, all that compare, with their residuals.

    The residuals of tests that pass are added to the file KINETREE_RESIDUALS, if that is set.
    """
    tolerance.residuals.clear()
    result = yield
    if (record := os.environ.get("KINETREE_RESIDUALS")) and tolerance.residuals:
        with open(record, "a") as file:
            file.write(json.dumps({"test": item.nodeid, "residuals": tolerance.residuals}) + "\n")
    if mujoco_warnings:
        pytest.fail("MuJoCo: " + "\n".join(mujoco_warnings), pytrace=False)
    if tolerance.SCALE == 0 and tolerance.residuals:
        lines = [tolerance.line(label, *pair) for label, pair in tolerance.residuals.items()]
        pytest.fail("KINETREE_TOL_SCALE=0\n" + "\n".join(lines), pytrace=False)
    return result


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Yield a browser for all tests of a module."""
    with browser() as started:
        yield started

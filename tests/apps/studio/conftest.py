"""Two homes of the page for the tasks of a reader: a file from disk without a network, and the studio."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

import kinetree as kt
from browser import opened, served
from kinetree.apps.studio.server import running
from kinetree.apps.studio.tabs import Folder

Show = Callable[..., AbstractContextManager[Any]]


@pytest.fixture
def studio(tmp_path) -> Iterator[str]:
    """Yield the address of a studio whose folder is that of the test."""
    with running(lambda: kt.load("planar_2r"), Folder.of(tmp_path)) as address:
        yield address


@pytest.fixture(params=["file", "studio"])
def show(request, chromium, tmp_path) -> Show:
    """Return a function that shows a mechanism of the library by its name, from disk or in the studio."""

    @contextmanager
    def shown(name: str, mode: str = "") -> Iterator[Any]:
        after = f"#mode={mode}" if mode else ""
        if request.param == "file":
            with opened(chromium, kt.load(name).page().save(tmp_path / f"{name}.html"), after=after) as page:
                yield page
        else:
            with running(lambda: kt.load("planar_2r"), Folder.of(tmp_path)) as address:
                with served(chromium, f"{address}&open=library%2F{name}{after}") as page:
                    yield page

    return shown


@pytest.fixture
def plain_data(monkeypatch) -> None:
    """Let mechanisms be opened without the functions of their pages, which take a second to make."""

    def data(system: kt.System, **options: Any) -> dict[str, Any]:
        return {"title": system.mechanism.name, "kernel": None, "model": {"loops": [], "name": system.mechanism.name}}

    monkeypatch.setattr("kinetree.apps.studio.tabs.system_data", data)

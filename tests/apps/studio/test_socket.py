"""The socket of a studio: calls in threads of their own, progress, cancellation, and messages that are no calls."""

from __future__ import annotations

import json
import re
import threading
from contextlib import contextmanager
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

import kinetree as kt
from kinetree.apps.studio import server
from kinetree.apps.studio.actions import ACTIONS
from kinetree.apps.studio.server import running
from kinetree.apps.studio.tabs import Folder
from kinetree.targets import llvm, target
from kinetree.targets.llvm import code_generation

pytestmark = pytest.mark.usefixtures("plain_data")


@pytest.fixture
def address(tmp_path):
    """Yield the address of a studio."""
    arm = kt.load("planar_2r")
    with running(lambda: arm, Folder.of(tmp_path)) as found:
        yield found


@contextmanager
def socket_of(address: str):
    """Yield the socket of a new tab."""
    parts = urlsplit(address)
    page = urlopen(address, timeout=60).read().decode()
    found = re.search(r'kinetree-studio" content="([^"]+)"', page)
    assert found
    path = found[1].replace("&amp;", "&")
    with connect(f"ws://{parts.netloc}{path}", origin=f"http://{parts.netloc}") as socket:  # type: ignore[arg-type]
        yield socket


def answer(socket) -> dict:
    return json.loads(socket.recv(timeout=60))


def test_calls_report_and_are_cancelled(address, monkeypatch):
    """Run two calls at a time: one reports its progress and is cancelled, the other ends meanwhile."""
    waits, goes = threading.Event(), threading.Event()

    def work(studio):
        studio.report(0.25)
        waits.set()
        goes.wait(60)
        studio.report(0.5)
        return {"done": True}

    monkeypatch.setitem(ACTIONS, "work", work)
    with socket_of(address) as socket:
        socket.send(json.dumps({"id": 1, "call": "work"}))
        assert answer(socket) == {"id": 1, "progress": 0.25}
        assert waits.wait(60)
        socket.send(json.dumps({"id": 2, "call": "files", "arguments": {}}))
        assert set(answer(socket)) == {"id", "result"}
        socket.send(json.dumps({"id": 1, "cancel": True}))
        socket.send(json.dumps({"id": 3, "call": "none", "arguments": {}}))
        assert answer(socket)["error"].startswith("no action 'none'")
        goes.set()
        assert answer(socket) == {"id": 1, "error": "cancelled", "cancelled": True}


def test_a_long_compilation_is_cancelled(address, monkeypatch, tmp_path):
    """Cancel a call whose compilation would take ten minutes, and reports nothing."""
    begun, script = threading.Event(), tmp_path / "sleeping.py"
    script.write_text("import time\ntime.sleep(600)\n")

    def work(studio):
        monkeypatch.setattr(llvm, "LONG", 0)
        monkeypatch.setattr(code_generation, "__file__", str(script))
        begun.set()
        return {"code": target().build("define void @f() {\n  ret void\n}\n")}

    monkeypatch.setitem(ACTIONS, "work", work)
    with socket_of(address) as socket:
        socket.send(json.dumps({"id": 1, "call": "work"}))
        assert begun.wait(60)
        socket.send(json.dumps({"id": 1, "cancel": True}))
        assert answer(socket) == {"id": 1, "error": "cancelled", "cancelled": True}


def test_calls_of_a_closed_tab_end(address, monkeypatch):
    """Close the tab while a call runs: its next report ends it."""
    begun, goes, ended = threading.Event(), threading.Event(), threading.Event()

    def work(studio):
        begun.set()
        for _ in range(600):
            goes.wait(0.1)
            try:
                studio.report(0.1)
            except kt.KinetreeError:
                ended.set()
                raise
        return {}

    monkeypatch.setitem(ACTIONS, "work", work)
    with socket_of(address) as socket:
        socket.send(json.dumps({"id": 1, "call": "work"}))
        assert begun.wait(60)
    goes.set()
    assert ended.wait(60)


def test_other_messages_are_passed_over(address):
    """Send texts that are no calls, then a call."""
    with socket_of(address) as socket:
        for text in ("", "{", "[]", "7", '{"id": true}', '{"id": "1", "call": "files"}', '{"call": "files"}'):
            socket.send(text)
        socket.send(json.dumps({"id": 9, "call": "files", "arguments": {}}))
        assert answer(socket)["id"] == 9


def test_large_and_binary_messages_close_the_socket(tmp_path, monkeypatch):
    """Send more bytes than an upload may have, and bytes that are no text."""
    monkeypatch.setattr(server, "LARGEST_MESSAGE", 5000)
    arm = kt.load("planar_2r")
    with running(lambda: arm, Folder.of(tmp_path)) as address:
        for message in ("x" * 6000, b"\x00\x01"):
            with socket_of(address) as socket, pytest.raises(ConnectionClosed):
                socket.send(message)
                socket.recv(timeout=60)


def test_unknown_tabs_are_refused(address):
    """Open a socket with the right token for a tab that does not exist."""
    parts = urlsplit(address)
    with pytest.raises(Exception, match="403|1008|reload"):
        connect(f"ws://{parts.netloc}/socket?{parts.query}&tab=x", origin=f"http://{parts.netloc}").recv(timeout=60)  # type: ignore[arg-type]


def test_unknown_sources_are_one_sentence(address):
    """Request the page of a mechanism that does not exist."""
    from urllib.error import HTTPError

    for source in ("library/none", "folder/none.toml", "folder/../x.toml", "elsewhere"):
        with pytest.raises(HTTPError, match="404") as error:
            urlopen(f"{address}&open={source}", timeout=60)
        assert error.value.headers["content-type"].startswith("text/plain")
        error.value.close()

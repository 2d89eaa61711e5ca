"""Requests of a studio by others: foreign hosts and origins, missing and wrong tokens are refused."""

from __future__ import annotations

import http.client
import json
from urllib.parse import urlsplit

import pytest

import kinetree as kt
from kinetree.apps.studio.server import REFUSED, Guard, listen, running
from kinetree.apps.studio.tabs import Folder


def scope(kind="http", host="127.0.0.1:8123", origin=None, query="token=secret") -> dict:
    """Return the scope of a request."""
    headers = [(b"Host", host.encode())] + ([(b"origin", origin.encode())] if origin is not None else [])
    return {"type": kind, "headers": headers, "query_string": query.encode()}


OWN = "http://127.0.0.1:8123"

REQUESTS = [
    (True, {}),
    (True, {"host": "localhost:8123", "origin": "http://localhost:8123"}),
    (False, {"host": "attacker.example:8123"}),
    (False, {"host": "127.0.0.1:8123.attacker.example"}),
    (False, {"host": "127.0.0.1"}),
    (False, {"host": "127.0.0.1:8124"}),
    (False, {"host": ""}),
    (False, {"origin": "http://attacker.example"}),
    (False, {"origin": "null"}),
    (False, {"origin": "https://127.0.0.1:8123"}),
    (False, {"origin": "http://127.0.0.1:8124"}),
    (False, {"query": ""}),
    (False, {"query": "token="}),
    (False, {"query": "token=secre"}),
    (False, {"query": "token=secret&token=secret"}),
    (False, {"query": "token=s%C3%A9cret"}),
    (True, {"kind": "websocket", "origin": OWN}),
    (False, {"kind": "websocket"}),
    (False, {"kind": "websocket", "origin": "http://attacker.example"}),
    (False, {"kind": "websocket", "origin": OWN, "query": "tab=x"}),
]


@pytest.mark.parametrize(("allowed", "request_"), REQUESTS)
def test_requests_of_others_are_refused(allowed, request_):
    """Compare Host, Origin and token of requests with those of the studio."""
    guard = Guard(None, "secret", 8123)  # type: ignore[arg-type]
    assert guard.allows(scope(**request_)) is allowed


ENTRANCES = [
    (True, {}),
    (True, {"site": "same-origin"}),
    (False, {"site": "cross-site"}),
    (False, {"site": ""}),
    (False, {"query": "token=wrong"}),
    (False, {"query": "token="}),
    (False, {"path": "/socket"}),
    (False, {"host": "attacker.example:8123"}),
    (False, {"kind": "websocket", "origin": OWN}),
]


@pytest.mark.parametrize(("entered", "request_"), ENTRANCES)
def test_links_without_a_token_enter(entered, request_):
    """Open the entrance for links that the reader opens, and not for those of other sites."""
    given = {"query": "open=library%2Fstanford", **request_}
    site, path = given.pop("site", "none"), given.pop("path", "/")
    asked = scope(**given) | {"path": path}
    asked["headers"] += [(b"sec-fetch-site", site.encode())] if site else []
    guard = Guard(None, "secret", 8123)  # type: ignore[arg-type]
    assert not guard.allows(asked)
    assert guard.enters(asked) is entered


def test_two_hosts_are_refused():
    """Send two Host headers, of which a proxy might read another one."""
    twice = scope()
    twice["headers"].append((b"host", b"attacker.example"))
    assert not Guard(None, "secret", 8123).allows(twice)  # type: ignore[arg-type]


def answer(address: str, path: str, **headers: str) -> tuple[int, bytes]:
    """Return status and text of a request."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    try:
        connection.request("GET", path, headers=headers)
        found = connection.getresponse()
        return found.status, found.read()
    finally:
        connection.close()


@pytest.mark.usefixtures("plain_data")
def test_a_server_answers_its_own_page_alone(tmp_path):
    """Request the page of a running studio with and without its token, as another host, and beside its folder."""
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    (tmp_path / "secret.txt").write_text("nobody reads this")
    with running(lambda: kt.load("planar_2r"), Folder.of(tmp_path)) as address:
        parts = urlsplit(address)
        own = f"/?{parts.query}"
        assert answer(address, own)[0] == 200
        assert answer(address, "/") == (403, REFUSED.encode())
        status, text = answer(address, "/", **{"Sec-Fetch-Site": "none"})
        assert status == 200 and b"Open the address" in text and parts.query[6:].encode() not in text
        assert answer(address, own, Host="attacker.example")[0] == 403
        assert answer(address, own, Origin="http://attacker.example")[0] == 403
        for path in ("/secret.txt", "/../secret.txt", "/%2e%2e/etc/passwd", "//etc/passwd"):
            assert answer(address, f"{path}?{parts.query}")[0] == 404
        page = answer(address, own)[1].decode()
        socket = page.partition('kinetree-studio" content="')[2].partition('"')[0].replace("&amp;", "&")
        there = f"ws://{parts.netloc}{socket}"
        with connect(there, origin=f"http://{parts.netloc}") as opened:  # type: ignore[arg-type]
            opened.send(json.dumps({"id": 1, "call": "files", "arguments": {}}))
            assert "result" in json.loads(opened.recv(timeout=30))
        for bad, origin in [
            (there, "http://attacker.example"),
            (there, None),
            (there.replace("token", "t"), parts.netloc),
        ]:
            with pytest.raises(InvalidStatus, match="403"):
                connect(bad, origin=origin).close()  # type: ignore[arg-type]


def test_only_the_loopback_address_is_bound(tmp_path):
    """Look at the address of the socket; a port that is taken is refused."""
    made = listen(lambda: kt.load("planar_2r"), Folder.of(tmp_path))
    try:
        assert made.socket.getsockname()[0] == "127.0.0.1"
        port = made.socket.getsockname()[1]
        with pytest.raises(kt.InputError, match=rf"port {port} of 127.0.0.1 is not available .* choose another one"):
            listen(lambda: kt.load("planar_2r"), Folder.of(tmp_path), port)
    finally:
        made.socket.close()

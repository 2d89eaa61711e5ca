"""Checks of every request before anything else: its Host, its Origin and the token of this studio.

A page of another site that names this machine by a domain of its own (DNS rebinding) has a foreign Host. A page that
requests the address from elsewhere has a foreign Origin. Neither has the token.

Links to a state have no token, so that they may be passed on. The answer to them is an entrance: a page without any
data that takes the token from the storage of this origin in the reader's browser, where the studio's page put it.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

from ...page.file import fingerprint

Scope = MutableMapping[str, Any]
Application = Callable[[Scope, Any, Any], Awaitable[None]]

REFUSED = "403: this studio answers only to its own page. Use the address that it printed in the terminal.\n"
ENTER = """const token = localStorage.getItem("kinetree-studio");
const query = new URLSearchParams(location.search);
query.set("token", token);
if (token) location.replace(`/?${query}${location.hash}`);
"""
"""The script of the entrance."""
ENTRANCE = f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Kinetree studio</title></head>
<body><h1>This link needs the studio's own address first</h1>
<p>Links to a state do not contain the token that guards the studio. Open the address that <code>kinetree studio</code>
printed in the terminal, in this browser; then open this link again.</p>
<script>{ENTER}</script></body></html>
"""
POLICY = f"default-src 'none'; script-src '{fingerprint(ENTER)}'; base-uri 'none'; frame-ancestors 'none'"


class Guard:
    """An ASGI application that passes requests of the studio's own page on, and refuses all others."""

    def __init__(self, app: Application, token: str, port: int) -> None:
        """Guard an application that is served at a port of the loopback address."""
        self.app, self.token = app, token
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self.origins = {f"http://{host}" for host in self.hosts}

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] in ("http", "websocket") and not self.allows(scope):
            return await _refuse(scope, receive, send, entrance=self.enters(scope))
        await self.app(scope, receive, send)

    def allows(self, scope: Scope) -> bool:
        """Return whether a request has a Host and an Origin of this studio, and its token."""
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        hosts = [x.decode("latin-1") for x in headers.get(b"host", [])]
        origins = [x.decode("latin-1") for x in headers.get(b"origin", [])]
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            return False
        if scope["type"] == "websocket" and len(origins) != 1:  # browsers send it with every socket
            return False
        if any(origin.lower() not in self.origins for origin in origins):
            return False
        given = _tokens(scope) or [""]
        return len(given) == 1 and hmac.compare_digest(given[0].encode(), self.token.encode())

    def enters(self, scope: Scope) -> bool:
        """Return whether a refused request is a link that the reader opened: only its token is missing.

        Browsers state where a request comes from. Links in pages of other sites are refused, so that these cannot open
        the studio by themselves.
        """
        came = [value for name, value in scope["headers"] if name.lower() == b"sec-fetch-site"]
        return (
            scope["type"] == "http"
            and scope["path"] == "/"
            and not _tokens(scope)
            and came in ([b"none"], [b"same-origin"])
            and self.allows({**scope, "query_string": f"token={self.token}".encode()})
        )


def _tokens(scope: Scope) -> list[str]:
    return parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True).get("token", [])


async def _refuse(scope: Scope, receive: Any, send: Any, *, entrance: bool) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008})
        return
    kind = b"text/html; charset=utf-8" if entrance else b"text/plain; charset=utf-8"
    headers = [(b"content-type", kind), (b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]
    if entrance:
        headers += [(b"content-security-policy", POLICY.encode()), (b"cross-origin-opener-policy", b"same-origin")]
    await send({"type": "http.response.start", "status": 200 if entrance else 403, "headers": headers})
    await send({"type": "http.response.body", "body": (ENTRANCE if entrance else REFUSED).encode()})

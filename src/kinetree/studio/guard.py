"""Checks of every request before anything else: its Host, its Origin and the token of this studio.

A page of another site that names this machine by a domain of its own (DNS rebinding) has a foreign Host. A page that
requests the address from elsewhere has a foreign Origin. Neither knows the token.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Application = Callable[[Scope, Any, Any], Awaitable[None]]

REFUSED = "403: this studio answers only to its own page. Use the address that it printed in the terminal.\n"


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
            return await _refuse(scope, receive, send)
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
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])
        return len(given) == 1 and hmac.compare_digest(given[0].encode(), self.token.encode())


async def _refuse(scope: Scope, receive: Any, send: Any) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"x-content-type-options", b"nosniff")]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": REFUSED.encode()})

"""A studio that runs: a socket on the loopback address, and the server behind it until Ctrl-C."""

from __future__ import annotations

import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..._support.optional import optional
from ...errors import InputError
from .folder import Folder
from .server import LARGEST_MESSAGE, Served, application

if TYPE_CHECKING:
    from ...system import System

LOOPBACK = "127.0.0.1"
TOKEN = 32
"""Random bytes of a token: it cannot be guessed."""
PATIENCE = 2
"""Time that open sockets have to close at the end [s]."""


@dataclass(frozen=True)
class Listening:
    """A server that has its port but does not answer yet; `address` is that of the page, with the token."""

    server: Any
    socket: socket.socket
    address: str

    def run(self) -> None:
        """Answer requests until Ctrl-C."""
        try:
            self.server.run(sockets=[self.socket])
        except KeyboardInterrupt:  # uvicorn raises it again after its end
            pass
        finally:
            self.socket.close()


def listen(first: Callable[[], System], folder: Folder, port: int = 0) -> Listening:
    """Return a server at a port of the loopback address, 0 for a free one; `first` returns the System of new tabs."""
    for package in ("starlette", "uvicorn", "websockets"):
        optional(package, "studios", "studio")
    import uvicorn  # type: ignore[import-not-found]

    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((LOOPBACK, port))
        bound.listen()  # a browser that comes too early waits
    except (OSError, OverflowError) as error:
        bound.close()
        raise InputError(
            f"port {port} of {LOOPBACK} is not available ({error}); choose another one with --port"
        ) from None
    token = secrets.token_urlsafe(TOKEN)
    number = bound.getsockname()[1]
    config = uvicorn.Config(
        application(Served(first, folder, token, number)), log_level="warning", access_log=False, lifespan="off",
        ws="websockets-sansio", ws_max_size=LARGEST_MESSAGE, ws_per_message_deflate=False, proxy_headers=False,
        server_header=False, timeout_graceful_shutdown=PATIENCE,
    )  # fmt: skip
    return Listening(uvicorn.Server(config), bound, f"http://{LOOPBACK}:{number}/?token={token}")


def open_browser(address: str) -> None:
    """Open the page in the reader's browser, without waiting for it."""
    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()


@contextmanager
def running(first: Callable[[], System], folder: Folder) -> Iterator[str]:
    """Yield the address of a server that answers in a thread, for tests and pictures."""
    made = listen(first, folder)
    thread = threading.Thread(target=made.run, daemon=True)
    thread.start()
    try:
        yield made.address
    finally:
        made.server.should_exit = True
        thread.join()

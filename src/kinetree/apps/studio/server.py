"""The application of a studio: checks of requests, its page, and a socket over which the page calls actions."""

from __future__ import annotations

import asyncio
import hmac
import inspect
import json
import logging
import secrets
import socket
import threading
import webbrowser
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qs

from ..._support.interruption import cancelled_by
from ..._support.optional import optional
from ...errors import InputError, KinetreeError, brief, unknown_name
from ...page.file import fingerprint, pack
from ...page.writer import served_page
from .actions import ACTIONS
from .actions.files import drawable, open_file, open_lesson, open_library
from .tabs import Cancelled, Folder, Studio, Tab, Tabs, for_page, open_system

if TYPE_CHECKING:
    from ...system import System


# --- Checks of every request before anything else: its Host, its Origin and the token of this studio ---
#
# A page of another site that names this machine by a domain of its own (DNS rebinding) has a foreign Host. A page
# that requests the address from elsewhere has a foreign Origin. Neither has the token.
#
# Links to a state have no token, so that they may be passed on. The answer to them is an entrance: a page without any
# data that takes the token from the storage of this origin in the reader's browser, where the studio's page put it. The
# page's own address has no token either, so that a reload finds the studio that was started again at the same port.

T = TypeVar("T")

Scope = MutableMapping[str, Any]
Application = Callable[[Scope, Any, Any], Awaitable[None]]

REFUSED = "403: this studio answers only to its own page. Use the address that it printed in the terminal.\n"
ENTER = """const token = localStorage.getItem("kinetree-studio");
const query = new URLSearchParams(location.search);
query.set("token", token);
const kept = history.state?.document;
if (token) location.replace(`/?${query}${kept ? `#document=${kept}` : location.hash}`);
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

    async def __call__(self, scope: Scope, receive: object, send: object) -> None:
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


# --- Calls of a page: an action by its name, its arguments, and its outcome as a message ---

LOG = logging.getLogger("kinetree.apps.studio")
UNEXPECTED = "This did not work, because of a fault in Kinetree itself. The terminal of the studio shows the details."


def outcome(studio: Studio, name: object, arguments: object) -> dict[str, Any]:
    """Return {"result": packed data} of an action, or {"error": a sentence}; it raises nothing."""
    try:
        with cancelled_by(lambda: studio.report(0.0)):  # long compilations end at once, like runs between two pieces
            return {"result": pack(call_action(studio, name, arguments))}
    except Cancelled:
        return {"error": "cancelled", "cancelled": True}
    except KinetreeError as error:
        return {"error": for_page(str(error))}
    except Exception:
        LOG.exception("the action %s failed", brief(name))
        return {"error": UNEXPECTED}


def call_action(studio: Studio, name: object, arguments: object) -> Mapping[str, Any]:
    """Return the result of an action; names and arguments that it does not have are refused."""
    if not isinstance(name, str) or name not in ACTIONS:
        raise unknown_name("action", brief(name) if not isinstance(name, str) else name, ACTIONS)
    if not isinstance(arguments, dict):
        raise InputError(f"the arguments of {name} are {brief(arguments)}; expected a table")
    action = ACTIONS[name]
    try:
        inspect.signature(action).bind(studio, **arguments)
    except TypeError as error:
        known = [key for key in inspect.signature(action).parameters if key != "studio"]
        raise InputError(f"{name}: {error}; it takes {', '.join(known) or 'no arguments'}") from None
    return action(studio, **arguments)


AT_ONCE = 6
"""The most calls of a tab that run at the same time; further ones wait."""
LARGEST_MESSAGE = 48_000_000
"""The largest message of a page [bytes], that of uploaded files."""
OPENERS: dict[str, Callable[[Studio, str], object]] = {"library": open_library, "lesson": open_lesson}
"""What the first word of a source opens; others are files of the folder."""
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@dataclass(frozen=True)
class Served:
    """What a server serves: the System of new tabs, the chosen folder, the token and the port."""

    first: Callable[[], System]
    folder: Folder
    token: str
    port: int
    tabs: Tabs = field(default_factory=Tabs)
    kept: dict[str, Tab] = field(default_factory=dict)  # tabs of the library, and the first one, as they are opened


def application(served: Served) -> Guard:
    """Return the ASGI application of a studio."""
    from starlette.applications import Starlette  # type: ignore[import-not-found]
    from starlette.responses import HTMLResponse, PlainTextResponse, Response  # type: ignore[import-not-found]
    from starlette.routing import Route, WebSocketRoute  # type: ignore[import-not-found]

    async def page(request: Any) -> Response:
        try:
            text, policy = await in_thread(lambda: _page(served, request.query_params.get("open", "")))
        except KinetreeError as error:
            return PlainTextResponse(f"{error}\n", 404, headers=HEADERS)
        return HTMLResponse(text, headers={**HEADERS, "Content-Security-Policy": policy})

    async def socket(websocket: object) -> None:
        await _serve_socket(served, websocket)

    routes = [Route("/", page), WebSocketRoute("/socket", socket)]
    return Guard(Starlette(routes=routes), served.token, served.port)


def _page(served: Served, source: str) -> tuple[str, str]:
    """Return the page of a new tab, and its policy; the source is that of `open_system`."""
    studio = Studio(served.folder)
    where, _, name = source.partition("/")
    if source in served.kept:
        studio.tab.system, studio.tab.data = served.kept[source].system, served.kept[source].data
    elif not source:
        first = served.first()
        open_system(studio, first, meshes=drawable(first.mechanism)[0])
    else:
        OPENERS.get(where, open_file)(studio, name)
    if where in ("", *OPENERS):
        served.kept[source] = Tab(studio.tab.system, studio.tab.data)
    data, key = studio.tab.data, served.tabs.add(studio.tab)
    address = f"/socket?token={served.token}&tab={key}"
    return served_page(data, address, [f"ws://{host}:{served.port}" for host in ("127.0.0.1", "localhost")])


async def _serve_socket(served: Served, websocket: Any) -> None:
    """Answer the calls of a tab until it closes the socket; then cancel those that run."""
    from starlette.websockets import WebSocketDisconnect  # type: ignore[import-not-found]

    tab = served.tabs.get(websocket.query_params.get("tab", ""))
    if tab is None:
        await websocket.close(1008, "reload the page")
        return
    await websocket.accept()
    calls = Calls(Studio(served.folder, tab), websocket.send_text)
    try:
        while True:
            calls.take(await websocket.receive_text())
    except (WebSocketDisconnect, KeyError):  # KeyError: a message of bytes, which no page sends
        pass
    finally:
        calls.cancel_all()


class Calls:
    """The calls of a socket: each runs in a thread of its own, reports its progress, and can be cancelled."""

    def __init__(self, studio: Studio, send: Callable[[str], Awaitable[object]]) -> None:
        """Run calls for a tab; `send` sends a text."""
        self.studio, self.send = studio, send
        self.turns = asyncio.Semaphore(AT_ONCE)
        self.running: dict[int, threading.Event] = {}
        self.tasks: set[asyncio.Task] = set()

    def take(self, text: str) -> None:
        """Begin the call of {"id": n, "call": name, "arguments": {...}}, or end that of {"id": n, "cancel": true}."""
        try:
            message = json.loads(text)
            number = message["id"]
        except (ValueError, TypeError, KeyError):
            return
        if not isinstance(number, int) or isinstance(number, bool):
            return
        if message.get("cancel"):
            if number in self.running:
                self.running[number].set()
            return
        if number in self.running:
            return
        stop = self.running[number] = threading.Event()
        task = asyncio.get_running_loop().create_task(self.answer(number, message, stop))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def answer(self, number: int, message: dict[str, Any], stop: threading.Event) -> None:
        """Run a call and send its outcome."""
        studio = self.watched(number, stop)
        async with self.turns:
            found = await in_thread(lambda: outcome(studio, message.get("call"), message.get("arguments", {})))
        self.running.pop(number, None)
        await self.say({"id": number, **found})

    def watched(self, number: int, stop: threading.Event) -> Studio:
        """Return the studio of a call: its progress is sent, at most every hundredth, until it is cancelled."""
        loop, last = asyncio.get_running_loop(), [0.0]

        def report(share: float) -> None:
            if stop.is_set():
                raise Cancelled("cancelled")
            if share - last[0] >= 0.01:
                last[0] = share
                asyncio.run_coroutine_threadsafe(self.say({"id": number, "progress": min(1.0, share)}), loop)

        return replace(self.studio, report=report)

    async def say(self, message: dict[str, Any]) -> None:
        """Send a message, unless the page is gone."""
        try:
            await self.send(json.dumps(message))
        except (RuntimeError, OSError):  # closed meanwhile: nobody waits for the answer
            self.cancel_all()

    def cancel_all(self) -> None:
        """Cancel the calls that run; they end at their next report."""
        for stop in self.running.values():
            stop.set()


async def in_thread(work: Callable[[], T]) -> T:
    """Run a function in a thread that does not keep the process from ending, and return its result."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future = loop.create_future()

    def finish(result: object, error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(result)
        else:
            done.set_exception(error)

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as raised:
            error = raised
        if not loop.is_closed():
            loop.call_soon_threadsafe(finish, result, error)

    threading.Thread(target=run, name="kinetree studio", daemon=True).start()
    return await done


# --- A studio that runs: a socket on the loopback address, and the server behind it until Ctrl-C ---

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


USUAL = 8347
"""The port that a studio takes if it is free: browsers keep documents by address, that is, by port."""


def listen(first: Callable[[], System], folder: Folder, port: int | None = 0) -> Listening:
    """Return a server at a port of the loopback address; `first` returns the System of new tabs.

    Port 0 is a free one; None is the usual one, or a free one if that is taken.
    """
    if port is None:
        try:
            return listen(first, folder, USUAL)
        except InputError:
            return listen(first, folder, 0)
    for package in ("starlette", "uvicorn", "websockets"):
        optional(package, "Pages of the studio", "studio")
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
        application(Served(first, folder, token, number)),
        log_level="warning",
        access_log=False,
        lifespan="off",
        ws="websockets-sansio",
        ws_max_size=LARGEST_MESSAGE,
        ws_per_message_deflate=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=PATIENCE,
    )
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

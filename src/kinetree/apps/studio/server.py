"""The application of a studio: its page, and a socket over which the page calls actions."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..._support.interruption import cancelled_by
from ..._support.optional import optional
from ...errors import InputError, KinetreeError, brief, unknown_name
from ...page.file import pack
from ...page.writer import served_page
from .actions import ACTIONS
from .actions.files import open_file, open_lesson, open_library
from .folder import Folder
from .guard import Guard
from .tabs import Cancelled, Studio, Tab, Tabs, open_system

if TYPE_CHECKING:
    from ...system import System


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
        return {"error": str(error)}
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

    async def socket(websocket: Any) -> None:
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
        open_system(studio, served.first())
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

    def __init__(self, studio: Studio, send: Callable[[str], Any]) -> None:
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


async def in_thread(work: Callable[[], Any]) -> Any:
    """Run a function in a thread that does not keep the process from ending, and return its result."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future = loop.create_future()

    def finish(result: Any, error: BaseException | None) -> None:
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

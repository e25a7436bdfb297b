"""The server of the viewer's page, on the loopback interface only, and protected by a token."""

from __future__ import annotations

import json
import secrets
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.errors import TransectError, UnsupportedError

from .encoding import (
    RobotMesh,
    as_float32,
    encode_curve,
    encode_path,
    encode_picture,
    encode_points,
    encode_surface,
    solids_of,
)
from .scene import ViewerScene, describe, kind_of

if TYPE_CHECKING:
    from .live_run import PortMonitor, ReplayController

HOST = "127.0.0.1"
PACKAGE = "transect.view.viewer"
HTML, CSS, SCRIPT = ("text/html; charset=utf-8", "text/css; charset=utf-8", "text/javascript; charset=utf-8")
SCRIPTS = (
    "gestures", "map", "matrices", "plots", "robot", "run", "samples", "space", "strips", "surfaces",
    "tracks", "viewer",
)  # fmt: skip
FILES = {
    "": ("page.html", HTML),
    "viewer.css": ("viewer.css", CSS),
    **{f"{name}.js": (f"{name}.js", SCRIPT) for name in SCRIPTS},
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
BYTES, JSON, JPEG = "application/octet-stream", "application/json", "image/jpeg"
CONNECTION_TIMEOUT_S = 30.0
MAX_PENDING_CONNECTIONS = 128
"""A page requests its files and the samples of all streams at once."""
PAGE_RELOAD_TIMEOUT_S = 2.0
"""The server ends if the last closed page was not reloaded within this time."""
Answer = tuple[str, bytes]
"""Type and content."""


class ViewerServer(ThreadingHTTPServer):
    """A threaded server that ignores disconnected clients."""

    daemon_threads = True
    request_queue_size = MAX_PENDING_CONNECTIONS

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class Viewer:
    """A server of the page for one scene.

    Parameters
    ----------
    scene : Scene
    port : int
        0 for any free port.
    check : bool
        Whether to check the sensors in the background; not with a run, which has its own verdicts.
    watch : ReplayController, optional
        A run that the page controls.
    """

    def __init__(
        self, scene: ViewerScene, port: int = 0, check: bool = True, watch: ReplayController | None = None
    ) -> None:
        self.scene, self.watch, self.token = scene, watch, secrets.token_urlsafe(16)
        self.solids: tuple[RobotMesh, ...] = solids_of(scene) if scene.solids is None else scene.solids
        run = {"run": watch.describe()} if watch else {}
        self.description = json.dumps(describe(scene, self.solids) | run).encode()
        self._server = ViewerServer((HOST, port), _handler(self))
        check = check and watch is None
        self._verdicts: dict[str, Any] = {"done": not check, "streams": {}}
        self._pages: set[float] = set()
        self._last_closed = float("inf")
        self._check_pending = check

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """The address of the page, with the token that grants access."""
        return f"http://{HOST}:{self.port}/{self.token}/"

    def serve(self) -> None:
        """Serve until `close` is called, all pages are closed, or the process is interrupted."""
        threading.Thread(target=self._close_after_last_page, daemon=True).start()
        self._server.serve_forever(poll_interval=0.1)

    def close(self) -> None:
        """Stop the server."""
        self._last_closed = float("-inf")
        self._server.shutdown()
        self._server.server_close()

    def _close_after_last_page(self) -> None:
        while time.monotonic() - self._last_closed < PAGE_RELOAD_TIMEOUT_S:
            time.sleep(0.1)
        self._server.shutdown()

    # Requests

    def answer(self, path: str) -> Answer | None:
        """Return the answer to a GET request; None if there is none.

        Parameters
        ----------
        path : str
            The part after the token: `index.json`, `sample/3/120`, `curve/2/0/1.5/9.25`, `path/0`, ...
        """
        if path in FILES:
            name, kind = FILES[path]
            return kind, files(PACKAGE).joinpath(name).read_bytes()
        return _call(self._answers, path)

    def execute(self, path: str) -> Answer | None:
        """Execute a POST request: `here/ID`, `left/ID`, `run/step/1`, ...; None if it is not known."""
        return _call(self._commands, path.replace("run/", "run_", 1))

    @cached_property
    def _answers(self) -> Mapping[str, Callable[..., Answer]]:
        scene, watched = self.scene, self._run_answers(self.watch) if self.watch else {}
        return {
            "index.json": lambda: (JSON, self.description),
            "verdicts.json": lambda: _json(self._verdicts),
            "times": lambda n: _bytes(scene.seconds(scene.streams[_whole(n)]), "<f8"),
            "sample": self._sample,
            "curve": self._curve,
            "path": lambda n: (BYTES, encode_path(scene.paths[_whole(n)])),
            "solid": lambda n: _bytes(self.solids[_whole(n)].triangles, "<f4"),
            "frames": lambda t: _bytes(scene.place_moving(scene.axis.start_ns + round(t * NS)), "<f4"),
            **watched,
        }

    def _run_answers(self, watch: ReplayController) -> Mapping[str, Callable[..., Answer]]:
        return {
            "verdicts.json": lambda: _json({"done": True, "streams": watch.verdicts}),
            "run.json": lambda: _json(watch.status() | {"places": [*map(self._place, watch.ports)]}),
            "rows": lambda n, begin: _bytes(watch.ports[_whole(n)].since(_whole(begin)), "<f8"),
            "lines": lambda begin: _json(watch.lines(_whole(begin))),
            "output": lambda n, k: self._output(watch.ports[_whole(n)], _whole(k)),
        }

    @cached_property
    def _commands(self) -> Mapping[str, Callable[..., Answer]]:
        watch = self.watch
        runs = ("step", "next", "play", "pause") if watch else ()
        return {
            "here": self._page_opened,
            "left": self._page_closed,
            "close": self._end,
            **{f"run_{name}": lambda n=0.0, name=name: self._send_command(watch, name, n) for name in runs},
        }

    def _sample(self, number: float, index: float) -> Answer:
        stream = self.scene.streams[_whole(number)]
        if not 0 <= index < len(stream):
            raise IndexError(index)
        sample = stream[int(index)]
        return self._show(sample.value, stream.frame, sample.t_ns)

    def _output(self, port: PortMonitor, number: int) -> Answer:
        """Return an output sample of a run, placed by the run's trajectory if that has its frame.

        Empty if the sample is no longer kept.
        """
        value = port.value(number)
        if value is None:
            return BYTES, b""
        t_ns = int(self.scene.axis.start_ns + port.since(number)[0, 0] * NS)
        return self._show(value, port.frame, t_ns, self._place(port))

    def _show(self, value: Any, frame: str, t_ns: int, place: list[float] | None = None) -> Answer:
        """Return an encoded value, with T_scene_frame (16 numbers) if a run estimates it."""
        kind = kind_of(type(value))
        if not kind:
            raise UnsupportedError(
                f"samples of type {type(value).__name__} cannot be drawn",
                why="it is not an image, points or a map",
            )
        if kind == "picture":
            return JPEG, encode_picture(value)
        known = None if place is None else (True, np.array(place).reshape(4, 4))
        if kind == "surface":
            located, value = self.scene.place_map(value, t_ns)
            return BYTES, encode_surface(known or located, value)
        return BYTES, encode_points(known or self.scene.locate(frame, t_ns), value)

    def _place(self, port: PortMonitor) -> list[float] | None:
        """Return T_scene_frame (16 numbers) of the frame of a run's poses; None for other frames."""
        watch, scene = self.watch, self.scene
        assert watch is not None
        if not port.frame or port.frame == scene.layout.frame or scene.mount(port.frame, 0) is not None:
            return None
        poses = next((p for p in watch.ports if p.kind == "pose" and p.frame == port.frame and p.rows), None)
        if poses is None:
            return None
        rows = poses.since(0)
        mount = scene.mount(poses.child, int(scene.axis.start_ns + rows[0, 0] * NS)) if poses.child else None
        rows = rows[np.isfinite(rows).all(axis=1)]
        place = scene.layout.place(port.frame, rows[:, 0], rows[:, 1:4], rows[:, 4:], mount)
        return place.ravel().tolist()

    def _curve(self, number: float, which: float, start: float, end: float) -> Answer:
        curve = self.scene.curves[_whole(number)][_whole(which)]
        if not (np.isfinite([start, end]).all() and start < end):
            raise ValueError("not a time interval")
        return BYTES, encode_curve(self.scene, self.scene.streams[_whole(number)], curve, start, end)

    # Commands

    def _page_opened(self, page: float) -> Answer:
        """Register a page; checks start with the first one, in order not to delay it."""
        self._pages.add(page)
        self._last_closed = float("inf")
        if self._check_pending:
            self._check_pending = False
            threading.Thread(target=self._check, daemon=True).start()
        return _json({})

    def _page_closed(self, page: float) -> Answer:
        """Unregister a page; after the last one the server ends, unless it is reloaded."""
        self._pages.discard(page)
        if not self._pages:
            self._last_closed = time.monotonic()
        return _json({})

    def _end(self) -> Answer:
        self._last_closed = float("-inf")
        return _json({})

    def _send_command(self, watch: ReplayController | None, what: str, number: float) -> Answer:
        assert watch is not None
        watch.send(what, number)
        return _json({})

    def _check(self) -> None:
        """Check the sensors; the page polls for the verdicts."""
        from .check_process import judge_in_process

        try:
            found = judge_in_process(self.scene.recording, self.scene.axis.start_ns)
        except TransectError as error:
            self._verdicts = {"done": True, "streams": {}, "why": str(error)}
            return
        self._verdicts = {"done": True, "streams": found}


def _call(known: Mapping[str, Callable[..., Answer]], path: str) -> Answer | None:
    """Call the handler that a path names with the numbers after it; the rest of the path is not used."""
    name, *numbers = path.split("/")
    handler = known.get(name)
    if handler is None:
        return None
    try:
        return handler(*map(float, numbers))
    except TransectError:
        raise
    except (TypeError, ValueError, LookupError, OverflowError):
        return None


def _whole(number: float) -> int:
    """Return an index; negative ones are rejected."""
    if number < 0:
        raise IndexError(number)
    return int(number)


def _json(content: Any) -> Answer:
    return JSON, json.dumps(content).encode()


def _bytes(numbers: Floats, form: str) -> Answer:
    return BYTES, (as_float32(numbers) if form == "<f4" else numbers.astype(form)).tobytes()


def _handler(viewer: Viewer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Answers one request."""

        protocol_version = "HTTP/1.1"
        timeout = CONNECTION_TIMEOUT_S
        disable_nagle_algorithm = (
            True  # otherwise a body is delayed by 40 ms until the browser acknowledges its head
        )

        def do_GET(self) -> None:
            self._respond(viewer.answer)

        def do_POST(self) -> None:
            if self.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in self.headers:
                self.close_connection = True  # commands have no body, and none is read
            self._respond(viewer.execute)

        def _respond(self, find: Callable[[str], Answer | None]) -> None:
            token, _, path = self.path.partition("?")[0].lstrip("/").partition("/")
            if not self._is_authorised(token):
                self._send(
                    HTTPStatus.FORBIDDEN, ("text/plain", b"Open the address that transect view printed.\n")
                )
                return
            try:
                answer = find(path)
            except TransectError as error:
                self._send(HTTPStatus.UNPROCESSABLE_ENTITY, ("text/plain", str(error).encode()))
                return
            if answer is None:
                self._send(HTTPStatus.NOT_FOUND, ("text/plain", b"Not found.\n"))
            else:
                self._send(HTTPStatus.OK, answer)

        def _is_authorised(self, token: str) -> bool:
            """Return whether a request has the token and a local host name.

            The host name of a DNS rebinding attack would be another one.
            """
            own = {f"{name}:{viewer.port}" for name in (HOST, "localhost")}
            known = secrets.compare_digest(token.encode(), viewer.token.encode())
            return known and self.headers.get("Host") in own

        def _send(self, status: HTTPStatus, answer: Answer) -> None:
            kind, content = answer
            self.send_response(status)
            headers = {
                "Content-Type": kind,
                "Content-Length": str(len(content)),
                "Content-Security-Policy": POLICY,
                "X-Content-Type-Options": "nosniff",
                "Referrer-Policy": "no-referrer",
                "Cache-Control": "no-store",
            }
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing to the terminal."""

    return Handler

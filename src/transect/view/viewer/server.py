"""Answers the viewer's page: on the loopback address alone, to those who know the token."""

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
    Solid,
    as_float32,
    encode_curve,
    encode_path,
    encode_picture,
    encode_points,
    encode_surface,
    solids_of,
)
from .scene import Scene, describe, kind_of

if TYPE_CHECKING:
    from .live_run import Port, Watch

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
IDLE_S = 30.0
"""Seconds after which a connection on which nothing is asked, or nothing is read, is closed."""
MAX_WAITING = 128
"""Connections that wait to be accepted: a page asks for its files and the samples of all streams at once."""
LEFT_S = 2.0
"""Seconds after which a page that was closed counts as closed: one that is loaded anew comes back."""
Answer = tuple[str, bytes]
"""Type and content."""


class Server(ThreadingHTTPServer):
    """Answers in threads; a client that hangs up is no news."""

    daemon_threads = True
    request_queue_size = MAX_WAITING

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class Viewer:
    """A server for one page about one scene.

    Parameters
    ----------
    scene : Scene
    port : int
        0 for any that is free.
    check : bool
        Whether to judge the sensors meanwhile, in a thread; not beside a run, which has verdicts of its own.
    watch : Watch, optional
        A run that the page may step, play and pause.
    """

    def __init__(self, scene: Scene, port: int = 0, check: bool = True, watch: Watch | None = None) -> None:
        self.scene, self.watch, self.token = scene, watch, secrets.token_urlsafe(16)
        self.solids: tuple[Solid, ...] = solids_of(scene) if scene.solids is None else scene.solids
        run = {"run": watch.describe()} if watch else {}
        self.description = json.dumps(describe(scene, self.solids) | run).encode()
        self._server = Server((HOST, port), _handler(self))
        check = check and watch is None
        self._verdicts: dict[str, Any] = {"done": not check, "streams": {}}
        self._pages: set[float] = set()
        self._left = float("inf")
        self._judging = check

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """What to open in a browser; the token in it is what lets one in."""
        return f"http://{HOST}:{self.port}/{self.token}/"

    def serve(self) -> None:
        """Answer until `close` is called, every page was closed, or the process is interrupted."""
        threading.Thread(target=self._close_when_left, daemon=True).start()
        self._server.serve_forever(poll_interval=0.1)

    def close(self) -> None:
        """Stop answering."""
        self._left = float("-inf")
        self._server.shutdown()
        self._server.server_close()

    def _close_when_left(self) -> None:
        while time.monotonic() - self._left < LEFT_S:
            time.sleep(0.1)
        self._server.shutdown()

    # What is asked for

    def answer(self, path: str) -> Answer | None:
        """Return what is asked for; None if there is no such thing.

        Parameters
        ----------
        path : str
            Behind the token: `index.json`, `times/3`, `sample/3/120`, `curve/2/0/1.5/9.25`, `path/0`, ...
        """
        if path in FILES:
            name, kind = FILES[path]
            return kind, files(PACKAGE).joinpath(name).read_bytes()
        return _call(self._answers, path)

    def obey(self, path: str) -> Answer | None:
        """Do what a page orders: `here/ID`, `left/ID`, `run/step/1`, ...; None if there is no such thing."""
        return _call(self._orders, path.replace("run/", "run_", 1))

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

    def _run_answers(self, watch: Watch) -> Mapping[str, Callable[..., Answer]]:
        return {
            "verdicts.json": lambda: _json({"done": True, "streams": watch.verdicts}),
            "run.json": lambda: _json(watch.status() | {"places": [*map(self._place, watch.ports)]}),
            "rows": lambda n, begin: _bytes(watch.ports[_whole(n)].since(_whole(begin)), "<f8"),
            "lines": lambda begin: _json(watch.lines(_whole(begin))),
            "output": lambda n, k: self._output(watch.ports[_whole(n)], _whole(k)),
        }

    @cached_property
    def _orders(self) -> Mapping[str, Callable[..., Answer]]:
        watch = self.watch
        runs = ("step", "next", "play", "pause") if watch else ()
        return {
            "here": self._welcome,
            "left": self._take_leave,
            "close": self._end,
            **{f"run_{name}": lambda n=0.0, name=name: self._order(watch, name, n) for name in runs},
        }

    def _sample(self, number: float, index: float) -> Answer:
        stream = self.scene.streams[_whole(number)]
        if not 0 <= index < len(stream):
            raise IndexError(index)
        sample = stream[int(index)]
        return self._show(sample.value, stream.frame, sample.t_ns)

    def _output(self, port: Port, number: int) -> Answer:
        """Return a sample that a run gave, laid by the path that it found where that has the frame.

        Nothing, where it is not kept any more: that is to be expected of a run that goes on.
        """
        value = port.value(number)
        if value is None:
            return BYTES, b""
        t_ns = int(self.scene.axis.start_ns + port.since(number)[0, 0] * NS)
        return self._show(value, port.frame, t_ns, self._place(port))

    def _show(self, value: Any, frame: str, t_ns: int, place: list[float] | None = None) -> Answer:
        """Return a value as the page draws it; with T_scene_frame (16 numbers) where a run knows that."""
        kind = kind_of(type(value))
        if not kind:
            raise UnsupportedError(
                f"a sample of type {type(value).__name__} is not drawn",
                why="it is neither a picture, nor points, nor a map",
            )
        if kind == "picture":
            return JPEG, encode_picture(value)
        known = None if place is None else (True, np.array(place).reshape(4, 4))
        if kind == "surface":
            located, value = self.scene.place_map(value, t_ns)
            return BYTES, encode_surface(known or located, value)
        return BYTES, encode_points(known or self.scene.locate(frame, t_ns), value)

    def _place(self, port: Port) -> list[float] | None:
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
            raise ValueError("no stretch of time")
        return BYTES, encode_curve(self.scene, self.scene.streams[_whole(number)], curve, start, end)

    # Orders

    def _welcome(self, page: float) -> Answer:
        """Take note of a page that is ready; the checks begin with the first, so as not to hold it up."""
        self._pages.add(page)
        self._left = float("inf")
        if self._judging:
            self._judging = False
            threading.Thread(target=self._check, daemon=True).start()
        return _json({})

    def _take_leave(self, page: float) -> Answer:
        """Take note that a page was closed; the last one ends the server, unless it comes back."""
        self._pages.discard(page)
        if not self._pages:
            self._left = time.monotonic()
        return _json({})

    def _end(self) -> Answer:
        self._left = float("-inf")
        return _json({})

    def _order(self, watch: Watch | None, what: str, number: float) -> Answer:
        assert watch is not None
        watch.order(what, number)
        return _json({})

    def _check(self) -> None:
        """Judge the sensors; the page asks now and then whether it is done."""
        from .check_process import judge_apart

        try:
            found = judge_apart(self.scene.recording, self.scene.axis.start_ns)
        except TransectError as error:
            self._verdicts = {"done": True, "streams": {}, "why": str(error)}
            return
        self._verdicts = {"done": True, "streams": found}


def _call(known: Mapping[str, Callable[..., Answer]], path: str) -> Answer | None:
    """Call what a path names with the numbers behind it; nothing else of a path is ever used."""
    what, *numbers = path.split("/")
    asked = known.get(what)
    if asked is None:
        return None
    try:
        return asked(*map(float, numbers))
    except TransectError:
        raise
    except (TypeError, ValueError, LookupError, OverflowError):
        return None


def _whole(number: float) -> int:
    """Return the number of something in a list; those that count from its end are refused."""
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
        timeout = IDLE_S
        disable_nagle_algorithm = True  # else a body waits 40 ms for the browser to confirm its head

        def do_GET(self) -> None:
            self._respond(viewer.answer)

        def do_POST(self) -> None:
            if self.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in self.headers:
                self.close_connection = True  # no order has a body, and none is read
            self._respond(viewer.obey)

        def _respond(self, find: Callable[[str], Answer | None]) -> None:
            token, _, path = self.path.partition("?")[0].lstrip("/").partition("/")
            if not self._is_welcome(token):
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
                self._send(HTTPStatus.NOT_FOUND, ("text/plain", b"There is no such thing.\n"))
            else:
                self._send(HTTPStatus.OK, answer)

        def _is_welcome(self, token: str) -> bool:
            """Tell whether somebody knows the token and asked this machine by its own name.

            A page from elsewhere whose name was made to lead here would send that name.
            """
            own = {f"{name}:{viewer.port}" for name in (HOST, "localhost")}
            known = secrets.compare_digest(token.encode(), viewer.token.encode())
            return known and self.headers.get("Host") in own

        def _send(self, status: HTTPStatus, answer: Answer) -> None:
            kind, content = answer
            self.send_response(status)
            said = {
                "Content-Type": kind,
                "Content-Length": str(len(content)),
                "Content-Security-Policy": POLICY,
                "X-Content-Type-Options": "nosniff",
                "Referrer-Policy": "no-referrer",
                "Cache-Control": "no-store",
            }
            for name, value in said.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing: the terminal is the user's."""

    return Handler

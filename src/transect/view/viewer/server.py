"""Answers the viewer's page: on the loopback address alone, to those who know the token."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Mapping
from functools import cached_property
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any

import numpy as np

from transect.base.clocks import NS
from transect.errors import TransectError

from .encoding import encode_curve, encode_path, encode_picture, encode_points
from .scene import PICTURES, Scene, describe

HOST = "127.0.0.1"
PACKAGE = "transect.view.viewer"
FILES = {
    "": ("page.html", "text/html; charset=utf-8"),
    "viewer.js": ("viewer.js", "text/javascript; charset=utf-8"),
    "space.js": ("space.js", "text/javascript; charset=utf-8"),
    "viewer.css": ("viewer.css", "text/css; charset=utf-8"),
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
BYTES, JSON, JPEG = "application/octet-stream", "application/json", "image/jpeg"
Answer = tuple[str, bytes]
"""Type and content."""


class Viewer:
    """A server for one page about one scene.

    Parameters
    ----------
    scene : Scene
    port : int
        0 for any that is free.
    check : bool
        Whether to judge the sensors meanwhile, in a thread.
    """

    def __init__(self, scene: Scene, port: int = 0, check: bool = True) -> None:
        self.scene, self.token = scene, secrets.token_urlsafe(16)
        self.description = json.dumps(describe(scene)).encode()
        self._server = ThreadingHTTPServer((HOST, port), _handler(self))
        self._server.daemon_threads = True
        self._verdicts: dict[str, Any] = {"done": not check, "streams": {}}
        if check:
            threading.Thread(target=self._check, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """What to open in a browser; the token in it is what lets one in."""
        return f"http://{HOST}:{self.port}/{self.token}/"

    def serve(self) -> None:
        """Answer until `close` is called, or the process is interrupted."""
        self._server.serve_forever(poll_interval=0.1)

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str) -> Answer | None:
        """Return what is asked for; None if there is no such thing.

        Parameters
        ----------
        path : str
            Behind the token: `index.json`, `times/3`, `sample/3/120`, `curve/2/0/1.5/9.25`, `path/0`.
        """
        if path in FILES:
            name, kind = FILES[path]
            return kind, files(PACKAGE).joinpath(name).read_bytes()
        what, *numbers = path.split("/")
        asked = self._answers.get(what)
        if asked is None:
            return None
        try:
            return asked(*map(float, numbers))
        except (TypeError, ValueError, IndexError, OverflowError):
            return None

    @cached_property
    def _answers(self) -> Mapping[str, Callable[..., Answer]]:
        return {
            "index.json": lambda: (JSON, self.description),
            "verdicts.json": lambda: (JSON, json.dumps(self._verdicts).encode()),
            "times": self._times,
            "sample": self._sample,
            "curve": self._curve,
            "path": lambda number: (BYTES, encode_path(self.scene.paths[int(number)])),
        }

    def _times(self, number: float) -> Answer:
        return BYTES, self.scene.seconds(self.scene.streams[int(number)]).astype("<f8").tobytes()

    def _sample(self, number: float, index: float) -> Answer:
        stream = self.scene.streams[int(number)]
        if not 0 <= index < len(stream):
            raise IndexError(index)
        if stream.type in PICTURES:
            return JPEG, encode_picture(stream[int(index)].value)
        return BYTES, encode_points(self.scene, stream, int(index))

    def _curve(self, number: float, which: float, start: float, end: float) -> Answer:
        curve = self.scene.curves[int(number)][int(which)]
        if not (np.isfinite([start, end]).all() and start < end):
            raise ValueError("no stretch of time")
        return BYTES, encode_curve(self.scene, self.scene.streams[int(number)], curve, start, end)

    def _check(self) -> None:
        """Judge the sensors; the page asks now and then whether it is done."""
        from transect.integrity import check

        try:
            table = check(self.scene.recording)
        except TransectError as error:
            self._verdicts = {"done": True, "streams": {}, "why": str(error)}
            return
        start = self.scene.axis.start_ns
        found = {
            name: [[(v.t0_ns - start) / NS, (v.t1_ns - start) / NS, v.state, v.reason] for v in verdicts]
            for name, verdicts in table.by_stream.items()
        }
        self._verdicts = {"done": True, "streams": found}


def _handler(viewer: Viewer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Answers one request."""

        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            token, _, path = self.path.partition("?")[0].lstrip("/").partition("/")
            if not self._is_welcome(token):
                self._send(
                    HTTPStatus.FORBIDDEN, ("text/plain", b"Open the address that transect view printed.\n")
                )
                return
            try:
                answer = viewer.answer(path)
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
            return secrets.compare_digest(token, viewer.token) and self.headers.get("Host") in own

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

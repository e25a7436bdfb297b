"""The viewer's server: who keeps a connection open, hangs up, asks all at once, or for what is not drawn."""

from __future__ import annotations

import http.client
import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from transect.errors import TransectError
from transect.recording import Recording, stream_of_values
from transect.types import Imu
from transect.view.viewer import Viewer, ViewerScene, server

if TYPE_CHECKING:
    from playwright.sync_api import Browser

T_NS = np.arange(5) * 1_000_000_000


@pytest.fixture
def viewer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Viewer]:
    monkeypatch.setattr(server, "CONNECTION_TIMEOUT_S", 0.2)
    stream = stream_of_values("Imu", T_NS, {"acc_x": np.arange(5.0)}, type=Imu)
    shown = Viewer(ViewerScene(Recording("drive", (stream,))), check=False)
    shown.execute("here/0")
    thread = threading.Thread(target=shown.serve, daemon=True)
    thread.start()
    yield shown
    shown.close()
    thread.join()


def connect(viewer: Viewer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", viewer.port), timeout=30)


def request(viewer: Viewer, path: str) -> bytes:
    return f"GET /{viewer.token}/{path} HTTP/1.1\r\nHost: 127.0.0.1:{viewer.port}\r\n\r\n".encode()


def wait_for_answering_threads() -> None:
    for thread in threading.enumerate():
        if "process_request_thread" in thread.name:
            thread.join(30)
            assert not thread.is_alive()


@pytest.mark.parametrize("begun", [b"", b"GET /", b"GET / HTTP/1.1\r\nHost:"])
def test_a_connection_on_which_nothing_comes_is_closed(
    viewer: Viewer, capfd: pytest.CaptureFixture[str], begun: bytes
) -> None:
    with connect(viewer) as connection:
        connection.sendall(begun)
        assert connection.recv(1) == b""
    wait_for_answering_threads()
    assert capfd.readouterr() == ("", "")


def test_one_connection_answers_again_and_is_closed_when_it_is_left_open(viewer: Viewer) -> None:
    with connect(viewer) as connection:
        for _ in range(2):
            connection.sendall(request(viewer, "index.json"))
            answer = http.client.HTTPResponse(connection)
            answer.begin()
            assert (answer.status, json.loads(answer.read())["name"]) == (200, "drive")
        assert connection.recv(1) == b""


@pytest.mark.parametrize("asked", [False, True])
def test_a_client_that_hangs_up_prints_nothing(
    viewer: Viewer, capfd: pytest.CaptureFixture[str], asked: bool
) -> None:
    connection = connect(viewer)
    connection.sendall(50 * request(viewer, "viewer.js") if asked else b"GET /")
    # With these options the connection is not closed, but reset.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
    with closing(http.client.HTTPConnection("127.0.0.1", viewer.port)) as other:
        other.request("GET", f"/{viewer.token}/index.json")
        assert other.getresponse().status == 200
    wait_for_answering_threads()
    assert capfd.readouterr() == ("", "")


def test_what_goes_wrong_in_the_server_itself_is_not_kept_quiet(
    viewer: Viewer, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(viewer, "answer", lambda path: 1 / 0)
    with connect(viewer) as connection:
        connection.sendall(request(viewer, "index.json"))
        assert connection.recv(1) == b""
    wait_for_answering_threads()
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_a_page_may_open_many_connections_before_one_is_accepted(viewer: Viewer) -> None:
    waiting = Viewer(viewer.scene, check=False)  # bound, and not answering yet
    try:
        connections = [connect(waiting) for _ in range(server.MAX_PENDING_CONNECTIONS)]
        peers = {connection.getpeername()[1] for connection in connections}
        for connection in connections:
            connection.close()
        assert len(connections) == server.MAX_PENDING_CONNECTIONS >= 64
        assert peers == {waiting.port}
    finally:
        waiting._server.server_close()


def test_a_sample_that_is_not_drawn_is_refused_and_not_a_failure(
    viewer: Viewer, capfd: pytest.CaptureFixture[str]
) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", viewer.port)) as connection:
        connection.request("GET", f"/{viewer.token}/sample/0/3")
        answer = connection.getresponse()
        assert answer.status == 422
        assert answer.read().startswith(b"samples of type Imu cannot be drawn")
    wait_for_answering_threads()
    assert capfd.readouterr().err == ""


def wait_for_verdicts(viewer: Viewer) -> dict[str, Any]:
    viewer.execute("here/1")
    for thread in threading.enumerate():
        if thread.name.endswith("(_check)"):
            thread.join(60)
    answer = viewer.answer("verdicts.json")
    assert answer is not None
    return json.loads(answer[1])


def test_verdicts_come_when_a_page_is_open_and_their_failure_is_told(
    viewer: Viewer, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = Viewer(viewer.scene)
    failing = Viewer(viewer.scene)
    assert json.loads((judged.answer("verdicts.json") or ("", b""))[1]) == {"done": False, "streams": {}}
    told = wait_for_verdicts(judged)
    assert (told["done"], set(told["streams"])) == (True, {"Imu"})

    def fail(*_: object) -> None:
        raise TransectError("the sensors could not be checked", why="the recording is gone")

    monkeypatch.setattr("transect.view.viewer.check_process.judge_in_process", fail)
    told = wait_for_verdicts(failing)
    assert (told["done"], told["streams"]) == (True, {})
    assert "the recording is gone" in told["why"]
    thread = threading.Thread(target=failing.serve, daemon=True)
    thread.start()
    page = browser.new_page()
    page.goto(failing.url)
    page.locator("#verdict").filter(has_text="the sensors could not be checked").wait_for()
    page.close()
    judged._server.server_close()
    failing.close()
    thread.join()

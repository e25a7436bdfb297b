"""A run that is watched: it obeys, shows what comes of it, and gives the digest that it gives unwatched."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from tests.cli.run_sample import write_project

import transect
from transect.engine import Compound, Replay, Run
from transect.errors import TransectError, UsageError
from transect.view import watch
from transect.view.viewer import watching
from transect.view.viewer.watching import Watch

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_project(tmp_path_factory.mktemp("project"))
    nodes = (folder / "my_nodes.py").read_text()
    (folder / "my_nodes.py").write_text(nodes.replace("lost the horizon", f"lost {HOSTILE}"))
    return folder


@pytest.fixture(scope="module")
def unwatched(project: Path) -> Run:
    return transect.run(project / "track.yaml", project / "day")


def watched(project: Path, compound: str = "track") -> Watch:
    day = transect.open(project / "day")
    replay = Replay(Compound.of(project / f"{compound}.yaml"), day)
    return Watch(replay, min(first for first, _ in day.spans().values()))


def play(run: Watch, *orders: tuple[str, float]) -> None:
    """Order one thing after the other, each when the one before is done."""
    thread = threading.Thread(target=run.obey)
    thread.start()
    for number, order in enumerate(orders):
        run.order(*order)
        while run.obeyed == number:
            time.sleep(0.001)
    run.order("close")
    thread.join()


def test_a_watched_run_has_the_digest_of_an_unwatched_one(project: Path, unwatched: Run) -> None:
    run = watched(project)
    play(run, ("step", 1), ("step", 7), ("next", run.channels.index("twist")), ("pause", 0), ("play", 0))
    assert run.status()["state"] == "ended"
    assert run.status()["digest"] == unwatched.digest
    poses = next(port for port in run.ports if port.name == "pose")
    expected = np.array([pose.position for pose in unwatched["pose"].values])
    assert poses.since(0)[:, 1:4] == pytest.approx(expected, abs=0)
    assert len(poses.since(3)) == len(expected) - 3


def test_a_step_is_one_wave_or_the_next_sample_of_a_port(project: Path) -> None:
    run = watched(project)
    play(run, ("step", 1))
    assert (run.state, run.now) == ("paused", 0.0)  # the IMU's first; the wheels come 3 ms later
    counts = {port.channel: port.count for port in run.ports}
    assert counts == {"heading.out": 1, "track.out": 0}
    run = watched(project)
    play(run, ("next", run.channels.index("track.out")), ("next", run.channels.index("track.out")))
    assert [port.count for port in run.ports if port.channel == "track.out"] == [2]
    assert run.why == "break: track.out"
    assert run.status()["streams"]["wheels"]["played"] == 2


def test_what_nodes_took_and_said_is_seen_while_it_plays(project: Path) -> None:
    run = watched(project)
    play(run, ("step", 30))
    heading = next(node for node in run.status()["nodes"] if node["name"] == "heading")
    assert heading["calls"] == run.status()["streams"]["imu"]["played"]
    assert heading["p50"] > 0
    assert json.loads(json.dumps(run.status()))["ports"][0]["count"] > 0


def test_the_failure_of_a_node_is_seen_and_the_rest_goes_on(project: Path) -> None:
    run = watched(project, "broken")
    play(run, ("play", 0))
    assert run.state == "ended"
    assert [HOSTILE in text for text in run.status()["errors"]] == [True, True]
    assert next(node["failed"] for node in run.status()["nodes"] if node["calls"] == 11)


def test_memory_stays_flat(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "KEPT", 5)
    run = watched(project, "large")
    play(run, ("step", 20))
    port = run.ports[0]
    assert (port.count, len(port.newest)) == (20, 5)
    assert port.value(3) is None
    assert len(port.value(19)) == 100_000
    with pytest.raises(IndexError):
        port.value(20)


@pytest.mark.parametrize("order", [("dance", 0), ("step", -1), ("step", float("nan")), ("next", 99)])
def test_what_cannot_be_ordered_is_refused(project: Path, order: tuple[str, float]) -> None:
    with pytest.raises(ValueError, match="there is no"):
        watched(project).order(*order)


class Session:
    """A run that is watched in a thread of its own, as `transect.run(play=watch)` does it."""

    def __init__(self, project: Path, compound: str = "track", **options: Any) -> None:
        self.address, self.error = "", None
        self._known = threading.Event()
        self._work: Callable[[], Run] = partial(
            transect.run,
            project / f"{compound}.yaml",
            project / "day",
            play=partial(watch, show=self._show),
            **options,
        )
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        assert self._known.wait(20)

    def _show(self, address: str) -> None:
        self.address = address
        self._known.set()

    def _run(self) -> None:
        try:
            self.run = self._work()
        except TransectError as error:
            self.error = error

    def ask(self, method: str, path: str, host: str = "") -> tuple[int, bytes]:
        where = urlsplit(self.address)
        with closing(http.client.HTTPConnection("127.0.0.1", where.port or 0)) as connection:
            connection.request(method, where.path + path, headers={"Host": host or where.netloc})
            answer = connection.getresponse()
            return answer.status, answer.read()

    def close(self) -> None:
        assert self.ask("POST", "close")[0] == 200
        self.thread.join(20)
        assert not self.thread.is_alive()


def test_only_orders_that_are_posted_with_the_token_are_obeyed(project: Path) -> None:
    session = Session(project)
    assert session.ask("GET", "run/step/1")[0] == 404
    assert session.ask("POST", "../x/run/step/1")[0] in (403, 404)
    assert session.ask("POST", "run/step/1", host="evil.example")[0] == 403
    assert session.ask("POST", "run/step/-1")[0] == 404
    assert session.ask("POST", "run/obey")[0] == 404
    assert json.loads(session.ask("GET", "run.json")[1])["state"] == "ready"
    session.close()
    assert session.run.status == "interrupted"


def test_a_page_that_is_closed_ends_the_watching(project: Path, unwatched: Run) -> None:
    session = Session(project)
    for path in ("here/1", "here/2", "left/1"):
        assert session.ask("POST", path)[0] == 200
    assert session.ask("POST", "run/play/0")[0] == 200
    while json.loads(session.ask("GET", "run.json")[1])["state"] != "ended":
        pass
    session.ask("POST", "left/2")
    session.thread.join(20)
    assert (session.run.status, session.run.digest) == ("complete", unwatched.digest)


def open_page(browser: Browser, address: str, said: list[str]) -> Page:
    page = browser.new_page(viewport={"width": 1100, "height": 800})
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on("dialog", lambda dialog: said.append(dialog.message))
    page.goto(address)
    page.wait_for_selector("body[data-ready=yes]")
    return page


def test_a_person_steps_runs_and_pauses_in_a_browser(project: Path, browser: Browser, unwatched: Run) -> None:
    session, said = Session(project), list[str]()
    page = open_page(browser, session.address, said)
    page.wait_for_selector("body[data-run=ready]")
    page.keyboard.press(".")
    page.wait_for_selector("body[data-run=paused]")
    page.locator("#run-why").filter(has_text="at 0.000 s of 2.0 s").wait_for()
    page.select_option("#unit", label="twist")
    page.click("#step")
    page.locator("#run-why").filter(has_text="break: twist").wait_for()
    assert page.inner_text("#clock") == "0.00 s"
    page.select_option("#speed", "0.25")  # eight seconds: it does not end before it is paused
    page.click("#play")
    page.wait_for_selector("body[data-run=playing]")
    page.click("#play")
    page.wait_for_selector("body[data-run=paused]")
    page.select_option("#speed", "0")
    page.click("#play")
    page.wait_for_selector("body[data-run=ended]")
    assert unwatched.digest[:12] in page.inner_text("#run-why")
    assert "Pose" in page.inner_text("#run-ports")
    assert page.inner_text("#legend").splitlines()[-1] == "pose (run)"
    page.goto("about:blank")  # which closes the page
    session.thread.join(20)
    assert (session.run.status, session.run.digest) == ("complete", unwatched.digest)
    assert said == []
    page.close()


def test_the_page_shows_errors_and_log_lines_as_text(project: Path, browser: Browser) -> None:
    session, said = Session(project, "broken"), list[str]()
    page = open_page(browser, session.address, said)
    page.select_option("#speed", "0")
    page.keyboard.press(" ")
    page.wait_for_selector("body[data-run=ended]")
    assert HOSTILE in page.inner_text("#run-said")
    assert page.locator("#run-panel img").count() == 0
    page.click("#end")
    session.thread.join(20)
    assert HOSTILE in str(session.error)
    assert said == []
    page.close()


def test_a_watched_run_plays_on_one_thread(project: Path) -> None:
    with pytest.raises(UsageError, match="one wave after the other"):
        transect.run(project / "track.yaml", project / "day", jobs=2, play=watch)

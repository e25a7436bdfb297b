"""A run that is watched: it obeys, shows what comes of it, and gives the digest that it gives unwatched."""

from __future__ import annotations

import http.client
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from tests.cli.run_sample import START_NS as RUN_T0
from tests.cli.run_sample import write_project
from tests.view.viewer.test_viewer import START_NS as DRIVE_START_NS
from tests.view.viewer.test_viewer import drive

import transect
from transect.base.clocks import NS
from transect.engine import Compound, Replay, Run
from transect.errors import TransectError, UsageError
from transect.types import GridMap, Image, Odometry, PointCloud, Pose, Trajectory, Verdict
from transect.view import watch
from transect.view.viewer import Viewer, ViewerScene, live_run
from transect.view.viewer.live_run import PortMonitor, ReplayController

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

START_NS = 1_000_000_000
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


def watched(project: Path, compound: str = "track") -> ReplayController:
    day = transect.open(project / "day")
    replay = Replay(Compound.of(project / f"{compound}.yaml"), day)
    return ReplayController(replay, min(first for first, _ in day.spans().values()))


def play(run: ReplayController, *orders: tuple[str, float]) -> None:
    """Order one thing after the other, each when the one before is done."""
    thread = threading.Thread(target=run.process_commands)
    thread.start()
    for number, order in enumerate(orders):
        run.send(*order)
        while run.processed == number:
            time.sleep(0.001)
    run.send("close")
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
    monkeypatch.setattr(live_run, "MAX_KEPT_SAMPLES", 5)
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
        watched(project).send(*order)


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
    with pytest.raises(UsageError, match="on one thread"):
        transect.run(project / "track.yaml", project / "day", jobs=2, play=watch)


def test_ctrl_c_ends_the_watching_and_the_run_is_interrupted(project: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    run = transect.run(
        project / "track.yaml", project / "day",
        play=partial(watch, show=lambda _: os.kill(os.getpid(), signal.SIGINT)),
    )  # fmt: skip
    assert run.status == "interrupted"
    assert signal.getsignal(signal.SIGINT) is before


def test_what_is_asked_of_a_run_and_is_not_drawn_is_refused(project: Path) -> None:
    session = Session(project)
    assert session.ask("POST", "run/play/0")[0] == 200
    while json.loads(session.ask("GET", "run.json")[1])["state"] != "ended":
        time.sleep(0.001)
    told = json.loads(session.ask("GET", "index.json")[1])["run"]["ports"]
    counts = json.loads(session.ask("GET", "run.json")[1])["ports"]
    for number, (port, status) in enumerate(zip(told, counts, strict=True)):
        assert session.ask("GET", f"output/{number}/{status['count'] - 1}")[0] == 422, port
        assert session.ask("GET", f"output/{number}/{status['count']}")[0] == 404, port
        kept = status["count"] <= live_run.MAX_KEPT_SAMPLES
        assert (session.ask("GET", f"output/{number}/0")[1] == b"") == (not kept)
        assert len(session.ask("GET", f"rows/{number}/0")[1]) == 8 * port["width"] * status["count"]
    assert session.ask("GET", "output/99/0")[0] == 404
    assert json.loads(session.ask("GET", "verdicts.json")[1]) == {"done": True, "streams": {}}
    session.close()


def port_of(kind: type, *values: Any) -> PortMonitor:
    port = PortMonitor("node.out", "out", kind, START_NS)
    for number, value in enumerate(values):
        port.add_sample(START_NS + number * NS, value)
    return port


POSES = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    ("kind", "value", "text", "row"),
    [
        (Pose, Pose(POSES[1], np.array([0, 0, 0.6, 0.8])), "at 3.000, 4.000, 5.000 m",
         [0, 3, 4, 5, 0, 0, 0.6, 0.8]),
        (Odometry, Odometry(POSES[1], None), "at 3.000, 4.000, 5.000 m", [0, 3, 4, 5, 0, 0, 0, 1]),
        (
            Trajectory,
            Trajectory(START_NS + NS * np.arange(2), POSES, None),
            "2 poses",
            [0, 0, 1, 2, 0, 0, 0, 1],
        ),
        (PointCloud, PointCloud(np.zeros((1234, 3), np.float32)), "1,234 points", [0]),
        (Image, Image(np.zeros((3, 4), np.uint8)), "4 x 3 pixels", [0]),
        (GridMap, GridMap({"elevation": np.zeros((5, 6))}, (1, 0, 0, 0, -1, 0)), "5 x 6 cells", [0]),
        (float, 0.1234567890, "0.123457", [0, 0.123456789]),
        (bool, True, "True", [0, 1]),
        (np.ndarray, np.zeros((4, 5)), "array 4 x 5", [0]),
        (np.ndarray, np.zeros(3), "array([0., 0., 0.])", [0]),
        (str, "a " * 200, f"'{'a ' * 58}...", [0]),
    ],
)  # fmt: skip
def test_the_newest_value_of_a_port_is_told_in_a_few_words(
    kind: type, value: Any, text: str, row: list[float]
) -> None:
    port = port_of(kind, value)
    assert port.describe()["text"] == text
    assert port.since(0)[0].tolist() == pytest.approx(row)
    assert port.is_whole == (kind is Trajectory)
    assert port_of(kind).describe() == {"count": 0, "text": "", "last": None, "frame": ""}


def test_a_pose_without_a_position_is_a_row_that_the_page_leaves_out() -> None:
    port = port_of(Pose, Pose(None, np.array([0.0, 0, 0, 1])))
    assert np.isnan(port.since(0)[0, 1:4]).all()
    assert port.describe()["text"].startswith("Pose(")


def test_clouds_of_a_run_lie_where_its_poses_put_their_frame(project: Path) -> None:
    # The scene's own path goes along x; the run's, from where that begins, along y of a frame of its own.
    scene = ViewerScene(drive())
    run = watched(project)
    turned = np.array([0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)])
    poses = PortMonitor("slam.pose", "pose", Pose, DRIVE_START_NS)
    cloud = PortMonitor("slam.map", "map", PointCloud, DRIVE_START_NS)
    for k in range(4):
        poses.add_sample(
            DRIVE_START_NS + k * NS, Pose(np.array([7.0, k, 0.0]), turned, frame="slam", child="base")
        )
        cloud.add_sample(
            DRIVE_START_NS + k * NS, PointCloud(np.array([[7.0, 2.0, 0.0]], np.float32), frame="slam")
        )
    other = PortMonitor("x.cloud", "x", PointCloud, DRIVE_START_NS)
    other.add_sample(DRIVE_START_NS, PointCloud(np.zeros((1, 3), np.float32), frame="laser"))
    run.ports = [poses, cloud, other]
    viewer = Viewer(scene, watch=run)
    try:
        answer = viewer.answer("output/1/3")
        assert answer is not None
        told = np.frombuffer(answer[1], "<f4")
        fixed, matrix, point = told[0], told[1:17].reshape(4, 4), told[17:20]
        assert fixed == 1
        assert (matrix @ [*point, 1])[:3] == pytest.approx([2, 0, 0], abs=1e-5)
        mounted = viewer.answer("output/2/0")
        assert mounted is not None
        assert np.frombuffer(mounted[1], "<f4")[:1] == [0]  # on the robot
        places = json.loads((viewer.answer("run.json") or ("", b""))[1])["places"]
        assert [place is None for place in places] == [False, False, True]
    finally:
        viewer._server.server_close()


class Verdicts:
    """Says of one stream that it is bad from 1 s on."""

    def known_at(self, stream: str, t_ns: int) -> Any:
        if stream != "wheels" or t_ns < RUN_T0 + NS:
            return None
        return SimpleNamespace(
            whole=Verdict(
                sensor=stream,
                stream=stream,
                t0_ns=RUN_T0 + NS,
                t1_ns=RUN_T0 + 2 * NS,
                state="BAD",
                reason="STUCK",
            )
        )


def test_verdicts_are_shown_from_when_they_were_known(project: Path) -> None:
    early, late = watched(project), watched(project)
    play(early, ("step", 5))
    play(late, ("play", 0))
    for run in (early, late):
        run.replay.verdicts = Verdicts()  # pyright: ignore[reportAttributeAccessIssue]
        run._update_statistics()
        run._update_statistics()  # the same verdict is told once
    assert early.verdicts == {}
    assert late.verdicts == {"wheels": [(1.0, 2.0, "BAD", "STUCK")]}

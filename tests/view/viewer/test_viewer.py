"""The viewer: its answers to the page, access control, and the page in a browser."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import cv2
import numpy as np
import pytest

from transect.errors import StreamError, TransectError
from transect.recording import FrameTree, Recording, Stream, arrow, stream_of_values
from transect.recording.arrow import PAYLOAD
from transect.types import Image, Imu, LaserScan, Pose
from transect.view.viewer import Viewer, ViewerScene
from transect.view.viewer.encoding import encode_picture, scan_points

if TYPE_CHECKING:
    from playwright.sync_api import Browser

START_NS, NS_PER_S = 1_656_936_023_000_000_000, 1_000_000_000
COUNT_DRAWN = """() => {
    const canvas = document.getElementById("space"), gl = canvas.getContext("webgl2");
    const pixels = new Uint8Array(4 * canvas.width * canvas.height);
    gl.readPixels(0, 0, canvas.width, canvas.height, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
    return pixels.filter((value, i) => i % 4 === 3 && value > 0).length; }"""
FIND_CURSOR = """(canvas) => {
    const ink = getComputedStyle(document.body).color.match(/\\d+/g).map(Number), found = [];
    const { width, height } = canvas, data = canvas.getContext("2d").getImageData(0, 0, width, height).data;
    for (let x = 0; x < width; x++) {
        let count = 0;
        for (let y = 0; y < height; y++) {
            const at = 4 * (y * width + x);
            count += data[at + 3] > 60 && [0, 1, 2].every((k) => Math.abs(data[at + k] - ink[k]) < 40);
        }
        if (count > 0.75 * height) found.push(x);
    }
    const ratio = width / canvas.clientWidth;
    const middle = found.reduce((sum, x) => sum + x + 0.5, 0) / found.length;
    return found.length ? canvas.getBoundingClientRect().left + middle / ratio : null; }"""
"""Where, in pixels of the page, a canvas has a line of the text's colour from top to bottom."""
HOSTILE = "<img src=x onerror=alert(1)>"


def drive() -> Recording:
    """Return ten seconds: a camera whose pictures grow brighter, a laser, an IMU with a spike, and poses."""
    camera_t, imu_t = START_NS + np.arange(11) * NS_PER_S, START_NS + np.arange(1001) * NS_PER_S // 100
    acc = np.zeros(1001)
    acc[500] = 42.0
    pictures = arrow.table(camera_t, {PAYLOAD: arrow.strings([str(k) for k in range(11)])})
    scans = {
        "ranges": np.tile([1.0, 2.0, np.inf], (11, 1)),
        "start_angle": np.zeros(11),
        "angle_increment": np.full(11, np.pi / 2),
    }
    frames = FrameTree()
    frames.add_static("base", "laser", np.array([[1.0, 0, 0, 0.5], [0, 1, 0, 0], [0, 0, 1, 2], [0, 0, 0, 1]]))
    poses = {name: np.zeros(11) for name in ("y", "z", "qx", "qy", "qz")}
    poses |= {"x": np.arange(11.0), "qw": np.ones(11)}
    return Recording(
        "drive",
        (
            Stream("Cam", Image, pictures, loader=paint),
            stream_of_values("Laser", camera_t, scans, type=LaserScan, frame="laser"),
            stream_of_values(HOSTILE, imu_t, {"acc_x": acc}, type=Imu),
            stream_of_values("Poses", camera_t, poses, type=Pose, frame="map", child="base"),
        ),
        frames,
    )


def paint(row: Mapping[str, Any]) -> Image:
    return Image(np.full((8, 12), 20 * int(row[PAYLOAD]), np.uint8))


@pytest.fixture(scope="module")
def viewer() -> Iterator[Viewer]:
    """A viewer that answers on a thread."""
    shown = Viewer(ViewerScene(drive()), check=False)
    thread = threading.Thread(target=shown.serve, daemon=True)
    thread.start()
    assert shown.execute("here/0")  # a page that stays, so that others can be closed
    yield shown
    shown.close()
    thread.join()


def ask(viewer: Viewer, path: str, host: str | None = None) -> tuple[int, bytes]:
    with closing(http.client.HTTPConnection("127.0.0.1", viewer.port)) as connection:
        connection.request("GET", path, headers={"Host": host or f"127.0.0.1:{viewer.port}"})
        answer = connection.getresponse()
        return answer.status, answer.read()


def numbers(viewer: Viewer, path: str, form: str = "<f4") -> np.ndarray:
    status, content = ask(viewer, f"/{viewer.token}/{path}")
    assert status == 200
    return np.frombuffer(content, form)


def test_only_who_knows_the_token_and_asks_this_machine_is_answered(viewer: Viewer) -> None:
    assert urlsplit(viewer.url).hostname == "127.0.0.1"
    assert ask(viewer, f"/{viewer.token}/index.json")[0] == 200
    assert ask(viewer, "/index.json")[0] == 403
    assert ask(viewer, f"/{viewer.token[:-1]}x/index.json")[0] == 403
    assert ask(viewer, f"/{viewer.token}/index.json", host=f"evil.example:{viewer.port}")[0] == 403


@pytest.mark.parametrize(
    "path",
    [
        "../../../etc/passwd", "server.py", "sample/0/11", "sample/0/-1", "sample/9/0", "sample/0/nan",
        "sample/0", "curve/2/0/5/1", "curve/2/0/nan/inf", "path/7", "times/x",
    ],
)  # fmt: skip
def test_what_there_is_not_is_not_found(viewer: Viewer, path: str) -> None:
    assert ask(viewer, f"/{viewer.token}/{path}")[0] == 404


def test_the_page_gets_a_description_of_the_scene(viewer: Viewer) -> None:
    told = json.loads(ask(viewer, f"/{viewer.token}/index.json")[1])
    kinds = {stream["name"]: (stream["kind"], stream["samples"]) for stream in told["streams"]}
    assert kinds == {
        "Cam": ("picture", 11), "Laser": ("points", 11), HOSTILE: ("numbers", 1001), "Poses": ("numbers", 11),
    }  # fmt: skip
    assert (told["duration"], told["body"], [p["name"] for p in told["paths"]]) == (10.0, "base", ["Poses"])
    assert numbers(viewer, "times/0", "<f8").tolist() == list(range(11))


def test_pictures_points_paths_and_curves_are_what_was_recorded(viewer: Viewer) -> None:
    jpeg = ask(viewer, f"/{viewer.token}/sample/0/5")[1]
    picture = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_GRAYSCALE)
    assert picture is not None
    assert picture.shape == (8, 12)
    assert picture.mean() == pytest.approx(100, abs=2)
    points = numbers(viewer, "sample/1/0")
    assert points[0] == 0  # fixed to the robot
    assert points[1:17].reshape(4, 4)[:3, 3].tolist() == [0.5, 0, 2]
    assert points[17:].reshape(-1, 4)[:, :3] == pytest.approx(np.array([[1.0, 0, 0], [0, 2, 0]]), abs=1e-6)
    path = numbers(viewer, "path/0").reshape(-1, 8)
    assert path[:, 1].tolist() == list(range(11))
    curve = numbers(viewer, "curve/2/0/0/10").reshape(-1, 2)
    assert curve[:, 1].max() == 42.0  # one of 1,001
    assert numbers(viewer, "curve/2/0/6/10").reshape(-1, 2)[:, 1].max() == 0.0


def test_beams_without_a_return_are_not_points() -> None:
    scan = LaserScan(np.array([1.0, np.nan, np.inf, 3.0]), 0.0, np.pi / 2)
    assert scan_points(scan)[:, :2] == pytest.approx(np.array([[1.0, 0.0], [0.0, -3.0]]), abs=1e-12)


@pytest.mark.parametrize(
    "data", [np.full((4, 4), np.nan, np.float32), np.arange(16, dtype=np.uint16).reshape(4, 4)]
)
def test_thermal_and_depth_images_become_pictures(data: np.ndarray) -> None:
    assert encode_picture(Image(data, mode="thermal"))[:2] == b"\xff\xd8"


def test_samples_without_times_are_shown_by_number() -> None:
    scene = ViewerScene(
        Recording("pair", (stream_of_values("Pose", np.arange(3), {"x": np.arange(3.0)}, clock="index"),))
    )
    assert (scene.axis.clock, scene.axis.duration_s) == ("index", 2.0)
    assert scene.seconds(scene.streams[0]).tolist() == [0, 1, 2]
    with pytest.raises(StreamError, match="nothing to show"):
        Viewer(ViewerScene(Recording("nothing", ())))


def test_a_path_of_a_camera_is_laid_level() -> None:
    z = np.linspace(0, 10, 20)
    column = {"x": 0 * z, "y": 0 * z, "z": z, "qx": 0 * z, "qy": 0 * z, "qz": 0 * z, "qw": 0 * z + 1}
    t_ns = START_NS + np.arange(20) * NS_PER_S
    rec = Recording("cam", (stream_of_values("Pose", t_ns, column, type=Pose, frame="cam0"),))
    path = ViewerScene(rec).paths[0]
    laid = path.positions
    assert np.abs(laid[:, 2]).max() < 1e-9
    assert np.hypot(laid[-1, 0], laid[-1, 1]) == pytest.approx(10)
    robot = path.pose(5.0)  # which looks where it goes, and stands upright
    assert robot[:3, 0] == pytest.approx((laid[-1] - laid[0]) / 10, abs=1e-9)
    assert robot[:3, 2] == pytest.approx([0, 0, 1], abs=1e-9)


def test_the_page_scrubs_in_a_browser_and_runs_no_name(viewer: Viewer, browser: Browser) -> None:
    said: list[str] = []
    page = browser.new_page(viewport={"width": 1100, "height": 800})
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on("dialog", lambda dialog: said.append(dialog.message))
    page.on(
        "request", lambda request: None if request.url.startswith(viewer.url) else said.append(request.url)
    )
    page.goto(viewer.url)
    page.wait_for_selector("body[data-ready=yes]")
    caption = page.locator("#pictures figcaption")
    caption.filter(has_text="Cam · 0.000 s").wait_for()
    page.keyboard.press("End")
    caption.filter(has_text="Cam · 10.000 s").wait_for()
    assert page.inner_text("#clock") == "10.00 s"
    page.keyboard.press("Home")
    page.keyboard.press(".")
    caption.filter(has_text="Cam · 1.000 s").wait_for()
    assert page.locator("canvas.plot").count() >= 1
    page.click("#top")
    pixels = page.evaluate(COUNT_DRAWN)
    assert pixels > 100  # the grid, the robot and two points of a laser
    assert [text for text in said if not text.startswith("blob:")] == []
    page.close()


@pytest.mark.parametrize("width", [420, 1100])
def test_the_cursors_of_plots_and_strips_are_one_line(viewer: Viewer, browser: Browser, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(viewer.url)
    page.wait_for_selector("body[data-ready=yes]")
    page.locator("#verdict").filter(has_not_text="judging").wait_for(state="attached")
    canvases = [page.locator("canvas.plot").first, page.locator("#strips")]

    def click(canvas: int, x: float) -> None:
        box = canvases[canvas].bounding_box()
        assert box
        canvases[canvas].click(position={"x": x - box["x"], "y": box["height"] / 2})

    def cursors() -> list[float | None]:
        canvases[0].scroll_into_view_if_needed()
        return [canvas.evaluate(FIND_CURSOR) for canvas in canvases]

    for _ in ("whole", "zoomed"):
        for x in (0.5 * width, 0.8 * width):
            told: list[str] = []
            for canvas in (0, 1):
                click(canvas, x)
                assert cursors() == [pytest.approx(x, abs=1.0)] * 2
                told.append(page.inner_text("#clock"))
            assert float(told[0].split()[0]) == pytest.approx(float(told[1].split()[0]), abs=0.03)
        page.keyboard.press("+")
    for key in ("Home", "ArrowRight", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)  # the window of both follows the cursor
    first, second = cursors()
    assert first == pytest.approx(second, abs=1.0)
    page.close()


def test_fingers_scrub_and_zoom(viewer: Viewer, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 420, "height": 800}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(viewer.url)
    page.wait_for_selector("body[data-ready=yes]")
    touch = context.new_cdp_session(page)

    def draw(*fingers: tuple[list[float], list[float]], steps: int = 4) -> None:
        """Draw each finger from one place to another."""
        for k in range(steps + 1):
            at = [np.add(a, np.subtract(b, a) * k / steps) for a, b in fingers]
            points = [{"x": float(x), "y": float(y), "id": n} for n, (x, y) in enumerate(at)]
            kind = "touchMove" if k else "touchStart"
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    def seconds() -> float:
        return float(page.inner_text("#clock").split()[0])

    def middle(selector: str) -> list[float]:
        page.locator(selector).first.evaluate("(element) => element.scrollIntoView({ block: 'center' })")
        box = page.locator(selector).first.bounding_box()
        assert box
        return [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]

    x, y = middle("#strips")
    draw(([x, y], [x + 100, y]))  # a swipe over the strips: to where the finger is
    assert 4.0 < seconds() < 10.0
    x, y = middle("#pictures img")
    before = seconds()
    draw(([x, y], [x - 80, y]))  # over a picture: back, by as much as the finger went
    assert seconds() == pytest.approx(before - 80 / 420 * 10, abs=0.4)
    label = "document.querySelector('canvas.plot').getAttribute('aria-valuetext')"
    whole = page.evaluate(f"() => {label}")
    x, y = middle("canvas.plot")
    draw(([x - 20, y], [x - 80, y]), ([x + 20, y], [x + 80, y]))  # two fingers apart: closer
    page.wait_for_function(f"(before) => {label} !== before", arg=whole)
    start, end = map(float, page.evaluate(f"() => {label}").replace(" s", "").split(" to "))
    assert 2.0 < end - start < 4.5  # four times as close, of ten seconds
    context.close()


def test_keys_zoom_time_and_look_from_above(viewer: Viewer, browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 1100, "height": 800})
    page.goto(viewer.url)
    page.wait_for_selector("body[data-ready=yes]")
    label = page.locator("canvas.plot").first
    assert label.get_attribute("aria-valuetext") == "0.00 s to 10.00 s"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("+")
    assert label.get_attribute("aria-valuetext") == "0.03 s to 6.70 s"  # 1.5 times closer, about 0.1 s
    pressed = page.locator("#follow")
    page.keyboard.press("f")
    assert pressed.get_attribute("aria-pressed") == "false"
    page.locator("#map").click(position={"x": 5, "y": 5})
    assert page.inner_text("#clock") == "0.10 s"  # nothing is near there
    page.close()


def test_verdicts_come_from_a_process_of_their_own(tmp_path: Path) -> None:
    from transect import formats
    from transect.view.viewer.check_process import judge, judge_in_process

    day = drive().select("Poses", HOSTILE)
    formats.write(day, tmp_path / "day", "parquet")
    opened = formats.open(tmp_path / "day")
    found = judge_in_process(opened, START_NS)
    assert found == json.loads(json.dumps(judge(opened, START_NS)))
    assert {name for name, windows in found.items() if windows} == {"Poses", HOSTILE}
    assert judge_in_process(day, START_NS).keys() == found.keys()  # one that is in memory alone


def test_a_recording_that_is_gone_cannot_be_judged_and_that_is_told(tmp_path: Path) -> None:
    from transect import formats
    from transect.view.viewer.check_process import judge_in_process

    formats.write(drive().select("Poses"), tmp_path / "day", "parquet")
    opened = formats.open(tmp_path / "day")
    (tmp_path / "day").rename(tmp_path / "night")
    with pytest.raises(TransectError, match="could not be checked") as error:
        judge_in_process(opened, START_NS)
    assert "does not exist" in error.value.why


def test_the_process_that_judges_ends_with_the_one_that_asked() -> None:
    slow = (
        "import time, transect.view.viewer.check_process as j\n"
        "j.answer = lambda request: time.sleep(60)\n"
        "j.main()\n"
    )
    child = subprocess.Popen([sys.executable, "-c", slow], stdin=subprocess.PIPE, text=True)
    assert child.stdin is not None
    child.stdin.write("{}\n")
    child.stdin.close()  # as the system does for a process that was killed
    assert child.wait(timeout=50) == 1

"""The viewer in Chromium: from the start of the process to a page that can be used, and scrubbing in it.

The traverse has 25 minutes: the images (half of their size) and clouds of two simulated seconds over and
over, and 15 CSV at up to 100 Hz. The cache is warm, the browser is running, the checks run meanwhile as they
do for a person. A step is done when every picture, scan and map of that time is drawn; a jump goes anywhere,
a step to the next frame of the first camera or lidar.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _harness

TRAVERSE_MIN, SIMULATED_STEP_S = 25, 2
"""Duration of the traverse, and of its simulated part."""
JUMP_COUNT = 60
REAL: dict[str, tuple[str, ...]] = {
    "ROS 1 bag, Husky, 395 s": ("bags/robot_localization/test1.bag",),
    "MCAP of ROS 2, TurtleBot": ("bags/evo/nav2_turtlebot.mcap",),
    "KITTI raw, 56 stereo pairs": ("kitti_raw_06",),
    "EuRoC": ("euroc_v101",),
    "CARMEN laser log, 18 minutes": ("carmen_2dlaser/fr079.clf.bz2",),
    "RADIATE, radar and lidar in fog": ("radiate_fog",),
    "CDFF MessagePack log": ("rock_logs/msgpack/xsens_imu_01.msg",),
}
SCRUB = """async (times) => {
    const strips = document.getElementById("strips"), body = document.body, taken = [];
    const end = Number(strips.getAttribute("aria-valuemax")), left = Math.min(160, strips.clientWidth * 0.3);
    for (const part of times) {
        const x = left + part * (strips.clientWidth - left), box = strips.getBoundingClientRect();
        delete body.dataset.shown;
        const before = performance.now();
        const at = { clientX: box.left + x, clientY: box.top + 5, pointerId: 1 };
        strips.dispatchEvent(new PointerEvent("pointerdown", at));
        strips.dispatchEvent(new PointerEvent("pointerup", { pointerId: 1 }));
        while (body.dataset.shown === undefined) await new Promise((go) => setTimeout(go, 1));
        await new Promise((go) => requestAnimationFrame(go));
        taken.push((performance.now() - before) / 1000);
    }
    return taken;
}"""
NEXT = """async (count) => {
    const body = document.body, taken = [];
    for (let k = 0; k < count; k++) {
        delete body.dataset.shown;
        const before = performance.now();
        dispatchEvent(new KeyboardEvent("keydown", { key: "." }));
        while (body.dataset.shown === undefined) await new Promise((go) => setTimeout(go, 1));
        await new Promise((go) => requestAnimationFrame(go));
        taken.push((performance.now() - before) / 1000);
    }
    return taken;
}"""


def lengthen(day: Path, out: Path, step: int = SIMULATED_STEP_S) -> None:
    """Write a folder like one of `step` seconds; images and clouds are linked, rows repeated."""
    out.mkdir()
    repeats = TRAVERSE_MIN * 60 // step
    for file in sorted(day.iterdir()):
        if file.suffix == ".csv":
            (out / file.name).write_text("".join(repeat_rows(file, repeats, step * 10**9)), "utf-8")
        elif match := re.fullmatch(r"(\w+_)(\d+\.\d{9})(\.\w+)", file.name):
            stem, stamp, suffix = match.groups()
            first = in_ns(stamp)
            for t_ns in range(first, first + repeats * step * 10**9, step * 10**9):
                new = out / f"{stem}{in_seconds(t_ns)}{suffix}"
                if not new.exists():  # the last of one repeat has the time of the first of the next
                    os.link(file, new)


def repeat_rows(file: Path, repeats: int, step_ns: int) -> Iterator[str]:
    """Yield a table whose rows come again and again, later; latitudes grow: the rover drives north."""
    head, *rows = file.read_text("utf-8").splitlines()
    names = head.split(",")
    timed = [k for k, name in enumerate(names) if "timestamp" in name]
    moved = [k for k, name in enumerate(names) if name == "latitude [rad]"]
    parts = [row.split(",") for row in rows]
    first = in_ns(parts[0][0])
    parts = [row for row in parts if in_ns(row[0]) - first < step_ns]
    yield head + "\n"
    for k in range(repeats):
        for row in parts:
            new = [*row]
            for column in timed:
                new[column] = in_seconds(in_ns(row[column]) + k * step_ns)
            for column in moved:
                new[column] = repr(float(row[column]) + 1e-7 * k)
            yield ",".join(new) + "\n"


def in_ns(stamp: str) -> int:
    seconds, rest = stamp.split(".")
    return int(seconds) * 10**9 + int(rest)


def in_seconds(t_ns: int) -> str:
    return f"{t_ns // 10**9}.{t_ns % 10**9:09d}"


@contextmanager
def shown(arguments: Sequence[str], browser: Any) -> Iterator[tuple[Any, float]]:
    """Start the viewer and open its page; yield the page, and the seconds until it was ready."""
    began = time.perf_counter()
    command = [str(Path(sys.executable).with_name("transect")), "view", *arguments, "--no-browser"]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=quiet, text=True) as process:
        assert process.stdout
        found = next(filter(None, (re.search(r"http://\S+", line) for line in process.stdout)), None)
        if found is None:
            raise RuntimeError(f"{' '.join(command)} printed no address")
        page = browser.new_page(viewport={"width": 1280, "height": 860})
        page.goto(found[0])
        page.wait_for_selector("body[data-ready=yes]", timeout=120_000)
        yield page, time.perf_counter() - began
        page.close()
        process.terminate()


def measure(name: str, arguments: Sequence[str], browser: Any, limit: float | None = None) -> None:
    """Print how long a recording takes to open, the best of three, and to scrub."""
    for _ in range(2):
        with shown(arguments, browser) as (_, _):
            pass
    _harness.measured(f"{name}: open", lambda: opened(arguments, browser), limit, repeat=3)
    with shown(arguments, browser) as (page, _):
        page.wait_for_timeout(500)
        jumps = page.evaluate(SCRUB, np.random.default_rng(0).random(JUMP_COUNT).tolist())
        steps = page.evaluate(NEXT, JUMP_COUNT)
    for kind, taken in (("jump", jumps), ("step", steps)):
        for part, word in ((50, "median"), (95, "95 %")):
            value = float(np.percentile(taken, part))
            _harness.measured(f"{name}: {kind}, {word}", lambda value=value: value, repeat=1)


def opened(arguments: Sequence[str], browser: Any) -> float:
    with shown(arguments, browser) as (_, seconds):
        return seconds


def main() -> None:
    from playwright.sync_api import sync_playwright

    data = Path(os.environ.get("TRANSECT_TEST_DATA", "../shared/data"))
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as driver:
        os.environ["TRANSECT_CACHE_DIR"] = f"{temporary}/cache"
        program = os.environ.get("TRANSECT_CHROMIUM", "/usr/bin/chromium-headless-shell")
        browser = driver.chromium.launch(executable_path=program)
        transect = str(Path(sys.executable).with_name("transect"))
        for world, options in (
            ("etna", ["--seconds", str(SIMULATED_STEP_S), "--scale", "0.5"]),
            ("insight", []),
        ):
            command = [transect, "simulate", world, *options, "-o", f"{temporary}/{world}"]
            subprocess.run(command, check=True, capture_output=True)
        lengthen(Path(temporary, "etna"), Path(temporary, "traverse"))
        measure("25-minute traverse", [f"{temporary}/traverse"], browser, limit=2.0)
        measure("InSight's arm, 10 minutes", [f"{temporary}/insight"], browser)
        for name, paths in REAL.items():
            if (data / paths[0]).exists():
                measure(name, [str(data / path) for path in paths], browser)
        browser.close()
        del os.environ["TRANSECT_CACHE_DIR"]

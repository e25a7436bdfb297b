"""Ctrl-C or SIGTERM in the middle of an export: the code says so, and nothing half-written is left."""

import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

IMAGE_COUNT = 100
CHILD = """
import os, signal, sys
from transect.cli import main

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
number = getattr(signal, sys.argv.pop())
written = set()

def press(event, arguments):
    if event == "open" and ".png" in str(arguments[0]) and arguments[2] & (os.O_WRONLY | os.O_RDWR):
        written.add(arguments[0])
        if len(written) == 3:
            os.kill(os.getpid(), number)

sys.addaudithook(press)
main()
"""
"""`transect` that sends itself the signal named last when it writes its third image."""


@pytest.fixture
def camera(tmp_path: Path) -> Path:
    """Return a folder of images."""
    data = cv2.imencode(".png", np.zeros((4, 4), np.uint8))[1].tobytes()
    (tmp_path / "in" / "left").mkdir(parents=True)
    for number in range(IMAGE_COUNT):
        (tmp_path / "in" / "left" / f"{1_560_000_000 + number}.000000000.png").write_bytes(data)
    return tmp_path / "in"


@pytest.mark.parametrize(("name", "code", "said"), [("SIGINT", 130, ["interrupted"]), ("SIGTERM", 143, [])])
def test_an_interrupted_export_leaves_nothing_behind(
    camera: Path, tmp_path: Path, name: str, code: int, said: list[str]
) -> None:
    target = tmp_path / "target"
    target.mkdir()
    export = ("export", camera, "--format", "euroc", "-o", target / "out", name)
    command = [sys.executable, "-c", CHILD, *map(str, export)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr.splitlines()[-1:]) == (code, said)
    assert list(target.iterdir()) == []

"""Ctrl-C in the middle of an export: the code says so, and nothing half-written is left."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import cv2
import numpy as np
import pytest

IMAGES = 6000
TRANSECT = [sys.executable, "-c", "from transect.cli import main; main()"]


@pytest.fixture
def camera(tmp_path: Path) -> Path:
    """Return a folder of so many images that copying them takes seconds."""
    data = cv2.imencode(".png", np.zeros((4, 4), np.uint8))[1].tobytes()
    (tmp_path / "in" / "left").mkdir(parents=True)
    for number in range(IMAGES):
        (tmp_path / "in" / "left" / f"{1_560_000_000 + number}.000000000.png").write_bytes(data)
    return tmp_path / "in"


@pytest.mark.parametrize("format", ["csv", "euroc"])
def test_an_interrupted_export_leaves_nothing_behind(camera: Path, tmp_path: Path, format: str) -> None:
    target = tmp_path / "target"
    target.mkdir()
    command = [*TRANSECT, "export", str(camera), "--format", format, "-o", str(target / "out")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as export:
        deadline = time.monotonic() + 60
        while not _payloads_under(target) and export.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        export.send_signal(signal.SIGINT)
        _, said = export.communicate(timeout=60)
    assert (export.returncode, said.splitlines()[-1]) == (130, "interrupted")
    assert list(target.iterdir()) == []


def _payloads_under(folder: Path) -> bool:
    return next(folder.rglob("*.png"), None) is not None

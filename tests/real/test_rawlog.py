"""A car of the University of Almería, its SICK and odometry, as MRPT logged them."""

from __future__ import annotations

import gzip
import struct
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import transect
from transect.recording import Recording

NAME = "ual_dataset_2014_05_23_2dlaser_odo.rawlog"
BEAM_COUNT = 361


@cache
def opened(path: Path) -> Recording:
    return transect.open(path)


@cache
def pieces(path: Path, word: bytes) -> list[bytes]:
    """Return what follows each name of a class, up to the next."""
    return gzip.decompress(path.read_bytes()).split(word)[1:]


@pytest.fixture
def path(real_data: Path) -> Path:
    return real_data / "carmen_2dlaser" / NAME


def test_every_object_is_read(path: Path) -> None:
    recording = opened(path)
    assert (recording.losses, recording.notes) == ((), ())
    assert len(recording["SICK_FRONT_OBS"]) == len(pieces(path, b"CObservation2DRangeScan"))
    assert len(recording["ODOMETRY"]) == len(pieces(path, b"CObservationOdometry"))


def test_every_range_is_the_one_in_the_file(path: Path) -> None:
    marks = [
        piece.index(struct.pack("<I", BEAM_COUNT)) + 4 for piece in pieces(path, b"CObservation2DRangeScan")
    ]
    blocks = zip(pieces(path, b"CObservation2DRangeScan"), marks, strict=True)
    readings = np.array([np.frombuffer(piece, "<f4", BEAM_COUNT, at) for piece, at in blocks])
    found = opened(path)["SICK_FRONT_OBS"].column("ranges")
    measured = np.isfinite(found)
    np.testing.assert_array_equal(found[measured], readings[measured])
    assert (readings[~measured] >= 81).mean() > 0.99


def test_odometry_runs_round_the_block(path: Path) -> None:
    stream = opened(path)["ODOMETRY"]
    first = struct.unpack_from("<3d", pieces(path, b"CObservationOdometry")[0], 10)
    np.testing.assert_array_equal(stream.array("x", "y", "theta")[0], first)
    steps = np.linalg.norm(np.diff(stream.array("x", "y"), axis=0), axis=1)
    speeds = stream["vx"][:-1] * np.diff(stream.t_ns) * 1e-9
    assert abs(steps.sum() - speeds.sum()) < 0.05 * steps.sum()  # two ways to measure the path


def test_the_laser_is_two_metres_before_the_axle(path: Path) -> None:
    T = opened(path).frames.lookup("robot", "SICK_FRONT_OBS")
    np.testing.assert_allclose(T[:3, 3], [2.0, 0.0, 0.4], atol=1e-6)
    np.testing.assert_array_equal(T[:3, :3], np.eye(3))

"""The types: built from rows, named as CDFF names them."""

from __future__ import annotations

import dataclasses
import runpy
from pathlib import Path

import numpy as np
import pytest

from transect import types
from transect.types import CameraModel, Imu, LaserScan, NavFix, PointCloud, RadarSpectrum, Trajectory

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", [n for n in types.__all__ if isinstance(getattr(types, n), type)])
def test_every_type_is_a_frozen_dataclass_with_a_docstring(name: str) -> None:
    kind = getattr(types, name)
    assert dataclasses.is_dataclass(kind)
    assert kind.__dataclass_params__.frozen
    assert kind.__doc__


@pytest.mark.parametrize(("alias", "kind"), [
    ("asn1SccFrame", types.Image),
    ("asn1SccPointcloud", types.PointCloud),
    ("asn1SccRigidBodyState", types.RigidBodyState),
    ("asn1SccTransformWithCovariance", types.Transform),
    ("asn1SccIMUSensors", types.Imu),
    ("/base/samples/RigidBodyState_m", types.RigidBodyState),
    ("/base/samples/LaserScan", types.LaserScan),
    ("NoSuchThing", None),
])  # fmt: skip
def test_cdff_and_rock_names_are_aliases(alias: str, kind: type | None) -> None:
    assert types.type_from_alias(alias) is kind


def test_a_missing_required_vector_is_not_measured_and_an_optional_one_is_none() -> None:
    imu = Imu.from_row({"gyro_x": 1.0, "gyro_y": None, "gyro_z": 3.0})
    assert np.isnan(imu.acceleration).all()
    assert np.array_equal(imu.angular_velocity, [1.0, np.nan, 3.0], equal_nan=True)
    assert imu.magnetic_field is None


def test_units_are_si_and_radians() -> None:
    assert NavFix.units()["lat"] == "rad"
    assert Imu.units()["gyro_x"] == "rad/s"
    assert LaserScan.units()["ranges"] == "m"


def test_beams_of_a_scan_start_at_the_start_angle() -> None:
    scan = LaserScan(np.ones(3), start_angle=-0.5, angle_increment=0.25)
    assert scan.angles.tolist() == [-0.5, -0.25, 0.0]


def test_radar_bins_count_from_one() -> None:
    # Document 004, eq. 1: 1250000 / (2 * 512) / 4336.384 = 0.2815 m per bin, offset -0.3507 m.
    width = 1_250_000 / (2 * 512) / 4336.384
    spectrum = RadarSpectrum(np.zeros(512), 0.0, width, -0.3507)
    assert spectrum.ranges[0] == pytest.approx(0.2815 - 0.3507, abs=1e-4)
    assert spectrum.ranges[-1] == pytest.approx(512 * 0.2815 - 0.3507, abs=0.01)


def test_the_length_of_a_track_leaves_out_what_was_not_measured() -> None:
    positions = np.array([[0, 0, 0], [3, 4, 0], [np.nan, 0, 0], [3, 4, 12]], float)
    assert Trajectory(np.arange(4), positions).length == pytest.approx(17.0)


def test_cameras_compare_by_their_numbers() -> None:
    camera = CameraModel("a", 640, 480, np.eye(3), "radtan", np.array([0.1, 0.0, 0.0, 0.0]))
    assert camera.same_as(dataclasses.replace(camera, name="b"))
    assert not camera.same_as(dataclasses.replace(camera, coefficients=np.array([0.2, 0.0, 0.0, 0.0])))
    assert not camera.same_as(dataclasses.replace(camera, P=np.zeros((3, 4))))


def test_the_baseline_of_a_pair_stands_in_the_projection() -> None:
    P = np.array([[400.0, 0, 320, -48.0], [0, 400.0, 240, 0], [0, 0, 1, 0]])
    assert CameraModel("right", 640, 480, np.eye(3), P=P).baseline == pytest.approx(0.12)


def test_a_cloud_knows_its_size() -> None:
    assert len(PointCloud(np.zeros((7, 3)))) == 7


def test_a_beam_came_back_if_its_range_lies_between_the_limits() -> None:
    scan = LaserScan(np.array([np.nan, 0.0, 0.5, 3.0, 8.0, 81.91, np.inf]), 0.0, 0.1, range_max=80.0)
    assert scan.returned().tolist() == [False, False, True, True, True, False, False]
    assert scan.returned(nearest=1.0, farthest=8.0).tolist() == [False] * 3 + [True] + [False] * 3
    assert LaserScan(scan.ranges, 0.0, 0.1).returned().tolist() == [False, False, *[True] * 4, False]


def test_the_page_of_types_is_what_the_classes_say_and_has_all_of_them():
    tool = runpy.run_path(str(ROOT / "tools" / "types_page.py"))
    assert tool["PAGE"].read_text("utf-8") == tool["page"]()
    listed = {name for _, names in tool["GROUPS"] for name in names}
    known = {n for n in types.__all__ if dataclasses.is_dataclass(getattr(types, n))}
    assert known - listed == {"DEM", "Provenance", "SourceFile"}

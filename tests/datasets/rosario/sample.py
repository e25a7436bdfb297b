"""Two Rosario sequences written by hand, line by line as Rosario (4.4) and the scripts have them."""

import math
from pathlib import Path

import cv2
import numpy as np
import pynmea2

import transect
from transect.recording import Recording

RIM_M_S_PER_RPM = math.pi * 0.57 / 60
"""m/s per turn a minute: the wheels have 0.57 m (4.6)."""

# data/README.md: token 0 time, two undocumented tokens, gyro deg/s, accelerations milli-g
IMU_9 = """\
1514301955.465123 7 x1 1.5 -2.25 7.125 12.5 -15.25 1001.75
1514301955.465123 8 x1 1.625 -2.5 7.25 13.5 -14.25 1000.5
1514301955.479001 9 x2 -0.125 3.0 7.5 11.0 -13.0 999.0
"""
# 4.4.1: <timestamp> <gyro[x, y, z]> <acc[x, y, z]>
IMU_7 = """\
1514301955.465 1.5 -2.25 7.125 12.5 -15.25 1001.75
1514301955.472 1.625 -2.5 7.25 13.5 -14.25 1000.5
"""
TELEGRAM = "0,0,0,0,0,0,0,0,0,{left},0,0,0,{right},0,0,{angle},{direction}"
CALIBRATION = """\
cam0:
  T_cam_imu:
  - [0.0, 1.0, 0.0, 0.1]
  - [-1.0, 0.0, 0.0, 0.2]
  - [0.0, 0.0, 1.0, 0.3]
  - [0.0, 0.0, 0.0, 1.0]
  camera_model: pinhole
  distortion_coeffs: [-0.17, 0.027, 5e-05, 0.0004]
  distortion_model: radtan
  intrinsics: [350.5, 351.5, 340.25, 188.75]
  resolution: [672, 376]
  rostopic: /stereo/left/image_raw
cam1:
  T_cam_imu:
  - [0.0, 1.0, 0.0, -0.019]
  - [-1.0, 0.0, 0.0, 0.2]
  - [0.0, 0.0, 1.0, 0.3]
  - [0.0, 0.0, 0.0, 1.0]
  T_cn_cnm1:
  - [1.0, 0.0, 0.0, -0.119]
  - [0.0, 1.0, 0.0, 0.0]
  - [0.0, 0.0, 1.0, 0.0]
  - [0.0, 0.0, 0.0, 1.0]
  camera_model: pinhole
  distortion_coeffs: [-0.171, 0.028, -0.0001, -0.0001]
  distortion_model: radtan
  intrinsics: [349.5, 349.25, 341.0, 206.0]
  resolution: [672, 376]
imu:
  acc_offset: [2.5, -5.25, 1.75]
  gyro_offset: [0.5, -0.25, 7.0]
  position_imu_baselink: [1.96, -0.017, 1.02]
  rotation_imu_baselink: [0.0, 0.0, 0.0, 1.0]
gps:
  position_gps_baselink: [1.8, -0.03, 1.593]
  orientation_gps_baselink: [0.0, 0.0, 0.0, 1.0]
"""
TRUTH = """\
1514301955.465000000 0.0 0.0 0.0 0 0 0 1
1514301956.61000000 1.25 -0.5 0.125 0 0 0 1
"""


def nmea(body: str) -> str:
    return f"${body}*{pynmea2.NMEASentence.checksum(body):02X}"


PLACE = "3257.1234567,S,06039.7654321,W"
GPS = (
    f"1514301955.470000 {nmea(f'GPGGA,152555.40,{PLACE},4,09,0.9,25.123,M,16.2,M,1.0,0000')}\n"
    f"1514301955.470100 {nmea(f'GPRMC,152555.40,A,{PLACE},1.5,90.0,261217,,,A')}\n"
)


def png(value: int) -> bytes:
    good, data = cv2.imencode(".png", np.full((376, 672, 3), value, np.uint8))
    assert good
    return data.tobytes()


def telegrams() -> str:
    rows = [(1514301955.4, 30, 32, -5, "0#"), (1514301955.5, 0, 0, 95, "1#"), (1514301955.6, 20, 20, 0, "1#")]
    return "".join(
        f"{t:.6f} MOT {TELEGRAM.format(left=a, right=b, angle=angle, direction=d)}\r\n"
        for t, a, b, angle, d in rows
    )


def write_scripts_layout(root: Path) -> None:
    """Write the layout of the published scripts (data/README.md)."""
    zed = root / "sequence01" / "zed"
    zed.mkdir(parents=True)
    for side, value in (("left", 10), ("right", 20)):
        for stamp in ("1514301955.465000", "1514301955.531250"):
            (zed / f"{side}_{stamp}.png").write_bytes(png(value))
    (root / "sequence01" / "imu.log").write_text(IMU_9)
    (root / "sequence01" / "gps.log").write_text(GPS)
    (root / "sequence01" / "odometry_raw.log").write_bytes(telegrams().encode())
    (root / "calibration01.yaml").write_text(CALIBRATION)
    (root / "sequence01_gt.txt").write_text(TRUTH)


def write_papers_layout(root: Path) -> None:
    """Write the paper's layout (4.4): one folder with everything, calibration.txt."""
    (root / "zed").mkdir(parents=True)
    (root / "zed" / "left_1514301955.465.png").write_bytes(png(1))
    (root / "imu.txt").write_text(IMU_7)
    (root / "gps.txt").write_text(GPS)
    (root / "odometry.txt").write_text("1514301955.400 0.5 0.75 -10.0 1\n1514301955.500 0.25 0.25 100.0 -1\n")
    (root / "calibration.txt").write_text(CALIBRATION)
    (root / "ground_truth.txt").write_text("1514301955.465 0.0 0.0 0.0\n1514301955.665 0.125 -0.25 0.5\n")


def opened(path: Path, **options: object) -> Recording:
    return transect.open(path, format="rosario", **options)  # type: ignore[arg-type]


def assert_same(a: Recording, b: Recording) -> None:
    """Compare every table bit for bit (NaN equal to NaN), every camera and frame."""
    assert [s.name for s in a] == [s.name for s in b]
    for one, other in zip(a, b, strict=True):
        assert (one.type, one.clock, one.role, one.columns) == (
            other.type,
            other.clock,
            other.role,
            other.columns,
        )
        np.testing.assert_array_equal(one.t_ns, other.t_ns)
        for name in one.columns:
            np.testing.assert_array_equal(one.column(name), other.column(name), err_msg=f"{one.name} {name}")
        if one.loader:
            np.testing.assert_array_equal(one[0].value.data, other[0].value.data)
    assert all(camera.same_as(b.cameras[name]) for name, camera in a.cameras.items())
    for edge in a.frames.edges:
        np.testing.assert_allclose(
            a.frames.lookup(edge.parent, edge.child), b.frames.lookup(edge.parent, edge.child), atol=1e-15
        )

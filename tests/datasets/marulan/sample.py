"""SDI datasets written by hand, line by line as SDI (sections 3.2 and 4.4.1) has them."""

from pathlib import Path
from typing import Any

import cv2
import numpy as np

import transect
from transect.recording import Recording

DYNAMIC = "30-DynamicDayTriangleDust"

# 3.2.2: * time, RANGE_DATA, StartAngleRads, AngleIncrementRads, EndAngleRads, RangeUnitType, NScans, Range_i.
# Unit 2 is cm; the starts are 0.25 degree (0.004363 rad) apart.
LASER = """\
*1224199788.106 RANGE_DATA -0.034907 0.017453 0.034907 2 5 100 101 102 8191 104
*1224199788.119 RANGE_DATA -0.030544 0.017453 0.021817 2 4 200 201 202 203
*1224199788.133 RANGE_DATA -0.026180 0.017453 0.026180 2 4 300 301 302 303
*1224199788.146 RANGE_DATA -0.021817 0.017453 0.030544 2 4 400 401 402 403
*1224199788.159 RANGE_DATA -0.034907 0.017453 0.034907 2 5 110 111 112 113 114
"""
# Units 1 mm, 3 m, 4 km.
LASER_UNITS = """\
*1224199788.1061234 RANGE_DATA 0.5 0.01 0.52 1 3 1234 5678 8191
*1224199788.119 RANGE_DATA 0.5 0.01 0.51 3 2 1.5 2.25
*1224199788.133 RANGE_DATA 0.5 0.01 0.5 4 1 0.0125
"""
# 3.2.1: North East Down dNorth dEast dDown RollX PitchY YawZ dRoll dPitch dYaw, then the rows of C.
NAV_STATES = (
    "6151234.125 226123.5 -650.25 0.125 -0.25 0.0625 0.01 -0.02 1.5 0.001 0.002 0.003",
    "6151235.25 226124.75 -650.5 0.5 -0.75 0.125 0.0 0.5 0.0 0.25 0.0 0.0",
)
COVARIANCE = " ".join(f"{row}.{column:02d}" for row in range(1, 13) for column in range(1, 13))
NAV = (
    f"*1224199788.106 NAV_DATA {NAV_STATES[0]} {COVARIANCE}\n"
    f"*1224199788.206 NAV_DATA {NAV_STATES[1]} {COVARIANCE}\n"
)
# 3.2.3: * time, angle in degrees, reflectivities; here the 512 bins that make 0.28 m each.
BINS = " ".join(f"{30 + bin % 7 * 0.5:.1f}" for bin in range(512))
SPECTRUM = f"*1224199788.106 -45.25 {BINS}\n*1224199788.107 -44.75 {BINS}\n"
# 3.2.4: as the lasers, one range and its reflectivity; EndAngle is StartAngle (errata).
RADAR = """\
*1224199788.106 RANGE_REFLECTIVITY_DATA -0.7854 0 -0.7854 3 1 12.25 55.5
*1224199788.107 RANGE_REFLECTIVITY_DATA -0.7767 0 -0.7767 3 1 12.5 54.25
"""
# 3.2.6: the five types of line, and sensors 0 to 5.
PAYLOAD = """\
*1224199788.106 SERVO_SETPOINT_DATA 0.25 0.5
*1224199788.110 VELOCITY_TURN_RATE_DATA 1.25 -0.125
*1224199788.120 SENSOR_DATA 0 1500
*1224199788.121 SENSOR_DATA 1 750.5
*1224199788.122 SENSOR_DATA 2 12.75
*1224199788.123 SENSOR_DATA 3 24.5
*1224199788.124 SENSOR_DATA 4 3.5
*1224199788.125 SENSOR_DATA 5 -3.25
*1224199788.130 BRAKE_DATA 0.1 0.2 10.5 11.5
*1224199788.140 ACTUATOR_SETPOINT_DATA 0.125 0.375 0.625 0.875
*1224199788.150 SENSOR_DATA 0 1600
"""
# 3.2.5: * time, VISION_FRAME, name; the log and the names may disagree, the log is right (errata).
VISUAL_IMAGES = ("Image1224199788-0106.bmp", "Image1224199788-0172.bmp")
VISUAL_LOG = """\
*1224199788.106 VISION_FRAME Image1224199788-0106.bmp
*1224199788.173 VISION_FRAME Image1224199788-0172.bmp
"""
IR_IMAGES = ("Image1224199788-0110.bmp",)
IR_LOG = "*1224199788.110 VISION_FRAME Image1224199788-0110.bmp\n"

CALIB_RESULTS = """\
% Intrinsic and Extrinsic Camera Parameters
%-- Focal length:
fc = [ 1023.094873083798120 ; 1020.891695892045050 ];

%-- Principal point:
cc = [ 643.139025535655492 ; 482.455417980580421 ];

%-- Skew coefficient:
alpha_c = 0.000000000000000;

%-- Distortion coefficients:
kc = [ -0.218504818968279 ; 0.138951469767851 ; ...
   -0.000755791245166 ; 0.000175881419552 ; 0.000000000000000 ];

%-- Focal length uncertainty:
fc_error = [ 1.240637187529808 ; 1.220702756108720 ];

%-- Image size:
nx = 1360;
ny = 1024;

n_ima = 93;\t\t\t\t% Number of calibration images
est_dist = [ 1 ; 1 ; 1 ; 1 ; 0 ];
omc_1 = [ NaN ; NaN ; NaN ];
"""


def picture(width: int, height: int, seed: int = 0) -> np.ndarray:
    """Pixels of a colour image."""
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def write_bmp(file: Path, pixels: np.ndarray) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(cv2.imencode(".bmp", pixels)[1].tobytes())


def write_file(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())


def write_dataset(folder: Path) -> Path:
    """Write a dynamic dataset with all ten folders of section 3.1."""
    for laser in ("LaserHorizontal", "LaserPort", "LaserVertical"):
        write_file(folder / laser / "RangeBearingQAsciiData.txt", LASER)
    write_file(folder / "LaserStarboard" / "RangeBearingQAsciiData.txt", LASER_UNITS)
    write_file(folder / "Nav" / "NavQAsciiData.txt", NAV)
    write_file(folder / "Payload" / "PayloadData1.txt", PAYLOAD)
    write_file(folder / "RadarRangeBearing" / "RangeBearingQAsciiData.txt", RADAR)
    write_file(folder / "RadarSpectrum" / "HSR_ScalarPoints1.txt", SPECTRUM)
    write_file(folder / "VideoIR" / "VideoLogAscii.txt", IR_LOG)
    write_file(folder / "VideoVisual" / "VideoLogAscii.txt", VISUAL_LOG)
    for seed, name in enumerate(VISUAL_IMAGES):
        write_bmp(folder / "VideoVisual" / "Images" / name, picture(1360, 1024, seed))
    write_bmp(folder / "VideoIR" / "Images" / IR_IMAGES[0], picture(511, 398)[:, :, 0])
    return folder


def write_calibration_set(folder: Path) -> Path:
    """Write a camera calibration set (4.4.1): line i of its second log is image number i."""
    write_file(folder / "LaserPort" / "RangeBearingQAsciiData.txt", LASER_UNITS)
    write_file(folder / "VideoVisual" / "VideoLogAscii.txt", VISUAL_LOG)
    for name in VISUAL_IMAGES:
        write_bmp(folder / "VideoVisual" / "Images" / name, picture(1360, 1024))
    write_file(folder / "Calibration" / "Calib_Results.m", CALIB_RESULTS)
    lines = [f"*122411{i:04d}.5 VISION_FRAME Image.bmp\n" for i in (1, 2, 3)]
    write_file(folder / "Calibration" / "VideoLogAsciiCalibration.txt", "".join(lines))
    for number in (1, 2, 3):
        write_bmp(folder / "Calibration" / "Images" / f"image{number:03d}.bmp", picture(8, 6, number))
    return folder


def opened(path: Path, **options: Any) -> Recording:
    """Open a dataset by its path."""
    return transect.open(path, format="sdi", **options)


def assert_same_tables(a: Recording, b: Recording) -> None:
    """All streams are the same to the bit; NaN equals NaN."""
    assert [s.name for s in a] == [s.name for s in b]
    for stream in a:
        other = b[stream.name]
        assert (stream.type, stream.clock, stream.role) == (other.type, other.clock, other.role)
        assert stream.table.schema.equals(other.table.schema, check_metadata=True), stream.name
        for name in stream.table.column_names:
            mine, theirs = (s.table.column(name).to_pylist() for s in (stream, other))
            assert repr(mine) == repr(theirs), f"{stream.name} {name}"

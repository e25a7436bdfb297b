"""Image, stereo and calibration nodes on real images: Middlebury, OpenCV's chessboards, KITTI, CDFF's own."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

import transect
from transect.algorithms.vision.stereo_matching import METHODS
from transect.engine import compound
from transect.engine.catalogue import catalogue_for
from transect.nodes.calibration import StereoCalibration
from transect.nodes.image.rectification import StereoRectification
from transect.nodes.stereo.stereo_offset_calibration import RunningOffset
from transect.nodes.stereo.stereo_reconstruction import DisparityImage
from transect.types import CameraModel, Image, StereoPair

DESCRIBED = (
    "ColorConversion", "ImageRectification", "ImageFiltering", "DepthFiltering", "StereoRectification",
    "DisparityImage", "StereoReconstruction", "DisparityToPointCloud", "DisparityToPointCloudWithIntensity",
)  # fmt: skip
MISSPELT = {"ouputFrame": "outputFrame"}
"""In the released description of DepthFiltering."""


def middlebury(folder: Path) -> tuple[StereoPair, np.ndarray]:
    """Teddy, quarter size, with its true disparities; its focal length is invented and does not matter."""
    pixels = [
        cv2.imread(str(folder / name), cv2.IMREAD_GRAYSCALE) for name in ("im2.png", "im6.png", "disp2.png")
    ]
    height, width = pixels[0].shape
    K = np.array([[800.0, 0, width / 2], [0, 800.0, height / 2], [0, 0, 1]])
    left, right = (
        CameraModel(name, width, height, K, P=np.hstack([K, [[-800.0 * baseline], [0], [0]]]), invented=True)
        for name, baseline in (("left", 0.0), ("right", 0.16))
    )
    true = np.where(pixels[2] > 0, pixels[2] / 4.0, np.nan)  # SOURCE.txt: teddy x4
    return StereoPair(Image(pixels[0], camera=left), Image(pixels[1], camera=right)), true


@pytest.mark.parametrize("method", METHODS)
def test_teddy_is_matched_to_two_pixels(real_data: Path, method: str):
    pair, true = middlebury(real_data / "stereo_middlebury" / "teddy")
    window = 11 if method == "block" else 5
    found = DisparityImage(method=method, window=window)(pair).disparity.data
    both = np.isfinite(found) & np.isfinite(true)
    assert (np.abs(found - true)[both] > 2).mean() < 0.08
    assert both.sum() / np.isfinite(true).sum() > 0.7


def test_the_chessboard_pair_is_calibrated_and_its_rows_correspond(real_data: Path):
    """OpenCV publishes f = 535.9, c = 342.3, 235.6 and an RMS of 0.39 px for the left camera alone
    (samples/data/left_intrinsics.yml), with a ratio of focal lengths of 1; squares of 25 mm.
    """
    recording = transect.open(real_data / "stereo_calib_chessboard")
    inputs = {"left": Image, "right": Image}
    graph = compound(
        "Calibrate",
        {"stereo": StereoCalibration(square=0.025)},
        [*(f"{name} -> stereo.{name}" for name in inputs), "stereo.rms -> rms", "stereo.leftCamera -> camera",
         "stereo.found -> found", "stereo.rightCamera -> right_camera", "stereo.rows_apart -> rows_apart"],
    )  # fmt: skip
    run = transect.run(graph, recording)
    assert run["found"].values == [True] * 13
    camera, right = run["camera"].values[0], run["right_camera"].values[0]
    np.testing.assert_allclose(camera.K[[0, 1, 0, 1], [0, 1, 2, 2]], [535.9, 535.9, 342.3, 235.6], atol=5)
    assert run["rms"].values[0] < 0.39
    assert run["rows_apart"].values[0] < 0.3
    first, second = (next(iter(recording[name])).payload for name in inputs)
    pair = StereoPair(*(Image(i.data, i.mode, camera=c) for i, c in ((first, camera), (second, right))))
    found = DisparityImage(disparities=160)(StereoRectification()(pair)).disparity
    # The board is 0.3 to 0.45 m away in all of OpenCV's extrinsics; this one fills the middle of the image.
    middle = found.data[200:300, 250:400]
    assert 0.25 < found.camera.K[0, 0] * found.camera.baseline / np.nanmedian(middle) < 0.5


def test_kitti_disparities_have_an_offset_that_shows_without_truth(real_data: Path):
    """Over the whole excerpt others found disparities too small by 0.16 px, and rows 0.14 px apart."""
    recording = transect.open(real_data / "kitti_raw_06").slice("+0s", "+0.8s")
    node = RunningOffset()
    for left, right in zip(recording["image_00"], recording["image_01"], strict=True):
        found = node(StereoPair(left.payload, right.payload))
    assert -0.4 < found.offset < -0.05
    assert found.sigma < 0.06
    assert 0.1 < found.vertical < 0.3


@pytest.mark.parametrize("name", DESCRIBED)
def test_ports_are_those_of_the_released_descriptions(real_data: Path, name: str):
    import yaml

    files = list((real_data / "cdff_descriptions" / "dfn").glob(f"{name}*_desc.yaml"))
    described = next(d for f in files if (d := yaml.safe_load(f.read_text()))["name"] == name)
    node = catalogue_for().node(name)
    assert node is not None
    assert [port["name"] for port in described["input_ports"]] == list(node.inputs)
    outputs = [MISSPELT.get(port["name"], port["name"]) for port in described["output_ports"]]
    assert outputs == list(node.outputs)[: len(outputs)]

"""What a camera sees: points on the pixels that hand work gives, at their times, with their colours."""

from __future__ import annotations

import numpy as np
import pytest

from transect.errors import StreamError
from transect.geometry.colours import colours, fit_camera, rgb_of, visible
from transect.recording import FrameTree, Recording, Robot, Stream, arrow
from transect.recording.stream import stream_of_values
from transect.robots.overlay import camera_stream, points_of, view
from transect.types import CameraModel, Image, LaserScan, PointCloud, RadarRange, RadarSpectrum

SECOND_NS = 10**9
CAMERA = CameraModel("cam", 200, 100, np.array([[100.0, 0, 100], [0, 100, 50], [0, 0, 1]]), frame="cam")
# The body is x forward, y left, z up; the camera x right, y down, z forward.
T_BODY_CAM = np.array([[0, 0, 1, 0], [-1, 0, 0, 0], [0, -1, 0, 0.0], [0, 0, 0, 1]])
CLOUD = np.array([[10.0, 0, 0], [10, 2, 1], [-10, 0, 0], [10, 50, 0], [np.nan, 0, 0]])
PIXELS = np.arange(100 * 200 * 3, dtype=np.uint32).reshape(100, 200, 3).astype(np.uint8)


def images(t_ns=(SECOND_NS,), name="Cam", data=PIXELS, mode="rgb", clock="utc") -> Stream:
    table = arrow.table(np.array(t_ns), {"payload": arrow.strings([str(t) for t in t_ns])})
    return Stream(
        name, Image, table, frame="cam", camera="cam", clock=clock,
        loader=lambda row: Image(data, mode, row["t_ns"], "cam"),
    )  # fmt: skip


def clouds(t_ns=(SECOND_NS,), points=CLOUD, name="Lidar", frame="lidar", clock="utc") -> Stream:
    table = arrow.table(np.array(t_ns), {"payload": arrow.strings([str(t) for t in t_ns])})
    return Stream(
        name, PointCloud, table, frame=frame, clock=clock,
        loader=lambda row: PointCloud(points, t_ns=row["t_ns"], frame=frame),
    )  # fmt: skip


def tree() -> FrameTree:
    frames = FrameTree()
    frames.add_static("body", "cam", T_BODY_CAM)
    frames.add_static("body", "lidar", np.eye(4))
    return frames


def recording(*streams: Stream, frames: FrameTree | None = None, camera: CameraModel = CAMERA) -> Recording:
    return Recording("drive", streams, frames=frames or tree(), cameras={"cam": camera})


def test_points_lie_where_a_pinhole_puts_them():
    # 10 m ahead is the principal point; 2 m left and 1 m up of that are 20 px left and 10 px up.
    seen = view(recording(images(), clouds())).sightings[0]
    assert np.allclose(seen.pixels[:2], [[100, 50], [80, 40]])
    assert seen.inside.tolist() == [True, True, False, False, False]
    assert np.allclose(seen.points[:2, 2], 10)


def test_a_lens_that_folds_shows_nothing_beyond_the_fold():
    # With k1 = -0.3 the radius r (1 - 0.3 r^2) grows up to r = 1.054: a point at r = 2 would return into
    # the image at -0.4 and must not be drawn.
    lens = CameraModel("cam", 200, 100, CAMERA.K, "radtan", np.array([-0.3, 0, 0, 0]), frame="cam")
    points = np.array([[1.0, 0.5, 0], [1.0, 2.0, 0]])
    seen = view(recording(images(), clouds(points=points), camera=lens)).sightings[0]
    assert seen.inside.tolist() == [True, False]
    assert np.allclose(seen.pixels[0], (100 - 100 * 0.5 * (1 - 0.3 * 0.25), 50))
    assert np.isnan(seen.pixels[1]).all()


def test_the_sample_nearest_to_the_image_is_taken_and_its_time_told():
    lidar = clouds((0, SECOND_NS + SECOND_NS // 50, 2 * SECOND_NS))
    seen = view(recording(images(), lidar), time="1.0").sightings[0]
    assert seen.dt == pytest.approx(0.02)


def test_a_sample_too_far_in_time_is_not_drawn_but_told():
    seen = view(recording(images(), clouds((2 * SECOND_NS,))))
    assert seen.sightings == ()
    assert "Lidar is not drawn: its nearest sample is +1.000 s away" in seen.notes
    assert len(view(recording(images(), clouds((2 * SECOND_NS,))), tolerance=1.0).sightings) == 1


def test_the_way_driven_between_scan_and_image_is_taken_off():
    # At 5 m/s, 0.1 s after the image, the robot is 0.5 m farther: what is at 10 m then was at 10.5 m before.
    frames = tree()
    t = np.array([0, 2 * SECOND_NS])
    frames.add_moving(
        "world", "body", t, np.array([[0.0, 0, 0], [10, 0, 0]]), np.tile((0, 0, 0, 1.0), (2, 1))
    )
    seen = view(recording(images(), clouds((SECOND_NS + SECOND_NS // 10,)), frames=frames)).sightings[0]
    assert np.allclose(seen.points[0], (0, 0, 10.5))


def test_where_the_way_is_not_known_sensors_are_fixed_to_each_other():
    frames = tree()
    frames.add_moving(
        "world", "body", np.array([5 * SECOND_NS]), np.zeros((1, 3)), np.array([[0, 0, 0, 1.0]])
    )
    seen = view(recording(images(), clouds(), frames=frames)).sightings[0]
    assert np.allclose(seen.points[0], (0, 0, 10))


def test_all_bearings_of_a_radar_within_the_tolerance_are_taken():
    t = np.array(
        [SECOND_NS - SECOND_NS // 5, SECOND_NS - SECOND_NS // 20, SECOND_NS, SECOND_NS + SECOND_NS // 10]
    )
    columns = {"range": np.full(4, 10.0), "angle": np.array([0, 0.1, -0.1, 0.0]), "reflectivity": np.zeros(4)}
    radar = stream_of_values("Radar", t, columns, type=RadarRange, frame="lidar", role="derived")
    seen = view(recording(images(), radar)).sightings[0]
    assert len(seen.points) == 3
    # Bearings run from x (forward) to y (left): +0.1 rad is left of the middle by 100 tan(0.1) px.
    assert np.allclose(seen.pixels[:, 0], (100 - 100 * np.tan(0.1), 100 + 100 * np.tan(0.1), 100))


def test_beams_without_return_are_not_drawn():
    scan = LaserScan(np.array([1.0, 30.0, 0.0, 31.5]), 0.0, 0.1, range_max=30.0)
    assert np.isfinite(points_of(scan)).all(axis=1).tolist() == [True, False, False, False]


def test_scans_and_spectra_have_points_in_their_plane():
    scan = LaserScan(np.array([1.0, np.nan, 2.0]), 0.0, np.pi / 2)
    assert np.allclose(points_of(scan)[[0, 2]], [[1, 0, 0], [-2, 0, 0]])
    spectrum = RadarSpectrum(np.array([[0, 9, 1], [0, 1, 9]]), np.array([0.0, np.pi / 2]), 0.5, 0.25)
    # Bin i, counted from 1, is at i * 0.5 + 0.25 m.
    assert np.allclose(points_of(spectrum), [[1.25, 0, 0], [0, 1.75, 0]], atol=1e-12)


def test_frames_in_view_are_drawn_with_axes_of_fifteen_centimetres():
    frames = tree()
    wheel = np.eye(4)
    wheel[:3, 3] = 2.0, 0.5, -0.5
    frames.add_static("body", "wheel", wheel)
    triads = {triad.name: triad for triad in view(recording(images(), clouds(), frames=frames)).triads}
    assert set(triads) == {"wheel"}  # body and lidar are where the camera is
    assert np.allclose(triads["wheel"].origin, (100 - 25, 50 + 25))
    # Its y axis points left: 0.15 m at 2 m are 7.5 px.
    assert np.allclose(triads["wheel"].axes[1][-1], (75 - 7.5, 75))


def test_a_stream_without_a_known_frame_or_clock_is_left_out_and_told():
    lost = view(recording(images(), clouds(frame="moon"))).notes
    assert any("Lidar is not drawn" in note and "moon" in note for note in lost)
    other = view(recording(images(), clouds(clock="device"))).notes
    assert "Lidar is not drawn: it is on the device clock" in other
    assert "drive has no scans, clouds or radars to draw" in view(recording(images())).notes


def test_one_of_several_cameras_has_to_be_named():
    rec = recording(images(name="Left"), images(name="Right"), clouds())
    with pytest.raises(StreamError, match="Left, Right"):
        camera_stream(rec)
    assert camera_stream(rec, "right").name == "Right"
    with pytest.raises(StreamError, match="did you mean 'Left'"):
        camera_stream(rec, "Lefd")
    with pytest.raises(StreamError, match="no calibrated cameras"):
        camera_stream(recording(clouds()))


def test_streams_can_be_chosen():
    rec = recording(images(), clouds(), clouds(name="Other"))
    assert [s.stream.name for s in view(rec, streams=["oth*"]).sightings] == ["Other"]
    with pytest.raises(StreamError, match="no scans, clouds or radars"):
        view(rec, streams=["Cam"])


def test_an_image_of_another_size_has_its_camera_scaled():
    half, notes = fit_camera(CAMERA, 100, 50)
    # The middle of pixel (0, 0) is at 0: the corner at -0.5 stays, so 100 becomes (100 + 0.5) / 2 - 0.5.
    assert (half.K[0, 0], half.K[0, 2], half.K[1, 2]) == (50, 49.75, 24.75)
    assert "scaled" in notes[0]
    assert fit_camera(CAMERA, 200, 100)[1] == ()


def test_the_unknown_crop_of_the_infra_red_camera_is_told():
    # Errata: intrinsics for 640 x 480, images of 511 x 398 with an unknown crop.
    whole = CameraModel("VideoIR", 640, 480, np.array([[790.0, 0, 328], [0, 826, 164], [0, 0, 1]]))
    cut, notes = fit_camera(whole, 511, 398)
    assert "crop unknown" in notes[0]
    assert (cut.K[0, 2], cut.K[1, 2], cut.K[0, 0]) == (328 - 64.5, 164 - 41, 790)


# Colours


def test_points_take_the_colour_of_their_pixel():
    cloud = PointCloud(CLOUD, {"intensity": np.arange(5)}, frame="lidar")
    result = colours(cloud, Image(PIXELS, "rgb"), CAMERA, np.linalg.inv(T_BODY_CAM))
    assert result.points.tolist() == CLOUD[:2].tolist()
    assert result.fields["rgb"].tolist() == [PIXELS[50, 100].tolist(), PIXELS[40, 80].tolist()]
    assert result.fields["intensity"].tolist() == [0, 1]
    assert result.frame == "lidar"


def test_what_is_hidden_takes_no_colour():
    # A wall at 5 m, a point each pixel, hides one at 10 m behind it, not one beside it, nor its own bump.
    y, z = np.meshgrid(np.arange(-0.5, 0.51, 0.05), np.arange(-0.5, 0.51, 0.05))
    wall = np.column_stack([np.full(y.size, 5.0), y.ravel(), z.ravel()])
    behind, beside, bump = [10.0, 0, 0], [10.0, 5, 0], [5.2, 0.01, 0.01]
    cloud = PointCloud(np.concatenate([[behind, beside, bump], wall]))
    result = colours(cloud, Image(PIXELS, "rgb"), CAMERA, np.linalg.inv(T_BODY_CAM))
    assert behind not in result.points.tolist()
    assert beside in result.points.tolist()
    assert bump in result.points.tolist()
    assert len(result) == len(wall) + 2


def test_no_points_are_all_visible():
    assert visible(np.zeros((0, 2)), np.zeros(0), (10, 10)).shape == (0,)


@pytest.mark.parametrize(
    ("data", "mode", "expected"),
    [
        (np.full((4, 4), 7, np.uint8), "gray", (7, 7, 7)),
        (np.tile(np.array([1, 2, 3], np.uint8), (4, 4, 1)), "bgr", (3, 2, 1)),
        (np.tile(np.array([1, 2, 3, 255], np.uint8), (4, 4, 1)), "rgba", (1, 2, 3)),
    ],
)
def test_every_kind_of_image_becomes_rgb(data, mode: str, expected: tuple[int, int, int]):
    rgb = rgb_of(Image(data, mode))
    assert rgb.shape == (4, 4, 3)
    assert tuple(rgb[1, 2]) == expected


def test_a_bayer_pattern_has_red_where_its_name_says():
    # A red scene: only the pixels at even rows and columns of an RGGB sensor see anything.
    raw = np.zeros((8, 8), np.uint8)
    raw[::2, ::2] = 200
    red, green, blue = rgb_of(Image(raw, "bayer_rggb"))[4, 4]
    assert red == 200
    assert green == blue == 0


def test_more_bits_are_stretched():
    rgb = rgb_of(Image(np.linspace(1000, 3000, 10_000).reshape(100, 100).astype(np.uint16), "thermal"))
    assert (rgb.min(), rgb.max()) == (0, 255)


def test_a_known_shape_is_outlined_with_the_age_of_the_pose_that_it_hangs_on():
    # A bar from (10, -1, 0) to (10, 1, 0) of the arm, which stands in the body's origin: 10 px each way.
    frames = tree()
    frames.add_moving(
        "body",
        "arm",
        np.array([SECOND_NS // 2, 2 * SECOND_NS]),
        np.zeros((2, 3)),
        np.tile([0, 0, 0, 1.0], (2, 1)),
    )
    bar = {"frame": "arm", "points": [[10, -1, 0], [10, 1, 0]], "lines": [[0, 1]], "invented": True}
    robot = Robot("r", constants={"shapes": {"bar": bar, "behind": {**bar, "points": [[-9, 0, 0]] * 2}}})
    (outline,) = view(recording(images(), frames=frames).replace(robot=robot)).outlines
    assert outline.name == "bar (invented)"
    assert np.allclose(outline.lines[0, [0, -1]], [[110, 50], [90, 50]])
    assert outline.dt == -0.5

"""EuRoC / ASL folders, hand-made after the data set's own files (Burri et al. 2016, section III.E)."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.recordings import (
    assert_same,
    damaged,
    losses,
    opened,
    put,
    rewritten,
    said_of,
)

import transect
from transect import formats
from transect.errors import ParseError, UsageError
from transect.formats.shared.images import encode_image
from transect.recording import FrameTree, Recording, Stream, arrow, stream_of_values
from transect.types import Image, Imu, JointState, Odometry, Pose, RigidBodyState

T0_NS = 1403715273262142976
STEP_NS = 50_000_128
IMU = """#timestamp [ns],w_RS_S_x [rad s^-1],w_RS_S_y [rad s^-1],w_RS_S_z [rad s^-1],a_RS_S_x [m s^-2],a_RS_S_y [m s^-2],a_RS_S_z [m s^-2]
1403715273262142976,-0.0020943951023931952,0.017453292519943295,0.07749261878854824,9.0874956666666655,0.13075533333333333,-3.6938381666666662
1403715273267142912,-0.0013962634015954637,0.019547687622336492,0.07819075048934597,9.0793234583333327,0.122583125,-3.6938381666666662
1403715273272143104,-0.0006981317007977318,0.021642082724729686,0.07819075048934597,9.0711512500000000,0.114410916666667,-3.6611493333333332
"""  # noqa: E501
TRUTH = """#timestamp, p_RS_R_x [m], p_RS_R_y [m], p_RS_R_z [m], q_RS_w [], q_RS_x [], q_RS_y [], q_RS_z [], v_RS_R_x [m s^-1], v_RS_R_y [m s^-1], v_RS_R_z [m s^-1], b_w_RS_S_x [rad s^-1], b_w_RS_S_y [rad s^-1], b_w_RS_S_z [rad s^-1], b_a_RS_S_x [m s^-2], b_a_RS_S_y [m s^-2], b_a_RS_S_z [m s^-2]
1403715274302142976,0.878612,2.142470,0.947262,0.060514,-0.828459,-0.058956,-0.553641,0.009474,-0.014009,-0.002145,-0.002229,0.020700,0.076350,-0.012492,0.547666,0.069073
1403715274307143168,0.878657,2.142407,0.947252,0.060530,-0.828458,-0.058950,-0.553640,0.009474,-0.014010,-0.002145,-0.002229,0.020700,0.076350,-0.012492,0.547666,0.069073
"""  # noqa: E501
LEICA = """#timestamp [ns],p_RS_R_x [m],p_RS_R_y [m],p_RS_R_z [m]
1403636579758555392,4.688319,-1.786938,0.783338
1403636579808555520,4.688177,-1.786770,0.787350
"""
SENSOR = """%YAML:1.0
# General sensor definitions.
sensor_type: camera
comment: VI-Sensor cam0 (MT9M034)

# Sensor extrinsics wrt. the body-frame.
T_BS:
  cols: 4
  rows: 4
  data: [0.0148655429818, -0.999880929698, 0.00414029679422, -0.0216401454975,
         0.999557249008, 0.0149672133247, 0.025715529948, -0.064676986768,
        -0.0257744366974, 0.00375618835797, 0.999660727178, 0.00981073058949,
         0.0, 0.0, 0.0, 1.0]

# Camera specific definitions.
rate_hz: 20
resolution: [752, 480]
camera_model: pinhole
intrinsics: [458.654, 457.296, 367.215, 248.375] #fu, fv, cu, cv
distortion_model: radial-tangential
distortion_coefficients: [-0.28340811, 0.07395907, 0.00019359, 1.76187114e-05]
"""
IMU_SENSOR = """%YAML:1.0
sensor_type: imu
comment: VI-Sensor IMU (ADIS16448)
T_BS:
  cols: 4
  rows: 4
  data: [1.0, 0.0, 0.0, 0.0,
         0.0, 1.0, 0.0, 0.0,
         0.0, 0.0, 1.0, 0.0,
         0.0, 0.0, 0.0, 1.0]
rate_hz: 200
gyroscope_noise_density: 1.6968e-04     # [ rad / s / sqrt(Hz) ]   ( gyro "white noise" )
"""
STAMPS = [T0_NS + i * STEP_NS for i in range(3)]


def pixels(number: int) -> np.ndarray:
    return np.arange(number, number + 12, dtype=np.uint8).reshape(3, 4)


def make(folder: Path) -> Path:
    """Write the sample: a camera of three images, inertial data, and truth, as the data set's files are."""
    listing = "#timestamp [ns],filename\n" + "".join(f"{t},{t}.png\n" for t in STAMPS)
    put(folder, "mav0/cam0/data.csv", listing.replace("\n", "\r\n"))
    for number, t in enumerate(STAMPS):
        put(folder, f"mav0/cam0/data/{t}.png", encode_image(Image(pixels(number)), ".png"))
    put(folder, "mav0/cam0/sensor.yaml", SENSOR)
    put(folder, "mav0/imu0/data.csv", IMU)
    put(folder, "mav0/imu0/sensor.yaml", IMU_SENSOR)
    put(folder, "mav0/state_groundtruth_estimate0/data.csv", TRUTH)
    put(folder, "mav0/state_groundtruth_estimate0/sensor.yaml", IMU_SENSOR)
    return folder


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    return make(tmp_path / "V1_01_easy")


def rows(text: str) -> np.ndarray:
    return np.array([[float(v) for v in line.split(",")[1:]] for line in text.splitlines()[1:]])


def test_a_sample_is_recognised_and_holds_its_streams(sample: Path) -> None:
    assert said_of(sample, "euroc").confidence > 0.9
    recording = opened(sample, "euroc")
    assert [(s.name, s.type, s.role, s.clock) for s in recording] == [
        ("cam0", Image, "measurement", "utc"),
        ("imu0", Imu, "measurement", "utc"),
        ("state_groundtruth_estimate0", RigidBodyState, "truth", "utc"),
    ]
    assert losses(recording) == []
    assert recording.truth is recording["state_groundtruth_estimate0"]


def test_inertial_data_are_read_to_the_last_digit(sample: Path) -> None:
    imu = opened(sample, "euroc")["imu0"]
    assert imu.t_ns.tolist() == [1403715273262142976, 1403715273267142912, 1403715273272143104]
    names = ("gyro_x", "gyro_y", "gyro_z", "acc_x", "acc_y", "acc_z")
    np.testing.assert_array_equal(imu.array(*names), rows(IMU))
    assert imu.units["gyro_x"] == "rad/s"


def test_truth_comes_with_its_quaternion_in_our_order(sample: Path) -> None:
    truth = opened(sample, "euroc")["state_groundtruth_estimate0"]
    assert (truth.frame, truth.child) == ("world", "body")
    expected = rows(TRUTH)
    np.testing.assert_array_equal(truth.array("x", "y", "z", "qw", "qx", "qy", "qz"), expected[:, :7])
    np.testing.assert_array_equal(truth[0].value.orientation, expected[0, [4, 5, 6, 3]])
    np.testing.assert_array_equal(truth.array("vx", "vy", "vz"), expected[:, 7:10])
    np.testing.assert_array_equal(truth.array("acc_bias_x", "acc_bias_y", "acc_bias_z"), expected[:, 13:])


def test_images_load_when_asked_for_with_their_camera(sample: Path) -> None:
    recording = opened(sample, "euroc")
    assert recording["cam0"].t_ns.tolist() == STAMPS
    image = recording["cam0"][2].value
    np.testing.assert_array_equal(image.data, pixels(2))
    assert image.camera is recording.cameras["cam0"]
    assert (image.t_ns, image.mode) == (STAMPS[2], "gray")
    assert recording["cam0"].tag == "left"


def test_calibration_is_that_of_the_sensor_yaml(sample: Path) -> None:
    recording = opened(sample, "euroc")
    camera = recording.cameras["cam0"]
    assert (camera.width, camera.height, camera.distortion) == (752, 480, "radtan")
    np.testing.assert_array_equal(camera.K, [[458.654, 0, 367.215], [0, 457.296, 248.375], [0, 0, 1]])
    np.testing.assert_array_equal(camera.coefficients, [-0.28340811, 0.07395907, 0.00019359, 1.76187114e-05])
    T = recording.frames.lookup("body", "cam0")
    np.testing.assert_allclose(T[:3, 3], [-0.0216401454975, -0.064676986768, 0.00981073058949])


def test_what_is_written_opens_the_same(tmp_path: Path, sample: Path) -> None:
    put(sample, "mav0/leica0/data.csv", LEICA)
    put(sample, "mav0/leica0/sensor.yaml", IMU_SENSOR)
    recording = opened(sample, "euroc")
    assert_same(recording, rewritten(recording, tmp_path / "again", "euroc"))
    copied = (tmp_path / "again/mav0/cam0/data").glob("*.png")
    assert {p.name: p.read_bytes() for p in copied} == {
        f"{t}.png": (sample / f"mav0/cam0/data/{t}.png").read_bytes() for t in STAMPS
    }
    header = (tmp_path / "again/mav0/imu0/data.csv").read_text().splitlines()[0]
    assert header == IMU.splitlines()[0]


def test_a_zip_opens_like_its_folder(tmp_path: Path, sample: Path) -> None:
    archive = shutil.make_archive(str(tmp_path / "archive"), "zip", sample.parent, sample.name)
    assert_same(opened(sample, "euroc"), opened(Path(archive), "euroc"))


@given(st.data())
def test_any_numbers_survive_being_written(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    count = data.draw(st.integers(1, 4))
    times = data.draw(st.lists(st.integers(2**57, 2**62), min_size=count, max_size=count))
    number = st.lists(st.floats(width=64), min_size=count, max_size=count)
    imu = {f"{a}_{b}": np.array(data.draw(number)) for a in ("gyro", "acc") for b in "xyz"}
    pose = {name: np.array(data.draw(number)) for name in ("x", "y", "z", "qw", "qx", "qy", "qz")}
    streams = (
        stream_of_values("imu0", np.array(times), imu, type=Imu, frame="imu0"),
        stream_of_values(
            "vicon0", np.array(times), pose, type=Pose, role="truth", frame="world", child="vicon0"
        ),
    )
    recording = Recording("r", streams)
    again = rewritten(recording, tmp_path_factory.mktemp("euroc") / "r", "euroc")
    for stream in recording:
        np.testing.assert_array_equal(again[stream.name].t_ns, stream.t_ns)
        names = stream.columns
        np.testing.assert_array_equal(again[stream.name].array(*names), stream.array(*names))


def test_two_images_of_one_time_are_both_written(tmp_path: Path, sample: Path) -> None:
    text = "".join(f"{T0_NS},{t}.png\n" for t in STAMPS)
    put(sample, "mav0/cam0/data.csv", "#timestamp [ns],filename\n" + text)
    again = rewritten(opened(sample, "euroc"), tmp_path / "again", "euroc")
    assert again["cam0"].t_ns.tolist() == [T0_NS] * 3
    np.testing.assert_array_equal(again["cam0"][2].value.data, pixels(2))


def test_only_truth_is_written_as_truth_and_known_extrinsics_are_written(tmp_path: Path) -> None:
    """An Imu turned by a quarter on a rover, and a camera on its mast, which turns."""
    t_ns = T0_NS + STEP_NS * np.arange(3)
    quarter = np.array([[0.0, -1, 0, 0.1], [1, 0, 0, 0.2], [0, 0, 1, 0.3], [0, 0, 0, 1]])
    frames = FrameTree()
    frames.add_static("base_link", "imu_link", quarter)
    yaw = np.array([[0.0, 0, 0, 1], [0, 0, 1, 0], [0, 0, 1, 0]])
    frames.add_moving("base_link", "mast", t_ns, np.array([[0.0, 0, 1.5]] * 3), yaw)
    frames.add_static("map", "base_link", np.eye(4))
    pose = {name: np.arange(3) + k for k, name in enumerate(("x", "y", "z", "qx", "qy", "qz", "qw"))}
    truth = {name: 10.0 + values for name, values in pose.items()}
    image = Stream(
        "/mast/image", Image, arrow.table(t_ns, {"payload": ["a", "b", "c"]}), frame="mast",
        loader=lambda row: Image(np.zeros((4, 4), np.uint8)),
    )  # fmt: skip
    day = Recording("day", (
        image,
        stream_of_values("/imu", t_ns, {"gyro_x": np.ones(3)}, type=Imu, frame="imu_link"),
        stream_of_values("/odom", t_ns, pose, type=Odometry, frame="odom", child="base_link"),
        stream_of_values("/vicon", t_ns, truth, type=Pose, frame="map", child="base_link", role="truth"),
    ), frames=frames)  # fmt: skip
    said = formats.write(day, tmp_path / "out", "euroc")
    assert "/mast/image: it moves on the base_link; T_BS is where it was at its first sample" in said
    assert not any("not known" in sentence for sentence in said)
    back = transect.open(tmp_path / "out")
    assert [stream.name for stream in back if stream.role == "truth"] == ["state_groundtruth_estimate0"]
    assert back.truth is not None
    np.testing.assert_array_equal(back.truth.array(*pose), day["/vicon"].array(*pose))
    assert back["odom"].role == "estimate"
    np.testing.assert_array_equal(back["odom"].array(*pose), day["/odom"].array(*pose))
    np.testing.assert_array_equal(back.frames.lookup("body", "imu0"), quarter)
    text = (tmp_path / "out/mav0/cam0/sensor.yaml").read_text()
    assert "data: [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.5, 0.0" in text


def test_what_euroc_has_no_place_for_is_said(tmp_path: Path) -> None:
    arm = stream_of_values("arm", np.zeros(1, np.int64), {"position": np.zeros((1, 3))}, type=JointState)
    gyro = stream_of_values(
        "Imu", np.zeros(1, np.int64), {"gyro_x": np.ones(1), "temperature": np.ones(1)}, type=Imu
    )
    said = transect.formats.write(Recording("r", (arm, gyro)), tmp_path / "r", "euroc")
    assert "arm: EuRoC has no place for JointState" in said
    assert "Imu: no columns for temperature" in said
    assert any("T_BS is not known" in sentence for sentence in said)
    with pytest.raises(UsageError, match="exists already"):
        transect.formats.write(Recording("r", (gyro,)), tmp_path / "r", "euroc")


def test_a_truth_file_on_its_own_opens_too(tmp_path: Path) -> None:
    put(tmp_path, "V102_groundtruth.csv", TRUTH)
    assert said_of(tmp_path / "V102_groundtruth.csv", "euroc").confidence == 0.9
    recording = opened(tmp_path / "V102_groundtruth.csv", "euroc")
    assert len(recording["GroundTruth"]) == 2


def test_truth_beside_the_folders_is_found_and_named(sample: Path) -> None:
    put(sample, "corrected.csv", TRUTH.replace("#timestamp,", "#time(ns),"))
    put(sample, "notes.csv", "a,b\n1,2\n")
    assert "GroundTruth" in opened(sample, "euroc")
    put(sample, "other_gt.csv", TRUTH)
    assert {"corrected", "other_gt"} <= {s.name for s in opened(sample, "euroc")}


def test_a_laser_tracker_gives_positions_of_its_prism(sample: Path) -> None:
    put(sample, "mav0/leica0/data.csv", LEICA)
    leica = opened(sample, "euroc")["leica0"]
    assert (leica.type, leica.child, leica.role) == (Pose, "leica0", "truth")
    np.testing.assert_array_equal(leica.array("x", "y", "z"), rows(LEICA))


def test_several_sequences_in_one_folder_are_not_mixed(tmp_path: Path) -> None:
    make(tmp_path / "V1_01")
    make(tmp_path / "V1_02")
    match = said_of(tmp_path, "euroc")
    assert not match
    assert " but in several places: V1_01/mav0, V1_02/mav0" in match.reason


def test_a_listed_image_that_is_missing_is_one_loss(sample: Path) -> None:
    (sample / f"mav0/cam0/data/{STAMPS[1]}.png").unlink()
    recording = opened(sample, "euroc")
    assert recording["cam0"].t_ns.tolist() == [STAMPS[0], STAMPS[2]]
    reason = "mav0/cam0/data.csv lists it, but it is not there"
    assert losses(recording) == [(f"mav0/cam0/data/{STAMPS[1]}.png", None, 1, reason)]


def test_an_invalid_image_is_an_error_when_it_is_loaded(sample: Path) -> None:
    put(sample, f"mav0/cam0/data/{STAMPS[0]}.png", b"not an image")
    stream = opened(sample, "euroc")["cam0"]
    with pytest.raises(ParseError, match="is not an image"):
        _ = stream[0].value


def test_a_folder_without_data_is_noted(sample: Path) -> None:
    (sample / "mav0/state_groundtruth_estimate0/data.csv").unlink()
    recording = opened(sample, "euroc")
    assert recording.notes == ("state_groundtruth_estimate0 has a sensor.yaml but no data.csv",)
    assert recording.truth is None


def test_a_cut_last_line_is_left_out_and_located(sample: Path) -> None:
    put(sample, "mav0/imu0/data.csv", IMU[:-12])
    recording = opened(sample, "euroc")
    assert len(recording["imu0"]) == 2
    assert losses(recording) == [("mav0/imu0/data.csv", 4, 1, "the last line is cut off")]


def test_text_in_a_number_loses_that_row_and_strict_refuses(sample: Path) -> None:
    put(sample, "mav0/imu0/data.csv", IMU.replace("0.122583125", "0.12x583"))
    recording = opened(sample, "euroc")
    assert recording["imu0"].t_ns.tolist() == [1403715273262142976, 1403715273272143104]
    assert losses(recording) == [("mav0/imu0/data.csv", 3, 1, "acc_y is not a number")]
    with pytest.raises(ParseError) as caught:
        transect.open(sample, format="euroc", strict=True)
    assert caught.value.where == "mav0/imu0/data.csv:3"


def test_what_was_not_measured_is_not_a_number(sample: Path) -> None:
    put(sample, "mav0/imu0/data.csv", IMU.replace("0.122583125", "nan").replace("\n", "\r\n"))
    recording = opened(sample, "euroc")
    assert np.isnan(recording["imu0"]["acc_y"]).tolist() == [False, True, False]
    assert losses(recording) == []


def test_a_file_without_a_header_keeps_its_first_row(sample: Path) -> None:
    put(sample, "mav0/imu0/data.csv", IMU.partition("\n")[2])
    put(sample, "mav0/cam0/data.csv", "".join(f"{t},{t}.png\n" for t in STAMPS))
    recording = opened(sample, "euroc")
    assert (len(recording["imu0"]), len(recording["cam0"])) == (3, 3)


def test_times_that_repeat_or_go_back_are_kept(sample: Path) -> None:
    lines = IMU.splitlines(keepends=True)
    put(sample, "mav0/imu0/data.csv", "".join((*lines, lines[1], lines[1])))
    timing = opened(sample, "euroc")["imu0"].timing
    assert (timing.count, timing.backwards, timing.repeated) == (5, 1, 1)


@pytest.mark.parametrize("name", ["imu0", "cam0", "state_groundtruth_estimate0"])
def test_an_empty_file_is_an_empty_stream(sample: Path, name: str) -> None:
    put(sample, f"mav0/{name}/data.csv", "")
    assert len(opened(sample, "euroc")[name]) == 0


@pytest.mark.parametrize("text", [
    "", "T_BS: [1, 2", "- 1\n- 2\n", "intrinsics: [1, x, 3, 4]\nT_BS: {rows: 4, cols: 4, data: [1]}\n",
    SENSOR.replace("0.999557249008", "99.0"), SENSOR.replace("458.654", ".nan"), "T_BS: {rows: 1, cols: 2}",
])  # fmt: skip
def test_a_bad_sensor_yaml_costs_the_calibration_only(sample: Path, text: str) -> None:
    put(sample, "mav0/cam0/sensor.yaml", text)
    recording = opened(sample, "euroc")
    assert len(recording["cam0"]) == 3
    assert recording.cameras == {}
    assert [loss.file for loss in recording.losses] == ["mav0/cam0/sensor.yaml"]


@given(
    at=st.integers(IMU.index("\n") + 1, len(IMU) - 1),
    letter=st.sampled_from([b"x", b"\n", b",", b" ", b"\0", b'"', b"\xff", b"#"]),
)
def test_no_row_is_lost_in_silence(tmp_path_factory: pytest.TempPathFactory, at: int, letter: bytes) -> None:
    folder = tmp_path_factory.mktemp("euroc")
    put(folder, "mav0/imu0/sensor.yaml", IMU_SENSOR)
    put(folder, "mav0/imu0/data.csv", damaged(IMU.encode(), [(at, 1, letter)]))
    recording = opened(folder, "euroc")
    assert len(recording["imu0"]) == 3 or recording.losses


def test_a_camera_without_calibration_is_read_without_one(tmp_path: Path) -> None:
    table = arrow.table(np.array([10**18, 2 * 10**18]), {"payload": ["a", "b"]})
    image = Stream("cam0", Image, table, loader=lambda row: Image(np.zeros((4, 4), np.uint8)))
    formats.write(Recording("r", (image,)), tmp_path / "out", "euroc")
    back = transect.open(tmp_path / "out")
    assert back.losses == ()
    assert len(back["cam0"]) == 2
    assert back.cameras == {}

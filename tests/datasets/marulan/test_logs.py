"""SDI datasets: every number of a sample that follows SDI line by line, read and written."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rosbags.highlevel import AnyReader
from tests.datasets.marulan import sample
from tests.datasets.marulan.sample import assert_same_tables, opened

from transect import formats, robots
from transect.datasets.marulan import logs as sdi
from transect.errors import StreamError, UnsupportedError, UsageError
from transect.recording import Recording, source_of, stream_of_values
from transect.robots.beams import assemble_sweeps
from transect.types import Image, LaserScan, RadarRange, RadarSpectrum, Record, RigidBodyState, Twist

NS_PER_MS = 1_000_000
T0_NS = 1_224_199_788_000 * NS_PER_MS
RAD_PER_DEG = math.pi / 180


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample.write_dataset(tmp_path_factory.mktemp("sdi") / sample.DYNAMIC)


@pytest.fixture(scope="module")
def rec(dataset: Path) -> Recording:
    return opened(dataset)


def test_all_ten_folders_become_streams(rec: Recording):
    assert {stream.name: stream.type for stream in rec} == {
        **dict.fromkeys(("LaserHorizontal", "LaserPort", "LaserStarboard", "LaserVertical"), LaserScan),
        "Nav": RigidBodyState,
        "RadarRangeBearing": RadarRange,
        "RadarSpectrum": RadarSpectrum,
        "VideoIR": Image,
        "VideoVisual": Image,
        "Payload/VelocityTurnRate": Twist,
        **dict.fromkeys(("Payload/ServoSetpoint", "Payload/Brakes", "Payload/ActuatorSetpoint"), Record),
        **dict.fromkeys(
            ("Payload/Engine", "Payload/Gearbox", "Payload/Battery12V", "Payload/Battery24V"), Record
        ),
        **dict.fromkeys(("Payload/WheelLeft", "Payload/WheelRight"), Record),
    }
    assert rec.losses == ()
    assert {stream.clock for stream in rec} == {"utc"}
    assert (rec["LaserPort"].tag, rec["VideoIR"].tag) == ("port", "infrared")


def test_laser_ranges_are_metres_for_any_unit(rec: Recording):
    centimetres, mixed = rec["LaserHorizontal"], rec["LaserStarboard"]
    assert (centimetres.t_ns - T0_NS).tolist() == [
        106 * NS_PER_MS,
        119 * NS_PER_MS,
        133 * NS_PER_MS,
        146 * NS_PER_MS,
        159 * NS_PER_MS,
    ]
    np.testing.assert_array_equal(centimetres[0].value.ranges, [1.0, 1.01, 1.02, np.nan, 1.04])
    assert centimetres[0].value.range_error.tolist() == [0, 0, 0, 8191, 0]
    assert centimetres[1].value.ranges.tolist() == [2.0, 2.01, 2.02, 2.03]
    assert centimetres["start_angle"].tolist() == [-0.034907, -0.030544, -0.02618, -0.021817, -0.034907]
    assert centimetres["angle_increment"].tolist() == [0.017453] * 5
    assert centimetres["end_angle"][:2].tolist() == [0.034907, 0.021817]
    assert mixed[0].t_ns == T0_NS + 106_123_400
    np.testing.assert_array_equal(mixed[0].value.ranges, [1.234, 5.678, np.nan])
    assert mixed[0].value.range_error.tolist() == [0, 0, 8191]  # in mm mode 8.191 m is no range
    assert [scan.value.ranges.tolist() for scan in list(mixed)[1:]] == [[1.5, 2.25], [12.5]]
    assert mixed["range_unit"].tolist() == [1, 3, 4]
    assert centimetres.units["ranges"] == "m"


def test_navigation_keeps_its_states_and_the_covariance_in_document_order(rec: Recording):
    nav = rec["Nav"]
    states = (
        "north",
        "east",
        "down",
        "dnorth",
        "deast",
        "ddown",
        "roll",
        "pitch",
        "yaw",
        "droll",
        "dpitch",
        "dyaw",
    )
    written = [[float(number) for number in line.split()] for line in sample.NAV_STATES]
    assert nav.array(*states).tolist() == written
    assert nav.array("x", "y", "z").tolist() == [row[:3] for row in written]
    assert nav.array("vx", "vy", "vz").tolist() == [row[3:6] for row in written]
    covariance = nav["covariance"].reshape(-1, 12, 12)
    assert covariance[0, 0].tolist() == [
        1.01,
        1.02,
        1.03,
        1.04,
        1.05,
        1.06,
        1.07,
        1.08,
        1.09,
        1.1,
        1.11,
        1.12,
    ]
    assert (covariance[0, 1, 0], covariance[1, 11, 11]) == (2.01, 12.12)
    assert (nav.frame, nav.child, nav.role) == ("Navigation", "Body", "truth")


def test_the_attitude_of_nav_turns_body_to_navigation(rec: Recording):
    pose = rec["Nav"][1].value
    half = 0.25  # a pitch of 0.5 rad: x forward points up, that is to -z
    np.testing.assert_allclose(pose.orientation, [0, math.sin(half), 0, math.cos(half)], atol=1e-15)
    # A roll rate of 0.25 rad/s turns about the body's x axis, which is R(pitch) e_x.
    expected = [0.25 * math.cos(0.5), 0, -0.25 * math.sin(0.5)]
    np.testing.assert_allclose(pose.angular_velocity, expected, atol=1e-15)


def test_radar_spectra_have_radians_and_the_ranges_of_equation_1(rec: Recording):
    spectra = rec["RadarSpectrum"]
    np.testing.assert_allclose(spectra["angle"], [-45.25 * RAD_PER_DEG, -44.75 * RAD_PER_DEG], rtol=1e-15)
    spectrum = spectra[0].value
    assert spectrum.reflectivity[:8].tolist() == [30.0, 30.5, 31.0, 31.5, 32.0, 32.5, 33.0, 30.0]
    # errata: 1250000 / (2 * 512) / 4336.384 = 0.2815 m, and offsetM = -0.3507 m
    assert spectrum.bin_width == pytest.approx(0.2815, abs=5e-5)
    assert spectrum.ranges[0] == pytest.approx(0.2815 - 0.3507, abs=5e-5)
    assert spectrum.ranges[511] == pytest.approx(512 * 1_250_000 / (2 * 512) / 4336.384 - 0.3507, rel=1e-12)
    assert not spectra.parsed.notes


def test_a_spectrum_cut_at_40_m_keeps_the_bin_width_of_512_bins(tmp_path: Path):
    short = " ".join(["30"] * 143)  # errata: a file cut at 40 m has 143
    sample.write_file(tmp_path / "RadarSpectrum/HSR_ScalarPoints1.txt", f"*1224199788.106 1 {short}\n" * 3)
    spectra = opened(tmp_path)["RadarSpectrum"]
    assert spectra[0].value.bin_width == pytest.approx(0.2815, abs=5e-5)
    assert [note for note in spectra.parsed.notes if "143 bins" in note and "(3 x)" in note]


def test_radar_ranges_are_at_their_start_angle(rec: Recording):
    radar = rec["RadarRangeBearing"]
    assert radar.array("range", "angle", "reflectivity").tolist() == [
        [12.25, -0.7854, 55.5],
        [12.5, -0.7767, 54.25],
    ]
    assert (radar.role, radar.frame) == ("derived", "Radar")
    assert not radar.parsed.notes


def test_payload_lines_become_a_stream_each(rec: Recording):
    names = ("choke_position", "throttle_position")
    assert rec["Payload/ServoSetpoint"].array(*names).tolist() == [[0.25, 0.5]]
    twist = rec["Payload/VelocityTurnRate"][0].value
    np.testing.assert_array_equal(twist.velocity, [1.25, np.nan, np.nan])
    np.testing.assert_array_equal(twist.angular_velocity, [np.nan, np.nan, -0.125])
    brakes = rec["Payload/Brakes"].array("left_position", "right_position", "left_pressure", "right_pressure")
    assert brakes.tolist() == [[0.1, 0.2, 10.5, 11.5]]
    setpoint = rec["Payload/ActuatorSetpoint"].array("choke", "throttle", "left_brake", "right_brake")
    assert setpoint.tolist() == [[0.125, 0.375, 0.625, 0.875]]


def test_the_six_sensors_are_distinguished_and_rpm_are_rad_per_second(rec: Recording):
    engine = rec["Payload/Engine"]
    np.testing.assert_allclose(engine["angular_velocity"], [50 * math.pi, 1600 * math.pi / 30], rtol=1e-15)
    assert (engine.t_ns - T0_NS).tolist() == [120 * NS_PER_MS, 150 * NS_PER_MS]
    np.testing.assert_allclose(rec["Payload/Gearbox"]["angular_velocity"], [750.5 * math.pi / 30], rtol=1e-15)
    assert rec["Payload/Battery12V"]["voltage"].tolist() == [12.75]
    assert rec["Payload/Battery24V"]["voltage"].tolist() == [24.5]
    assert rec["Payload/WheelLeft"]["angular_velocity"].tolist() == [3.5]
    assert rec["Payload/WheelRight"]["angular_velocity"].tolist() == [-3.25]
    assert (engine.units["angular_velocity"], rec["Payload/Battery12V"].units["voltage"]) == ("rad/s", "V")


def test_the_payload_log_is_known_by_both_spellings(tmp_path: Path):
    sample.write_file(tmp_path / "Payload/PayloadDatal.txt", sample.PAYLOAD)
    assert len(opened(tmp_path)["Payload/Engine"]) == 2


def test_images_have_the_times_of_the_log_and_load_when_asked(rec: Recording):
    visual = rec["VideoVisual"]
    assert (visual.t_ns - T0_NS).tolist() == [106 * NS_PER_MS, 173 * NS_PER_MS]
    image = visual[1].payload
    assert (image.mode, image.width, image.height) == ("rgb", 1360, 1024)
    np.testing.assert_array_equal(image.data, sample.picture(1360, 1024, seed=1)[:, :, ::-1])
    assert image.camera is rec.cameras["VideoVisual"]


def test_clipped_infrared_images_carry_no_camera(rec: Recording):
    image = rec["VideoIR"][0].payload
    assert (image.mode, image.width, image.height, image.camera) == ("thermal", 511, 398, None)
    assert any("640 x 480" in note for note in rec.notes)


def test_the_body_moves_in_the_navigation_frame(rec: Recording):
    T = rec.frames.lookup("Navigation", "LaserPort", T0_NS + 206 * NS_PER_MS)
    body = rec["Nav"].array("x", "y", "z")[1]
    # 2.2.5: LaserPort is at 0.190857, -0.548777, -0.763776 in Body; the body is pitched by 0.5 rad.
    x, y, z = 0.190857, -0.548777, -0.763776
    moved = [math.cos(0.5) * x + math.sin(0.5) * z, y, -math.sin(0.5) * x + math.cos(0.5) * z]
    np.testing.assert_allclose(T[:3, 3], body + moved, atol=1e-9)


def test_a_dataset_is_known_by_its_name_or_else_by_its_time(rec: Recording, dataset: Path, tmp_path: Path):
    assert rec.conditions["environment"] == ("dust",)
    assert (rec.conditions["area"], rec.conditions["kind"]) == ("open area", "dynamic")
    (tmp_path / "renamed").symlink_to(dataset)
    assert opened(tmp_path / "renamed").conditions == rec.conditions
    late = sample.LASER.replace("*1224199788", "*1324199788")
    sample.write_file(tmp_path / "other/LaserPort/RangeBearingQAsciiData.txt", late)
    assert opened(tmp_path / "other").conditions == {}


def test_writing_and_opening_again_gives_the_same_bits(rec: Recording, tmp_path: Path):
    assert formats.write(rec, tmp_path / sample.DYNAMIC, "sdi") == ()
    again = opened(tmp_path / sample.DYNAMIC)
    assert again.losses == ()
    assert_same_tables(rec, again)
    assert again.conditions == rec.conditions


def test_the_lines_written_are_those_of_the_report(rec: Recording, dataset: Path, tmp_path: Path):
    formats.write(rec, tmp_path / "out", "sdi")
    for name in ("Payload/PayloadData1.txt", "VideoIR/VideoLogAscii.txt", "VideoVisual/VideoLogAscii.txt"):
        assert (tmp_path / "out" / name).read_text() == (dataset / name).read_text()
    radar = "RadarRangeBearing/RangeBearingQAsciiData.txt"
    assert (tmp_path / "out" / radar).read_text() == (dataset / radar).read_text()
    laser = (tmp_path / "out" / "LaserHorizontal" / "RangeBearingQAsciiData.txt").read_text()
    assert laser.splitlines()[0] == sample.LASER.splitlines()[0]
    mixed = (tmp_path / "out" / "LaserStarboard" / "RangeBearingQAsciiData.txt").read_text()
    assert mixed.splitlines()[0] == "*1224199788.106123400 RANGE_DATA 0.5 0.01 0.52 1 3 1234 5678 8191"
    image = f"VideoVisual/Images/{sample.VISUAL_IMAGES[0]}"
    assert (tmp_path / "out" / image).read_bytes() == (dataset / image).read_bytes()


def test_a_cut_recording_keeps_its_format(rec: Recording, tmp_path: Path):
    said = formats.write(rec.slice("+10ms", "+40ms").select("Laser*", "Video*"), tmp_path / "cut", "sdi")
    assert [sentence for sentence in said if "VideoVisual has no samples" in sentence]
    cut = opened(tmp_path / "cut")
    assert cut.losses == ()
    assert (cut["LaserPort"].t_ns - T0_NS).tolist() == [119 * NS_PER_MS, 133 * NS_PER_MS]
    assert "VideoVisual" not in cut
    assert cut.conditions["dataset"] == sample.DYNAMIC


def test_a_folder_with_something_in_it_is_not_written_to(rec: Recording, dataset: Path):
    with pytest.raises(UsageError, match="exists already"):
        formats.write(rec, dataset, "sdi")


def test_what_the_format_cannot_carry_is_said(tmp_path: Path):
    t = np.array([T0_NS, T0_NS + NS_PER_MS])
    laser = {"ranges": np.ones((2, 3)), "start_angle": np.zeros(2), "angle_increment": np.full(2, 0.01)}
    streams = (
        stream_of_values("LaserPort", t, {**laser, "remission": np.ones((2, 3))}, type=LaserScan),
        stream_of_values("LaserVertical", t, laser, type=LaserScan, clock="device"),
        stream_of_values("Weather", t, {"wind": np.ones(2)}),
        stream_of_values("LaserHorizontal", t[:0], {n: v[:0] for n, v in laser.items()}, type=LaserScan),
    )
    said = formats.write(Recording("mine", streams), tmp_path / "out", "sdi")
    assert len(said) == 4
    assert "LaserHorizontal has no samples, so it gets no log" in said
    assert "Weather (Record) has no place" in " ".join(said)
    assert "device clock" in " ".join(said)
    assert "LaserPort: remission" in " ".join(said)
    line = (tmp_path / "out/LaserPort/RangeBearingQAsciiData.txt").read_text().splitlines()[0]
    assert line == "*1224199788.000 RANGE_DATA 0 0.01 0.02 3 3 1 1 1"
    with pytest.raises(UnsupportedError, match="nothing of"):
        formats.write(Recording("mine", streams[1:]), tmp_path / "none", "sdi")


def test_a_plain_pose_can_be_written_as_nav(tmp_path: Path):
    q = [0.0, math.sin(0.25), 0.0, math.cos(0.25)]
    values = dict(
        zip(("x", "y", "z", "qx", "qy", "qz", "qw"), np.array([[1.0, 2.0, 3.0, *q]]).T, strict=True)
    )
    turning = {"wx": np.array([0.1]), "wy": np.array([0.2]), "wz": np.array([0.3])}
    nav = stream_of_values("Nav", np.array([T0_NS]), {**values, **turning}, type=RigidBodyState)
    formats.write(Recording("mine", (nav,)), tmp_path / "out", "sdi")
    again = opened(tmp_path / "out")["Nav"]
    np.testing.assert_allclose(again.array("roll", "pitch", "yaw"), [[0, 0.5, 0]], atol=1e-15)
    np.testing.assert_allclose(again.array("wx", "wy", "wz"), [[0.1, 0.2, 0.3]], atol=1e-15)
    assert np.isnan(again["covariance"]).all()


CODES = "*1224199788.106 RANGE_DATA 0.5 0.01 0.59 {} 10 {}"


@pytest.mark.parametrize(("unit", "number"), [(2, 1), (1, 1), (3, 0.01), (4, 0.00001)])
def test_the_codes_of_the_lasers_are_no_ranges_and_are_written_as_they_were_sent(
    tmp_path: Path, unit: int, number: float
):
    """The telegram's codes 8183 to 8191, in cm mode and in mm mode; 8182 is the largest range."""
    sent = [round(code * number, 7) for code in range(8182, 8192)]
    line = CODES.format(unit, " ".join(f"{s:g}" if number < 1 else str(int(s)) for s in sent))
    sample.write_file(tmp_path / "day/LaserPort/RangeBearingQAsciiData.txt", line + "\n")
    rec = opened(tmp_path / "day")
    scan = rec["LaserPort"][0].value
    assert scan.range_error.tolist() == [0, *range(8183, 8192)]
    np.testing.assert_allclose(scan.measured, [8.182 if unit == 1 else 81.82, *[np.nan] * 9])
    formats.write(rec, tmp_path / "out", "sdi")
    again = (tmp_path / "out/LaserPort/RangeBearingQAsciiData.txt").read_text().split()
    assert [float(word) for word in again[7:]] == pytest.approx(sent, rel=1e-12)
    assert_same_tables(opened(tmp_path / "out"), rec)


def test_no_return_is_infinite_in_ros_and_an_error_is_nan(tmp_path: Path):
    """REP 117; what a dazzled laser would have measured is not known, so that its beam is not free space."""
    line = CODES.format(2, " ".join(["500", "8191", "8190", "8183", *["600"] * 6]))
    sample.write_file(tmp_path / "day/LaserPort/RangeBearingQAsciiData.txt", line + "\n")
    formats.write(opened(tmp_path / "day"), tmp_path / "out.bag", "rosbag")
    with AnyReader([tmp_path / "out.bag"]) as reader:
        ranges = [reader.deserialize(raw, link.msgtype).ranges for link, _, raw in reader.messages(
            [link for link in reader.connections if link.topic == "/LaserPort"]
        )]  # fmt: skip
    np.testing.assert_array_equal(ranges, [[5.0, np.inf, np.nan, np.inf, *[6.0] * 6]])


def test_four_scans_make_a_sweep(dataset: Path):
    laser = opened(dataset, sweeps=True)["LaserHorizontal"]
    assert len(laser) == 1
    sweep = laser[0].value
    expected = [100, 200, 300, 400, 101, 201, 301, 401, 102, 202, 302, 402, 8191, 203, 303, 403, 104]
    np.testing.assert_array_equal(
        sweep.ranges, [np.nan if number == 8191 else number / 100 for number in expected]
    )
    assert sweep.range_error.tolist() == [8191 if number == 8191 else 0 for number in expected]
    np.testing.assert_allclose(np.diff(sweep.angles), 0.25 * RAD_PER_DEG, rtol=1e-3)
    assert sweep.start_angle == -0.034907
    assert (laser.t_ns[0] - T0_NS, laser["end_ns"][0] - T0_NS) == (106 * NS_PER_MS, 146 * NS_PER_MS)
    assert laser.parsed.notes == ("LaserHorizontal: 1 of 5 scans belong to no full sweep of 4",)


def interleaved(sweeps: int, beams: int = 3) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    scans = 4 * sweeps
    phase = np.arange(scans) % 4
    columns = {
        "ranges": np.arange(scans * beams, dtype=float).reshape(scans, beams),
        "start_angle": np.round(-math.pi / 2 + phase * 0.25 * RAD_PER_DEG, 6),
        "angle_increment": np.full(scans, 0.017453),
    }
    return T0_NS + np.arange(scans) * 13 * NS_PER_MS, columns


@given(st.sets(st.integers(0, 39), max_size=12))
def test_scans_missing_anywhere_cost_only_their_own_sweeps(missing: set[int]):
    t, columns = interleaved(10)
    kept = np.array([i not in missing for i in range(40)])
    laser = stream_of_values("L", t[kept], {k: v[kept] for k, v in columns.items()}, type=LaserScan)
    sweeps = assemble_sweeps(laser)
    whole = [s for s in range(10) if not missing & set(range(4 * s, 4 * s + 4))]
    assert sweeps.t_ns.tolist() == [t[4 * s] for s in whole]
    alone = 40 - len(missing) - 4 * len(whole)
    assert [str(alone) in note for note in sweeps.parsed.notes] == ([True] if alone else [])
    for sweep, number in zip(sweeps, whole, strict=True):
        np.testing.assert_array_equal(
            sweep.value.ranges, columns["ranges"][4 * number : 4 * number + 4].T.ravel()
        )


def test_a_sweep_does_not_bridge_a_gap_of_whole_sweeps():
    t, columns = interleaved(6)
    t[10:] += 4 * 13 * NS_PER_MS  # between the second and the third scan of the third sweep
    sweeps = assemble_sweeps(stream_of_values("L", t, columns, type=LaserScan))
    assert sweeps.t_ns.tolist() == [t[0], t[4], t[12], t[16], t[20]]


def test_one_absurd_angle_costs_only_its_own_sweep():
    t, columns = interleaved(3)
    columns["start_angle"][5] = -99.0
    sweeps = assemble_sweeps(stream_of_values("L", t, columns, type=LaserScan))
    assert sweeps.t_ns.tolist() == [t[0], t[8]]


def test_only_lasers_have_sweeps():
    with pytest.raises(StreamError, match="no scans"):
        assemble_sweeps(stream_of_values("Battery", np.array([T0_NS]), {"voltage": np.ones(1)}))


def test_a_calibration_set_brings_its_own_camera_and_images(tmp_path: Path):
    folder = sample.write_calibration_set(tmp_path / "VisualCameraCalibration")
    (folder / "Calibration/Calib_Results.m").write_text(sample.CALIB_RESULTS.replace("1023.09", "1000.25"))
    rec = opened(folder)
    assert rec.losses == ()
    assert rec.cameras["VideoVisual"].K[0, 0] == 1000.254873083798120
    images = rec["Calibration/Images"]
    assert images.t_ns.tolist() == [(1_224_110_000 + i) * 10**9 + 500 * NS_PER_MS for i in (1, 2, 3)]
    np.testing.assert_array_equal(images[2].payload.data, sample.picture(8, 6, 3)[:, :, ::-1])
    assert rec.conditions["kind"] == "calibration"
    assert not [note for note in rec.notes if "Nav" in note]
    assert formats.write(rec, tmp_path / "out" / "VisualCameraCalibration", "sdi") == ()
    again = opened(tmp_path / "out" / "VisualCameraCalibration")
    assert_same_tables(rec, again)
    assert again.cameras["VideoVisual"].same_as(rec.cameras["VideoVisual"])


def test_datasets_are_recognised_by_their_logs(dataset: Path, tmp_path: Path):
    match = sdi.recognises(source_of(dataset))
    assert match.confidence > 0.9
    assert "LaserHorizontal/RangeBearingQAsciiData.txt" in match.reason
    above = sdi.recognises(source_of(dataset.parent))
    assert not above
    assert f"{sample.DYNAMIC} but" in above.reason
    sample.write_file(tmp_path / "a/LaserPort/notes.txt", "")
    assert "but not LaserPort/RangeBearing" in sdi.recognises(source_of(tmp_path / "a")).reason
    log = dataset / "Nav" / "NavQAsciiData.txt"
    assert " but " in sdi.recognises(source_of(log)).reason
    sample.write_file(tmp_path / "b/data.csv", "1,2")
    assert not sdi.recognises(source_of(tmp_path / "b"))


def test_the_robot_stands_as_the_report_describes_it():
    frames = robots.load("argo").frames
    laser = frames.lookup("Body", "LaserHorizontal")
    assert laser[2, 0] == pytest.approx(
        math.sin(8.586863 * RAD_PER_DEG)
    )  # 2.2.1: it points down, and z is down
    np.testing.assert_allclose(frames.lookup("Body", "LaserPort")[:3, 3], [0.190857, -0.548777, -0.763776])
    radar = frames.lookup("Body", "Radar")[:3, :3]
    assert radar[0, 0] > 0.9  # errata: it looks forward
    assert radar[1, 1] < -0.9  # its y points to port
    assert radar[2, 2] < -0.9  # its z points up


@pytest.mark.parametrize(
    ("camera", "row"), [("VideoVisual", "laser_to_visual_camera"), ("VideoIR", "laser_to_ir_camera")]
)
def test_the_cameras_look_where_laser_and_table_add_up(camera: str, row: str):
    robot = robots.load("argo")
    forward = robot.frames.lookup("Body", camera)[:3, 2]
    degrees = robot.constants[row]["LaserHorizontal"]["degrees"]
    # errata: pitch and yaw of laser and camera add, -8.59 - 4.73 = -13.3 and -1.63 - 0.38 = -2.0 degrees.
    assert math.degrees(math.asin(forward[2])) == pytest.approx(8.586863 - degrees[0], abs=0.1)
    assert math.degrees(math.atan2(forward[1], forward[0])) == pytest.approx(-1.631319 + degrees[1], abs=0.4)


def test_the_visual_camera_is_that_of_calib_results():
    camera = robots.load("argo").cameras["VideoVisual"]
    assert (camera.width, camera.height) == (1360, 1024)
    assert camera.K[0, 0] == 1023.094873083798120
    assert camera.coefficients.tolist() == [
        -0.218504818968279,
        0.138951469767851,
        -0.000755791245166,
        0.000175881419552,
        0,
    ]

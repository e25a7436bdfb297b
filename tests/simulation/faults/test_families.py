"""What each fault does to what it happens to."""

from __future__ import annotations

import numpy as np
import pytest
from tests.simulation.faults.scene import NS, START_NS, labelled_rows, scene

from transect.errors import UsageError
from transect.recording import Stream, arrow
from transect.simulation.faults import inject
from transect.types import FIX_TYPES

SCENE = scene()
DEFAULT_SPAN_S = (5.0, 15.0)
"""Seconds between which a fault lasts by default: the middle half of 20 s."""


def seconds(stream: Stream) -> np.ndarray:
    return (stream.t_ns - START_NS) / NS


def inside(stream: Stream) -> np.ndarray:
    return (seconds(stream) >= DEFAULT_SPAN_S[0]) & (seconds(stream) < DEFAULT_SPAN_S[1])


def injected(fault: str, severity: float, stream: str, seed: int = 0, **how: object) -> tuple[Stream, Stream]:
    changed, _ = inject(SCENE, fault, severity, seed, streams=(stream,), **how)  # type: ignore[arg-type]
    return SCENE[stream], changed[stream]


def scans(stream: Stream) -> np.ndarray:
    """Return ranges, infinite where nothing came back."""
    return np.nan_to_num(np.array(stream.table.column("ranges").to_pylist()), nan=np.inf)


def test_dropout_loses_bursts_of_half_a_second_and_severity_is_the_share() -> None:
    before, after = injected("dropout", 0.5, "Imu", seed=4)
    gone = ~np.isin(before.t_ns, after.t_ns)
    assert 0.2 < gone[inside(before)].mean() < 0.8
    assert not gone[~inside(before)].any()
    lengths = np.diff(np.flatnonzero(np.diff(np.concatenate([[0], gone, [0]]))))[::2]
    assert (lengths % 25 == 0).all()  # at 50 Hz


def test_dropout_of_everything_loses_the_window() -> None:
    before, after = injected("dropout", 1.0, "Imu")
    np.testing.assert_array_equal(after.t_ns, before.t_ns[~inside(before)])


def test_streams_of_one_device_lose_the_same_moments() -> None:
    changed, _ = inject(SCENE, "dropout", 0.5, seed=1)
    wheels, imu = changed["Wheels"], changed["Imu"]
    there = np.isin(SCENE["Wheels"].t_ns, wheels.t_ns)
    same_times = np.isin(SCENE["Wheels"].t_ns, SCENE["Imu"].t_ns)
    np.testing.assert_array_equal(there[same_times], np.isin(SCENE["Wheels"].t_ns, imu.t_ns)[same_times])


def test_a_late_start_and_an_early_stop_lose_an_end() -> None:
    _, late = injected("late_start", 0.4, "Imu")
    _, early = injected("early_stop", 0.4, "Imu")
    assert seconds(late)[0] == pytest.approx(4.0, abs=0.03)  # 0.4 of the first half of 20 s
    assert seconds(late)[-1] == seconds(SCENE["Imu"])[-1]
    assert seconds(early)[-1] == pytest.approx(16.0, abs=0.03)
    assert seconds(early)[0] == 0.0


def test_stuck_values_stay_while_time_goes_on() -> None:
    before, after = injected("stuck", 0.5, "Imu")
    held = (seconds(before) >= 5.0) & (seconds(before) < 10.0)
    np.testing.assert_array_equal(after.t_ns, before.t_ns)
    assert len(set(after["gyro_x"][held].tolist())) == 1
    np.testing.assert_array_equal(after["gyro_x"][~held], before["gyro_x"][~held])


def test_a_stuck_camera_shows_one_picture_with_new_times() -> None:
    before, after = injected("stuck", 1.0, "VideoVisual")
    first = int(np.argmax(inside(before)))
    for index in (first, first + 1, first + 7):
        np.testing.assert_array_equal(after[index].value.data, before[first].value.data)
        assert after[index].value.t_ns == before.t_ns[index]


def test_noise_is_three_times_as_much() -> None:
    before, after = injected("noise", 1.0, "Imu")
    window = inside(before)
    for name in ("acc_x", "gyro_z"):
        ratio = after[name][window].std() / before[name][window].std()
        assert ratio == pytest.approx(3.0, rel=0.15)
        np.testing.assert_array_equal(after[name][~window], before[name][~window])


def test_a_bias_comes_at_once_or_grows() -> None:
    before, step = injected("bias_step", 0.5, "Imu")
    _, ramp = injected("bias_ramp", 0.5, "Imu")
    window = inside(before)
    off = (step["gyro_z"] - before["gyro_z"])[window]
    np.testing.assert_allclose(np.abs(off), 0.5 * 0.05, rtol=1e-9)  # 0.05 rad/s at severity 1
    grown = np.abs(ramp["gyro_z"] - before["gyro_z"])[window]
    assert (np.diff(grown) > 0).all()
    assert grown[-1] == pytest.approx(0.5 * 0.05, rel=0.01)


def test_a_bias_of_positions_is_in_metres() -> None:
    before, after = injected("bias_step", 1.0, "Gnss")
    north = (after["lat"] - before["lat"])[inside(before)] * 6_371_000.0
    np.testing.assert_allclose(np.abs(north), 1.0, rtol=1e-6)


def test_a_clock_jumps_once_and_log_times_stay() -> None:
    before, after = injected("clock_jump", 0.3, "Gnss")
    moved = after.t_ns - before.t_ns
    assert set(np.abs(moved).tolist()) == {0, 300_000_000}
    assert (np.diff(moved != 0) != 0).sum() == 1
    np.testing.assert_array_equal(after.log_ns, before.log_ns)


def test_a_clock_drifts_in_parts_per_million() -> None:
    before, after = injected("clock_drift", 1.0, "Imu", start="+5s")
    late, since = (after.t_ns - before.t_ns) / NS, seconds(before) - 5.0
    np.testing.assert_allclose(late[since > 0], 500e-6 * since[since > 0], atol=1e-8)


def test_latency_stamps_samples_late_and_pictures_stay_the_same() -> None:
    before, after = injected("latency", 0.5, "VideoVisual")
    late = (after.t_ns - before.t_ns) / NS
    np.testing.assert_allclose(late[seconds(before) >= 5.0], 0.1)
    np.testing.assert_array_equal(after[40].value.data, before[40].value.data)
    assert after[40].value.t_ns == after.t_ns[40]


def test_jitter_scatters_stamps_by_up_to_two_intervals_and_keeps_their_order() -> None:
    before, after = injected("jitter", 0.5, "Imu")
    off = (after.t_ns - before.t_ns)[inside(before)] / (0.02 * NS)  # at 50 Hz
    assert 0.3 < np.abs(off).mean() < 1.0
    assert np.abs(off).max() < 2.0
    assert (np.diff(after.t_ns) > 0).all()
    _, slightly = injected("jitter", 1e-4, "Imu")
    assert np.abs(slightly.t_ns - before.t_ns).max() < 0.001 * 0.02 * NS
    _, picture = injected("jitter", 1.0, "VideoVisual")
    assert picture[40].value.t_ns == picture.t_ns[40] != SCENE["VideoVisual"].t_ns[40]


def test_disordered_samples_come_after_their_successors_and_log_times_stay() -> None:
    before, after = injected("disorder", 1.0, "Gnss")
    back = np.flatnonzero(np.diff(after.t_ns) < 0)
    pairs = inside(before).sum() // 2
    assert len(back) == round(0.2 * pairs)
    order = np.argsort(after.t_ns)
    np.testing.assert_array_equal(after.t_ns[order], before.t_ns)
    np.testing.assert_array_equal(after["lat"][order], before["lat"])
    np.testing.assert_array_equal(after.log_ns, before.log_ns)
    assert injected("disorder", 1e-6, "Gnss")[1].timing.backwards == 1


def test_repeated_rows_are_there_twice_with_all_they_have() -> None:
    before, after = injected("repeated_rows", 0.5, "Gnss")
    times, counts = np.unique(after.t_ns, return_counts=True)
    np.testing.assert_array_equal(times, before.t_ns)
    assert set(counts[inside(before)].tolist()) == {1, 2}
    assert set(counts[~inside(before)].tolist()) == {1}
    twice = np.flatnonzero(np.diff(after.t_ns) == 0)
    rows, again = (after.table.take(arrow.from_numpy(index)) for index in (twice, twice + 1))
    assert rows.equals(again)
    assert injected("repeated_rows", 1.0, "Gnss")[1].t_ns.size == len(before) + inside(before).sum()


def test_saturated_values_stop_at_a_full_scale() -> None:
    before, after = injected("saturation", 0.5, "Imu")
    window, names = inside(before), ("gyro_x", "gyro_y", "gyro_z")
    old, new = before.array(*names), after.array(*names)
    assert np.abs(new[window]).max() == pytest.approx(0.55 * np.abs(old[window]).max())  # 0.9 of it at 1
    cut = old != new
    assert len(set(np.abs(new[cut]).tolist())) == 1
    assert (np.abs(old[cut]) > np.abs(new[cut])).all()
    np.testing.assert_array_equal(new[~window], old[~window])
    _, far = injected("saturation", 0.2, "LaserHorizontal")
    assert np.isfinite(scans(far)).sum() == np.isfinite(scans(SCENE["LaserHorizontal"])).sum()


def test_nan_affects_a_fraction_of_the_samples_as_a_whole() -> None:
    before, after = injected("nan", 0.3, "Imu", seed=2)
    lost = np.isnan(after.array("acc_x", "acc_y", "acc_z", "gyro_x", "gyro_y", "gyro_z"))
    assert (lost.all(axis=1) == lost.any(axis=1)).all()
    assert lost[inside(before), 0].mean() == pytest.approx(0.3)
    with pytest.raises(UsageError, match="nan cannot affect LaserHorizontal"):
        injected("nan", 0.3, "LaserHorizontal")


@pytest.mark.parametrize(("name", "other"), [("Encoders", "Potentiometers"), ("Potentiometers", "Encoders")])
def test_one_sensor_of_one_joint_drifts_off(name: str, other: str) -> None:
    fault = f"{name.lower()[:-1]}_drift"
    changed, _ = inject(SCENE, fault, 0.5, seed=1)
    before, after = SCENE[f"Arm/{name}"], changed[f"Arm/{name}"]
    assert changed[f"Arm/{other}"] is SCENE[f"Arm/{other}"]
    off = np.abs(after["position"] - before["position"])
    assert (off.max(axis=0) > 0).sum() == 1
    assert off.max() == pytest.approx(0.1, rel=0.03)  # half of 0.2 rad, one sample before the end
    np.testing.assert_array_equal(off[~inside(before)], 0.0)
    with pytest.raises(UsageError, match=f"{fault} cannot affect"):
        inject(SCENE.select(f"Arm/{name}"), fault, 0.5)


def test_a_covariance_is_not_positive_definite() -> None:
    before, after = injected("covariance_indefinite", 0.1, "Estimate")
    eigenvalues = np.linalg.eigvalsh(after["covariance"].reshape(-1, 12, 12))
    window = inside(before)
    assert (eigenvalues[window, 0] < 0).all()
    assert (eigenvalues[~window, 0] > 0).all()
    matrices = after["covariance"].reshape(-1, 12, 12)
    np.testing.assert_allclose(matrices, matrices.swapaxes(1, 2), atol=1e-12)
    assert (injected("covariance_indefinite", 0.1, "Gnss")[1]["std_north"][inside(SCENE["Gnss"])] < 0).all()


@pytest.mark.parametrize(
    ("fault", "severity", "factor"),
    [("covariance_zero", 1.0, 0.0), ("covariance_huge", 0.5, 1e3), ("inert_gate", 1.0, 100.0)],
)
def test_declared_deviations_are_none_or_far_too_large(fault: str, severity: float, factor: float) -> None:
    changed, _ = inject(SCENE, fault, severity)
    before, after = SCENE["Gnss"], changed["Gnss"]
    expected = np.where(inside(before), factor * 0.02, 0.02)
    np.testing.assert_allclose(after["std_east"], expected)
    np.testing.assert_array_equal(after["lat"], before["lat"])
    window = inside(SCENE["Estimate"])
    variances = [r["Estimate"]["covariance"].reshape(-1, 12, 12)[window][:, 2, 2] for r in (SCENE, changed)]
    np.testing.assert_allclose(variances[1], variances[0] * factor**2)
    with pytest.raises(UsageError, match="samples with a covariance or standard deviations"):
        inject(SCENE, fault, severity, streams=("Imu",))


def test_an_inertial_sensor_in_other_units_or_with_an_axis_flipped() -> None:
    before, g = injected("acceleration_in_g", 1.0, "Imu")
    assert np.linalg.norm(g.array("acc_x", "acc_y", "acc_z"), axis=1).mean() == pytest.approx(1.0, abs=0.01)
    np.testing.assert_array_equal(g["gyro_x"], before["gyro_x"])
    _, degrees = injected("rates_in_degrees", 0.5, "Imu")
    first = seconds(before) < 10.0  # half of the recording
    np.testing.assert_allclose(np.radians(degrees["gyro_y"][first]), before["gyro_y"][first])
    np.testing.assert_array_equal(degrees["gyro_y"][~first], before["gyro_y"][~first])
    assert degrees.units["gyro_y"] == "rad/s"
    _, flipped = injected("flipped_axis", 1.0, "Imu", parameters={"axis": 2.0})
    np.testing.assert_array_equal(flipped.array("acc_z", "gyro_z"), -before.array("acc_z", "gyro_z"))
    np.testing.assert_array_equal(flipped.array("acc_x", "gyro_y"), before.array("acc_x", "gyro_y"))
    with pytest.raises(UsageError, match="no axis 3"):
        injected("flipped_axis", 1.0, "Imu", parameters={"axis": 3.0})


def test_stamps_in_other_units_and_of_another_zone() -> None:
    before, thousandth = injected("times_in_microseconds", 1.0, "Gnss")
    np.testing.assert_array_equal(thousandth.t_ns, before.t_ns // 1000)
    _, millionth = injected("times_in_milliseconds", 1.0, "Gnss")
    np.testing.assert_array_equal(millionth.t_ns, before.t_ns // 10**6)
    for severity, hours in ((1e-3, 0.25), (0.8, 9.5)):  # quarters of an hour: 9.6 is rounded
        _, moved = injected("time_zone", severity, "Gnss")
        assert set(np.abs(moved.t_ns - before.t_ns).tolist()) == {round(hours * 3600) * NS}


def test_coordinates_are_swapped() -> None:
    before, after = injected("swapped_coordinates", 1.0, "Gnss")
    np.testing.assert_array_equal(after.array("lat", "lon"), before.array("lon", "lat"))


def test_exchanged_cameras_show_what_the_other_one_sees_and_say_it_is_theirs() -> None:
    changed, labels = inject(SCENE, "exchanged_cameras", 1.0, streams=("StereoLeft",))  # and so the right one
    assert set(arrow.texts(labels, "stream")) == {"StereoLeft", "StereoRight"}
    for own, other in (("StereoLeft", "StereoRight"), ("StereoRight", "StereoLeft")):
        picture = changed[own][7].value
        np.testing.assert_array_equal(picture.data, SCENE[other][7].value.data)
        assert (picture.frame, picture.t_ns) == (own, SCENE[own].t_ns[7])
    with pytest.raises(UsageError, match="a left and a right camera"):
        inject(SCENE, "exchanged_cameras", 1.0, streams=("VideoVisual",))


def test_a_copied_stream_has_the_values_of_the_first_of_its_kind_and_its_own_times() -> None:
    changed, _ = inject(SCENE, "copied_stream", 1.0, streams=("Arm/*", "StereoLeft"))
    first, copy = changed["Arm/Encoders"], changed["Arm/Potentiometers"]
    assert first is SCENE["Arm/Encoders"]
    np.testing.assert_array_equal(copy["position"], first["position"])
    np.testing.assert_array_equal(
        changed["StereoLeft"][3].value.data, SCENE["VideoVisual"].at(int(copy.t_ns[15])).value.data
    )
    with pytest.raises(UsageError, match="copied_stream cannot affect Imu"):
        inject(SCENE, "copied_stream", 1.0, streams=("Imu",))


def test_a_wrong_lever_arm_is_in_the_frames_and_nowhere_else() -> None:
    changed, labels = inject(SCENE, "lever_arm", 0.5, seed=4, streams=("LaserHorizontal",))
    off = changed.frames.lookup("Body", "LaserHorizontal") - SCENE.frames.lookup("Body", "LaserHorizontal")
    assert np.linalg.norm(off) == pytest.approx(0.25)
    assert off[2, 3] == 0.0
    radar = [recording.frames.lookup("Body", "Radar") for recording in (changed, SCENE)]
    np.testing.assert_array_equal(*radar)
    assert all(changed[stream.name] is stream for stream in SCENE)
    # Both cameras of the Argo are calibrated against this laser, and so elsewhere as well.
    below = {"LaserHorizontal", "Lidar", "VideoVisual", "VideoIR"}
    assert set(arrow.texts(labels, "stream")) == below
    assert labels.num_rows == sum(len(SCENE[name]) for name in below)
    with pytest.raises(UsageError, match="as long as the recording"):
        inject(SCENE, "lever_arm", 0.5, start="+3s")
    with pytest.raises(UsageError, match="sensors whose mount is in the frame tree"):
        inject(SCENE, "lever_arm", 0.5, streams=("Gnss",))


def test_an_occluded_laser_gets_nothing_from_a_sector() -> None:
    before, after = injected("occlusion", 0.5, "LaserHorizontal", seed=3)
    other = scans(after) != scans(before)
    np.testing.assert_array_equal(scans(after)[other], np.inf)
    codes = np.array(after.table.column("range_error").to_pylist())
    np.testing.assert_array_equal(codes, np.where(np.isinf(scans(after)), 8191, 0))  # the laser's own code
    beams = np.flatnonzero(other.any(axis=0))
    assert len(beams) == beams[-1] - beams[0] + 1
    assert 10 <= len(beams) <= 31  # 30 degrees, less where nothing was seen anyway
    assert (other.any(axis=1) == inside(before)).all()


def test_an_occluded_lidar_has_no_points_in_a_sector() -> None:
    before, after = injected("occlusion", 1.0, "Lidar", seed=1)
    index = int(np.argmax(inside(before)))
    missing = len(before[index].value) - len(after[index].value)
    assert 0 < missing <= 31  # 60 degrees of beams 2 degrees apart


def test_an_occluded_camera_has_a_dark_patch() -> None:
    before, after = injected("occlusion", 1.0, "VideoVisual")
    old, new = (s[40].value.data.astype(float) for s in (before, after))
    assert 0.2 < (new < 0.2 * old).mean() < 0.45
    assert (new <= old).all()


def test_a_bumped_laser_sees_the_world_beside() -> None:
    before, after = injected("extrinsic_bump", 1.0, "LaserHorizontal", seed=2)
    old, new = scans(before)[100], scans(after)[100]
    shifts = [s for s in (-5, 5) if np.array_equal(new[10:-10], np.roll(old, -s)[10:-10])]
    assert len(shifts) == 1  # 5 degrees


def test_a_bumped_lidar_is_turned_and_not_deformed() -> None:
    before, after = injected("extrinsic_bump", 0.5, "Lidar")
    index = int(np.argmax(inside(before)))
    old, new = before[index].value.points.astype(float), after[index].value.points.astype(float)
    np.testing.assert_allclose(np.linalg.norm(new, axis=1), np.linalg.norm(old, axis=1), rtol=1e-5)
    turned = np.degrees(np.arccos(np.clip((old * new).sum(axis=1) / (old**2).sum(axis=1), -1, 1)))
    assert 0.5 < turned.max() <= 2.75 + 0.05  # halfway from 0.5 to 5 degrees


def test_a_bumped_imu_feels_gravity_elsewhere_but_as_much_of_it() -> None:
    before, after = injected("extrinsic_bump", 1.0, "Imu")
    names = ("acc_x", "acc_y", "acc_z")
    old, new = before.array(*names), after.array(*names)
    np.testing.assert_allclose(np.linalg.norm(new, axis=1), np.linalg.norm(old, axis=1), rtol=1e-12)
    late = seconds(before) >= 5.0
    assert np.abs(new[late].mean(axis=0) - old[late].mean(axis=0)).max() > 0.1
    np.testing.assert_array_equal(new[~late], old[~late])


def test_a_bump_changes_no_calibration() -> None:
    changed, _ = inject(SCENE, "extrinsic_bump", 1.0)
    assert changed.frames is SCENE.frames
    assert changed.cameras is SCENE.cameras


def test_slipping_wheels_run_ahead_and_their_ticks_keep_it() -> None:
    before, after = injected("wheel_slip", 0.5, "Wheels")
    window = inside(before)
    faster = after["wheel_velocity"][window] / before["wheel_velocity"][window]
    np.testing.assert_allclose(faster, 1 / (1 - 0.4))
    steps = [np.diff(s["drive_ticks"].astype(float), axis=0) for s in (before, after)]
    np.testing.assert_allclose(steps[1][window[1:]] / (1 / (1 - 0.4)), steps[0][window[1:]], atol=1.0)
    np.testing.assert_allclose(steps[1][~window[1:]], steps[0][~window[1:]], atol=1.0)
    assert after.table.schema.equals(before.table.schema, check_metadata=True)


def test_the_samples_after_a_slip_are_labelled_with_fraction_0() -> None:
    _, labels = inject(SCENE, "wheel_slip", 0.5, streams=("Odometry",))
    index, fraction = arrow.numbers(labels, "index"), arrow.numbers(labels, "fraction")
    slipped = inside(SCENE["Odometry"])[index]
    assert set(fraction[slipped].tolist()) == {0.4}
    assert set(fraction[~slipped].tolist()) == {0.0}


def test_slipping_odometry_gets_longer() -> None:
    before, after = injected("wheel_slip", 1.0, "Odometry")
    gained = (after["x"] - before["x"])[-1]
    way = 0.5 * (DEFAULT_SPAN_S[1] - DEFAULT_SPAN_S[0])
    assert gained == pytest.approx(way * (1 / 0.2 - 1), rel=0.05)


def test_gnss_spikes_are_rare_far_and_not_declared() -> None:
    before, after = injected("gnss_spike", 1.0, "Gnss", seed=6)
    north = (after["lat"] - before["lat"]) * 6_371_000.0
    east = (after["lon"] - before["lon"]) * 6_371_000.0 * np.cos(before["lat"])
    far = np.hypot(north, east)
    hit = far > 0
    assert 0 < hit.mean() < 0.2
    assert (far[hit] > 20.0).all()
    assert (far[hit] < 51.0).all()
    np.testing.assert_array_equal(after["std_north"], before["std_north"])


def test_gnss_float_wanders_and_says_so() -> None:
    before, after = injected("gnss_float", 1.0, "Gnss")
    window = inside(before)
    assert set(np.array(after["fix"])[window]) == {FIX_TYPES[6]}
    assert set(np.array(after["fix"])[~window]) == {"rtk fixed"}
    np.testing.assert_array_equal(after["std_north"][window], 1.0)
    north = (after["lat"] - before["lat"])[window] * 6_371_000.0
    assert 0.1 < np.abs(north).max() <= 1.0 + 1e-6
    assert np.abs(np.diff(north)).max() < 0.3  # smooth, at 5 Hz


def laplacian(pixels: np.ndarray) -> float:
    flat = pixels.astype(float).mean(axis=-1) if pixels.ndim == 3 else pixels.astype(float)
    return float((np.diff(flat, n=2, axis=0)[:, 1:-1] + np.diff(flat, n=2, axis=1)[1:-1]).var())


def test_blur_takes_the_edges_out() -> None:
    before, after = injected("blur", 1.0, "VideoVisual")
    assert laplacian(after[40].value.data) < 0.7 * laplacian(before[40].value.data)
    assert after[40].value.data.mean() == pytest.approx(before[40].value.data.mean(), rel=0.1)


def test_overexposure_burns_what_was_bright() -> None:
    before, after = injected("overexposure", 1.0, "VideoVisual")
    bright = before[40].value.data > 32
    assert (after[40].value.data[bright] == 255).all()


def test_haze_is_a_mixture_with_the_light_of_the_air() -> None:
    """I = J t + A (1 - t), t = 0.6 at severity 0.5."""
    before, after = injected("haze", 0.5, "VideoVisual")
    J, light = before[40].value.data.astype(float), np.array([0.8, 0.8, 0.82]) * 255
    np.testing.assert_allclose(after[40].value.data, J * 0.6 + light * 0.4, atol=0.51)


def test_types_units_and_untouched_streams_stay() -> None:
    for fault in ("noise", "bias_step", "wheel_slip", "rain", "occlusion"):
        changed, labels = inject(SCENE, fault, 0.7, seed=1)
        for stream in SCENE:
            if labelled_rows(labels, stream.name) and stream.loader is None:
                schema = changed[stream.name].table.schema
                assert schema.equals(stream.table.schema, check_metadata=True), (fault, stream.name)
            elif not labelled_rows(labels, stream.name):
                assert changed[stream.name] is stream

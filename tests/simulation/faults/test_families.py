"""What each fault does to what it happens to."""

from __future__ import annotations

import numpy as np
import pytest
from tests.simulation.faults.scene import NS, START, labelled_rows, scene

from transect.recording import Stream, arrow
from transect.simulation.faults import inject
from transect.types import FIX_TYPES

SCENE = scene()
MIDDLE = (5.0, 15.0)
"""Seconds between which a fault lasts by default: the middle half of 20 s."""


def seconds(stream: Stream) -> np.ndarray:
    return (stream.t_ns - START) / NS


def inside(stream: Stream) -> np.ndarray:
    return (seconds(stream) >= MIDDLE[0]) & (seconds(stream) < MIDDLE[1])


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
    way = 0.5 * (MIDDLE[1] - MIDDLE[0])
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

"""`transect allan`, and how it finds the stretch in which an IMU was at rest."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import yaml
from tests.cli.test_eval import Run, run  # noqa: F401

from transect.errors import GeometryError
from transect.evaluation import allan_deviation
from transect.evaluation.static import AXES, find_motion, imu_noise, kalibr_text, longest_rest
from transect.recording import Recording, Stream, arrow
from transect.types import Imu, NavFix, Odometry, WheelState

RATE_HZ = 100.0
GYRO_NOISE, ACCEL_NOISE = 0.002, 0.02
"""Standard deviations of a sample at rest, rad/s and m/s2."""


def at_rest(seconds: float, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n = int(seconds * RATE_HZ)
    rng = np.random.default_rng(seed)
    gyro = rng.normal((0.01, 0.0, -0.02), GYRO_NOISE, size=(n, 3))
    return np.arange(n) * 10_000_000, gyro, rng.normal((0, 0, 9.81), ACCEL_NOISE, size=(n, 3))


def driving(seconds: float = 100.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """At rest from 30 to 70 s."""
    t_ns, gyro, acc = at_rest(seconds)
    t = t_ns / 1e9
    moving = ((t < 30) | (t >= 70))[:, None]
    shaken = np.sin(np.outer(t, [3.0, 5.0, 7.0]))
    return t_ns, gyro + moving * 0.2 * shaken, acc + moving * shaken


def test_the_longest_rest_is_found_to_a_second() -> None:
    rest = longest_rest(*driving())
    assert rest.first / RATE_HZ == pytest.approx(30, abs=2)
    assert rest.last / RATE_HZ == pytest.approx(70, abs=2)
    assert rest.seconds == pytest.approx(40, abs=3)
    np.testing.assert_allclose(rest.noise, [GYRO_NOISE] * 3 + [ACCEL_NOISE] * 3, rtol=0.25)


def test_a_whole_record_at_rest_is_kept_whole() -> None:
    rest = longest_rest(*at_rest(300))
    assert rest.seconds > 299 - 2


def test_a_steady_turn_and_a_gap_end_a_rest() -> None:
    t_ns, gyro, acc = at_rest(100)
    gyro[6000:] += 0.1  # as even as a turntable
    rest = longest_rest(t_ns, gyro, acc)
    assert rest.last <= 6000
    t_ns, gyro, acc = at_rest(100)
    t_ns[4000:] += 3_000_000_000
    rest = longest_rest(t_ns, gyro, acc)
    assert rest.first >= 4000
    assert rest.seconds == pytest.approx(60, abs=2)


def test_samples_that_were_not_measured_end_a_rest_and_too_few_are_refused() -> None:
    t_ns, gyro, acc = at_rest(20)
    acc[500, 1] = np.nan
    assert longest_rest(t_ns, gyro, acc).first >= 600
    with pytest.raises(GeometryError, match="too few to find a rest"):
        longest_rest(t_ns[:50], gyro[:50], acc[:50])


def test_the_white_noise_that_was_put_in_comes_out_on_all_axes_and_in_kalibrs_file() -> None:
    found = imu_noise(*at_rest(1000))
    for name, sigma in zip(AXES, [GYRO_NOISE] * 3 + [ACCEL_NOISE] * 3, strict=True):
        assert found[name].model.white == pytest.approx(sigma / np.sqrt(RATE_HZ), rel=0.05)
        assert found[name].walk_limit > 0
    said = yaml.safe_load(kalibr_text(found, RATE_HZ, "/imu0"))
    assert said["gyroscope_noise_density"] == pytest.approx(GYRO_NOISE / 10, rel=0.05)
    assert said["accelerometer_noise_density"] == pytest.approx(ACCEL_NOISE / 10, rel=0.05)
    assert (said["rostopic"], said["update_rate"]) == ("/imu0", 100)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A EuRoC folder with an IMU."""
    imu = tmp_path / "flight" / "mav0" / "imu0"
    imu.mkdir(parents=True)
    t_ns, gyro, acc = driving()
    rows = np.hstack([gyro, acc]).tolist()
    head = "#timestamp [ns],w_x,w_y,w_z,a_x,a_y,a_z\n"
    lines = (",".join(map(repr, row)) for row in rows)
    stamped = "".join(f"{1_600_000_000_000_000_000 + t},{row}\n" for t, row in zip(t_ns, lines, strict=True))
    (imu / "data.csv").write_text(head + stamped)
    (imu / "sensor.yaml").write_text("sensor_type: imu\nrate_hz: 100\n")
    return tmp_path / "flight"


def test_the_command_prints_writes_and_draws(run: Run, recording: Path, tmp_path: Path) -> None:  # noqa: F811
    done = run("allan", recording, "--kalibr", tmp_path / "imu.yaml", "--figure", tmp_path / "allan.png")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert [line.split()[0] for line in lines[1:7]] == list(AXES)
    assert float(lines[1].split()[1]) == pytest.approx(GYRO_NOISE / 10, rel=0.2)
    assert yaml.safe_load((tmp_path / "imu.yaml").read_text())["update_rate"] == pytest.approx(100)
    assert (tmp_path / "allan.png").stat().st_size > 10_000


def test_json_has_the_curves_and_whole_takes_everything(run: Run, recording: Path) -> None:  # noqa: F811
    rest = json.loads(run("allan", recording, "--json").out)
    assert len(rest["tau_s"]) == len(rest["axes"]["acc_z"]["deviation"])
    assert rest["rest"]["seconds"] == pytest.approx(40, abs=3)
    whole = json.loads(run("allan", recording, "--whole", "--json").out)
    assert whole["rest"]["last"] == whole["samples"] == 10_000
    assert whole["axes"]["gyro_x"]["N"] is None or whole["axes"]["gyro_x"]["N"] > rest["axes"]["gyro_x"]["N"]


def test_a_recording_without_an_imu_says_so(run: Run, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "x.tum").write_text("".join(f"{t}.0 0 0 {t} 0 0 0 1\n" for t in range(9)))
    done = run("allan", tmp_path / "x.tum")
    assert done.code == 1
    assert "no IMU" in done.err


@pytest.mark.real
def test_the_adis16405_has_the_deviations_of_the_datas_readme(real_data: Path) -> None:
    import rdata

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read = rdata.read_rda(real_data / "imu_static_adis16405" / "adis_16405_imu1.rda")
    values = np.asarray(read["adis_16405_imu1"])
    curve = allan_deviation(values[:, 0], RATE_HZ, [0.01, 0.1, 1, 10, 100, 1000])
    np.testing.assert_allclose(
        curve.deviation, [0.3191, 0.1254, 0.04090, 0.01337, 0.00722, 0.00521], rtol=1.5e-3
    )
    rest = longest_rest(
        np.arange(len(values)) * 10_000_000, np.radians(values[:, :3]), 9.80665 * values[:, 3:]
    )
    assert rest.seconds > 9900  # it was at rest all the time


def shaken_together(seconds: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A drive at a steady speed: roll and pitch shake both sensors, as evenly as noise."""
    t_ns, gyro, acc = at_rest(seconds)
    rng = np.random.default_rng(5)
    shaking = rng.normal(size=(len(t_ns), 2))
    gyro[:, :2] += 0.02 * shaking
    gyro[:, 2] += 0.02 * shaking[:, 0]
    acc += 0.5 * np.column_stack([shaking[:, 1], shaking[:, 0], shaking.sum(axis=1)])
    return t_ns, gyro, acc


def test_driving_as_even_as_noise_is_no_rest() -> None:
    with pytest.raises(GeometryError, match="never at rest for 5 s") as caught:
        longest_rest(*shaken_together(60))
    assert "no second is at rest" in str(caught.value)


def test_the_longest_rest_is_named_if_it_is_too_short() -> None:
    t_ns, gyro, acc = shaken_together(60)
    _, gyro[2000:2300], acc[2000:2300] = at_rest(3, seed=2)
    with pytest.raises(GeometryError, match=r"the longest rest is [123].0 s, from 2[01].0 s after"):
        longest_rest(t_ns, gyro, acc)


@pytest.mark.parametrize("mover", ["wheels", "odometry", "fixes"])
def test_what_other_sensors_saw_move_is_no_rest(mover: str) -> None:
    t_ns, gyro, acc = at_rest(60)
    columns = {f"gyro_{axis}": each for axis, each in zip("xyz", gyro.T, strict=True)}
    columns |= {f"acc_{axis}": each for axis, each in zip("xyz", acc.T, strict=True)}
    imu = Stream("Imu", Imu, arrow.table(t_ns, columns, units=Imu.units()), clock="utc")
    at = t_ns[::20]
    t = at / 1e9
    drives = t < 40
    noise = np.random.default_rng(1).normal(size=(2, len(t)))
    kind, moved = {
        "wheels": (WheelState, {"wheel_velocity": np.outer(0.6 * drives, [1, 1])}),
        "odometry": (Odometry, {"vx": 0.6 * drives + 0.01 * noise[0], "wz": 0.01 * noise[1]}),
        "fixes": (
            NavFix,
            {
                "lat": 0.65 + (0.6 * np.minimum(t, 40) + 0.02 * noise[0]) / 6.4e6,
                "lon": 0.2 + 0.02 * noise[1] / 5e6,
                "alt": 0 * t,
            },
        ),
    }[mover]
    other = Stream(mover, kind, arrow.table(at, moved, units=kind.units()), clock="utc")
    motions = find_motion(Recording("drive", (imu, other)), "utc")
    rest = longest_rest(t_ns, gyro, acc, motions)
    assert rest.first / RATE_HZ == pytest.approx(40, abs=2)
    assert longest_rest(t_ns, gyro, acc).first == 0
    always = Stream(
        mover, kind, arrow.table(at[drives], {k: v[drives] for k, v in moved.items()}), clock="utc"
    )
    early = at_rest(39)
    with pytest.raises(GeometryError, match="no second is at rest"):
        longest_rest(*early, find_motion(Recording("drive", (imu, always)), "utc"))

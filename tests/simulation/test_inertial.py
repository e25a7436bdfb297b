"""IMUs: specific force and rates at the mount, and noise of the size that is claimed."""

import numpy as np
import pytest

from transect.geometry import rotations, se3
from transect.simulation import driving, instruments
from transect.simulation.driving import Chassis, course, drive, straight, turn
from transect.simulation.instruments import ImuErrorModel
from transect.simulation.motion import Motion

CORNERS = np.array([[0.4, 0.5], [-0.4, 0.5], [-0.4, -0.5], [0.4, -0.5]])
GRAVITY_M_S2 = 9.79
MOUNT = se3.from_matrix(rotations.matrix_from_euler("XYZ", [np.pi, 0.1, 0.3]), [0.5, -0.2, 1.1])


def ride(seconds: float = 12.0) -> Motion:
    """A rough ride over waves, with a turn."""
    way = course([straight(2, 0.6), turn(1.5, 2.0, 0.6), straight(5, 0.6)], seconds)
    return drive(way, Chassis(CORNERS, 0.3), lambda xy: 0.05 * np.sin(2 * xy[..., 0]) + 0.1 * xy[..., 1])


def still(samples: int, rate: float) -> Motion:
    t_ns = (np.arange(samples) * round(1e9 / rate)).astype(np.int64)
    zeros = np.zeros((samples, 3))
    return Motion(t_ns, zeros, np.tile([0.0, 0, 0, 1], (samples, 1)), zeros, zeros, zeros)


def test_an_imu_at_rest_feels_gravity_upwards_in_its_own_axes() -> None:
    upside_down = instruments.mount(still(10, 100), se3.from_matrix(np.diag([1.0, -1.0, -1.0]), [1, 2, 3]))
    assert instruments.specific_force(upside_down, GRAVITY_M_S2) == pytest.approx(
        np.tile([0, 0, -GRAVITY_M_S2], (10, 1))
    )


def test_a_mounted_sensor_moves_as_its_place_on_the_body_does() -> None:
    body = ride()
    sensor = instruments.mount(body, MOUNT)
    assert np.allclose(sensor.transforms, body.transforms @ MOUNT)
    assert np.abs(slope(sensor.position) - sensor.velocity[2:-2]).max() < 3e-4
    assert np.abs(slope(sensor.velocity) - sensor.acceleration[2:-2]).max() < 5e-3
    assert np.linalg.norm(sensor.angular_velocity, axis=1) == pytest.approx(
        np.linalg.norm(body.angular_velocity, axis=1)
    )


def slope(values: np.ndarray) -> np.ndarray:
    """Central differences of fourth order, at all samples but the first and last two."""
    return (8 * (values[3:-1] - values[1:-3]) - (values[4:] - values[:-4])) * driving.RATE_HZ / 12


def test_integrating_a_perfect_imu_gives_the_motion_back() -> None:
    sensor = instruments.mount(ride(), MOUNT)
    sensor = sensor.at(sensor.t_ns[::2])
    samples = instruments.measure(sensor, instruments.QUIET, GRAVITY_M_S2, seed=0)
    position, velocity, attitude = integrate(sensor, samples.acc, samples.gyro)
    # The residual is the error of the trapezoidal rule: 1 % of 2 m/s2 at 5 Hz, sampled at 100 Hz.
    assert np.linalg.norm(position - sensor.position, axis=1).max() < 0.005
    assert np.linalg.norm(velocity - sensor.velocity, axis=1).max() < 0.004
    assert rotations.angle_between(attitude, sensor.quaternion).max() < 1e-3


def integrate(start: Motion, acc: np.ndarray, gyro: np.ndarray) -> tuple[np.ndarray, ...]:
    """Strap-down by the mean of neighbouring samples; written for this test alone."""
    h = float(start.t_ns[1] - start.t_ns[0]) * 1e-9
    turns = rotations.quaternion_from_rotation_vector((gyro[1:] + gyro[:-1]) * (h / 2))
    q = [start.quaternion[0]]
    for each in turns:
        q.append(rotations.multiply(q[-1], each))
    pull = rotations.rotate(np.array(q), acc) - np.array([0, 0, GRAVITY_M_S2])
    v = start.velocity[0] + np.concatenate(
        [np.zeros((1, 3)), np.cumsum((pull[1:] + pull[:-1]) * h / 2, axis=0)]
    )
    p = start.position[0] + np.concatenate([np.zeros((1, 3)), np.cumsum((v[1:] + v[:-1]) * h / 2, axis=0)])
    return p, v, np.array(q)


@pytest.mark.parametrize("rate", [100.0, 140.0])
def test_integrated_white_noise_has_the_variance_that_its_density_predicts(rate: float) -> None:
    noise = ImuErrorModel(acc_density=1e-3, gyro_density=7e-5)
    seconds, ends = 4.0, []
    for seed in range(60):
        samples = instruments.measure(still(int(seconds * rate), rate), noise, GRAVITY_M_S2, seed)
        ends.append(
            np.concatenate(
                [samples.acc.sum(axis=0) - [0, 0, GRAVITY_M_S2 * seconds * rate], samples.gyro.sum(axis=0)]
            )
        )
    angles = np.array(ends) / rate / np.repeat([1e-3, 7e-5], 3) / np.sqrt(seconds)
    # The sum of 360 squares of deviation 1: chi-square with 360 degrees, 99.9 % within these bounds.
    assert 278 < (angles**2).sum() < 453


def test_biases_walk_with_the_variance_that_is_claimed() -> None:
    noise = ImuErrorModel(0.0, 0.0, acc_walk=2e-3, gyro_walk=1e-5, acc_bias=0.05, gyro_bias=1e-3)
    runs = [instruments.measure(still(401, 100), noise, GRAVITY_M_S2, seed) for seed in range(60)]
    walked = np.array([r.acc_bias[-1] - r.acc_bias[0] for r in runs]) / (2e-3 * np.sqrt(4.0))
    begun = np.array([r.gyro_bias[0] for r in runs]) / 1e-3
    # Chi-square with 180 degrees, 99.9 %.
    assert 122 < (walked**2).sum() < 248
    assert 122 < (begun**2).sum() < 248
    assert np.allclose(runs[0].gyro, runs[0].gyro_bias)


def test_scales_and_seeds_are_kept() -> None:
    noise = ImuErrorModel(0.01, 0.01, acc_scale=0.01, gyro_scale=0.02)
    one, again, other = (instruments.measure(still(50, 100), noise, GRAVITY_M_S2, seed) for seed in (1, 1, 2))
    assert np.array_equal(one.acc, again.acc)
    assert not np.array_equal(one.acc, other.acc)
    assert np.abs(one.acc_scale - 1).max() < 0.05
    assert not np.array_equal(one.acc_scale, other.acc_scale)


def test_gravity_and_pressure_are_those_of_the_tables() -> None:
    # WGS84: 9.7803253359 at the equator, 9.8321849378 at the pole; the ISA has 79 501 Pa at 2000 m.
    assert instruments.normal_gravity(0.0, 0.0) == pytest.approx(9.7803253359)
    assert instruments.normal_gravity(np.pi / 2, 0.0) == pytest.approx(9.8321849378, abs=1e-9)
    assert instruments.air_pressure([0.0, 2000.0]) == pytest.approx([101_325, 79_501], rel=1e-4)


def test_a_magnetometer_turns_against_its_body() -> None:
    sensor = ride().at(ride().t_ns[::100])
    field = np.array([2e-6, 27e-6, -36e-6])
    read = instruments.magnetometer(sensor, field, 0.0, seed=0)
    assert rotations.rotate(sensor.quaternion, read) == pytest.approx(np.tile(field, (len(read), 1)))

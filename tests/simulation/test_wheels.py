"""Wheels: rigid-body velocities, steering without scrub, slip, and what encoders count."""

import numpy as np
import pytest

from transect import robots
from transect.geometry import rotations
from transect.simulation import driving, wheels
from transect.simulation.driving import Chassis, course, drive, spot_turn, straight, turn
from transect.simulation.motion import Motion

WHEEL_X_M, WHEEL_Y_M, WHEEL_OFFSET_M = 0.402, 0.396, 0.143
"""AMEDS section 4."""
SWIVELS = np.array(
    [[WHEEL_X_M, WHEEL_Y_M], [-WHEEL_X_M, WHEEL_Y_M], [-WHEEL_X_M, -WHEEL_Y_M], [WHEEL_X_M, -WHEEL_Y_M]]
)
STEP_S = 1 / driving.RATE_HZ
LEGS = [straight(3, 0.5), turn(1.0, 3.0, 0.5), straight(2, -0.3), spot_turn(-0.8, 0.3)]


def flat_motion(way: driving.Course) -> Motion:
    chassis = Chassis(SWIVELS, height=0.335, shaking=0.0)
    return drive(way, chassis, lambda xy: np.zeros(xy.shape[:-1]))


def four_wheels(way: driving.Course, motion: Motion, soil: wheels.SoilSlip) -> wheels.RollingWheels:
    steering = wheels.four_wheel_steering(way, SWIVELS)
    contacts = wheels.swivelled_contacts(steering, SWIVELS, WHEEL_OFFSET_M, 0.335)
    velocities = wheels.ground_velocities(motion, contacts, STEP_S)
    ahead = rotations.rotate(motion.quaternion, [1.0, 0, 0])
    return wheels.roll(velocities, steering, ahead[:, 2] / np.hypot(*ahead[:, :2].T), soil, 0, STEP_S)


def test_four_steered_wheels_do_not_scrub_on_level_ground() -> None:
    way = course(LEGS, 45)
    rolling = four_wheels(way, flat_motion(way), wheels.FIRM)
    assert np.abs(rolling.sliding).max() < 1e-6
    assert np.abs(rolling.ground).max() > 0.5
    assert np.array_equal(rolling.rim, rolling.ground)


def test_wheels_are_turned_by_at_most_what_a_spot_turn_needs() -> None:
    steering = wheels.four_wheel_steering(course(LEGS, 45), SWIVELS)
    assert np.abs(steering).max() == pytest.approx(np.arctan(WHEEL_X_M / WHEEL_Y_M), abs=1e-9)
    # AMEDS Figure 7: in a left turn the front wheels turn left, the rear wheels right.
    left = wheels.four_wheel_steering(course([turn(1.0, 3.0, 0.5)], 4), SWIVELS)[-1]
    assert (left[[0, 3]] > 0.1).all()
    assert (left[[1, 2]] < -0.1).all()


def test_a_rim_that_slips_goes_further_uphill_and_less_far_downhill() -> None:
    rolling = [
        four_wheels(
            way := course([straight(5, 0.5)], 12), _on_slope(way, slope), wheels.SoilSlip(patches=0.0)
        )
        for slope in (0.2, 0.0, -0.2)
    ]
    metres = [wheels.measure_travel(r.rim, STEP_S)[-1].mean() for r in rolling]
    way = [wheels.measure_travel(r.ground, STEP_S)[-1].mean() for r in rolling]
    assert metres[0] / way[0] > metres[1] / way[1] > 1.0 > metres[2] / way[2]
    for each in rolling:
        moving = np.abs(each.ground) > 0.01
        rim, ground, slip = each.rim[moving], each.ground[moving], each.slip[moving]
        assert np.allclose((rim - ground) / np.maximum(np.abs(rim), np.abs(ground)), slip)


def _on_slope(way: driving.Course, slope: float) -> Motion:
    chassis = Chassis(SWIVELS, height=0.335, shaking=0.0)
    return drive(way, chassis, lambda xy: slope * xy[..., 0])


def test_contacts_of_a_turning_body_move_as_a_rigid_body_does() -> None:
    way = course([turn(2.0, 2.0, 0.6)], 8)
    motion = flat_motion(way)
    contacts = np.array([[0.4, 0.3, -0.335], [-0.2, -0.5, -0.335]])
    places = motion.position[:, None] + rotations.rotate(motion.quaternion[:, None], contacts)
    moved = np.gradient(places, STEP_S, axis=0)
    velocities = wheels.ground_velocities(motion, contacts)
    assert np.abs(rotations.rotate(motion.quaternion[:, None], velocities) - moved)[5:-5].max() < 1e-4


def test_patches_of_soil_are_the_same_for_the_same_seed_and_stay_while_standing() -> None:
    way = course([straight(3, 0.5)], 12)
    motion = flat_motion(way)
    one, again = (four_wheels(way, motion, wheels.LOOSE).slip for _ in range(2))
    assert np.array_equal(one, again)
    assert one[:, 0].std() > 0.003
    assert np.ptp(one[-driving.RATE_HZ :], axis=0).max() < 1e-12


def test_an_ackermann_wheel_bends_the_way_as_its_wheelbase_says() -> None:
    way = course([turn(1.0, 5.0, 1.0)], 4)
    # Document 001, 4.6: omega = v tan(delta) / 1.6.
    delta = wheels.ackermann_steering(way, 1.6)[-1, 0]
    assert way.twist[-1, 2] == pytest.approx(way.speed[-1] * np.tan(delta) / 1.6)


def test_a_stepper_counts_to_the_right_from_its_own_zero() -> None:
    constants = robots.load("weeder").constants
    unit, zero = constants["steering_unit"], constants["steering_zero_raw"]
    # Document 001: 0.20 degrees a unit; straight ahead is -5.67.
    assert wheels.stepper_units(np.radians([0.0, -1.0, 1.0]), unit, zero).tolist() == [-6, -1, -11]


def test_drive_ticks_are_whole_and_never_ahead_of_the_wheel() -> None:
    metres = np.linspace(-1, 1, 1001)[:, None]
    ticks = wheels.drive_ticks(metres, 4.2e-5)
    assert np.array_equal(ticks, np.round(ticks))
    assert ((metres - ticks * 4.2e-5) >= -1e-12).all()
    assert ((metres - ticks * 4.2e-5) < 4.2e-5 + 1e-12).all()

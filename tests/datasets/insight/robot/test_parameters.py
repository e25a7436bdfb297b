"""The numbers of the arm: a file's own over those that the SIS prints, and what neither has."""

from __future__ import annotations

import numpy as np
import pytest

from transect import robots
from transect.datasets.insight.robot.parameters import FITTED, ROWS, SETS, MissingParameterError, Parameters
from transect.recording import Recording, Robot


def test_the_sis_gives_what_it_prints() -> None:
    printed = Parameters.printed()
    # SIS 5.1.3.1: dh.a; 5.1.3.22: gravity
    assert printed.numbers("RA_ARM_PARAMS", "dh.a").tolist() == [0.029609, 0.976664007, 0.857989013, 0.0]
    assert printed.number("RA_GRAVITY", "gravity_params.acc_g") == 3.711
    assert printed.numbers("RA_DEFL_LINK_1", "vCf").shape == (3, 3)
    assert printed.origin("RA_ARM_PARAMS", "dh.a") == "the SIS"


def test_a_file_wins_over_the_sis_key_by_key() -> None:
    mine = Parameters.over_printed({"RA_GRAVITY": {"gravity_params.acc_g": 9.81}}, "mine.txt")
    assert mine.number("RA_GRAVITY", "gravity_params.acc_g") == 9.81
    assert mine.origin("RA_GRAVITY", "gravity_params.acc_g") == "mine.txt"
    assert mine.numbers("RA_GRAVITY", "gravity_params.grav_vect")[2] == 0.997594
    assert mine.origin("RA_GRAVITY", "gravity_params.grav_vect") == "the SIS"


def test_a_recording_brings_its_own() -> None:
    sets = {"RA_ARM_PARAMS": {"x_scoop": (0.1, 0.0, 0.2, 0.5)}}
    recording = Recording("sol62", (), conditions={"parameters": sets})
    assert Parameters.of(recording).numbers("RA_ARM_PARAMS", "x_scoop").tolist() == [0.1, 0.0, 0.2, 0.5]
    assert "sol62" in Parameters.of(recording).origin("RA_ARM_PARAMS", "x_scoop")
    assert not Parameters.of(Recording("bare", ())).has("RA_ARM_PARAMS", "x_scoop")


def test_a_copy_of_the_robot_changes_what_is_printed() -> None:
    mine = Robot("mine", constants={"parameters": {"RA_GRAVITY": {"gravity_params.acc_g": 1.62}}})
    parameters = Parameters.of(Recording("moon", (), robot=mine))
    assert parameters.number("RA_GRAVITY", "gravity_params.acc_g") == 1.62
    assert parameters.origin("RA_GRAVITY", "gravity_params.acc_g") == "the robot mine"


@pytest.mark.parametrize(
    ("set_name", "key", "words"),
    [
        ("RA_ARM_PARAMS", "x_scoop", ["x_scoop", "4 numbers, m m m rad", "Parameter Set: RA_ARM_PARAMS"]),
        ("RA_ARM_PARAMS", "dist_grapple", ["dist_grapple", "3 or 4 numbers", "parameter file"]),
        ("RA_TAU_PARAMS", "c_nl_4", ["RA_TAU_PARAMS lacks c_nl_4", "the SIS does not give it"]),
        ("RA_ARM_PARAMS", "x_scop", ["has no parameter x_scop", "'x_scoop'"]),
        ("RA_ARM_PARAM", "dh.a", ["no parameter set RA_ARM_PARAM", "'RA_ARM_PARAMS'"]),
    ],
)
def test_what_is_missing_is_named_with_where_it_should_come_from(
    set_name: str, key: str, words: list[str]
) -> None:
    with pytest.raises(MissingParameterError) as caught:
        Parameters.printed().numbers(set_name, key)
    assert all(word in str(caught.value) for word in words)


def test_fitted_numbers_come_only_when_asked_for_and_say_so() -> None:
    printed = Parameters.printed()
    assert not printed.has("RA_ARM_PARAMS", "x_grapple_attach")
    fitted = printed.with_fitted()
    assert fitted.origin("RA_ARM_PARAMS", "x_grapple_attach") == FITTED
    assert "invented" in FITTED
    assert fitted.origin("RA_ARM_PARAMS", "dh.a") == "the SIS"
    # ida.md 4.4: lateral -0.0383 m for sure
    assert fitted.numbers("RA_ARM_PARAMS", "x_grapple_attach")[1] == -0.0383
    assert not fitted.has("RA_ARM_PARAMS", "dist_seis")


def test_a_file_s_own_grapple_wins_over_the_fit() -> None:
    own = {"RA_ARM_PARAMS": {"x_grapple_attach": (0.0, -0.04, 0.0, 0.0)}}
    parameters = Parameters.over_printed(own, "mine.txt").with_fitted()
    assert parameters.origin("RA_ARM_PARAMS", "x_grapple_attach") == "mine.txt"
    assert parameters.origin("RA_ARM_PARAMS", "dist_grapple") == FITTED


def test_limits_of_the_document_leave_every_joint_less_than_a_turn() -> None:
    # So that an angle within its limits is known from its direction alone.
    printed = robots.load("ida").constants["parameters"]["RA_JOINT_PARAMS"]
    assert (np.subtract(printed["q_max"], printed["q_min"]) < 2 * np.pi).all()


def test_there_are_the_32_sets_of_the_sis_and_the_printed_numbers_fit_them() -> None:
    assert len(SETS) == 32  # SIS 5.1.3.1 to 5.1.3.32
    for set_name, values in robots.load("ida").constants["parameters"].items():
        sizes = {parameter.name: parameter.sizes for parameter in SETS[set_name]}
        for key, value in values.items():
            assert key == ROWS or np.size(value) in sizes[key], (set_name, key)

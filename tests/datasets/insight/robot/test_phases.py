"""Deployments made by hand, step by step, in the words of SIS 2.6.2.2."""

import itertools

import numpy as np
import pytest

from transect.datasets.insight.robot.codes import GrapplePhase, ToolCode
from transect.datasets.insight.robot.science import MEANINGS, DeploymentPhase, deployment_phases, phases_of
from transect.errors import StreamError
from transect.recording import Recording
from transect.recording.stream import stream_of_values

PHASE_STOWED, PHASE_OPEN = GrapplePhase.STOWED, GrapplePhase.OK_TO_OPEN
PHASE_SEIS, PHASE_WTS = GrapplePhase.SEIS_GRAPPLED, GrapplePhase.WTS_GRAPPLED
TOOL_SCOOP, TOOL_IDC, TOOL_GRAPPLE, TOOL_CARRIED = (
    ToolCode.SCOOP,
    ToolCode.CAMERA,
    ToolCode.GRAPPLE,
    ToolCode.SEIS,
)
Step = tuple[int, int, bool, list[float]]
"""Tool, grapple phase, whether the motors are on, and the height (z, down) of each row."""

HOOK_Z = -0.60  # where the hook of the stowed payload is


def deployment(phase: int) -> list[Step]:
    return [
        (
            TOOL_GRAPPLE,
            PHASE_OPEN,
            True,
            [-1.2, -1.0, -0.8, HOOK_Z - 0.06],
        ),  # to the teach point, 5 cm above the hook
        (TOOL_GRAPPLE, PHASE_OPEN, False, [HOOK_Z - 0.05] * 5),  # the fingers open
        (
            TOOL_GRAPPLE,
            PHASE_OPEN,
            True,
            [HOOK_Z - 0.05, HOOK_Z - 0.04, HOOK_Z - 0.03, HOOK_Z - 0.02],
        ),  # 4 cm down
        (TOOL_GRAPPLE, PHASE_OPEN, False, [HOOK_Z - 0.01] * 2),
        (TOOL_CARRIED, phase, True, [HOOK_Z, HOOK_Z - 0.3, HOOK_Z - 0.45, 0.2, 0.55]),  # lift and place
        (TOOL_CARRIED, phase, False, [0.55] * 2),
        (TOOL_GRAPPLE, PHASE_OPEN, False, [0.55] * 4),  # opens
        (TOOL_GRAPPLE, PHASE_OPEN, True, [0.5, 0.3, 0.1]),  # up and away
        (TOOL_GRAPPLE, PHASE_OPEN, False, [0.1] * 2),
    ]


def phases(steps: list[Step]) -> tuple[DeploymentPhase, ...]:
    rows = [(tool, phase, on, z) for tool, phase, on, heights in steps for z in heights]
    tool, phase, on, z = (np.array(column) for column in zip(*rows, strict=True))
    return deployment_phases(tool, phase, on, z)


def shape(found: tuple[DeploymentPhase, ...]) -> list[tuple[str, str, int, int]]:
    return [(phase.name, phase.payload, phase.start, phase.stop) for phase in found]


def test_a_deployment_has_its_four_parts() -> None:
    assert shape(phases(deployment(PHASE_SEIS))) == [
        ("part 1", "SEIS", 0, 4),
        ("part 2", "SEIS", 4, 15),
        ("part 3", "SEIS", 15, 22),
        ("part 4", "SEIS", 22, 29),
        ("unstowed", "", 29, 31),
    ]


def test_each_phase_says_what_it_is_and_what_in_the_data_says_so() -> None:
    one, two, three, four, after = (phase.why for phase in phases(deployment(PHASE_SEIS)))
    assert one.startswith(MEANINGS["part 1"])
    assert "goes 0.04 m down before SEIS is grappled" in two
    assert "lifted 0.45 m, at the end +1.15 m below" in three
    assert "rises 0.45 m" in four
    assert after == MEANINGS["unstowed"]


def test_two_deployments_follow_each_other() -> None:
    found = phases(deployment(PHASE_SEIS) + deployment(PHASE_WTS))
    assert [(p.name, p.payload) for p in found] == [
        *((f"part {i}", "SEIS") for i in (1, 2, 3, 4)),
        *((f"part {i}", "WTS") for i in (1, 2, 3, 4)),
        ("unstowed", ""),
    ]
    assert (found[4].start, found[4].stop) == (29, 35)  # the pause after the release and the way to WTS


def test_imaging_and_soil_mechanics_are_told_by_the_tool() -> None:
    steps: list[Step] = [
        (TOOL_GRAPPLE, PHASE_STOWED, False, [0.0] * 2),
        (TOOL_IDC, PHASE_STOWED, True, [0.0] * 3),
        (TOOL_SCOOP, PHASE_STOWED, True, [0.0] * 4),
    ]
    assert shape(phases(steps)) == [
        ("stowed", "", 0, 2),
        ("imaging", "", 2, 5),
        ("soil mechanics", "", 5, 9),
    ]


def test_imaging_with_the_grapple_hanging_is_not_the_way_to_the_teach_point() -> None:
    found = phases([(TOOL_IDC, PHASE_OPEN, True, [-1.2] * 3), *deployment(PHASE_SEIS)])
    assert shape(found)[:2] == [("imaging", "", 0, 3), ("part 1", "SEIS", 3, 7)]


def test_data_that_begin_after_the_teach_point_have_no_part_1_and_say_so() -> None:
    found = phases(deployment(PHASE_SEIS)[3:])
    assert shape(found)[0] == ("part 2", "SEIS", 0, 2)
    assert "not in the data" in found[0].why


def test_a_way_down_without_a_pause_is_parted_at_the_teach_point() -> None:
    steps: list[Step] = [
        (TOOL_GRAPPLE, PHASE_OPEN, True, [-1.2, -1.0, -0.8, HOOK_Z - 0.05, HOOK_Z - 0.03, HOOK_Z - 0.01]),
        (TOOL_CARRIED, PHASE_SEIS, True, [HOOK_Z, -1.0]),
    ]
    assert shape(phases(steps)) == [
        ("part 1", "SEIS", 0, 3),
        ("part 2", "SEIS", 3, 6),
        ("part 3", "SEIS", 6, 8),
    ]


def test_data_that_end_before_the_arm_has_risen_are_part_4_to_the_end() -> None:
    assert shape(phases(deployment(PHASE_SEIS)[:7]))[-1] == ("part 4", "SEIS", 22, 26)


def test_every_row_is_in_one_phase() -> None:
    found = phases(
        [*deployment(PHASE_WTS), (TOOL_SCOOP, PHASE_OPEN, True, [0.1] * 3), *deployment(PHASE_SEIS)]
    )
    assert found[0].start == 0
    assert all(a.stop == b.start for a, b in itertools.pairwise(found))
    assert found[-1].stop == 31 + 3 + 31


def test_no_rows_have_no_phases() -> None:
    assert deployment_phases([], [], [], []) == ()


def test_a_recording_is_divided_by_its_science_rows() -> None:
    n = 4
    t_ns = np.arange(n)
    main = {
        "tool": np.array([5, 5, 2, 2]),
        "grapple_phase": np.full(n, PHASE_STOWED),
        "stat": np.array([0, 0xF000, 1, 0], dtype=np.uint32),
    }
    recording = Recording(
        "sol",
        (
            stream_of_values("Arm/SciHi", t_ns, main, clock="sclk"),
            stream_of_values("Arm/SciHi/Tool", t_ns, {"z_enc": np.zeros(n)}, clock="sclk"),
        ),
    )
    assert shape(phases_of(recording)) == [("stowed", "", 0, 2), ("soil mechanics", "", 2, 4)]
    with pytest.raises(StreamError, match="no SciHi"):
        phases_of(Recording("none", ()))

"""Indentations of a closed-form spring with backlash, and of soil that yields."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.datasets.insight.robot.soil import indentations, indentations_of
from transect.errors import StreamError
from transect.recording import Recording
from transect.recording.stream import Stream, stream_of_values

STIFFNESS_N_PER_M = 4000.0  # N/m
SURFACE_M = 0.5  # m
MAX_DEPTH_M = 0.52
BACKLASH_M = 0.004


def spring(step: float = 0.0005) -> tuple[np.ndarray, np.ndarray]:
    """Down from 1 cm above the ground to 2 cm below and back: force k (z - surface), 80 N at the most.

    When the arm turns back, the reading moves by the backlash before the tool does.
    """
    down = np.arange(round(0.03 / step) + 1) * step + (SURFACE_M - 0.01)
    turn = MAX_DEPTH_M - np.arange(1, round(BACKLASH_M / step) + 1) * step
    up = turn[-1] - np.arange(1, round(0.03 / step) + 1) * step
    reading = np.concatenate([down, turn, up])
    true = np.concatenate([down, np.full(len(turn), MAX_DEPTH_M), up + BACKLASH_M])
    return reading, STIFFNESS_N_PER_M * np.maximum(true - SURFACE_M, 0.0)


def test_a_spring_has_its_stiffness_both_ways_and_keeps_the_backlash_apart() -> None:
    (press,) = indentations(*spring(), contact_force=1.0)
    assert press.loading.stiffness == pytest.approx(STIFFNESS_N_PER_M)
    assert press.unloading.stiffness == pytest.approx(STIFFNESS_N_PER_M)
    assert press.loading.zero_depth == pytest.approx(SURFACE_M)
    assert press.unloading.zero_depth == pytest.approx(SURFACE_M - BACKLASH_M)
    assert press.force == pytest.approx(80.0)


def test_contact_is_where_the_force_passes_the_contact_force() -> None:
    (press,) = indentations(*spring(), contact_force=1.0)
    assert press.contact_depth == pytest.approx(SURFACE_M + 1.0 / STIFFNESS_N_PER_M)
    assert press.depth == pytest.approx(0.02 - 1.0 / STIFFNESS_N_PER_M)
    depth, force = spring()
    assert force[press.start - 1] <= 1.0 < force[press.start]
    assert depth[press.peak] == pytest.approx(MAX_DEPTH_M)
    assert force[press.stop] <= 1.0 < force[press.stop - 1]


def test_by_default_contact_begins_at_a_twentieth_of_the_largest_force() -> None:
    (press,) = indentations(*spring())
    assert press.contact_depth == pytest.approx(SURFACE_M + 4.0 / STIFFNESS_N_PER_M)


def test_the_work_is_the_area_under_the_force() -> None:
    (press,) = indentations(*spring(), contact_force=1e-9)
    stored = STIFFNESS_N_PER_M * 0.02**2 / 2  # 0.8 J
    assert press.loading.work == pytest.approx(stored)
    assert press.unloading.work == pytest.approx(-stored - 80.0 * BACKLASH_M)
    assert press.dissipated == pytest.approx(-80.0 * BACKLASH_M)


def test_soil_that_yields_is_stiffer_when_unloaded_and_keeps_the_work() -> None:
    down = np.linspace(0.0, 0.02, 81)
    up = np.linspace(0.02, 0.018, 21)[1:]  # lets go ten times as fast as it gave way: free at 0.018
    force = np.concatenate([STIFFNESS_N_PER_M * down, 10 * STIFFNESS_N_PER_M * (up - 0.018)])
    (press,) = indentations(np.concatenate([down, up]), force, contact_force=0.5)
    assert press.loading.stiffness == pytest.approx(STIFFNESS_N_PER_M)
    assert press.unloading.stiffness == pytest.approx(10 * STIFFNESS_N_PER_M)
    assert press.unloading.zero_depth == pytest.approx(0.018)
    assert press.dissipated == pytest.approx(STIFFNESS_N_PER_M * 0.02**2 / 2 - 80.0 * 0.002 / 2)


def test_a_few_wild_forces_do_not_turn_the_line() -> None:
    depth, force = spring()
    rows = np.flatnonzero((force > 16) & (force < 64))[3:24:7]
    force[rows] += 12.0
    (press,) = indentations(depth, force, contact_force=1.0)
    assert press.loading.stiffness == pytest.approx(STIFFNESS_N_PER_M, rel=0.02)


def test_two_presses_are_found_and_a_bump_of_two_rows_is_ignored() -> None:
    depth, force = spring()
    bump = np.array([0.0, 30.0, 30.0, 0.0])
    found = indentations(
        np.concatenate([depth, np.full(4, 0.49), depth]), np.concatenate([force, bump, force]), 1.0
    )
    assert [press.start for press in found] == [found[0].start, found[0].start + len(depth) + 4]


def test_what_the_force_reads_in_free_air_is_taken_off() -> None:
    depth, force = spring()
    (press,) = indentations(depth, force + 7.0, contact_force=1.0, free_force=7.0)
    assert press.force == pytest.approx(80.0)


def test_rows_without_a_force_are_left_out_and_row_numbers_stay_those_of_the_record() -> None:
    depth, force = spring()
    whole = indentations(depth, force, 1.0)[0]
    gaps = np.insert(force, [0, 30], np.nan)  # one before the press, one in it
    (press,) = indentations(np.insert(depth, [0, 30], 0.0), gaps, 1.0)
    assert (press.start, press.peak) == (whole.start + 1, whole.peak + 2)
    assert press.loading.stiffness == pytest.approx(STIFFNESS_N_PER_M)


def test_nothing_pressed_is_no_indentation() -> None:
    assert indentations(np.linspace(0, 1, 9), np.zeros(9)) == ()
    assert indentations([], []) == ()


def test_a_press_that_never_lets_go_has_no_unloading_stiffness() -> None:
    depth, force = spring()
    (press,) = indentations(depth[:61], force[:61], 1.0)  # ends at the deepest row
    assert press.stop == 61
    assert np.isnan(press.unloading.stiffness)
    assert press.unloading.work == 0.0


@given(st.floats(100.0, 1e5), st.floats(-1.0, 1.0))
def test_the_stiffness_of_any_spring_is_recovered(k: float, surface: float) -> None:
    z = np.linspace(surface - 0.01, surface + 0.02, 61)
    depth, force = np.concatenate([z, z[::-1]]), k * np.maximum(np.concatenate([z, z[::-1]]) - surface, 0.0)
    (press,) = indentations(depth, force)
    assert press.loading.stiffness == pytest.approx(k, rel=1e-6)
    assert press.loading.zero_depth == pytest.approx(surface, abs=1e-6)


def recording(tool: int, sense: float = 1.0, **columns: np.ndarray) -> Recording:
    depth, force = spring()
    t_ns = np.arange(len(depth)) * 100_000_000

    def stream(name: str, values: dict[str, np.ndarray]) -> Stream:
        return stream_of_values(name, t_ns, values, clock="sclk")

    nothing = np.full(len(depth), np.nan)
    place = {"z_enc": depth - 0.003, "z_enc_defl": columns.get("z_enc_defl", depth)}
    return Recording(
        "press",
        (
            stream("Arm/SciHi", {"tool": np.full(len(depth), tool)}),
            stream("Arm/SciHi/Tool", place),
            stream("Arm/SciHi/Forces", {"Fr": nothing, "Fz": sense * force}),
        ),
    )


def test_a_recording_gives_the_deflected_depth_of_the_scoop_and_fz() -> None:
    (press,) = indentations_of(recording(2), contact_force=1.0)
    assert press.loading.zero_depth == pytest.approx(SURFACE_M)
    (press,) = indentations_of(recording(2, sense=-1.0), contact_force=1.0, sense=-1.0)
    assert press.loading.stiffness == pytest.approx(STIFFNESS_N_PER_M)


def test_without_a_deflected_depth_the_rigid_one_is_taken() -> None:
    nothing = np.full(len(spring()[0]), np.nan)
    (press,) = indentations_of(recording(0, z_enc_defl=nothing), contact_force=1.0)
    assert press.loading.zero_depth == pytest.approx(SURFACE_M - 0.003)


def test_the_grapple_presses_nothing() -> None:
    assert indentations_of(recording(5)) == ()


def test_a_recording_without_science_data_says_so() -> None:
    with pytest.raises(StreamError, match="no SciHi"):
        indentations_of(Recording("status", ()))


@pytest.mark.parametrize("speed", [0.0, 0.002, -0.002], ids=["on the spot", "going down", "going up"])
def test_a_motor_that_starts_presses_nothing(speed: float) -> None:
    t = np.arange(0, 10, 0.1)
    moves = np.clip(t - 2, 0, None)
    inrush = np.where(t >= 2, 30 * np.exp(-moves / 0.4), 0.0)
    depth = 0.1 + speed * moves
    assert indentations(depth, inrush, contact_force=1.0) == ()
    pressed = np.clip(depth - 0.11, 0, None) * 4000
    found = indentations(depth, inrush + pressed, contact_force=1.0)
    assert len(found) == (speed > 0)
    assert all(each.contact_depth == pytest.approx(0.11, abs=5e-4) for each in found)

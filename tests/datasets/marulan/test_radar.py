import dataclasses

import numpy as np
import pytest

from transect import robots
from transect.base.cache_folder import load_compiled
from transect.datasets.marulan.world import radar
from transect.simulation.raycast import Scene
from transect.simulation.solids import Solids, SurfaceMaterial, box, wall
from transect.simulation.terrain import flat

FMCW = radar.Fmcw.of(robots.load("argo"))


def looking(n=1, height=2.0):
    T = np.tile(np.eye(4), (n, 1, 1))
    T[:, 2, 3] = height
    return T


def reflector(distance, rcs=100.0, height=2.0):
    low, high = [distance - 0.1, -0.1, height - 0.1], [distance + 0.1, 0.1, height + 0.1]
    return dataclasses.replace(box("reflector", low, high, SurfaceMaterial(backscatter=0)), rcs=rcs)


def scene_of(*solids):
    found = Solids.of(solids)
    return Scene(flat(200.0), found), found


def test_a_bin_is_0_28_m_as_the_report_says():
    assert FMCW.bin_width == pytest.approx(0.2815, abs=1e-4)  # 3.2.4 and errata
    assert FMCW.bins_of(np.array([1 * FMCW.bin_width - 0.3507]))[0] == pytest.approx(1.0)


def test_tones_look_like_a_windowed_fft_of_their_beat_signal():
    rng = np.random.default_rng(2)
    place, amplitude, phase = rng.uniform(20, 480, 6), rng.uniform(1, 5, 6), rng.uniform(0, 6, 6)
    n = 2 * FMCW.bins
    sample = np.arange(n)
    beat = sum(
        a * np.cos(2 * np.pi * f * sample / n + p) for f, a, p in zip(place, amplitude, phase, strict=True)
    )
    window = 0.5 - 0.5 * np.cos(2 * np.pi * sample / n)
    expected = np.abs(np.fft.rfft(beat * window))[1:] / (n / 4)
    ours = np.zeros((1, FMCW.bins), np.complex64)
    # The phase that depends on the place alone, which `add_tones` leaves out: pi f from the window's middle.
    load_compiled("transect.datasets.marulan.world.radar", "radar").add_tones(
        ours, np.zeros(6, np.int64), place, amplitude, phase + np.pi * place
    )
    alternating = np.abs(ours[0])
    assert np.abs(alternating - expected).max() < 0.01 * expected.max()


def test_noise_has_power_one_and_joins_neighbours_as_hann_s_window_does():
    white = np.random.default_rng(0).standard_normal((400, 514, 2), dtype=np.float32)
    power = load_compiled("transect.datasets.marulan.world.radar", "radar").powers(
        np.zeros((400, 512), np.complex64), white
    )
    assert power.mean() == pytest.approx(1.0, rel=0.02)
    # Amplitudes of neighbours correlate by 2/3, powers of complex normal numbers by the square of that.
    assert np.corrcoef(power[:, 1:].ravel(), power[:, :-1].ravel())[0, 1] == pytest.approx(4 / 9, abs=0.02)


@pytest.mark.parametrize("distance", [4.3, 11.07, 25.0, 38.2])
def test_the_peak_of_a_reflector_lies_within_a_bin_and_its_parabola_much_closer(distance):
    scene, solids = scene_of(reflector(distance, 300.0))
    head, t = looking(50), np.zeros(50)
    echoes = radar.point_echoes(FMCW, scene, solids, head, t)
    decibels = radar.spectra(FMCW, 50, (echoes,), np.random.default_rng(3))
    best = 10 + decibels[:, 10:].argmax(axis=1) + 1
    assert np.abs(best * FMCW.bin_width + FMCW.range_offset - distance).max() <= FMCW.bin_width
    found, level = radar.find_strongest(FMCW, decibels)
    assert np.abs(found - distance).mean() < 0.25 * FMCW.bin_width
    assert (level > FMCW.noise_floor_dB + 20).all()


def test_a_point_falls_with_the_fourth_power_and_a_wall_with_the_second():
    points, walls = [], []
    for distance in (6.0, 12.0):
        scene, solids = scene_of(reflector(distance))
        points.append(radar.point_echoes(FMCW, scene, solids, looking(), np.zeros(1)).power.sum())
        scene, solids = scene_of(wall("wall", [distance, -20], [distance, 20], 20.0, 0.2))
        walls.append(
            radar.surface_echoes(FMCW, scene, solids, 0.0, looking(height=10.0), np.zeros(1)).power.sum()
        )
    assert points[0] / points[1] == pytest.approx(16.0, rel=1e-6)
    assert walls[0] / walls[1] == pytest.approx((11.9 / 5.9) ** 2, rel=0.01)


def test_a_reflector_behind_a_wall_or_out_of_the_beam_echoes_nothing():
    hidden, solids = scene_of(reflector(9.0), wall("wall", [5.0, -3], [5.0, 3], 4.0, 0.2))
    assert len(radar.point_echoes(FMCW, hidden, solids, looking(), np.zeros(1)).line) == 0
    free, solids = scene_of(reflector(9.0))
    aside = radar.head_poses(looking(), np.radians([20.0]))
    assert len(radar.point_echoes(FMCW, free, solids, aside, np.zeros(1)).line) == 0
    assert len(radar.point_echoes(FMCW, free, solids, looking(), np.zeros(1)).line) == 1


def test_the_beam_loses_six_decibels_there_and_back_at_half_its_width():
    assert 10 * np.log10(FMCW.gain(np.array([FMCW.beam_width / 2])))[0] == pytest.approx(-6.02, abs=0.01)


def test_two_targets_in_one_beam_make_two_peaks():
    near, far = reflector(8.0, height=2.1), reflector(14.0, height=1.7)
    scene, solids = scene_of(near, far)
    echoes = radar.point_echoes(FMCW, scene, solids, looking(), np.zeros(1))
    line = radar.spectra(FMCW, 1, (echoes,), np.random.default_rng(0))[0]
    peaks = [int(np.rint(FMCW.bins_of(np.array([d]))[0])) - 1 for d in (8.0, 14.0)]
    assert all(line[p - 1 : p + 2].max() > FMCW.noise_floor_dB + 20 for p in peaks)
    assert line[peaks[0] + 5 : peaks[1] - 5].max() < line[peaks[1] - 1 : peaks[1] + 2].max() - 10


def test_an_empty_line_has_a_range_of_noise_within_the_limits():
    decibels = radar.spectra(FMCW, 200, (), np.random.default_rng(0))
    found, level = radar.find_strongest(FMCW, decibels)
    assert (found > FMCW.minimum - 0.2).all()
    assert (found < FMCW.maximum + 0.2).all()
    assert level.max() < FMCW.noise_floor_dB + 16


def test_the_head_turns_about_its_own_axis_a_kilohertz_of_lines():
    number = np.arange(1000)
    assert FMCW.times(number, 0)[-1] == 999_000_000
    turns = np.unwrap(FMCW.bearings(number))[-1] / (2 * np.pi)
    assert turns == pytest.approx(8.0, abs=0.1)  # 2.2.2: approximately 8 Hz, 1 kHz
    head = radar.head_poses(looking(1), np.array([np.pi / 2]))
    np.testing.assert_allclose(head[0, :3, 0], [0, 1, 0], atol=1e-12)
    assert np.linalg.det(head[0, :3, :3]) == pytest.approx(1.0)

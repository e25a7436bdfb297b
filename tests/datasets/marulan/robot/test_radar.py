"""Radar spectra to ranges: eq. 1 of SDI, and beat tones of known range."""

from typing import Literal

import numpy as np
import pytest
import scipy.signal
from hypothesis import given
from hypothesis import strategies as st

from transect import robots
from transect.datasets.marulan.robot import derived_streams
from transect.errors import GeometryError
from transect.recording import Recording, stream_of_values
from transect.robots.beams import Gate
from transect.robots.fmcw_radar import Radar, find_peaks
from transect.types import RadarRange, RadarSpectrum

RADAR = Radar.of(robots.load("argo"))
SAMPLE_COUNT, FREQUENCY_HZ, HZ_PER_METRE, OFFSET_M = 1024, 1_250_000.0, 4336.384, -0.3507  # 3.2.3
BIN_WIDTH_M = FREQUENCY_HZ / SAMPLE_COUNT / HZ_PER_METRE
T0_NS = 1_224_199_788_000_000_000
Scale = Literal["amplitude", "dB"]


def test_bins_are_as_wide_as_the_errata_say():
    assert RADAR.bins == 512
    assert RADAR.bin_width == pytest.approx(0.2815, abs=0.00005)  # errata: 1250000 / (2 * 512) / 4336.384
    assert RADAR.bin_width == pytest.approx(0.28, abs=0.005)  # 3.2.4
    assert RADAR.bin_from_range(40) == pytest.approx(143.34, abs=0.01)  # errata: 143 bins
    assert RADAR.range_from_bin(1) == pytest.approx(0.2815 - 0.3507, abs=0.0001)


@given(st.floats(-1, 150))
def test_ranges_and_bins_are_inverse(distance: float):
    assert RADAR.range_from_bin(RADAR.bin_from_range(distance)) == pytest.approx(distance, abs=1e-9)


def amplitudes(ranges: np.ndarray, *, noise: float, hann: bool = True, seed: int = 94) -> np.ndarray:
    """Spectra of beat tones: the sum of the DFT written out, bins 1 to 512 of 1024 samples."""
    rng = np.random.default_rng(seed)
    n = np.arange(SAMPLE_COUNT)
    beat = (ranges - OFFSET_M) * HZ_PER_METRE
    phase = rng.uniform(0, 2 * np.pi, len(ranges))
    tone = np.cos(2 * np.pi * beat[:, None] * n / FREQUENCY_HZ + phase[:, None])
    tone += rng.normal(scale=noise, size=tone.shape)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * n / SAMPLE_COUNT) if hann else np.ones(SAMPLE_COUNT)
    kernel = np.exp(-2j * np.pi * np.outer(n, np.arange(1, 513)) / SAMPLE_COUNT)
    return np.abs((tone * window) @ kernel)


def rms(x: np.ndarray) -> float:
    return float(np.sqrt(np.mean(x**2)))


@pytest.mark.parametrize("fit", ["amplitude", "dB"])
@pytest.mark.parametrize("noise", [0.0, 0.2])  # the second is 11 dB
def test_interpolated_ranges_are_four_times_better_than_the_bins(fit: Scale, noise: float):
    truth = np.linspace(2.0, 38.0, 700) + np.random.default_rng(1).uniform(0, 0.28, 700)
    spectra = amplitudes(truth, noise=noise)
    peaks = find_peaks(spectra, scale="amplitude", fit=fit)
    raw = (spectra.argmax(axis=1) + 1) * BIN_WIDTH_M + OFFSET_M
    assert rms(raw - truth) == pytest.approx(0.2815 / np.sqrt(12), rel=0.05)  # uniform in a bin
    assert peaks.interpolated.all()
    assert rms(RADAR.range_from_bin(peaks.bin[:, 0]) - truth) <= 0.25 * rms(raw - truth)


@pytest.mark.parametrize("fit", ["amplitude", "dB"])
def test_without_a_window_it_still_helps(fit: Scale):
    truth = np.linspace(5.0, 35.0, 300)
    spectra = amplitudes(truth, noise=0.05, hann=False)
    peaks = find_peaks(spectra, scale="amplitude", fit=fit)
    raw = (spectra.argmax(axis=1) + 1) * BIN_WIDTH_M + OFFSET_M
    assert rms(RADAR.range_from_bin(peaks.bin[:, 0]) - truth) < 0.75 * rms(raw - truth)


def test_the_scale_of_the_spectra_does_not_matter():
    spectra = amplitudes(np.array([7.3, 21.05]), noise=0.1)
    for fit in ("amplitude", "dB"):
        linear = find_peaks(spectra, scale="amplitude", fit=fit)
        decibels = find_peaks(20 * np.log10(spectra), scale="dB", fit=fit)
        np.testing.assert_allclose(decibels.bin, linear.bin, atol=1e-9)
        np.testing.assert_allclose(10 ** (decibels.reflectivity / 20), linear.reflectivity, rtol=1e-9)


def test_the_vertex_of_a_parabola_is_found_exactly():
    # 10 - 2 (x - 3.3)^2 at x = 1 ... 6, by hand.
    x = np.arange(1, 7)
    peaks = find_peaks((10 - 2 * (x - 3.3) ** 2)[None])
    assert peaks.bin[0, 0] == pytest.approx(3.3)
    assert peaks.reflectivity[0, 0] == pytest.approx(10)


def test_two_equal_bins_peak_half_way_between():
    peaks = find_peaks([[0.0, 1.0, 5.0, 5.0, 1.0, 0.0]])
    assert peaks.bin[0, 0] == 3.5


def test_a_line_that_ends_level_peaks_where_it_stops_rising_and_a_level_one_nowhere():
    peaks = find_peaks([[0.5, 0.0, 1.0, 1.0], [2.0, 2.0, 2.0, 2.0]])
    assert peaks.bin[0, 0] in (3.0, 3.5)
    assert np.isnan(peaks.bin[1, 0])


def test_several_peaks_come_strongest_first():
    peaks = find_peaks([[0, 3, 0, 0, 9, 0, 6, 0.0], [0, 3, 0, 0, 0, 0, 0, 0.0]], count=3)
    np.testing.assert_array_equal(peaks.bin, [[5, 7, 2], [2, np.nan, np.nan]])
    np.testing.assert_array_equal(peaks.reflectivity[0], [9, 6, 3])
    np.testing.assert_array_equal(peaks.interpolated, [[True] * 3, [True, False, False]])


def test_more_peaks_than_bins_are_not_there():
    peaks = find_peaks([[0, 3, 0.0]], count=5)
    assert peaks.bin.shape == (1, 5)
    assert np.isnan(peaks.bin[0, 1:]).all()


def test_a_slope_at_the_gate_is_no_peak():
    falling_then_target = [[50.0, 40, 30, 20, 10, 25, 10, 5]]
    assert find_peaks(falling_then_target, bins=(3, 8)).bin[0, 0] == pytest.approx(6, abs=0.5)
    assert find_peaks(falling_then_target).bin[0, 0] == 1
    assert not find_peaks(falling_then_target).interpolated[0, 0]


def test_peaks_at_the_ends_are_not_interpolated():
    peaks = find_peaks([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])
    np.testing.assert_array_equal(peaks.bin[:, 0], [3, 1])
    assert not peaks.interpolated.any()


def test_a_shoulder_is_no_peak():
    peaks = find_peaks([[9.0, 7, 7, 1, 3, 3, 8, 2]], count=4)
    np.testing.assert_array_equal(np.rint(peaks.bin[0]), [1, 7, np.nan, np.nan])


@given(st.lists(st.integers(0, 4), min_size=3, max_size=24))
def test_scipy_finds_the_same_peaks(line: list[int]):
    found = find_peaks([line], count=len(line)).bin[0]
    # Of equal bins the first is meant; the vertex lies half way to the second.
    first = np.ceil(found[np.isfinite(found)] - 0.5).astype(int)
    # Scipy has no peaks at the ends of a line, so it gets one whose ends are lower, and bins count from 1.
    _, edges = scipy.signal.find_peaks([-1, *line, -1], plateau_size=1)
    level = len(set(line)) == 1  # no peak to us
    assert set(first) == (set() if level else set(edges["left_edges"].tolist()))


@pytest.mark.parametrize("line", [[4.0] * 6, [np.nan] * 6])
def test_a_line_without_a_peak_has_no_range(line: list[float]):
    peaks = find_peaks([line])
    assert np.isnan(peaks.bin).all()
    assert np.isnan(peaks.reflectivity).all()


def test_no_amplitude_beside_a_peak_leaves_the_bin():
    peaks = find_peaks([[0.0, 0.0, 5.0, 0.0, 0.0]], scale="amplitude", fit="dB")
    assert (peaks.bin[0, 0], peaks.reflectivity[0, 0], peaks.interpolated[0, 0]) == (3, 5, False)


@given(st.lists(st.floats(-80, 80), min_size=3, max_size=20), st.sampled_from(["amplitude", "dB"]))
def test_the_vertex_stays_within_half_a_bin_of_its_peak(line: list[float], fit: Scale):
    peaks = find_peaks([line], fit=fit)
    number = peaks.bin[0, 0]
    if np.isfinite(number):
        near = {int(np.floor(number + 0.5)), int(np.ceil(number - 0.5))}
        assert max(line[i - 1] for i in near) == max(
            v
            for i, v in enumerate(line)
            if (i == 0 or v >= line[i - 1]) and (i == len(line) - 1 or v >= line[i + 1])
        )


def test_spectra_are_a_matrix():
    with pytest.raises(GeometryError, match="spectra"):
        find_peaks(np.zeros(512))
    assert find_peaks(np.zeros((0, 512))).bin.shape == (0, 1)


def recording(spectra: list[np.ndarray]) -> Recording:
    n = len(spectra)
    columns = {
        "reflectivity": [20 * np.log10(s) for s in spectra],
        "angle": np.linspace(-0.5, 0.5, n),
        "bin_width": np.full(n, BIN_WIDTH_M),
        "range_offset": np.full(n, OFFSET_M),
    }
    t_ns = T0_NS + np.arange(n) * 1_000_000
    stream = stream_of_values("RadarSpectrum", t_ns, columns, type=RadarSpectrum, frame="Radar")
    return Recording("radar", (stream,), robot=robots.load("argo"))


def test_a_recordings_spectra_become_a_stream_of_ranges():
    truth = np.array([6.2, 12.75, 30.1])
    spectra = amplitudes(truth, noise=0.05)
    # The second line was cut at 143 bins, as a file that ends at 40 m (errata).
    ranges = derived_streams.radar_ranges(recording([spectra[0], spectra[1][:143], spectra[2]]))
    assert (ranges.type, ranges.role, ranges.frame) == (RadarRange, "derived", "Radar")
    np.testing.assert_allclose(ranges["range"], truth, atol=0.02)
    np.testing.assert_allclose(ranges["angle"], [-0.5, 0.0, 0.5])
    assert ranges["interpolated"].all()
    assert ranges.units["range"] == "m"


def test_peaks_beyond_the_maximum_range_do_not_count():
    far = amplitudes(np.array([60.0, 60.0]), noise=0.0)
    far[0] += 0.1 * amplitudes(np.array([20.0]), noise=0.0)[0]
    rec = recording([far[0]])
    assert derived_streams.radar_ranges(rec)["range"][0] == pytest.approx(
        20, abs=0.02
    )  # 2.2.2: maximum range 40 m
    assert derived_streams.radar_ranges(rec, gate=Gate(0, 100))["range"][0] == pytest.approx(60, abs=0.02)
    assert np.isnan(derived_streams.radar_ranges(rec, gate=Gate(900, 901))["range"][0])


def test_differences_from_the_logged_ranges_identify_the_fit():
    rec = recording(list(amplitudes(np.linspace(3, 33, 40), noise=0.0)))
    ours = derived_streams.radar_ranges(rec, fit="amplitude")
    logged = {"range": ours["range"], "angle": ours["angle"], "reflectivity": ours["reflectivity"]}
    stream = stream_of_values("RadarRangeBearing", ours.t_ns + 100_000, logged, type=RadarRange)
    rec = rec.replace(streams=(*rec.streams, stream.take(np.arange(40) != 7)))
    same = derived_streams.range_differences(rec, ours)
    other = derived_streams.range_differences(rec, derived_streams.radar_ranges(rec, fit="dB"))
    assert np.isnan(same[7])
    assert np.nanmax(np.abs(same)) == 0
    assert np.nanmax(np.abs(other)) > 0.005

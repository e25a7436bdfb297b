"""Radar spectra to ranges, all lines at once, beside one line after another in numpy and scipy."""

import numpy as np
from scipy.signal import find_peaks as scipy_peaks

from benchmarks import _harness
from transect.robots.fmcw_radar import find_peaks

LINE_COUNT, BIN_COUNT = 20_000, 512
"""20 s of the radar's 1 kHz."""


def spectra() -> np.ndarray:
    """Lines in dB: noise, and one target of Gaussian shape in each."""
    rng = np.random.default_rng(94)
    target = rng.uniform(5, 140, (LINE_COUNT, 1))
    floor = 20 * np.log10(rng.rayleigh(size=(LINE_COUNT, BIN_COUNT)))
    return np.maximum(floor, 40 - 6 * (np.arange(1, BIN_COUNT + 1) - target) ** 2)


def vertex(line: np.ndarray, k: int) -> float:
    a, b, c = line[k - 1 : k + 2]
    return k + 1 + 0.5 * (a - c) / (a - 2 * b + c)


def line_by_line(lines: np.ndarray) -> np.ndarray:
    return np.array([vertex(line, int(line.argmax())) for line in lines])


def scipy_line_by_line(lines: np.ndarray) -> np.ndarray:
    result = np.empty(len(lines))
    for i, line in enumerate(lines):
        peaks, _ = scipy_peaks(line)
        result[i] = vertex(line, peaks[line[peaks].argmax()])
    return result


def scipy_several(lines: np.ndarray) -> None:
    for line in lines:
        peaks, _ = scipy_peaks(line)
        for k in peaks[np.argsort(-line[peaks])[:3]]:
            vertex(line, int(k))


def main() -> None:
    lines = spectra()
    ours = find_peaks(lines).bin[:, 0]
    np.testing.assert_allclose(ours, line_by_line(lines), atol=1e-9)
    np.testing.assert_allclose(ours, scipy_line_by_line(lines), atol=1e-9)
    _harness.rate("radar lines of 512 bins, one peak", lambda: find_peaks(lines), LINE_COUNT)
    _harness.compare(
        "one peak a line / scipy find_peaks, line by line",
        lambda: find_peaks(lines),
        lambda: scipy_line_by_line(lines),
        target=5.0,
        repeat=3,
    )
    _harness.compare(
        "one peak a line / numpy argmax, line by line",
        lambda: find_peaks(lines),
        lambda: line_by_line(lines),
        repeat=3,
    )
    _harness.compare(
        "three peaks a line / scipy find_peaks",
        lambda: find_peaks(lines, count=3),
        lambda: scipy_several(lines),
        repeat=3,
    )


if __name__ == "__main__":
    main()

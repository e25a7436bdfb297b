"""Pictures from arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from transect.draw.figures import new_figure, save_figure
from transect.draw.timelines import StreamStrip, present_intervals, timeline_figure
from transect.errors import UsageError


def test_a_stream_is_absent_where_a_step_is_much_longer_than_usual() -> None:
    seconds = np.concatenate([np.arange(0, 10), np.arange(50, 60)]).astype(float)
    assert present_intervals(seconds) == [(0.0, 9.0), (50.0, 9.0)]


def test_one_sample_and_none_are_drawn_too() -> None:
    assert present_intervals(np.array([3.0])) == [(3.0, 0.0)]
    assert present_intervals(np.zeros(0)) == []


@pytest.mark.parametrize(("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")])
def test_the_same_picture_is_the_same_file(tmp_path: Path, suffix: str, start: bytes) -> None:
    def draw(path: Path) -> bytes:
        strips = [StreamStrip("Gnss", np.arange(5.0)), StreamStrip("Truth", np.arange(3.0), "truth", "1 Hz")]
        save_figure(timeline_figure(strips, "r"), path)
        return path.read_bytes()

    first = draw(tmp_path / f"a{suffix}")
    assert first == draw(tmp_path / f"b{suffix}")
    assert first.startswith(start)


def test_a_picture_of_an_unknown_kind_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\.svg"):
        save_figure(new_figure(1, 1), tmp_path / "a.gif")
    assert list(tmp_path.iterdir()) == []

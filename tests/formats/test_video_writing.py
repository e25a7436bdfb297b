"""Images as films: each frame at its own time, opened again."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.formats import films

import transect
from transect import formats
from transect.errors import ParseError, UsageError
from transect.recording import Recording, Stream, arrow, stream_of_values
from transect.recording.arrow import PAYLOAD
from transect.types import Image, Imu

START_NS = 1_656_936_023_000_000_000
TIMES_NS = START_NS + np.array([0, 40, 70, 200, 201, 500]) * 1_000_000


def camera(name: str = "Cam", times: np.ndarray = TIMES_NS, size: tuple[int, int] | None = None) -> Stream:
    """Return pictures whose bars are their number; number 2 is damaged where the name says so."""

    def load(row: Mapping[str, Any]) -> Image:
        if name == "Damaged" and row[PAYLOAD] == "2":
            raise ParseError("a picture is cut")
        picture = films.bars(int(row[PAYLOAD]))
        return Image(picture[: size[0], : size[1]] if size else picture, mode="rgb")

    names = [str(k) for k in range(len(times))]
    return Stream(name, Image, arrow.table(times, {PAYLOAD: arrow.strings(names)}), loader=load)


def test_a_film_has_each_frame_at_its_time(tmp_path: Path) -> None:
    imu = stream_of_values("Imu", TIMES_NS, {"acc_x": np.zeros(6)}, type=Imu)
    said = formats.write(Recording("day", (camera(), imu)), tmp_path / "cam.mp4", "mp4")
    assert said == (
        "Imu is a Imu and was not written",
        "Cam: a film is compressed with loss, and begins at 0 s",
    )
    film = transect.open(tmp_path / "cam.mp4").streams[0]
    assert film.t_ns.tolist() == (TIMES_NS - START_NS).tolist()
    assert [films.number_of(film[k].value.data) for k in range(6)] == list(range(6))


def test_several_cameras_become_a_folder_of_films(tmp_path: Path) -> None:
    day = Recording("day", (camera("Zed/Left"), camera("../Right")))
    with pytest.raises(UsageError, match="is one film, and there are 2 streams"):
        formats.write(day, tmp_path / "both.mp4", "video")
    formats.write(day, tmp_path / "films", "video")
    assert len(list(tmp_path.rglob("*.mp4"))) == 2
    assert all((tmp_path / "films") in path.parents for path in tmp_path.rglob("*.mp4"))
    assert len(transect.open(tmp_path / "films").streams) == 2


@pytest.mark.parametrize(
    ("stream", "kept", "reason"),
    [
        (camera("Damaged"), 5, "1 of 6"),
        (camera(times=TIMES_NS[[0, 1, 1, 2, 3, 4]]), 5, "1 images of another size, type or the same time"),
        (camera(times=TIMES_NS[::-1]), 6, ""),
        (camera(size=(31, 47)), 6, "films are 46 x 30"),
    ],
)
def test_what_cannot_be_filmed_is_left_out_and_said(
    stream: Stream, kept: int, reason: str, tmp_path: Path
) -> None:
    said = formats.write(Recording("day", (stream,)), tmp_path / "cam.mp4", "video")
    assert len(transect.open(tmp_path / "cam.mp4").streams[0]) == kept
    assert any(reason in sentence for sentence in said)


def test_nothing_to_film_is_refused(tmp_path: Path) -> None:
    imu = stream_of_values("Imu", TIMES_NS, {"acc_x": np.zeros(6)}, type=Imu)
    with pytest.raises(UsageError, match="no images"):
        formats.write(Recording("day", (imu,)), tmp_path / "imu.mp4", "video")
    assert not list(tmp_path.iterdir())

"""Films: their frames are images with times, decoded when they are asked for."""

from __future__ import annotations

import gc
import io
import random
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
import pytest
from tests.datasets.ameds.sample import stored_zip
from tests.formats.films import HEIGHT_PX, KEY_FRAME_STEP, WIDTH_PX, film, number_of, packets

import transect
from transect.errors import MissingExtraError, ParseError, UnknownFormatError
from transect.formats import recognise
from transect.formats.shared import video_files
from transect.recording import Stream, source_of
from transect.types import Image

NS = 10**9
FAST = {"movflags": "+faststart"}
KINDS: dict[str, dict[str, object]] = {
    "b-frames.mp4": {},
    "faststart.mp4": {"options": FAST},
    "fragmented.mp4": {"options": {"movflags": "frag_keyframe+empty_moov"}},
    "simple.mp4": {"codec": "mpeg4"},
    "a.avi": {"codec": "mpeg4", "container": "avi"},
    "a.mkv": {"container": "matroska"},
}


def opened(folder: Path, data: bytes, name: str = "film.mp4") -> Stream:
    (folder / name).write_bytes(data)
    rec = transect.open(folder / name)
    assert rec.format == "video"
    (stream,) = rec.streams
    return stream


@pytest.mark.parametrize("name", KINDS)
def test_every_frame_is_found_in_any_order(tmp_path: Path, name: str) -> None:
    stream = opened(tmp_path, film(40, **KINDS[name]), name)
    assert (stream.type, stream.clock, len(stream)) == (Image, "device", 40)
    np.testing.assert_allclose(stream.t_ns / NS, np.arange(40) / 30, atol=1e-3)
    order = random.Random(3).sample(range(40), 40)
    for number in (0, 1, 2, 39, 38, *range(10, 30), *order):
        assert number_of(stream[number].value.data) == number
    image = stream[7].value
    assert (image.mode, image.data.shape, image.t_ns) == ("rgb", (HEIGHT_PX, WIDTH_PX, 3), stream.t_ns[7])


def test_frames_have_the_bytes_that_the_decoder_gives_in_one_go(tmp_path: Path) -> None:
    data = film(30)
    stream = opened(tmp_path, data)
    with av.open(io.BytesIO(data)) as container:
        straight = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    for number in (29, 13, 12, 11, 0):
        np.testing.assert_array_equal(stream[number].value.data, straight[number])


def test_frames_that_do_not_last_equally_long_have_their_own_times(tmp_path: Path) -> None:
    ticks = [0, 10, 50, 60, 200, 210, 215, 400, 401, 800, 810, 1000]
    stream = opened(tmp_path, film(12, ticks=ticks))
    assert (stream.t_ns // 10**6).tolist() == ticks
    assert [number_of(sample.value.data) for sample in stream] == list(range(12))


def test_a_film_is_not_touched_before_it_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "film.mp4").write_bytes(film(30))
    opened, decoded = [], []
    real = av.open

    def watched(*args: object, **kwargs: object) -> object:
        opened.append(args)
        return real(*args, **kwargs)

    monkeypatch.setattr(av, "open", watched)
    monkeypatch.setattr(video_files, "_play", counting(video_files._play, decoded))
    stream = transect.open(tmp_path / "film.mp4").streams[0]
    assert not opened
    assert len(stream.t_ns) == 30
    assert (len(opened), decoded) == (1, [])
    for number in range(20):
        assert number_of(stream[number].value.data) == number
    assert len(decoded) == 1  # read on from the first key frame
    assert number_of(stream[29].value.data) == 29
    assert len(decoded) == 2
    assert len(opened) == 1
    times = video_files.Video(source_of(tmp_path / "film.mp4"), "film.mp4").index.pts
    assert decoded == [times[0], times[24]]  # from key frames


def counting(real: Callable[..., object], calls: list[int]) -> Callable[..., object]:
    def play(container: object, pts: int) -> object:
        calls.append(pts)
        return real(container, pts)

    return play


def test_a_film_that_was_cut_keeps_the_frames_before_the_cut(tmp_path: Path) -> None:
    data = film(40, options=FAST)
    place, size = packets(data)[30]
    stream = opened(tmp_path, data[: place + size // 2])
    assert 28 <= len(stream) <= 30
    assert [(loss.count, loss.byte) for loss in stream.losses] == [(40 - len(stream), place + size // 2)]
    for number in range(len(stream) - 3):  # the last ones may be made from frames behind the cut
        assert number_of(stream[number].value.data) == number


def test_a_film_without_its_index_is_a_loss(tmp_path: Path) -> None:
    data = film(40)
    stream = opened(tmp_path, data[: len(data) // 2])
    assert len(stream) == 0
    (loss,) = stream.losses
    assert loss.reason == "film.mp4 is not a film: Invalid data found when processing input"


def shows(stream: Stream, number: int) -> bool:
    """Return whether a frame is shown; a shown frame must be correct."""
    try:
        picture = stream[number].value.data
    except ParseError:
        return False
    assert number_of(picture) == number
    return True


def test_damaged_frames_are_refused_and_those_after_the_next_key_frame_are_good(tmp_path: Path) -> None:
    """A decoder makes wrong pictures from what it could not decode, and does not say so."""
    data = bytearray(film(40, codec="mpeg4"))
    place, size = packets(bytes(data))[KEY_FRAME_STEP + 4]
    data[place : place + size] = bytes(size)
    stream = opened(tmp_path, bytes(data))
    assert len(stream) == 40
    good = [number for number in range(40) if shows(stream, number)]
    assert [number for number in (39, 20, 2) if shows(stream, number)] == [
        n for n in (39, 20, 2) if n in good
    ]
    lost = set(range(40)) - set(good)
    assert lost
    assert min(lost) >= KEY_FRAME_STEP + 4
    assert set(range(KEY_FRAME_STEP + 4)) | {39} <= set(good)
    assert len(lost) < 2 * KEY_FRAME_STEP


def test_a_film_in_a_zip_is_read_there(tmp_path: Path) -> None:
    path = stored_zip(tmp_path / "day.zip", {"a.mp4": film(30), "b.mp4": film(5)})
    rec = transect.open(path)
    assert [(stream.name, len(stream)) for stream in rec] == [("a", 30), ("b", 5)]
    assert [number_of(rec["a"][number].value.data) for number in (29, 3, 4)] == [29, 3, 4]


def test_what_is_no_film_is_not_taken_for_one(tmp_path: Path) -> None:
    (tmp_path / "notes.mp4").write_text("call me at noon")
    with pytest.raises(UnknownFormatError):
        transect.open(tmp_path / "notes.mp4")
    assert (
        dict(recognise(tmp_path / "notes.mp4"))["video"].reason == "notes.mp4 does not begin as a video does"
    )


def test_without_pyav_a_film_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "film.mp4").write_bytes(film(3))
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(MissingExtraError) as caught:
        transect.open(tmp_path / "film.mp4")
    assert caught.value.hint == "pip install 'transect[video]'"


def test_recognising_a_film_imports_neither_pyav_nor_numpy(tmp_path: Path) -> None:
    (tmp_path / "film.mp4").write_bytes(film(3))
    code = f"""
import sys
import weakref
from transect.formats.recognition import recognise_video
from transect.recording import source_of
assert recognise_video(source_of({str(tmp_path / "film.mp4")!r}))
print([name for name in ("av", "numpy", "pyarrow") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_film_that_nobody_needs_is_closed_at_once(tmp_path: Path) -> None:
    (tmp_path / "film.mp4").write_bytes(film(8))
    shown = video_files.Video(source_of(tmp_path / "film.mp4"), "film.mp4")
    shown.frame(3)
    gone = weakref.ref(shown)
    gc.disable()  # nobody else may close it
    try:
        del shown
        assert gone() is None
    finally:
        gc.enable()


PLAYLISTS = {
    "HLS": "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\n{address}\n#EXT-X-ENDLIST\n",
    "concat": "ffconcat version 1.0\nfile {address}\n",
    "DASH": '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static"><Period>'
    '<AdaptationSet><Representation id="0" bandwidth="1" mimeType="video/mp4"><BaseURL>{address}</BaseURL>'
    '<SegmentList><SegmentURL media="{address}"/></SegmentList></Representation></AdaptationSet></Period>'
    "</MPD>",
    "SDP": "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 4 RTP/AVP 96\n",
}


@pytest.mark.parametrize("kind", PLAYLISTS)
def test_a_playlist_called_a_film_opens_no_other_file(tmp_path: Path, kind: str) -> None:
    """FFmpeg takes the container from the content: a text named film.mp4 shows a film elsewhere."""
    (tmp_path / "secret.mp4").write_bytes(film(20))
    (tmp_path / "film.mp4").write_text(PLAYLISTS[kind].format(address="secret.mp4"))
    (stream,) = transect.open(tmp_path / "film.mp4", format="video").streams
    assert len(stream) == 0
    (loss,) = stream.losses
    assert "film.mp4 is not a film: it does not begin as" in loss.reason


def test_a_playlist_among_films_opens_no_other_file(tmp_path: Path) -> None:
    day = tmp_path / "day"
    day.mkdir()
    (day / "a.mp4").write_bytes(film(5))
    (day / "b.mp4").write_text("ffconcat version 1.0\nfile a.mp4\n")
    packed = stored_zip(tmp_path / "day.zip", {each.name: each.read_bytes() for each in day.iterdir()})
    for path in (day, packed):
        assert [len(stream) for stream in transect.open(path)] == [5, 0]


@pytest.mark.parametrize("name", ["concat:secret.mp4", "subfile,,start,0,end,0,,:secret.mp4", "data:a.mp4"])
def test_the_name_of_a_film_is_not_an_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("secret.mp4").write_bytes(film(20))
    Path(name).write_bytes(film(3))
    (stream,) = transect.open(Path(name)).streams
    assert len(stream) == 3

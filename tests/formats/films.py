"""Films made by PyAV, whose frames tell their number."""

from __future__ import annotations

import io
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import av
import numpy as np

WIDTH_PX, HEIGHT_PX, KEY_FRAME_STEP = 48, 32, 12
"""Pixels, and from one key frame to the next."""


def film(
    count: int,
    rate: int = 30,
    codec: str = "libx264",
    container: str = "mp4",
    options: Mapping[str, str] | None = None,
    ticks: list[int] | None = None,
) -> bytes:
    """Return a film; frame k has 6 bars across it that are the bits of k. `ticks` are its times, ms."""
    with TemporaryDirectory() as folder:
        with av.open(f"{folder}/film", "w", format=container, options=dict(options or {})) as out:
            _encode(out, count, rate, codec, ticks)
        return Path(folder, "film").read_bytes()


def _encode(
    out: av.container.OutputContainer, count: int, rate: int, codec: str, ticks: list[int] | None
) -> None:
    regular = {"sc_threshold": "0"} if codec == "libx264" else {}
    stream = out.add_stream(codec, rate=rate, options=regular)
    stream.width, stream.height, stream.pix_fmt, stream.gop_size = (
        WIDTH_PX,
        HEIGHT_PX,
        "yuv420p",
        KEY_FRAME_STEP,
    )
    if ticks:
        stream.codec_context.time_base = Fraction(1, 1000)
    for number in range(count):
        frame = av.VideoFrame.from_ndarray(bars(number), format="rgb24")
        frame.pts = ticks[number] if ticks else number
        frame.time_base = Fraction(1, 1000) if ticks else Fraction(1, rate)
        out.mux(stream.encode(frame))
    out.mux(stream.encode())


def bars(number: int) -> np.ndarray:
    """Return the picture (h, w, 3) of frame `number`."""
    bits = (number >> np.arange(6)) & 1
    row = np.repeat(np.where(bits, 220, 30), WIDTH_PX // 6)
    return np.broadcast_to(row[:, None], (HEIGHT_PX, WIDTH_PX, 3)).astype(np.uint8)


def number_of(picture: np.ndarray) -> int:
    """Return the number of the frame that a picture (h, w, 3) shows."""
    bits = picture[..., 1].mean(axis=0).reshape(6, -1).mean(axis=1) > 125
    return int((bits << np.arange(6)).sum())


def packets(data: bytes) -> list[tuple[int, int]]:
    """Return place and size of each packet."""
    with av.open(io.BytesIO(data)) as container:
        return [(packet.pos, packet.size) for packet in container.demux(video=0) if packet.size]

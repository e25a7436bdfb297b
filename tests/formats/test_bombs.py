"""Files that claim to hold more than they can: refused before the memory that they claim is taken."""

import struct
import zlib
from pathlib import Path

import cv2
import mcap.writer
import numpy as np
import pytest

import transect
from transect.errors import ParseError
from transect.formats.shared.images import decode_image, image_size

BYTES_PER_MIB = 1 << 20


def png() -> bytes:
    return cv2.imencode(".png", np.arange(4800, dtype=np.uint8).reshape(60, 80))[1].tobytes()


def claims(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height) + b"\x08\2\0\0\0" + bytes(40)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (claims(14_000, 14_000), "196000000 pixels do not fit in 69 bytes"),
        (png().replace(png()[33:37], b"\x7f\xff\xff\xff", 1), "claims 2147483647"),
        (png()[:-12], "its end is not there"),
    ],
)
def test_a_png_that_claims_more_than_it_has_is_not_decoded(data: bytes, why: str):
    with pytest.raises(ParseError, match="cut off or damaged") as caught:
        decode_image(data, "a.png")
    assert why in caught.value.why


def test_black_images_are_decoded_however_well_they_are_packed():
    black = cv2.imencode(".png", np.zeros((2000, 3000, 3), np.uint8), [cv2.IMWRITE_PNG_COMPRESSION, 9])[1]
    assert len(black) < 30_000
    assert decode_image(black.tobytes(), "a.png").data.shape == (2000, 3000, 3)


@pytest.mark.parametrize("depth", ["float64", "int16", "uint16"])
def test_colours_of_any_depth_are_read(depth: str):
    pixels = np.arange(48).reshape(4, 4, 3).astype(depth)
    image = decode_image(cv2.imencode(".tiff", pixels[..., ::-1])[1].tobytes(), "a.tiff")
    assert image.mode == "rgb"
    np.testing.assert_array_equal(image.data, pixels)


def test_lists_of_more_numbers_than_memory_has_are_losses(tmp_path: Path):
    (tmp_path / "n.csv").write_text("t,p\n1,1 2 3\n2,4 5 6\n")
    stream = "{name: N, file: n.csv, time: {column: t}, columns: {p: {source: p, numbers: COUNT}}}"
    (tmp_path / "recording.yaml").write_text(f"streams: [{stream}]\n".replace("COUNT", "1000000"))
    recording = transect.open(tmp_path)
    assert (len(recording["N"]), sum(loss.count for loss in recording.losses)) == (0, 2)
    (tmp_path / "recording.yaml").write_text(f"streams: [{stream}]\n".replace("COUNT", "4000000000"))
    with pytest.raises(ParseError, match="0 to 1000000 numbers"):
        transect.open(tmp_path)


def test_a_size_of_thousands_of_digits_is_refused():
    assert image_size(b"P5 " + b"9" * 5000 + b" 2 255\n") is None


def test_a_chunk_that_claims_to_grow_as_none_does_is_lost(tmp_path: Path):
    with (tmp_path / "a.mcap").open("wb") as file:
        writer = mcap.writer.Writer(file, chunk_size=200 * BYTES_PER_MIB)
        writer.start()
        schema = writer.register_schema("none", "jsonschema", b"{}")
        channel = writer.register_channel("/zeros", "json", schema)
        for data in (b"{}", bytes(64 * BYTES_PER_MIB)):
            writer.add_message(channel, 1, data, 1)
        writer.finish()
    assert (tmp_path / "a.mcap").stat().st_size < BYTES_PER_MIB // 8
    losses = transect.open(tmp_path / "a.mcap").losses
    assert any("which no recording's do" in loss.reason for loss in losses)


def test_a_log_that_unpacks_to_far_more_than_any_other_is_refused(tmp_path: Path):
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(bytes(BYTES_PER_MIB)) for _ in range(80)) + packer.flush()
    (tmp_path / "a.msg.zz").write_bytes(packed)
    with pytest.raises(ParseError, match="is refused") as caught:
        transect.open(tmp_path / "a.msg.zz", format="cdff_msgpack")
    assert "which no log's do" in caught.value.why

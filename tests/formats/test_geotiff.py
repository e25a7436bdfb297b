"""GeoTIFF: cells, names, place and missing values survive; a header that lies is refused."""

import builtins
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import transect
from transect import formats
from transect.errors import MissingExtraError, ParseError, TransectError, UnsupportedError, UsageError
from transect.recording import Recording, Stream
from transect.types import GridMap

rasterio = pytest.importorskip("rasterio")

from transect.formats.geotiff import decode_geotiff, encode_geotiff  # noqa: E402

NAMES = ("etna", "north")
GEO_TRANSFORM = (0.5, 0.0, 500_000.0, 0.0, -0.5, 4_176_000.25)


def dem(dtype: str = "float32") -> GridMap:
    cells = (np.arange(12).reshape(3, 4) * 1.25).astype(dtype)
    if cells.dtype.kind == "f":
        cells[1, 2] = np.nan
    return GridMap({"elevation": cells}, GEO_TRANSFORM, "EPSG:32633")


def recording_of(*maps: GridMap) -> Recording:
    streams = []
    for number, grid in enumerate(maps):
        table = transect.formats.shared.images.file_table([0], ["x"])
        streams.append(Stream(NAMES[number], GridMap, table, clock="index", loader=lambda row, g=grid: g))
    return Recording("maps", tuple(streams))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "uint8", "int32"])
def test_a_map_reads_back_as_it_was_written(dtype: str):
    wrote = dem(dtype)
    read = decode_geotiff(encode_geotiff(wrote), "a.tif")
    np.testing.assert_array_equal(read.layers["elevation"], wrote.layers["elevation"])
    assert read.layers["elevation"].dtype == dtype
    assert read.transform == GEO_TRANSFORM
    assert read.crs == "EPSG:32633"
    assert read.resolution == (0.5, 0.5)


@given(
    hnp.arrays(np.float32, st.tuples(st.integers(1, 9), st.integers(1, 9)), elements=st.floats(width=32)),
    st.lists(
        st.sampled_from(["elevation", "slope", "variance", "Höhe"]), min_size=1, max_size=3, unique=True
    ),
)
def test_any_layers_survive(cells: np.ndarray, names: list[str]):
    wrote = GridMap({name: np.roll(cells, i) for i, name in enumerate(names)}, GEO_TRANSFORM, "")
    read = decode_geotiff(encode_geotiff(wrote), "a.tif")
    assert list(read.layers) == names
    for name in names:
        np.testing.assert_array_equal(read.layers[name], wrote.layers[name])


def test_cells_marked_as_missing_become_nan():
    with rasterio.io.MemoryFile() as file:
        with file.open(
            driver="GTiff", width=3, height=1, count=1, dtype="int16", nodata=-32768, crs="EPSG:4326",
            transform=rasterio.Affine(1, 0, 10, 0, -1, 50),
        ) as raster:  # fmt: skip
            raster.write(np.array([[100, -32768, 300]], np.int16), 1)
        data = file.read()
    cells = decode_geotiff(data, "a.tif").layers["elevation"]
    np.testing.assert_array_equal(cells, [[100, np.nan, 300]])


def test_scale_and_offset_are_applied():
    with rasterio.io.MemoryFile() as file:
        with file.open(
            driver="GTiff",
            width=2,
            height=1,
            count=1,
            dtype="uint16",
            transform=rasterio.Affine(2, 0, 0, 0, -2, 0),
        ) as raster:
            raster.write(np.array([[10, 20]], np.uint16), 1)
            raster.scales, raster.offsets = (0.5,), (100.0,)
        data = file.read()
    np.testing.assert_array_equal(decode_geotiff(data, "a.tif").layers["elevation"], [[105, 110]])


def test_a_file_and_a_folder_open_as_streams_of_maps(tmp_path: Path):
    (tmp_path / "maps").mkdir()
    (tmp_path / "maps/etna.tif").write_bytes(encode_geotiff(dem()))
    (tmp_path / "maps/north.tif").write_bytes(encode_geotiff(dem("int16")))
    recording = transect.open(tmp_path / "maps")
    assert recording.format == "geotiff"
    assert {s.name: s.type for s in recording} == {"etna": GridMap, "north": GridMap}
    assert recording["etna"][0].value.crs == "EPSG:32633"
    assert transect.open(tmp_path / "maps/etna.tif").streams[0].clock == "index"


def test_a_plain_tiff_image_is_left_to_others(tmp_path: Path):
    import cv2

    cv2.imwrite(str(tmp_path / "photo.tif"), np.zeros((4, 4), np.uint8), [cv2.IMWRITE_TIFF_COMPRESSION, 1])
    match = formats.load("geotiff").recognises(transect.recording.source_of(tmp_path / "photo.tif"))
    assert match.confidence <= 0.3


def test_a_written_recording_opens_again(tmp_path: Path):
    said = formats.write(recording_of(dem(), dem("int16")), tmp_path / "out", "geotiff")
    assert said == ()
    again = transect.open(tmp_path / "out")
    np.testing.assert_array_equal(again["etna"][0].value.layers["elevation"], dem().layers["elevation"])
    formats.write(recording_of(dem()), tmp_path / "one.tif", "geotiff")
    assert transect.open(tmp_path / "one.tif").streams[0][0].value.transform == GEO_TRANSFORM
    with pytest.raises(UsageError):
        formats.write(recording_of(dem()), tmp_path / "out", "geotiff")
    with pytest.raises(UsageError):
        formats.write(recording_of(dem(), dem()), tmp_path / "two.tif", "geotiff")
    with pytest.raises(UnsupportedError):
        formats.write(Recording("x", ()), tmp_path / "none", "geotiff")


def test_what_is_no_raster_is_a_loss_and_the_others_stay(tmp_path: Path):
    (tmp_path / "a1.tif").write_bytes(encode_geotiff(dem()))
    (tmp_path / "a2.tif").write_bytes(b"II*\0nothing of the kind")
    (tmp_path / "a3.tif").write_bytes(b"")
    recording = transect.open(tmp_path)
    assert len(recording["a"]) == 1
    assert [loss.file for loss in recording.losses] == ["a2.tif", "a3.tif"]
    with pytest.raises(ParseError):
        transect.open(tmp_path, strict=True)


def test_a_header_that_claims_a_billion_cells_is_refused_without_taking_memory():
    data = bytearray(encode_geotiff(dem()))
    at = struct.unpack_from("<I", data, 4)[0]
    for entry in range(struct.unpack_from("<H", data, at)[0]):
        tag = struct.unpack_from("<H", data, at + 2 + 12 * entry)[0]
        if tag in (256, 257):  # ImageWidth, ImageLength
            struct.pack_into("<HHII", data, at + 2 + 12 * entry, tag, 4, 1, 100_000)
    with pytest.raises(ParseError, match=r"claims more cells|cannot be read"):
        decode_geotiff(bytes(data), "a.tif")


def test_a_cut_file_is_refused():
    data = encode_geotiff(GridMap({"a": np.random.default_rng(0).normal(size=(200, 200))}, GEO_TRANSFORM))
    with pytest.raises(ParseError):
        decode_geotiff(data[: len(data) // 2], "a.tif")


# GDAL quotes damaged bytes in its messages, and rasterio cannot decode them for the log
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@given(changes=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_mutated_files_raise_nothing_but_transect_errors(changes: list[tuple[float, int]]):
    data = bytearray(encode_geotiff(dem()))
    for place, value in changes:
        data[int(place * (len(data) - 1))] = value
    try:
        read = decode_geotiff(bytes(data), "a.tif")
    except TransectError:
        return
    assert read.layers


def test_without_rasterio_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "a.tif").write_bytes(encode_geotiff(dem()))
    real = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("rasterio"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtraError) as caught:
        transect.open(tmp_path / "a.tif", format="geotiff")
    assert "transect[geo]" in caught.value.hint

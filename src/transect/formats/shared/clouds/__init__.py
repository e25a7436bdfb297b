"""Point-cloud files: decoded when asked for, by their suffix; held against their size without decoding.

`from transect.formats.shared.clouds import decode_cloud, encode_cloud, cloud_loader, CLOUD_SUFFIXES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from transect.errors import ParseError, UnsupportedError
from transect.recording import Loss, Parsed, Source
from transect.recording.arrow import PAYLOAD
from transect.recording.source import Buffer
from transect.types import PointCloud

from ..file_groups import check_table, file_table
from ..file_heads import CLOUD_SUFFIXES, suffix_of
from .points import PointColumns, cloud_of

__all__ = ["cloud_loader", "cloud_of", "cloud_table", "decode_cloud", "encode_cloud"]


def decode_cloud(
    data: Buffer, name: str, *, partial: bool = False, columns: Sequence[str] | None = None, **attributes: Any
) -> PointCloud:
    """Decode a point-cloud file; raise ParseError where it does not hold what it promises.

    Parameters
    ----------
    data : buffer
        The file's content.
    name : str
        Name with the suffix of its format (one of `CLOUD_SUFFIXES`).
    partial : bool
        Return the complete points of a damaged file instead of raising, if there are any.
    columns : sequence of str, optional
        For raw `.bin`: field of each float32 of a point.
    attributes
        Further fields of `PointCloud` (`t_ns`, `frame`, `viewpoint`).
    """
    found = _decode(data, name, columns)
    if found.losses and not partial:
        loss = found.losses[0]
        raise ParseError(
            f"{name} does not hold all its points",
            where=loss.where,
            why=loss.reason,
            hint="decode_cloud(..., partial=True) returns those that are there",
        )
    if found.viewpoint is not None:
        attributes.setdefault("viewpoint", found.viewpoint)
    return cloud_of(found.columns, name, **attributes)


def _decode(data: Buffer, name: str, columns: Sequence[str] | None = None) -> PointColumns:
    suffix = suffix_of(name)
    if suffix not in CLOUD_SUFFIXES:
        raise UnsupportedError(
            f"{name} is no point cloud we know", hint=f"known are {', '.join(CLOUD_SUFFIXES)}"
        )
    if not len(data):
        raise ParseError(f"{name} is empty", where=name, why="it has 0 bytes")
    # One scan needs one of the modules.
    if suffix == ".pcd":
        from .pcd import decode_pcd

        return decode_pcd(data, name)
    if suffix == ".ply":
        from .ply import decode_ply

        return decode_ply(data, name)
    if suffix == ".vtk":
        from .vtk import decode_vtk

        return decode_vtk(data, name)
    from .plain import decode_raw, decode_text

    return decode_raw(data, name, columns) if suffix == ".bin" else decode_text(data, name)


def encode_cloud(cloud: PointCloud, suffix: str, encoding: str = "") -> bytes:
    """Encode a cloud as the file type of `suffix`.

    Parameters
    ----------
    suffix : str
        `.pcd`, `.ply`, `.vtk`, `.bin` (float32 x y z, intensity, ring), `.xyz` or `.csv`.
    encoding : str
        `ascii`, `binary`; for PCD also `binary_compressed` (its default), for PLY `binary_big_endian`.
    """
    if suffix == ".pcd":
        from .pcd import encode_pcd

        return encode_pcd(cloud, encoding or "binary_compressed")
    if suffix == ".ply":
        from .ply import encode_ply

        return encode_ply(cloud, encoding or "binary")
    if suffix == ".vtk":
        from .vtk import encode_vtk

        return encode_vtk(cloud, encoding or "binary")
    if suffix in (".bin", ".csv", ".xyz"):
        from .plain import encode_raw, encode_text

        return encode_raw(cloud) if suffix == ".bin" else encode_text(cloud)
    raise UnsupportedError(
        f"clouds cannot be written as {suffix!r}", hint=f"known are {', '.join(CLOUD_SUFFIXES)}"
    )


def cloud_loader(
    source: Source, frame: str = "", *, partial: bool = False, columns: Sequence[str] | None = None
) -> Callable[[Mapping[str, Any]], PointCloud]:
    """Return a Stream loader for rows whose `payload` is the name of a point-cloud file.

    Parameters
    ----------
    partial : bool
        Load what is there of a damaged cloud; for streams that report the rest as losses (see `cloud_table`).
    columns : sequence of str, optional
        For raw `.bin` files.
    """

    def load(row: Mapping[str, Any]) -> PointCloud:
        name = row[PAYLOAD]
        buffer = source.buffer(name)
        return decode_cloud(buffer, name, partial=partial, columns=columns, t_ns=row["t_ns"], frame=frame)

    return load


def cloud_table(
    source: Source, t_ns: Sequence[int], files: Sequence[str], columns: Sequence[str] | None = None
) -> Parsed:
    """Return the table of a stream of clouds whose loader is `partial`: missing points are losses.

    Binary files are checked by header and size only; text is read once, and the result cached. Files without
    any valid point are left out.
    """
    return check_table(t_ns, files, lambda name: _losses(source, name, columns))


def _losses(source: Source, name: str, columns: Sequence[str] | None) -> tuple[Loss, ...]:
    size, suffix = source.size(name), suffix_of(name)
    found: tuple[Loss, ...] | None = None
    if size and suffix == ".bin" and columns:
        from .plain import raw_losses

        found = raw_losses(size, columns, name)
    elif suffix == ".pcd":
        from . import pcd

        found = pcd.header_losses(source.head(name, 4096), size, name)
    elif suffix == ".ply":
        from . import ply

        found = ply.header_losses(source.head(name, 4096), size, name)
    if found is not None:
        return found
    from transect.recording import cache  # only text is read and its losses remembered

    return cache.parse(
        source, name, f"cloud.losses/1|{name}", lambda data: _read_losses(data, name), text=False
    ).losses


def _read_losses(data: Buffer, name: str) -> Parsed:
    found = _decode(data, name)
    cloud_of(found.columns, name)
    return Parsed(file_table([], []), found.losses)

"""CDFF MessagePack log: one map from `/task.port` to samples, as written by pocolog2msgpack and CDFF-Dev."""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING

from transect.formats.shared.interface import Match, no

from ..rock import log_files

if TYPE_CHECKING:
    from pathlib import Path

    from transect.recording import Recording, Source

    from ..rock.kinds import QuaternionOrder

SUFFIXES = (".msg", ".msg.zz")
_MAP_AND_KEY = re.compile(
    rb"(?:[\x81-\x8f]|\xde..|\xdf....)(?:(?P<pair>\x92)|(?:[\xa1-\xbf]|\xd9.|\xda..)(?P<key>[!-~]+))",
    re.DOTALL,
)


def recognises(source: Source) -> Match:
    """Recognise a MessagePack map whose first key is the name of a port, or a pair of frames."""
    files = log_files(source, SUFFIXES)
    if not files:
        return no("no file is named .msg")
    if len(source.names) > 1:
        good = next((f for f in files[:3] if _confidence(source, f)), None)
        return Match(0.85, f"{good} begins like a MessagePack log") if good else no(_decline(files[0]))
    confidence = _confidence(source, files[0])
    return Match(confidence, "a MessagePack map of ports") if confidence else no(_decline(files[0]))


def _decline(file: str) -> str:
    named = file.lower().endswith(SUFFIXES)
    return f"{file} is named so but begins with no map of ports" if named else "no MessagePack map of ports"


def _confidence(source: Source, file: str) -> float:
    head = source.head(file, 4096)
    if file.lower().endswith(".zz"):
        try:
            head = zlib.decompressobj(wbits=47).decompress(head, 4096)
        except zlib.error:
            return 0.0
    match = _MAP_AND_KEY.match(head)
    if match is None:
        return 0.0
    named = file.lower().endswith(SUFFIXES)
    if match["pair"] is not None:
        return 0.85 if named else 0.0
    return 0.9 if match["key"].startswith(b"/") else 0.7 if named else 0.0


def read(
    source: Source, *, quaternion: QuaternionOrder | None = None, definitions: str | None = None
) -> Recording:
    """Read a log, a folder of logs and their parts, or a configuration file.

    Parameters
    ----------
    quaternion : {"xyzw", "wxyz"}, optional
        Order of the numbers of quaternions; by default x, y, z, w unless they are clearly scalar first.
    definitions : path, optional
        ASN.1 definitions of bit streams; by default the `.asn` files beside the log.
    """
    from . import reading

    return reading.read(source, quaternion=quaternion, definitions=definitions)


def write(
    recording: Recording,
    path: Path,
    *,
    chunk: int | str = 0,
    flatten: bool = False,
    compress: bool = False,
    bitstream: str | Path | None = None,
) -> tuple[str, ...]:
    """Write all streams as a log.

    Times are microseconds, as in the logs that pocolog2msgpack makes; quaternions are x, y, z, w.

    Parameters
    ----------
    path : Path
        A file; default suffix `.msg`, or `.msg.zz`. For a chunked log `log.msg` stands for
        `log_000000000.msg` etc.; without suffix it is the folder of the chunks.
    chunk : int
        Samples per file, in time order; every file has all streams. By default there is one file.
    flatten : bool
        A list per field, `/task.port/field/sub`, instead of a list of samples.
    compress : bool
        With zlib; also implied by the suffix `.zz`.
    bitstream : path, optional
        ASN.1 definitions for writing poses as `asn1_bitstream` (uPER).
    """
    from . import writing

    return writing.write(recording, path, chunk, flatten, compress, bitstream)

"""Writing packet files, packets sorted by SCLK."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from transect.base.files import refuse_existing, write_bytes
from transect.datasets.insight.products.names import APIDS, new_name
from transect.errors import UnsupportedError
from transect.recording import Recording, Stream
from transect.recording.arrow import PAYLOAD

from .reading import MAX_PAYLOAD, SEQUENCES, packet


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write packet files into a new folder, packets sorted by SCLK; return what could not be carried."""
    path = Path(path)
    refuse_existing(path, hint="name a new folder")
    codes = {f"Packets/{name}": apid for apid, name in APIDS.items()}
    streams = {codes[s.name]: s for s in recording if s.name in codes and s.loader and len(s)}
    if not streams:
        raise UnsupportedError(
            f"{recording.name} has no packets", hint=f"its streams are {', '.join(sorted(codes))}"
        )
    files: dict[str, list[tuple[int, bytes]]] = {}
    for apid, stream in streams.items():
        for name, t_ns, data in _packets(apid, stream):
            files.setdefault(name, []).append((t_ns, data))
    for name, packets in files.items():
        packets.sort(key=lambda item: item[0])
        write_bytes(path / name, b"".join(data for _, data in packets))
    left = [s.name for s in recording if s not in streams.values()]
    return (f"{', '.join(left)}: no packets",) if left else ()


def _packets(apid: int, stream: Stream) -> list[tuple[str, int, bytes]]:
    """Return file name, time and bytes of each packet of a stream."""
    new = str(new_name(apid, "packets.ccsds", (int(stream.t_ns.min()), int(stream.t_ns.max()))))
    made: list[tuple[str, int, bytes]] = []
    for number, sample in enumerate(stream):
        row, payload = sample.row, bytes(sample.payload)
        if len(payload) > MAX_PAYLOAD:
            raise UnsupportedError(
                f"a payload of {len(payload)} bytes does not fit in a packet",
                where=f"{stream.name}@{sample.t_ns}",
            )
        given = str(row.get(PAYLOAD) or "")
        safe = given and not PurePosixPath(given).is_absolute() and ".." not in PurePosixPath(given).parts
        data = packet(
            apid,
            sample.t_ns,
            row.get("sequence", number % SEQUENCES),
            payload,
            flags=row.get("sequence_flags", 3),
            command=bool(row.get("command", False)),
        )
        made.append((given if safe else new, sample.t_ns, data))
    return made

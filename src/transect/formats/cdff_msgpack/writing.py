"""Writing CDFF MessagePack logs."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

from transect.errors import UsageError
from transect.recording import Recording, Stream, files

from .._payloads import loadable
from .._rock.samples import Form, form_of, not_carried

_US = 1000


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write all streams as one log; a path without suffix gets `.msg`.

    Times are microseconds, as in the logs that pocolog2msgpack makes; quaternions are x, y, z, w.
    """
    import msgpack

    path = path if path.suffix else path.with_suffix(".msg")
    if path.exists():
        raise UsageError(f"{path} is there already", hint="choose a new file with -o")
    packer: Any = msgpack.Packer()
    said: list[str] = []
    chosen = [(loadable(s, said), form) for s in recording.streams if (form := form_of(s)) is not None]
    if not chosen:
        raise UsageError(f"{recording.name} has no stream that can be written")
    with files.atomic_write(path) as out:
        out.write(packer.pack_map_header(2 * len(chosen)))
        for stream, form in chosen:
            _write_stream(out, packer, stream, form)
    return (*said, *not_carried(recording, [stream for stream, _ in chosen], both_times=False))


def _write_stream(out: IO[bytes], packer: Any, stream: Stream, form: Form) -> None:
    out.write(packer.pack(stream.name))
    out.write(packer.pack_array_header(len(stream)))
    for sample in form.samples(stream):
        out.write(packer.pack(sample))
    logged = stream.log_ns if form.timed and stream.log_ns is not None else stream.t_ns
    out.write(packer.pack(f"{stream.name}.meta"))
    out.write(packer.pack({"type": form.type_name, "timestamps": (logged // _US).tolist()}))

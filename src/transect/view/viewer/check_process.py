"""Judges the sensors beside the server: in a process of its own, so that answers do not wait for the checks.

``python -m transect.view.viewer.check_process`` reads a request as a line of JSON, and writes the verdicts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from threading import Thread
from typing import Any

from transect.base.clocks import NS
from transect.base.processes import python_command
from transect.errors import TransectError
from transect.recording import Recording

NICENESS = 10
Windows = dict[str, list[list[Any]]]
"""By stream: start and end in seconds, state and reason of each window."""


def judge(recording: Recording, start_ns: int) -> Windows:
    """Return how far each sensor can be trusted; times count from a start, in seconds."""
    from transect.integrity import check

    return {
        name: [[(v.t0_ns - start_ns) / NS, (v.t1_ns - start_ns) / NS, v.state, v.reason] for v in verdicts]
        for name, verdicts in check(recording).by_stream.items()
    }


def judge_apart(recording: Recording, start_ns: int) -> Windows:
    """Return what `judge` does, from a process that opens the recording anew; one in memory, from here."""
    if not recording.sources:
        return judge(recording, start_ns)
    request = {
        "paths": [str(source.path) for source in recording.sources],
        "format": recording.format,
        "options": dict(recording.options),
        "streams": [stream.name for stream in recording],
        "start_ns": start_ns,
    }
    return json.loads(_ask(json.dumps(request)))


def _ask(request: str) -> str:
    """Return what a process answers to a request; its input stays open while it is wanted."""
    command = python_command("-m", __name__)
    with (
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{request}\n")
        process.stdin.flush()
        answered = process.stdout.read()
        if process.wait():
            said.seek(0)
            raise TransectError("the sensors could not be judged", why=said.read().strip()[-300:])
        return answered


def answer(request: dict[str, Any]) -> Windows:
    """Open what a request names and judge those of its streams that are there."""
    from transect import formats

    whole = formats.open(*request["paths"], format=request["format"], **request["options"])
    wanted = set(request["streams"])
    streams = tuple(stream for stream in whole if stream.name in wanted)
    return judge(whole.replace(streams=streams), request["start_ns"])


def main() -> None:
    """Answer a line of standard input, without getting in the way of others."""
    os.nice(NICENESS)
    request = json.loads(sys.stdin.readline())
    Thread(target=_end_with_asker, daemon=True).start()
    sys.stdout.write(json.dumps(answer(request)))


def _end_with_asker() -> None:
    """Stop at once when the process that asked is gone, however it ended: its end of the pipe closes."""
    os.read(sys.stdin.fileno(), 1)
    os._exit(1)


if __name__ == "__main__":
    main()

"""Judges the sensors beside the server: in a process of its own, so that answers do not wait for the checks.

``python -m transect.view.viewer.judging`` reads a request as JSON, and writes the verdicts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from transect.base.clocks import NS
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
    command = [sys.executable, "-m", __name__]
    done = subprocess.run(command, input=json.dumps(request), capture_output=True, text=True, check=False)
    if done.returncode:
        raise TransectError("the sensors could not be judged", why=done.stderr.strip()[-300:])
    return json.loads(done.stdout)


def answer(request: dict[str, Any]) -> Windows:
    """Open what a request names and judge those of its streams that are there."""
    from transect import formats

    whole = formats.open(*request["paths"], format=request["format"], **request["options"])
    wanted = set(request["streams"])
    streams = tuple(stream for stream in whole if stream.name in wanted)
    return judge(whole.replace(streams=streams), request["start_ns"])


def main() -> None:
    """Answer standard input, without getting in the way of others."""
    os.nice(NICENESS)
    sys.stdout.write(json.dumps(answer(json.load(sys.stdin))))


if __name__ == "__main__":
    main()

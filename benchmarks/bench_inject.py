"""Every fault in every format: written, opened again, and looked for; how many claims are true.

What was written is compared with the same recording written without a fault. A format refuses what it cannot
hold; what it does not refuse must be there.
"""

import tempfile
from pathlib import Path

from tests.simulation.faults.scene import labelled_rows, scene
from tests.simulation.faults.test_carried import differing

from benchmarks import _harness
from transect import formats
from transect.errors import TransectError, UnsupportedError
from transect.recording import Recording, arrow
from transect.simulation.faults import FAULTS, LABELS
from transect.simulation.faults.written import find_stream, write_injected

DURATION_S = 2


def count_claims(
    recording: Recording, format: str, fault: str, folder: Path, clean: Recording
) -> tuple[int, int]:
    """Return in how many streams labels claim a fault, and in how many of them it is."""
    try:
        written = write_injected(recording, folder, fault, 0.9, 3, format=format)
    except UnsupportedError:
        return 0, 0
    again = formats.open(written.path)
    if LABELS not in again:
        return 0, 0
    labels, true = again[LABELS].table, 0
    claimed = set(arrow.texts(labels, "stream"))
    for name in claimed:
        stream, other = find_stream(again, recording[name]), find_stream(clean, recording[name])
        # A format that puts several sensors into one packet has other samples, at the same times.
        same = other is not None and len(other) == len(recording[name])
        rows = labelled_rows(labels, name) if same else set(range(10**6))
        true += bool(stream and other and differing(other, stream) & rows)
    return len(claimed), true


def main() -> None:
    recording = scene().slice("+0s", f"+{DURATION_S}s")
    for format in formats.writing_names():
        claims = held = 0
        with tempfile.TemporaryDirectory() as place:
            try:
                formats.write_folder(recording, Path(place) / "clean", format)
                clean = formats.open(*(p for p in Path(place).iterdir() if p.name.startswith("clean")))
            except TransectError:
                continue  # it holds nothing of this recording, or nothing that opens by itself
            for fault in (name for name, kind in FAULTS.items() if kind.apply is not None):
                claimed, true = count_claims(recording, format, fault, Path(place) / fault, clean)
                claims, held = claims + claimed, held + true
        if claims:
            _harness.quality(
                f"claims of 22 faults that are true ({format}, {claims})", held / claims, "", at_least=1.0
            )


if __name__ == "__main__":
    main()

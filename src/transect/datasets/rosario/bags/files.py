"""Assignment of files to the parts of a Rosario sequence, by their names.

Two layouts are supported: that of the paper (Fig. 4 and 4.4) and that of the published scripts,
``sequence0N/{zed/, imu.log, gps.log, odometry_raw.log}`` with ``calibration0N.yaml`` and
``sequence0N_gt.txt`` beside the folder. They differ in names only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from transect.errors import UsageError
from transect.recording import Source

KINDS = {
    "images": r"(?:left|right)_\d+(?:\.\d+)?\.png",
    "imu": r"imu(?:_?\d\d)?\.(?:log|txt)",
    "gps": r"gps(?:_?\d\d)?\.(?:log|txt|nmea)",
    "odometry": r"odometry(?:_?\d\d)?\.(?:log|txt)",
    "odometry_raw": r"odometry_raw(?:_?\d\d)?\.(?:log|txt)",
    "calibration": r"calibration(?:_?\d\d)?\.(?:txt|ya?ml)",
    "truth": r"(?:sequence_?\d\d_gt|ground_?truth(?:_?\d\d)?|gt(?:_?\d\d)?)\.txt",
}
_KIND = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in KINDS.items()), re.IGNORECASE)
LOGS = ("imu", "gps", "odometry", "odometry_raw")
_NUMBER = re.compile(r"(\d\d)(?!.*\d)")
_IMAGE_FOLDER = re.compile(r"zed.*|images?|stereo.*|cameras?", re.IGNORECASE)

File = tuple[Source, str]


@dataclass
class Sequence:
    """The files of one sequence."""

    name: str  # name of its folder
    number: str = ""  # `01` to `06`, "" if unknown
    files: dict[str, File] = field(default_factory=dict[str, File])  # by the kinds `KINDS`, without images
    # all files of the image folder, in the recording's own source
    images: list[str] = field(default_factory=list[str])


def kind_of(name: str) -> str:
    """Return the kind of a file by its name, "" for other files."""
    match = _KIND.fullmatch(name.rpartition("/")[2])
    return (match.lastgroup or "") if match else ""


def is_specific_name(kind: str, name: str) -> bool:
    """Return whether the name of a file is specific to Rosario, unlike groundtruth.txt."""
    if kind == "truth":
        return _NUMBER.search(name.rpartition("/")[2]) is not None
    return kind in ("images", "odometry_raw")


def find_sequences(source: Source) -> list[Sequence]:
    """Return the sequences under a path, by name."""
    found: dict[str, Sequence] = {}
    loose: list[tuple[str, str]] = []
    for name in source.names:
        kind, (folder, _, _) = kind_of(name), name.rpartition("/")
        if kind == "images":
            _sequence(found, _home_of_images(folder), source).images.append(name)
        elif kind in LOGS:
            _sequence(found, folder, source).files[kind] = (source, name)
        elif kind:
            loose.append((kind, name))
    for kind, name in sorted(loose, key=lambda item: -item[1].count("/")):
        for sequence in _owners(found, kind, name):
            sequence.files.setdefault(kind, (source, name))
    if "" in found:
        _find_beside(source, found[""])
    return sorted(found.values(), key=lambda s: s.name)


def _sequence(found: dict[str, Sequence], folder: str, source: Source) -> Sequence:
    if folder not in found:
        name = folder.rpartition("/")[2] or source.stem
        found[folder] = Sequence(name, _number(name))
    return found[folder]


def _home_of_images(folder: str) -> str:
    above, _, last = folder.rpartition("/")
    return above if _IMAGE_FOLDER.fullmatch(last) else folder


def _number(name: str) -> str:
    match = _NUMBER.search(name.rpartition("/")[2])
    return match[1] if match and "sequence" in name.lower() else ""


def _owners(found: dict[str, Sequence], kind: str, name: str) -> Iterable[Sequence]:
    """Return the sequences of a calibration or ground truth: that of its folder, of its number, or all."""
    folder, _, base = name.rpartition("/")
    match = _NUMBER.search(base)
    if folder in found and (not match or found[folder].number in ("", match[1])):
        return [found[folder]]
    if match is None:
        return found.values()
    numbered = [s for s in found.values() if s.number == match[1]]
    if not numbered and kind == "truth":
        alone = f"sequence{match[1]}"
        return [found.setdefault(alone, Sequence(alone, match[1]))]
    return numbered


def _find_beside(source: Source, sequence: Sequence) -> None:
    """Find calibration and ground truth beside the opened folder, as in the layout of the scripts."""
    if not sequence.number or not source.path.is_dir():
        return
    n = sequence.number
    for kind, names in {
        "calibration": (f"calibration{n}.yaml", f"calibration{n}.txt"),
        "truth": (f"sequence{n}_gt.txt",),
    }.items():
        for name in names:
            path = source.path.parent / name
            if kind not in sequence.files and path.is_file():
                sequence.files[kind] = (source.beside(path), name)


def choose_sequence(sequences: list[Sequence], wanted: str | int | None, where: str) -> Sequence:
    """Return the selected sequence, or the only one."""
    numbers = [s.number or s.name for s in sequences]
    if wanted is None and len(sequences) == 1:
        return sequences[0]
    text = f"{wanted:02d}" if isinstance(wanted, int) else str(wanted or "")
    for sequence in sequences:
        if wanted is not None and text in (sequence.name, sequence.number, sequence.number.lstrip("0")):
            return sequence
    raise no_sequence(wanted, numbers, where, numbers[0] if numbers else "")


def no_sequence(wanted: str | int | None, known: Collection[str], where: str, first: str) -> UsageError:
    """Return the error for an unknown sequence, or for several without a selection."""
    several, none = f"there are {len(known)} sequences here", f"there is no sequence {wanted!r} here"
    named = f"--option sequence={first} (in Python sequence={first!r})"
    return UsageError(
        several if wanted is None else none,
        where=where,
        why=f"found: {', '.join(known) or 'none'}",
        hint=named if first else "open the folder of a sequence",
    )

"""InSight IDA products: status, history, parameters, and SciHi/SciLo tables (archive SIS rev. 3.3).

A recording is a folder of such files, any subset, also inside sol folders, or one file. All times are SCLK;
no UTC is computed. A stream holds the samples of all files of its kind, and its column `file` names the one
a sample is from. Parameters are `recording.conditions["parameters"]`: set name to key to value, SI, the
latest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.formats.shared.interface import Match, no

from .names import kind_of_name

MAX_UNNAMED_TEXTS = 50
"""More text files without product names are not opened for recognition."""

if TYPE_CHECKING:
    from pathlib import Path

    from transect.recording import Recording, Source


def recognises(source: Source) -> Match:
    """Recognise the file names of SIS Table 8, else the first lines of a few text files."""
    kinds = [kind for name in source.names if (kind := kind_of_name(name))]
    data = sum(kind != "label" for kind in kinds)
    if data:
        return Match(0.97, f"{data} of {len(source.names)} files are named as IDA products")
    if kinds:
        return no("it has labels of IDA products but not their data")
    texts = [name for name in source.names if name.lower().endswith((".txt", ".csv"))]
    if not texts:
        return no("no file is named A<apid>_<sol>_<sclk>_<sclk>_<time>_<product>, and none is .txt or .csv")
    if len(texts) > MAX_UNNAMED_TEXTS:
        return no("no file is named A<apid>_<sol>_<sclk>_<sclk>_<time>_<product>")
    from .names import HEAD_BYTES, kind_of_content

    found = {kind for name in texts if (kind := kind_of_content(source.head(name, HEAD_BYTES)))}
    if found:
        return Match(0.9, f"text of the IDA: {', '.join(sorted(found))}")
    return no("its text has no ra_status, sys_status, Parameter Set or #time(s) header")


def read(source: Source) -> Recording:
    """Read IDA products.

    Returns
    -------
    Recording
        `Arm/SciHi`, `Arm/SciLo`, `Arm/Status`, `System/Status`, `History/...`; joint angles, the tool's place
        and the forces are streams below these.
    """
    from . import reading

    return reading.read(source)


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write a recording as IDA products into a new folder; return what could not be carried."""
    from .writing import write

    return write(recording, path)

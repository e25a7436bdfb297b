"""Files that another program cuts short while they are open: an error or a loss, not a killed process."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.formats.corpus import sample

from transect.base.file_bytes import FileBytes, gather, part_of
from transect.errors import ParseError

SAMPLES = ("rosbag-ros1", "pocolog", "cdff_msgpack", "ameds-zip")
READ_SHORTENED = """
import os, sys
import transect
from transect.errors import TransectError

for path, *files in (line.split(chr(9)) for line in sys.argv[1:]):
    recording = transect.open(path)
    for file in files:
        os.truncate(file, 5)
    for stream in recording:
        try:
            stream.table
            stream[0].value
        except TransectError:
            pass
"""


def test_a_recording_that_is_cut_short_while_it_is_open_does_not_end_the_process(tmp_path: Path):
    opened = [str(sample(name).write(tmp_path / name)) for name in SAMPLES]
    files = [[str(path) for path in (tmp_path / name).rglob("*") if path.is_file()] for name in SAMPLES]
    lines = ["\t".join(paths) for paths in zip(opened, *zip(*files, strict=True), strict=True)]
    command = [sys.executable, "-c", READ_SHORTENED, *lines]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_bytes_that_are_no_longer_there_are_a_parse_error(tmp_path: Path):
    path = tmp_path / "a.bin"
    path.write_bytes(bytes(range(256)) * 1000)
    content = FileBytes(path)
    part = part_of(content, 256, 256_000)
    assert (len(part), part[1], part[-1], bytes(part[2:4])) == (255_744, 1, 255, b"\2\3")
    assert content[255_998:] == b"\xfe\xff"
    assert content[5:2] == content[300_000:] == b""
    os.truncate(path, 100_000)
    with pytest.raises(ParseError, match="was truncated") as caught:
        bytes(part)
    assert caught.value.where == f"{path}@100000"
    with pytest.raises(IndexError):
        content[256_000]


@pytest.mark.parametrize("step", [70, 20_000, -70])
def test_places_of_a_file_are_gathered_as_those_of_its_bytes(tmp_path: Path, step: int):
    data = bytes(range(251)) * 1000
    (tmp_path / "a.bin").write_bytes(data)
    places = np.arange(0, len(data) - 5, abs(step))[:: 1 if step > 0 else -1]
    assert np.array_equal(gather(FileBytes(tmp_path / "a.bin"), places, 5), gather(data, places, 5))

"""The same seed gives the same bytes, in another process and for any hash seed of Python.

Run as a script it prints what its test compares: one process for all worlds, since the imports cost more.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
DAYS = {
    "houses": ("marulan", (0.4, 3, 0.05), {"scene": "houses", "human": "walking"}, ()),
    "other houses": ("marulan", (0.4, 4, 0.05), {"scene": "houses", "human": "walking"}, ()),
    "field": ("rosario", (1.2, 3, 0.2), {}, ("Imu", "Gps/*", "Odometry", "GroundTruth")),
}
"""World; seconds, seed, scale; conditions; streams: of the field's images, see the tests of rendering."""


def digests(*names: str) -> dict[str, dict[str, str]]:
    """By day, the digest of each file; and of a picture."""
    from transect.simulation.day import WorldOptions, simulate, write_day

    found = {"picture": {"all": picture()}}
    for name in names:
        world, numbers, conditions, streams = DAYS[name]
        with tempfile.TemporaryDirectory() as folder:
            write_day(simulate(world, WorldOptions(*numbers, streams, conditions)), Path(folder, "day"))
            found[name] = {
                str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
                for path in sorted(Path(folder).rglob("*"))
                if path.is_file()
            }
    return found


def picture() -> str:
    from tests.simulation.test_render import digest

    return digest()


def test_another_process_with_another_hash_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    command = [sys.executable, "-m", "tests.simulation.test_determinism"]
    environment = {**os.environ, "PYTHONHASHSEED": "77"}
    child = subprocess.run(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    here = digests(*DAYS)
    other = here.pop("other houses")
    assert json.loads(child.stdout) == here
    assert len(here["houses"]) > 10
    assert here["houses"] != other
    assert {"imu.log", "gps.log", "odometry.log"} <= {Path(name).name for name in here["field"]}


if __name__ == "__main__":
    print(json.dumps(digests("houses", "field")))

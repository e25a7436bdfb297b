"""Digests of what transect computes and writes, to show that a change of the code changed no result.

    python -m tools.digests record FILE    # before the change
    python -m tools.digests compare FILE   # after it; exits with 1 and names what differs

Short days are simulated in every world with fixed seeds, once, and kept in a temporary folder for
everything that follows: every implementation of every compound, every fault of `transect inject`, `transect
check`, the tables, bundles of both archive profiles, exports, and the parsed streams of the recordings in
`../shared/data` if it is there. Only commands and public names are used, so modules may move. A digest is
recorded for each file that is written, each port of a run, and each document that a command prints as JSON;
its name is a path such as `world/etna/truth/slip.parquet` or
`compound/LidarOdometry/VoxelMap/etna/odometry.pose`.

Parsed tables are cached in the temporary folder, not in the user's cache, so a changed reader is noticed.
Compiled loops are kept between runs. Digests depend on the machine and on the versions of numpy, OpenCV and
others: record and compare in one environment.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from tests.commands import transect as command

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("TRANSECT_TEST_DATA", ROOT.parent / "shared" / "data"))
MAX_FILES = 30
"""Files that are tried of a folder of real data that is no recording itself."""
ALLOWED_EXITS = (0, 3, 4)
"""3: data were lost in reading or writing; 4: a sensor is BAD, or a result must not be trusted."""

Digests = dict[str, str]
Call = Callable[[str, Path], Digests]


@dataclass(frozen=True)
class Result:
    """Digests of a case; None if it failed, and why."""

    name: str
    digests: Digests | None
    error: str
    cpu_s: float


@dataclass(frozen=True)
class Day:
    """A simulated day: arguments of `transect simulate`."""

    world: str
    seconds: float
    scale: float = 1.0
    streams: tuple[str, ...] = ()
    conditions: Mapping[str, str] = field(default_factory=dict[str, str])

    def arguments(self) -> list[str]:
        """Return what follows `transect simulate`, without the folder."""
        said = [self.world, "--seconds", f"{self.seconds}", "--scale", f"{self.scale}", "--seed", "7"]
        said += [word for glob in self.streams for word in ("--streams", glob)]
        return said + [word for pair in self.conditions.items() for word in ("--condition", "=".join(pair))]


def _lasers(seconds: float, **conditions: str) -> Day:
    return Day("marulan", seconds, 0.1, ("Laser*", "Nav"), conditions)


DAYS: Mapping[str, Day] = {
    "etna": Day("etna", 3, 0.2),
    "insight": Day("insight", 60, 0.25),
    "marulan": Day("marulan", 2, 0.15),
    "rosario": Day("rosario", 1, 0.4),
    # Conditions that reach code which the days above do not.
    "etna-picking": Day(
        "etna", 3, 0.1, ("*Arm*", "Platform*", "Gnss*"), {"task": "rock_picking", "rtk": "gaps"}
    ),
    "etna-lidar": Day(
        "etna", 2, 0.2, ("Lidar", "Gnss/Pose"), {"lidar": "measured", "route": "far", "soil": "firm"}
    ),
    "etna-night": Day("etna", 2, 0.05, ("MainCam",), {"light": "night_with_lights", "depth": "on"}),
    "insight-soil": Day(
        "insight", 60, 0.2, (), {"story": "soil", "fault": "encoder-pot", "no_load": "subtracted"}
    ),
    "insight-imaging": Day("insight", 60, 0.2, (), {"story": "imaging", "fault": "vref,stalled"}),
    "marulan-boards": Day("marulan", 3.9, 0.4, ("LaserHorizontal", "VideoVisual"), {"scene": "boards"}),
    "marulan-yard": _lasers(1, scene="yard", human="visitors", air="dust"),
    "marulan-row": _lasers(1, scene="row", sensors="real", wind="breeze"),
    "marulan-static": Day(
        "marulan",
        1,
        0.1,
        ("Radar*", "VideoIR"),
        {"scene": "static", "human": "walking", "reflectors": "standing", "air": "rain"},
    ),
    "marulan-night": Day(
        "marulan", 1, 0.1, ("Video*",), {"scene": "houses", "light": "night_lights", "air": "fog"}
    ),
    "rosario-round": Day("rosario", 1, 0.1, (), {"route": "round", "visitors": "some", "light": "low_sun"}),
    "rosario-turn": Day("rosario", 12, 0.1, ("Imu", "Gps*", "Odometry"), {"start": "turn", "rtk": "gaps"}),
}


@dataclass(frozen=True)
class Runs:
    """Implementations of a compound that run on one day, and how; none named: all of them."""

    compound: str
    day: str
    implementations: tuple[str, ...] = ()
    wire: Mapping[str, str] = field(default_factory=dict[str, str])
    set: Mapping[str, Any] = field(default_factory=dict[str, Any])
    end: str | None = None
    check: bool = False


CLOUDS, MOUNDS, DEMS, NO_DAY = "clouds", "mounds", "dems", "-"
"""In place of a day: two scans of one, two clouds of invented ground, the maps of two days, and none."""
DEM_DAYS = ("etna", "etna-lidar")
_DEMS = {"reference": "dem/dem", "moved": "dem_2/dem"}
_TRUE_PATH = {"pose": "truth/trajectory"}
_BOARD = {"calibration.square": 0.0749, "calibration.square_height": 0.0747, "calibration.min_boards": 6}
COMPOUNDS: Sequence[Runs] = (
    Runs("LidarOdometry", "etna", ("VoxelMap", "PointToPlane")),
    Runs("LidarSlam", "etna", ("Places", "Anchored")),
    Runs("PoseFusion", "etna"),
    Runs("PoseFusion", "rosario-turn", ("ErrorStateFilter", "BatchSmoother", "FixedLagSmoother"), check=True),
    Runs("WheelDrift", "etna", ("FourWheelSteer",)),
    Runs("VisualOdometry", "etna", ("Mono", "MonoIns"), end="+1s"),
    Runs("DemGeneration", "etna", ("FromLidar",), end="+1s"),
    Runs("DemGeneration", "etna", ("FromPoses",), _TRUE_PATH, end="+1s"),
    Runs("DemGeneration", "rosario", ("FromStereo",), end="+0.5s"),
    Runs("DemGeneration", "rosario", ("FromStereoAndPoses",), _TRUE_PATH, end="+0.5s"),
    Runs(
        "PoseSwitching", "etna", ("EndToEnd",),
        {"first": "Platform/2DPoseEstimate", "second": "truth/trajectory", "third": "MainCam/PoseEstimate"},
    ),
    Runs("VisualOdometry", "rosario", ("KltKeyframes", "KltFrameToFrame", "DescriptorTracks")),
    Runs("VisualSlamStereo", "rosario", ("Places", "Anchored")),
    Runs("StereoQuality", "rosario", ("Landmarks",), end="+0.5s"),
    Runs("Reconstruction3D", "rosario", (), end="+0.4s"),
    Runs("LaserMapping", "marulan", ("RecordedFrames",)),
    Runs("LaserMapping", "marulan", ("NavStates",), {"nav": "Nav"}),
    Runs("RadarMapping", "marulan", ("RecordedFrames",)),
    Runs("RadarMapping", "marulan", ("NavStates",), {"nav": "Nav"}),
    Runs("LaserSlam", "marulan", ("Scans",), {"scan": "LaserHorizontal"}),
    Runs("LaserSlam", "marulan", ("Led",), {"scan": "LaserHorizontal", **_TRUE_PATH}),
    Runs("LaserCameraCalibration", "marulan-boards", ("PlessZhang",), set=_BOARD),
    Runs("CloudRegistration", CLOUDS),
    Runs("Coregistration", DEMS, ("HeightMaps",), _DEMS),
    Runs("Coregistration", MOUNDS, ("Clouds",)),
    Runs("AbsoluteLocalisation", DEMS, ("SlopesAndHeights",), _DEMS),
)  # fmt: skip
"""A case fails for each implementation of any compound that is missing here."""
TABLES: Mapping[str, tuple[str, ...]] = {
    "arm": ("insight",),
    "faults": ("insight-soil",),
    "odometry": ("rosario",),
    "sensors": ("marulan",),
    "slip": ("etna",),
    "traverse": ("etna", "rosario"),
}
ARCHIVED = ("rosario-turn", "insight", "marulan-static")
FAULTED = ("rosario-round", "insight-imaging")
"""A fault happens in the first of these days that can have it."""
AIR_FAULTS = {
    "dust": "marulan-row",
    "smoke": "etna-lidar",
    "fog": "etna-lidar",
    "rain": "marulan-row",
    "occlusion": "etna-lidar",
}
EXPORTS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "rosario-round": (
        ("x.mcap",), ("x.bag",), ("x.db3",), ("x.mcap", "foxglove"), ("x.mcap", "mcap"), ("x", "parquet"),
        ("x", "csv"), ("x.gpx",), ("x.kml",), ("x.geojson",),
    ),
    "etna-lidar": (("x.mcap",), ("x.bag",), ("x.mcap", "foxglove"), ("x", "parquet")),
}  # fmt: skip
"""File name, and the format where the suffix does not name it. Each world writes its own format."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Record digests, or compare with recorded ones."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.digests", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("verb", choices=("record", "compare"))
    parser.add_argument("file", type=Path, help="JSON: digests by name")
    parser.add_argument(
        "--only",
        metavar="GLOB",
        action="append",
        help="such as 'compound/LidarOdometry/*', 'world/etna/*'; may be repeated",
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    parser.add_argument("--list", action="store_true", help="print the cases instead of running them")
    chosen = parser.parse_args(arguments)
    cases = [case for case in list_cases() if _is_wanted(case, chosen.only)]
    if chosen.list:
        print("\n".join(cases))
        return 0
    if not cases:
        parser.error(f"no case matches {' '.join(chosen.only)}; --list prints them")
    known = json.loads(chosen.file.read_text("utf-8")) if chosen.verb == "compare" else {}
    began = time.monotonic()
    found, failed = compute(cases, chosen.jobs)
    print(f"{len(found)} digests of {len(cases)} cases in {time.monotonic() - began:.0f} s")
    for case, why in failed.items():
        print(f"failed: {case}: {why}")
    if chosen.verb == "record":
        chosen.file.write_text(json.dumps(dict(sorted(found.items())), indent=1) + "\n", "utf-8")
        return int(bool(failed))
    here = {
        name: digest for name, digest in known.items() if any(name.startswith(f"{case}/") for case in cases)
    }
    differences = list_differences(here, found)
    print("\n".join(differences) if differences else "no difference")
    return int(bool(differences or failed))


def list_differences(known: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """Return a line for each name whose digest is another, or that only one side has."""
    lines: list[str] = []
    for name in sorted({*known, *found}):
        if name not in found:
            lines.append(f"gone: {name}")
        elif name not in known:
            lines.append(f"new: {name}")
        elif known[name] != found[name]:
            lines.append(f"differs: {name}")
    return lines


def _is_wanted(case: str, globs: Sequence[str] | None) -> bool:
    return not globs or any(fnmatchcase(case, glob) or fnmatchcase(f"{case}/", glob) for glob in globs)


# ------------------------------------------------------------------------------------------------- cases


def list_cases() -> list[str]:
    """Return the names of all cases; a digest's name begins with that of its case."""
    return [
        *(f"world/{day}" for day in DAYS),
        *(f"compound/{case}" for case in list_runs()),
        *(f"fault/{name}" for name in list_faults()),
        *(f"fault/{name}-{day}" for name, day in AIR_FAULTS.items()),
        *(f"check/{day}" for day in DAYS),
        *(f"table/{name}/{day}" for name, days in TABLES.items() for day in days),
        *(f"archive/{day}" for day in ARCHIVED),
        *(f"export/{day}/{'-'.join(kind)}" for day, kinds in EXPORTS.items() for kind in kinds),
        *(f"open/{path.name}" for path in sorted(SHARED.glob("*")) if path.is_dir()),
    ]  # fmt: skip


@cache
def list_runs() -> dict[str, Runs]:
    """Return what is run, by `Compound/Implementation/day`."""
    known = {each["name"]: each["implementations"] for each in _ask("run", "--json")["compounds"]}
    cases = {
        f"{runs.compound}/{name}/{runs.day}": runs
        for runs in COMPOUNDS
        for name in runs.implementations or known[runs.compound]
    }
    tried = {case.rpartition("/")[0] for case in cases}
    missing = [
        f"{name}/{each}" for name, given in known.items() for each in given if f"{name}/{each}" not in tried
    ]
    return {**cases, **{f"{each}/{NO_DAY}": Runs(each, NO_DAY) for each in missing}}


@cache
def list_faults() -> tuple[str, ...]:
    """Return the names of the faults."""
    return tuple(fault["name"] for fault in _ask("inject", "--json")["faults"])


def compute(cases: Sequence[str], jobs: int = 1) -> tuple[Digests, dict[str, str]]:
    """Return the digests of cases by name, and of each case that failed why."""
    found: Digests = {}
    failed: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="transect-digests-") as made:
        folder = Path(made)
        for result in _run_all(
            make_day, sorted({day for case in cases for day in _days_of(case)}), folder, jobs
        ):
            if result.digests is None:
                raise SystemExit(f"cannot simulate {result.name}: {result.error}")
        for result in _run_all(run_case, cases, folder, jobs):
            if result.digests is None:
                failed[result.name] = result.error
            else:
                found.update({f"{result.name}/{name}": digest for name, digest in result.digests.items()})
    return found, failed


def _run_all(call: Call, names: Sequence[str], folder: Path, jobs: int) -> Iterator[Result]:
    """Yield what `call` returns for each name; with several jobs, in new processes."""
    if jobs == 1:
        with mock.patch.dict(os.environ, _environment(folder)):
            for done, name in enumerate(names, 1):
                yield _show_progress(_attempt(call, name, folder), done, len(names))
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, initializer=_prepare, initargs=(folder,)) as pool:
        waiting = [pool.submit(_attempt, call, name, folder) for name in names]
        for done, future in enumerate(as_completed(waiting), 1):
            yield _show_progress(future.result(), done, len(names))


def _show_progress(result: Result, done: int, of: int) -> Result:
    failed = "" if result.digests is not None else f", FAILED: {result.error}"
    print(f"{done}/{of} {result.name}: {result.cpu_s:.1f} s{failed}", file=sys.stderr, flush=True)
    return result


def _attempt(call: Call, name: str, folder: Path) -> Result:
    from transect.errors import TransectError

    began = time.process_time()
    digests, error = None, ""
    try:
        digests = call(name, folder)
    except (TransectError, CommandFailedError, LookupError, TypeError, ValueError, OSError) as raised:
        error = f"{type(raised).__name__}: {raised}"
    return Result(name, digests, error, time.process_time() - began)


def _prepare(folder: Path) -> None:
    os.environ.update(_environment(folder))


def _environment(folder: Path) -> dict[str, str]:
    """Return environment variables for an empty cache of parsed files and a kept one of compiled loops."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    compiled = base / "transect-digests"
    compiled.mkdir(parents=True, exist_ok=True, mode=0o700)
    return {
        "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", str(compiled)),
        "TRANSECT_CACHE_DIR": str(folder / f"cache-{os.getpid()}"),
    }


def _days_of(case: str) -> tuple[str, ...]:
    """Return the days that a case needs."""
    kind, _, rest = case.partition("/")
    first, _, last = rest.partition("/")
    match kind:
        case "compound":
            day = rest.rpartition("/")[2]
            return {CLOUDS: ("etna-lidar",), MOUNDS: (), DEMS: DEM_DAYS, NO_DAY: ()}.get(day, (day,))
        case "fault":
            name = first.partition("-")[0]
            return (AIR_FAULTS[name],) if "-" in first else FAULTED
        case "table":
            return (last,)
        case "open":
            return ()
        case _:
            return (first,)


def make_day(name: str, folder: Path) -> Digests:
    """Simulate a day; there is nothing to digest yet."""
    _command("simulate", *DAYS[name].arguments(), "-o", folder / name)
    return {}


def run_case(case: str, folder: Path) -> Digests:
    """Return the digests of a case."""
    kind, _, rest = case.partition("/")
    return CASES[kind](rest, folder)


def _world(name: str, folder: Path) -> Digests:
    return hash_folder(folder / name)


def _check(name: str, folder: Path) -> Digests:
    return {"json": hash_json(_ask("check", folder / name, "--json"))}


def _table(name: str, folder: Path) -> Digests:
    verb, _, day = name.partition("/")
    return {"json": hash_json(_ask("table", verb, folder / day, "--json"))}


def _compound(name: str, folder: Path) -> Digests:
    import transect

    runs = list_runs()[name]
    if runs.day == NO_DAY:
        raise LookupError("no case runs this implementation: add it to COMPOUNDS in tools/digests.py")
    spec = name.rpartition("/")[0]
    run = transect.run(
        spec,
        _recording(runs.day, folder),
        wire=dict(runs.wire),
        set=dict(runs.set),
        end=runs.end,
        check=runs.check,
    )
    said = {"status": run.status, "conclusions": [str(each) for each in run.conclusions]}
    return {**run.ports, "said": hash_json({**said, "errors": [str(each) for each in run.errors]})}


def _recording(day: str, folder: Path) -> Any:
    """Return the recording of a day, or of what stands in place of one."""
    import transect

    if day == DEMS:
        maps = [transect.open(folder / name / "truth" / "dem.tif") for name in DEM_DAYS]
        return transect.join(maps, prefix=True)
    if day == CLOUDS:
        kept = Path(tempfile.mkdtemp(dir=folder, prefix="clouds-"))
        scans = sorted((folder / "etna-lidar").glob("*.pcd"))
        for scan, name in ((scans[0], "target"), (scans[-1], "source")):
            shutil.copy(scan, kept / f"{name}.pcd")
        return transect.open(kept)
    if day == MOUNDS:
        kept = Path(tempfile.mkdtemp(dir=folder, prefix="mounds-"))
        _write_mounds(kept / "target.pcd", 0.0)
        _write_mounds(kept / "source.pcd", 0.6)
        return transect.open(kept)
    return transect.open(folder / day)


def _write_mounds(path: Path, shift: float) -> None:
    """Write a cloud of 20 m x 20 m of uneven ground; `shift` in m is between the frame and the ground."""
    axis = [0.2 * i for i in range(100)]
    rows = [
        f"{x - shift:.4f} {y + shift:.4f} {math.sin(0.9 * x + 0.2 * y) + 0.7 * math.cos(0.05 * x * y):.4f}"
        for x in axis
        for y in axis
    ]
    head = "VERSION .7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nHEIGHT 1\n"
    said = f"WIDTH {len(rows)}\nPOINTS {len(rows)}\nDATA ascii\n"
    path.write_text(head + said + "\n".join(rows) + "\n", "ascii")


def _fault(name: str, folder: Path) -> Digests:
    fault, _, day = name.partition("-")
    days = (day,) if day else FAULTED
    for each in days:
        if fault in {known["name"] for known in _ask("inject", folder / each, "--json")["faults"]}:
            with tempfile.TemporaryDirectory(dir=folder) as made:
                out = Path(made) / each
                _command(
                    "inject", folder / each, "--fault", fault, "--severity", "0.7", "--seed", "3", "-o", out
                )
                return {f"{each}/{path}": digest for path, digest in hash_folder(out).items()}
    raise LookupError(f"none of the days {', '.join(days)} can have this fault")


def _archive(name: str, folder: Path) -> Digests:
    with tempfile.TemporaryDirectory(dir=folder) as made:
        _command("archive", "init", folder / name, "-o", Path(made) / "archive.yaml")
        _command("archive", "build", Path(made) / "archive.yaml", "-o", Path(made) / "bundle")
        return hash_folder(Path(made))


def _export(name: str, folder: Path) -> Digests:
    day, _, kind = name.partition("/")
    file, _, asked = kind.partition("-")
    with tempfile.TemporaryDirectory(dir=folder) as made:
        _command("export", folder / day, "-o", Path(made) / file, *(("--format", asked) if asked else ()))
        return hash_folder(Path(made))


def _open(name: str, folder: Path) -> Digests:
    """Return digests of every stream of every recording in a folder of real data."""
    import transect
    from transect.errors import TransectError

    found: Digests = {}
    waiting = [SHARED / name]
    while waiting:
        path = waiting.pop()
        said = path.relative_to(SHARED).as_posix()
        try:
            recording = transect.open(path)
            found.update({f"{said}:{stream.name}": hash_table(stream.table) for stream in recording})
        except TransectError as error:
            found[f"{said}:refused"] = hash_json(f"{type(error).__name__}: {error.what}")
            if path.is_dir():
                waiting += sorted(path.iterdir())[:MAX_FILES]
    return found


CASES: Mapping[str, Callable[[str, Path], Digests]] = {
    "world": _world, "compound": _compound, "fault": _fault, "check": _check, "table": _table,
    "archive": _archive, "export": _export, "open": _open,
}  # fmt: skip


# ----------------------------------------------------------------------------------------------- digests


def hash_folder(folder: Path) -> Digests:
    """Return the sha256 of each file of a folder by its path in there."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths
    }


def hash_json(document: Any) -> str:
    """Return the sha256 of a JSON document; the order of keys counts, as it does for people."""
    return hashlib.sha256(json.dumps(document).encode()).hexdigest()


def hash_table(table: Any) -> str:
    """Return the sha256 of an Arrow table: names, types and values, however it is cut into pieces."""
    import pyarrow as pa

    digest = hashlib.sha256(str(table.schema.remove_metadata()).encode())
    for column in table.itercolumns():
        for batch in pa.table({"x": column}).combine_chunks().to_batches():
            digest.update(batch.serialize())
    return digest.hexdigest()


class CommandFailedError(Exception):
    """A command of transect ended with an error."""


def _command(*arguments: object) -> str:
    """Run `transect ARGUMENTS` and return what it printed."""
    done = command(*arguments)
    if done.returncode not in ALLOWED_EXITS:
        raise CommandFailedError(
            f"transect {' '.join(map(str, arguments))}: exit {done.returncode}: {done.stderr.strip()}"
        )
    return done.stdout


def _ask(*arguments: object) -> Any:
    return json.loads(_command(*arguments))


if __name__ == "__main__":
    raise SystemExit(main())

"""Timing for the benchmarks: one printed row each, no assertions.

The two sides of a comparison run alternately in the same process, so both see the same machine, and the best
of several runs counts. A missed target is printed, it does not fail.
"""

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version


@dataclass(frozen=True)
class Row:
    """One result, as it is printed and as it stands in the JSON file; times in seconds."""

    name: str
    ours: float
    unit: str
    peer: float | None = None
    ratio: float | None = None
    target: float | None = None
    met: bool | None = None
    shown: tuple[str, ...] = ()


_rows: list[Row] = []


def rows() -> list[Row]:
    """Everything measured so far."""
    return list(_rows)


def compare(
    name: str,
    ours: Callable[[], object],
    peer: Callable[[], object],
    target: float | None = None,
    repeat: int = 5,
    choose: Callable[[Sequence[float]], float] = min,
) -> Row:
    """Time ours beside a peer.

    Parameters
    ----------
    name : str
        What is compared, e.g. ``"SDI laser text / numpy.loadtxt"``.
    ours, peer : callable
        The two sides, without arguments.
    target : float, optional
        How many times faster than the peer ours must be; 1/1.3 where it may take 1.3 times as long.
    repeat : int
        Runs of each side.
    choose : callable
        Which of a side's times counts: the best, or `statistics.median`.

    Returns
    -------
    Row
        ``ratio`` is peer time / our time: above 1, ours is faster.
    """
    times = [(_seconds(ours), _seconds(peer)) for _ in range(repeat)]
    best_ours, best_peer = (choose(side) for side in zip(*times, strict=True))
    ratio = best_peer / best_ours
    met = None if target is None else ratio >= target
    row = Row(name, best_ours, "s", peer=best_peer, ratio=ratio, target=target, met=met)
    wanted = "" if target is None else f">= {target:.2f}x"
    return _add(row, _time_text(best_ours), _time_text(best_peer), f"{ratio:.2f}x", wanted)


def rate(name: str, fn: Callable[[], object], n: int, target: float | None = None, repeat: int = 5) -> Row:
    """Time `fn`, which does `n` things; `target` is the least number of them per second."""
    per_second = n / min(_seconds(fn) for _ in range(repeat))
    row = Row(name, per_second, "1/s", target=target, met=None if target is None else per_second >= target)
    return _add(row, f"{per_second:,.0f}/s", wanted="" if target is None else f">= {target:,.0f}/s")


def duration(name: str, fn: Callable[[], object], target: float | None = None, repeat: int = 5) -> Row:
    """Time `fn` alone; `target` is the most seconds it may take."""
    return measured(name, lambda: _seconds(fn), target, repeat)


def measured(name: str, fn: Callable[[], float], target: float | None = None, repeat: int = 5) -> Row:
    """Take the seconds that `fn` measured itself, as in another process; `target` is the most it may take."""
    best = min(fn() for _ in range(repeat))
    row = Row(name, best, "s", target=target, met=None if target is None else best <= target)
    return _add(row, _time_text(best), wanted="" if target is None else f"<= {_time_text(target)}")


def memory(name: str, command: Sequence[str], target: float | None = None) -> Row:
    """Largest resident memory of a command; `target` is the most bytes it may take."""
    return held(name, memory_of(command), target)


def held(name: str, used: int, target: float | None = None) -> Row:
    """Take bytes of memory that were measured elsewhere; `target` is the most there may be."""
    row = Row(name, used, "B", target=target, met=None if target is None else used <= target)
    return _add(row, f"{used / 1e6:.0f} MB", wanted="" if target is None else f"<= {target / 1e6:.0f} MB")


def quality(
    name: str,
    value: float,
    unit: str,
    at_most: float | None = None,
    at_least: float | None = None,
    peer: float | None = None,
) -> Row:
    """Take how good a result is: an error, a drift, a share; what a peer reached stands beside it.

    Parameters
    ----------
    unit : str
        Of the value: `m`, `%`, `px`, ...
    at_most, at_least : float, optional
        The limit, one of them; with a peer it is a limit of ours / peer.
    """
    value = float(value)  # numpy's own numbers are none of JSON's
    limit = at_most if at_most is not None else at_least
    ratio = None if peer is None else value / peer
    judged = value if ratio is None else ratio
    met = None if limit is None else (judged <= limit if at_most is not None else judged >= limit)
    row = Row(name, value, unit, peer=peer, ratio=ratio, target=limit, met=met)
    shown, suffix = ("" if peer is None else f"{peer:.3g} {unit}"), (unit if peer is None else "x")
    wanted = "" if limit is None else f"{'<=' if at_most is not None else '>='} {limit:.3g} {suffix}"
    return _add(row, f"{value:.3g} {unit}", shown, "" if ratio is None else f"{ratio:.2f}x", wanted)


def memory_of(command: Sequence[str]) -> int:
    """Largest resident memory of a command, in bytes.

    A process inherits the high-water mark of the one that started it, so a small interpreter stands between.
    """
    small = (
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", small, *command], check=True, stdout=subprocess.PIPE, text=True
    )
    return int(done.stdout) * (1 if sys.platform == "darwin" else 1024)


def environment() -> dict[str, str | int]:
    """The machine, and how many threads the libraries would use."""
    import cv2
    import numpy as np
    import pyarrow as pa
    from threadpoolctl import threadpool_info

    pools = {f"{pool['internal_api']} threads": pool["num_threads"] for pool in threadpool_info()}
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "pyarrow": pa.__version__,
        "opencv": cv2.__version__,
        "transect": version("transect"),
        "cores": os.cpu_count() or 0,
        "pyarrow threads": pa.cpu_count(),
        "opencv threads": cv2.getNumThreads(),
        **pools,
    }


def print_header() -> None:
    """Print the environment and the names of the columns."""
    print(", ".join(f"{key} {value}" for key, value in environment().items()))
    print(_line("", "ours", "peer", "ratio", "target", ""))


def report() -> dict[str, object]:
    """Everything measured so far, for JSON."""
    return {"environment": environment(), "results": [asdict(row) for row in _rows]}


def _seconds(fn: Callable[[], object]) -> float:
    start = time.perf_counter()
    fn()
    return time.perf_counter() - start


def _add(row: Row, ours: str, peer: str = "", ratio: str = "", wanted: str = "") -> Row:
    verdict = {None: "", True: "met", False: "NOT MET"}[row.met]
    row = replace(row, shown=(ours, peer, ratio, wanted, verdict))
    print(_line(row.name, *row.shown), flush=True)
    _rows.append(row)
    return row


def _line(name: str, ours: str, peer: str, ratio: str, wanted: str, verdict: str) -> str:
    return f"  {name:<48} {ours:>16} {peer:>12} {ratio:>9} {wanted:>16}  {verdict}".rstrip()


def _time_text(seconds: float) -> str:
    for factor, unit in ((1, "s"), (1e3, "ms")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"

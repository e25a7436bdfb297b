"""The engine: time per node call, samples merged per second, memory over ten million, two cores.

CDFF-Dev does not run on today's Python; its 22.7 us per node call is the measurement that was published when
its defects were reproduced.
"""

import heapq
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path

import cv2
import numpy as np
import pyarrow as pa

from benchmarks._harness import compare, held, measured, rate
from transect.engine import Node
from transect.engine.compounds import Compound, compound
from transect.engine.determinism import one_thread_per_library
from transect.engine.flow import Flow
from transect.engine.player import lines_of, waves
from transect.engine.replay import Options, Replay
from transect.engine.runs import run
from transect.recording import Recording, Stream
from transect.recording.arrow import from_numpy
from transect.recording.stream import stream_of_values, values_between
from transect.types import Image, Imu

CDFF_DEV_S = 22.7e-6
CHAIN_LENGTH, CALL_COUNT = 10, 100_000
STREAM_COUNT, ROWS_PER_STREAM, MANY_ROWS_PER_STREAM = 10, 30_000, 1_000_000
FRAME_COUNT = 12
START_NS = 1_657_000_000_000_000_000
STEP_NS = 10_000_000
COLUMNS = [f"{kind}_{axis}" for kind in ("acc", "gyro") for axis in "xyz"]


class Increment(Node):
    """As little as a node can do."""

    def process(self, x: float) -> float:
        return x + 1.0


class Sink(Node):
    """Takes an IMU's samples."""

    def process(self, imu: Imu) -> None:
        """Do nothing."""


class Disparity(Node):
    """Semi-global matching of an image with itself, shifted."""

    def process(self, image: Image) -> np.ndarray:
        return cv2.StereoSGBM_create(0, 64, 5).compute(image.data, np.roll(image.data, -9, axis=1))


class Features(Node):
    """ORB a few times over: about as heavy as the matching."""

    def process(self, image: Image) -> np.ndarray:
        numbers = range(1000, 5000, 500)
        return np.concatenate([cv2.ORB_create(n).detectAndCompute(image.data, None)[1] for n in numbers])


def main() -> None:
    bench_calls()
    bench_merge()
    bench_memory()
    bench_cores()


def chain() -> Flow:
    """Ten nodes, one after the other; statistics and digests as always."""
    wires = [
        "x -> n0.x",
        *(f"n{k}.out -> n{k + 1}.x" for k in range(CHAIN_LENGTH - 1)),
        f"n{CHAIN_LENGTH - 1}.out -> y",
    ]
    return Flow(compound("chain", {f"n{k}": Increment for k in range(CHAIN_LENGTH)}, wires).graph())


def ours_calls() -> None:
    flow = chain()
    push, channel = flow.push, flow.channels.index["x"]
    for t_ns in range(CALL_COUNT // CHAIN_LENGTH):
        push(t_ns, channel, 1.0)


def bare_calls() -> None:
    process = Increment().process
    for _ in range(CALL_COUNT // CHAIN_LENGTH):
        x = 1.0
        for _ in range(CHAIN_LENGTH):
            x = process(x)


@contextmanager
def without_opencv() -> Generator[None]:
    """Make the engine assume that OpenCV is not loaded: it does not set its seed before every call then."""
    loaded = sys.modules.pop("cv2")
    try:
        yield
    finally:
        sys.modules["cv2"] = loaded


def engine_seconds() -> float:
    """Processor time per node call, the call itself taken off."""
    began = time.thread_time()
    ours_calls()
    between = time.thread_time()
    bare_calls()
    return (2 * between - began - time.thread_time()) / CALL_COUNT


def bench_calls() -> None:
    with without_opencv():
        row = measured("10-node chain, engine time per call", engine_seconds, target=2e-6, repeat=7)
        compare("10-node chain / bare calls", ours_calls, bare_calls)
    print(f"  CDFF-Dev's published 22.7 us per call is {CDFF_DEV_S / row.ours:.1f} times that")
    measured("the same, OpenCV seeded before every call", engine_seconds, target=2e-6, repeat=7)


def imus() -> Recording:
    """Ten IMUs, no two samples at the same time."""
    rng = np.random.default_rng(0)
    columns = {name: rng.normal(size=ROWS_PER_STREAM) for name in COLUMNS}
    return Recording(
        "imus",
        tuple(
            stream_of_values(f"imu{k}", times(k, ROWS_PER_STREAM), columns, type=Imu)
            for k in range(STREAM_COUNT)
        ),
    )


def times(stream: int, rows: int) -> np.ndarray:
    return START_NS + np.arange(rows) * STEP_NS + stream * 997


def sinks() -> Compound:
    wires = [f"in{k} -> sink{k}.imu" for k in range(STREAM_COUNT)]
    return compound("sinks", {f"sink{k}": Sink for k in range(STREAM_COUNT)}, wires)


def replay_of(recording: Recording) -> Replay:
    return Replay(sinks(), recording, Options(wire={f"in{k}": f"imu{k}" for k in range(STREAM_COUNT)}))


def bench_merge() -> None:
    recording = imus()
    sink = Sink().process

    def engine() -> None:
        replay_of(recording).play()

    def merge() -> None:
        lines = lines_of(recording.streams)
        for k, line in enumerate(lines):
            line.channels = (k,)
        for _, _, value in waves(lines):
            sink(value)

    def peer() -> None:
        for _, _, value in heapq.merge(*(one_by_one(k, s) for k, s in enumerate(recording.streams))):
            sink(value)

    with without_opencv():
        rate(
            "10 streams merged into sinks, samples",
            engine,
            STREAM_COUNT * ROWS_PER_STREAM,
            target=300_000,
            repeat=4,
        )
        compare("the merge alone / heapq.merge", merge, peer, repeat=3)
        compare("merge, nodes, statistics / heapq.merge", engine, peer, repeat=3)


def one_by_one(k: int, stream: Stream) -> Iterator[tuple[int, int, Imu]]:
    return zip(stream.t_ns.tolist(), repeat(k), values_between(stream, 0, len(stream)), strict=False)


def mapped_imus(folder: Path) -> Recording:
    """Ten streams of a million rows, memory-mapped from files; their values are the same, their times not."""
    rng = np.random.default_rng(0)
    values = mapped(
        folder / "values.arrow", {name: rng.normal(size=MANY_ROWS_PER_STREAM) for name in COLUMNS}
    )
    streams: list[Stream] = []
    for k in range(STREAM_COUNT):
        axis = mapped(folder / f"{k}.arrow", {"t_ns": times(k, MANY_ROWS_PER_STREAM)})
        columns = {name: values.column(name) for name in COLUMNS}
        streams.append(Stream(f"imu{k}", Imu, pa.table({"t_ns": axis.column("t_ns"), **columns})))
    return Recording("imus", tuple(streams))


def mapped(file: Path, columns: dict[str, np.ndarray]) -> pa.Table:
    table = pa.table({name: from_numpy(values) for name, values in columns.items()})
    with pa.ipc.new_file(str(file), table.schema) as writer:
        writer.write_table(table)
    return pa.ipc.open_file(pa.memory_map(str(file))).read_all()


def own_bytes() -> int:
    """Memory of this process that is not a file's."""
    status = Path("/proc/self/status").read_text("ascii")
    return int(status.split("RssAnon:")[1].split()[0]) * 1024


def bench_memory() -> None:
    with tempfile.TemporaryDirectory() as folder:
        replay = replay_of(mapped_imus(Path(folder)))
        seen: list[int] = []

        def look(t_ns: int) -> int:
            seen.append(own_bytes())
            return t_ns + MANY_ROWS_PER_STREAM // 20 * STEP_NS

        replay.player.attend(START_NS, look)
        with without_opencv():
            replay.play()
        seen.append(own_bytes())
        played = sum(node.calls for node in replay.flow.statistics.values())
    settled = seen[1]  # after the first of twenty parts: buffers are as large as they get
    held(f"growth over {played:,} samples", max(seen[1:]) - settled, target=10e6)
    print(f"  {settled / 1e6:.0f} MB after a twentieth, {max(seen) / 1e6:.0f} MB at most, plus mapped tables")


def images() -> Recording:
    """Frames of 640 x 480."""
    noise = np.random.default_rng(0).integers(0, 256, (480, 640), dtype=np.uint8)
    image = Image(cv2.GaussianBlur(noise, (7, 7), 2))
    stream = stream_of_values("camera", START_NS + np.arange(FRAME_COUNT) * 50_000_000, {}, type=Image)
    return Recording("images", (stream.replace(loader=lambda _: image),))


def bench_cores() -> None:
    nodes = {"disparity": Disparity, "features": Features}
    made = compound("pair", nodes, [f"image -> {name}.image" for name in nodes])
    frames = images()
    found = {jobs: run(made, frames, jobs=jobs).digest for jobs in (1, 2, 3)}
    if len(set(found.values())) != 1:
        raise AssertionError(f"the digest depends on the number of jobs: {found}")

    def all_frames(node: Disparity | Features) -> None:
        for sample in frames["camera"]:
            node.process(sample.payload)

    def bare_threads() -> None:
        with one_thread_per_library(), ThreadPoolExecutor(2) as threads:
            list(threads.map(all_frames, [Disparity(), Features()]))

    def two_jobs() -> None:
        run(made, frames, jobs=2)

    compare("SGBM and ORB side by side: 2 jobs / 1 job", two_jobs, lambda: run(made, frames), repeat=4)
    compare("SGBM and ORB side by side: 2 jobs / 2 threads", two_jobs, bare_threads, repeat=4)
    print(f"  the same digest with 1, 2 and 3 jobs: {found[1][:16]}")


if __name__ == "__main__":
    main()

"""Acting on verdicts: what is masked reaches no node, what is suspect gets less weight, BAD is dropped."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from transect.base.clocks import NS
from transect.engine import Node, compound, run
from transect.engine.trust import DowngradedSamples, StreamVerdicts, apply_mask
from transect.geometry.robust import inflate
from transect.recording import Recording, stream_of_values
from transect.types import LaserScan, PointCloud, Twist, Verdict
from transect.types.returns import OTHER_ERROR

T0_NS = 1_600_000_000 * NS


class Told:
    """Verdicts that a test tells: scores by stream from a second on, masks by row of `laser`."""

    def __init__(self, scores: dict[str, float], masks: dict[int, Any] | None = None) -> None:
        self.scores, self.masks, self.asked = scores, masks or {}, list[str]()

    def __call__(self, recording: Recording, streams: Collection[str]) -> Told:
        self.asked = sorted(streams)
        return self

    def known_at(self, stream: str, t_ns: int) -> StreamVerdicts | None:
        if stream not in self.scores or t_ns < T0_NS + NS:
            return None
        score = self.scores[stream]
        state = "OK" if score > 0.5 else "SUSPECT" if score > 0.1 else "BAD"
        verdict = Verdict(stream, stream, T0_NS, T0_NS + NS, state=state, score=score, reason="SLIP")
        return StreamVerdicts(verdict, verdict)

    def mask_of(self, stream: str, row: int) -> np.ndarray | None:
        return self.masks.get(row) if stream == "laser" else None

    def describe(self) -> dict[str, Any]:
        return {"hindsight": False}

    def write(self, folder: Path, until_ns: int) -> None:
        (folder / "told").write_text(str(until_ns))


class Count(Node):
    """How many beams of a scan came back."""

    def process(self, scan: LaserScan) -> float:
        return float(scan.returned().sum())


class Pass(Node):
    """What it gets."""

    def process(self, x: Twist) -> Twist:
        return x


class Trust(Node):
    """How far its input is trusted; `other` can stand in for it."""

    def process(self, twist: Twist, other: Twist) -> float:
        return self.ctx.trust("twist", others=("other",))


def recording() -> Recording:
    t_ns = T0_NS + np.arange(6) * (NS // 2)
    scans = {"ranges": [np.full(10, 5.0)] * 6, "start_angle": np.zeros(6), "angle_increment": np.full(6, 0.1)}
    twists = {name: np.zeros(6) for name in ("vx", "vy", "vz")}
    return Recording(
        "made",
        (
            stream_of_values("laser", t_ns, scans, type=LaserScan),
            stream_of_values("a", t_ns, twists, type=Twist),
            stream_of_values("b", t_ns, twists, type=Twist),
        ),
    )


def test_masked_beams_reach_no_node_and_a_scan_without_beams_is_left_out() -> None:
    counting = compound("Counting", {"count": Count}, ["scan -> count.scan", "count.out -> beams"])
    masks = {1: np.arange(10) < 5, 2: np.ones(10, bool), 3: np.zeros(10, bool), 4: np.arange(10) < 9}
    result = run(counting, recording(), verdicts=Told({}, masks))
    assert result["beams"].values == [10.0, 5.0, 10.0, 1.0, 10.0]
    assert (np.diff(result["beams"].t_ns) == [NS // 2, NS, NS // 2, NS // 2]).all()
    assert result.stats is not None
    assert result.stats.streams["laser"] == {"samples": 6, "played": 5, "late": 0, "masked": 3}
    (said,) = result.conclusions
    assert said.text == "laser: 2 samples masked (70.0% of each), 1 sample dropped; +0.5 s to +2.0 s"
    untouched = run(counting, recording(), verdicts=Told({}, {3: np.zeros(10, bool)}))
    assert untouched.digest == run(counting, recording()).digest


def test_an_erased_beam_says_nothing_of_what_is_there() -> None:
    scan = LaserScan(np.full(4, 2.0), 0.0, 0.1)
    left, share = apply_mask(scan, np.array([True, False]))  # of the first two
    assert share == 0.25
    assert np.isnan(left.ranges[0])
    assert left.range_error.tolist() == [OTHER_ERROR, 0, 0, 0]
    assert np.isfinite(apply_mask(scan, np.array([True, True, True, False]))[0].ranges).sum() == 1
    assert apply_mask(scan, np.ones(4, bool)) == (None, 1.0)
    assert apply_mask(Twist(np.zeros(3), np.zeros(3)), np.array([True])) == (None, 1.0)


def test_points_of_a_cloud_are_erased_and_its_fields_stay() -> None:
    cloud = PointCloud(np.ones((3, 3), np.float32), {"intensity": np.arange(3)})
    left, share = apply_mask(cloud, np.array([False, True, False, True]))  # a longer scan had a fourth
    assert share == pytest.approx(1 / 3)
    assert np.isnan(left.points).any(axis=1).tolist() == [False, True, False]
    assert left.points.dtype == np.float32
    assert left.fields["intensity"].tolist() == [0, 1, 2]
    assert not np.isnan(cloud.points).any()
    assert apply_mask(cloud, np.array([False, True, True])) == (None, 1.0)  # two thirds


TRUSTING = ["x -> through.x", "through.out -> trust.twist", "y -> trust.other", "trust.out -> trust"]


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(
    ("scores", "trust"),
    [
        ({"a": 1.0}, 1.0),
        ({"a": 0.25}, 0.25),
        ({"a": 0.0}, 0.0),  # b can stand in for it
        ({"a": 0.0, "b": 0.0}, 0.05),  # nothing can
        ({"b": 0.2}, 1.0),
    ],
)
def test_trust_is_that_of_the_stream_behind_the_node_before(
    scores: dict[str, float], trust: float, jobs: int
) -> None:
    nodes = {"through": Pass, "trust": Trust}
    told, wire = Told(scores), {"x": "a", "y": "b"}
    result = run(compound("T", nodes, TRUSTING), recording(), wire=wire, verdicts=told, jobs=jobs)
    assert result["trust"].values == [1.0, 1.0, trust, trust, trust, trust]  # known after a second
    assert told.asked == ["a", "b"]
    said = "; ".join(each.text for each in result.conclusions)
    assert ("trust.twist (a)" in said) == (trust < 1)
    assert ("4 samples dropped" in said) == (trust == 0)
    assert ("4 samples down-weighted, sigma up to 20 times; +1.0 s to +2.5 s (SLIP)" in said) == (
        trust == 0.05
    )


def test_a_covariance_is_divided_by_the_square_of_the_trust_and_left_alone_by_one() -> None:
    R = np.diag([1.0, 4.0])
    assert inflate(R, 1.0) is R
    assert inflate(R, 0.05) == pytest.approx(400 * R)


def test_verdicts_are_kept_in_the_folder_of_a_run(tmp_path: Path) -> None:
    counting = compound("Counting", {"count": Count}, ["scan -> count.scan", "count.out -> beams"])
    result = run(counting, recording(), verdicts=Told({}), out=tmp_path / "run")
    assert (tmp_path / "run" / "told").read_text() == str(T0_NS + 5 * NS // 2)
    assert result.config["verdicts"] == {"hindsight": False}
    assert [each.text for each in result.conclusions] == ["no stream was masked, down-weighted or dropped"]


def test_downgraded_samples_report_their_worst_trust_and_time() -> None:
    downgraded = DowngradedSamples()
    for t, trust in ((3 * NS, 0.5), (1 * NS, 0.1), (2 * NS, 0.0)):
        downgraded.add_trust(t, trust, "GAP")
    said = "2 samples down-weighted, sigma up to 10 times, 1 sample dropped; +1.0 s to +3.0 s (GAP)"
    assert downgraded.describe(0) == said

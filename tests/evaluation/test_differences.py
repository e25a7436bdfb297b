"""Runs without truth are distinguished by their outputs and paths."""

import numpy as np

from transect.evaluation.result import Result
from transect.evaluation.tables import describe_differences, describe_settings, path_arrays, settings_of
from transect.types import Trajectory

NS = 1_000_000_000


def result(name: str, outputs: dict[str, str], shift: float, first: int = 0) -> Result:
    t_ns = np.arange(first, first + 11) * NS
    places = np.zeros((11, 3))
    places[:, 0] = np.arange(11)
    places[5:, 1] = shift
    digest = ".".join(outputs.values())
    return Result(
        name, "", {"run": {"digest": digest, "outputs": outputs}}, path_arrays(Trajectory(t_ns, places))
    )


def test_runs_of_the_same_bytes_are_said_to_be():
    same = {"track.pose": "aa"}
    assert describe_differences([result("a", same, 0), result("b", same, 0)]) == [
        "b against a: the same bytes"
    ]


def test_outputs_that_differ_are_named_and_the_paths_measured():
    one, two = {"pose": "aa", "map": "bb", "extra": "cc"}, {"pose": "dd", "map": "bb"}
    (line,) = describe_differences([result("a", one, 0.0), result("b", two, 0.25)])
    assert "of 2 outputs 1 differ (pose), only one run has extra" in line
    assert "paths at most 0.25 m apart (after 5.0 s), 0.25 m at the end" in line


def test_paths_are_compared_at_the_times_of_both():
    one, two = {"pose": "aa"}, {"pose": "dd"}
    (line,) = describe_differences([result("a", one, 0.0), result("b", two, 0.0, first=3)])
    assert "paths at most 3 m apart" in line
    (line,) = describe_differences([result("a", one, 0.0), result("b", two, 0.0, first=50)])
    assert "no time in common" in line


def test_paths_with_other_times_are_compared_between_their_poses():
    """A fixed lag tells its keyframes, a filter its ticks: of a straight way at one speed nothing is off."""
    way = np.outer(np.arange(0, 10, 0.1), [2.0, 1.0, 0.0])
    ticks, keys = (np.arange(0, 10, 0.1) * NS).astype(np.int64), np.arange(9) * NS + NS // 3
    at_keys = np.outer(keys / NS, [2.0, 1.0, 0.0]) + np.array([0.0, 0.0, 0.5])
    one, two = (
        Result(name, "", {"run": {"digest": name, "outputs": {"pose": name}}}, path_arrays(path))
        for name, path in (("a", Trajectory(ticks, way)), ("b", Trajectory(keys, at_keys)))
    )
    for pair in ([one, two], [two, one]):
        assert "paths at most 0.5 m apart (after " in describe_differences(pair)[0]


def test_the_settings_that_differ_are_named_with_or_without_truth():
    def configured(name: str, reference: str, tilt: float, stream: str, **own: float) -> Result:
        parameters = {"fusion": {"tilt": tilt, "adapt": 0.1, **own}}
        config = {"parameters": parameters, "wiring": {"odometry": {"stream": stream, "type": "Odometry"}}}
        return Result(name, reference, {"run": {"settings": settings_of(config)}})

    for truth in ("", "truth"):
        runs = [configured("a", truth, 0.05, "Odometry"), configured("b", truth, 0.1, "Odometry")]
        assert describe_settings(runs) == ["b against a: fusion.tilt 0.1 instead of 0.05"]
    other = configured("c", "", 0.05, "Odometry2", lag=40.0)
    assert describe_settings([runs[0], other]) == ["c against a: wire.odometry Odometry2 instead of Odometry"]
    assert describe_settings([runs[0], runs[0], Result("old", "", {})]) == []


def test_one_run_or_runs_with_truth_are_not_compared_like_this():
    judged = Result("a", "truth", {"run": {"digest": "x", "outputs": {"pose": "x"}}})
    assert describe_differences([judged, judged, result("b", {}, 0)]) == []

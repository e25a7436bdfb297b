"""Every benchmark runs under its name: `make bench ARGS=NAME`."""

import ast
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from benchmarks import __main__ as benchmarks
from benchmarks import bench_covariances, bench_slam_laser


def test_a_benchmark_started_by_its_name_does_not_take_it_for_a_part_of_its_own() -> None:
    judged: list[str] = []
    with (
        mock.patch.object(sys, "argv", ["benchmarks", "slam_laser"]),
        mock.patch.object(bench_slam_laser, "judge_log", judged.append),
        mock.patch.object(bench_slam_laser, "judge_drive", lambda name, _: judged.append(name)),
        mock.patch.object(bench_slam_laser, "judge_days", lambda seed: judged.append(f"yard{seed}"[:4])),
    ):
        assert benchmarks.run("slam_laser")
    assert set(judged) == {*bench_slam_laser.LOGS, *bench_slam_laser.DURATIONS_S}


@pytest.mark.parametrize("name", benchmarks.names())
def test_no_benchmark_reads_the_command_line_of_them_all(name: str) -> None:
    tree = ast.parse((Path(benchmarks.__file__).parent / f"bench_{name}.py").read_text("utf-8"))
    own = [node for node in tree.body if not isinstance(node, ast.If)]  # but for `if __name__ == "__main__"`
    reads = [
        node
        for part in own
        for node in ast.walk(part)
        if (isinstance(node, ast.Attribute) and node.attr == "argv")
        or (isinstance(node, ast.Call) and ast.unparse(node.func).endswith("parse_args") and not node.args)
    ]
    assert not reads
    assert any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body)


def test_covariances_are_judged_on_drives_of_the_fusion_as_it_is() -> None:
    kind = bench_covariances.SCENARIOS[0]  # good wheels and RTK
    with mock.patch.object(bench_covariances, "DURATION_S", 60.0):
        off, spread = bench_covariances.filtered(bench_covariances.drive(kind, seed=0, gap=0.0))
    assert len(off) == len(spread) >= 20
    assert np.sqrt(np.mean(np.sum(off**2, axis=1))) < 5 * kind.fix
    assert np.linalg.eigvalsh(spread).min() > 0

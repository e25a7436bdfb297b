"""`transect eval` and `transect compare`, as a person types them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from tests.evaluation.test_time_offset import drive
from tests.evaluation.test_trajectories import circle, line, moved

from transect import cli
from transect.evaluation.result import load_result
from transect.formats.geotiff import encode_geotiff
from transect.formats.tum import pose_lines
from transect.types import GridMap, Trajectory


class Done(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command in this process, with its exit code."""

    def called(*arguments: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["transect", *(str(a) for a in arguments)])
        with pytest.raises(SystemExit) as exited:
            cli.main()
        out, err = capsys.readouterr()
        return Done(int(exited.value.code or 0), out, err)

    return called


def written(path: Path, trajectory: Trajectory, start: int = 1_600_000_000_000_000_000) -> Path:
    """Write a TUM file, on the UTC clock."""
    assert trajectory.orientations is not None
    columns = [*trajectory.positions.T, *trajectory.orientations.T]
    path.write_bytes(pose_lines(trajectory.t_ns + start, columns))
    return path


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    return written(tmp_path / "groundtruth.tum", circle())


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return written(tmp_path / "good.tum", moved(circle()))


@pytest.fixture
def noisy(tmp_path: Path) -> Path:
    path = circle()
    noise = np.random.default_rng(1).normal(scale=0.1, size=path.positions.shape)
    return written(tmp_path / "noisy.tum", Trajectory(path.t_ns, path.positions + noise, path.orientations))


def metrics(done: Done, row: int = 0) -> dict[str, dict[str, object]]:
    assert done.code == 0, done.err
    return json.loads(done.out)["results"][row]["metrics"]


def test_several_estimates_are_rows_of_one_table(run: Run, truth: Path, good: Path, noisy: Path) -> None:
    done = run("eval", truth, good, noisy)
    assert (done.code, done.err) == (0, "")
    heading, first, second, *rest = done.out.splitlines()
    assert heading.startswith("estimate")
    assert first.split()[0] == "good"
    assert float(second.split()[1]) == pytest.approx(0.1 * np.sqrt(3), rel=0.05)
    assert any(line.startswith("frames assumed equal") for line in rest)


def test_an_alignment_takes_out_what_it_can_and_no_more(run: Run, truth: Path, tmp_path: Path) -> None:
    half = written(tmp_path / "half.tum", moved(circle(), 0.5))
    for mode, low, high in (("none", 5, 50), ("se3", 5, 50), ("sim3", 0, 1e-6)):
        ate = metrics(run("eval", truth, half, "--align", mode, "--json"))["ate"]
        assert low <= ate["translation"]["rmse"] < high  # type: ignore[index]


def test_all_relations_are_there_and_what_cannot_be_is_said(run: Run, truth: Path, noisy: Path) -> None:
    done = run("eval", truth, noisy, "--relation", "all", "--json")
    assert set(metrics(done)) == {"ate", "rpe", "segments", "relations", "drift"}
    assert "nees left out" in "".join(json.loads(done.out)["results"][0]["notes"])
    asked = run("eval", truth, noisy, "--relation", "nees")
    assert asked.code == 2
    assert "covariances" in asked.err


def test_steps_are_counted_in_what_was_asked_for(run: Run, tmp_path: Path) -> None:
    """A metre a pose, ten poses a second, two percent too long."""
    truth = written(tmp_path / "gt.tum", line())
    long = written(tmp_path / "long.tum", line(scale=1.02))
    for unit, step, metres in (("frames", 5, 5), ("seconds", 2, 20), ("metres", 30, 30)):
        done = run(
            "eval",
            truth,
            long,
            "--relation",
            "rpe",
            "--align",
            "none",
            "--by",
            unit,
            "--step",
            step,
            "--json",
        )
        rpe = metrics(done)["rpe"]
        assert rpe["translation"]["mean"] == pytest.approx(0.02 * metres, rel=0.05)  # type: ignore[index]


def test_a_result_file_has_everything_and_compare_reads_it_again(
    run: Run, truth: Path, good: Path, noisy: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "results"
    first = run("eval", truth, good, noisy, "-o", folder, "--json")
    result = load_result(folder / "noisy.result")
    assert result.provenance.command.startswith("transect eval ")
    assert all(len(file.sha256) == 64 for file in result.provenance.sources)
    assert len(result.arrays["ate_translation"]) == result.pairs["matched"] == 400
    for path in (truth, good, noisy):
        path.unlink()
    again = run("compare", folder, "--json")
    assert json.loads(again.out) == json.loads(first.out)
    best = run("compare", folder / "noisy.result", folder / "good.result", "--sort", "--format", "csv")
    assert [row.split(",")[0] for row in best.out.splitlines()] == ["estimate", "good", "noisy"]


def test_an_estimate_that_fails_is_an_x_and_the_others_are_shown(
    run: Run, truth: Path, good: Path, tmp_path: Path
) -> None:
    late = written(tmp_path / "late.tum", circle(), start=1_700_000_000_000_000_000)
    done = run(
        "eval", truth, late, good, "--layout", "sequences", "--format", "markdown", "-o", tmp_path / "r"
    )
    assert done.code == 1
    assert "they do not overlap" in done.err
    assert done.out.splitlines()[2].split("|")[2].strip() == "X"
    shown = run("compare", tmp_path / "r", "--layout", "sequences", "--format", "csv")
    assert shown.code == 0
    assert "X" in shown.out.splitlines()[1].split(",")


def test_figures_are_drawn_of_results_and_of_their_comparison(
    run: Run, truth: Path, good: Path, noisy: Path, tmp_path: Path
) -> None:
    done = run(
        "eval", truth, good, noisy, "--relation", "all", "--figure", tmp_path / "f", "-o", tmp_path / "r"
    )
    assert done.code == 0, done.err
    names = {path.name for path in (tmp_path / "f").iterdir()}
    assert names >= {"errors.png", "boxes.png", "drift.png", "trajectory_good.png"}
    assert "trajectories.png" in names
    assert run("compare", tmp_path / "r", "--figure", tmp_path / "g").code == 0
    assert {path.name for path in (tmp_path / "g").iterdir()} == names


def test_a_map_is_drawn_below_and_must_lie_there(run: Run, truth: Path, good: Path, tmp_path: Path) -> None:
    pytest.importorskip("rasterio")
    for name, west in (("here", -50.0), ("far", 5000.0)):
        heights = np.add.outer(np.arange(100.0), np.arange(100.0)) % 7
        dem = GridMap({"elevation": heights}, (1.0, 0.0, west, 0.0, -1.0, 50.0))
        (tmp_path / f"{name}.tif").write_bytes(encode_geotiff(dem))
    folder = tmp_path / "f"
    assert run("eval", truth, good, "--figure", folder).code == 0
    plain = (folder / "trajectory_good.png").read_bytes()
    assert run("eval", truth, good, "--figure", folder, "--map", tmp_path / "here.tif").code == 0
    assert (folder / "trajectory_good.png").read_bytes() != plain
    far = run("eval", truth, good, "--figure", folder, "--map", tmp_path / "far.tif")
    assert far.code == 2
    assert "does not lie under the reference" in far.err
    assert run("eval", truth, good, "--map", tmp_path / "here.tif").code == 2


# What is wrong with the input


def test_no_overlap_says_the_spans_and_the_flag(run: Run, truth: Path, tmp_path: Path) -> None:
    late = written(tmp_path / "late.tum", circle(), start=1_600_000_100_000_000_000)
    done = run("eval", truth, late)
    assert done.code == 1
    assert "they do not overlap" in done.err
    assert "--offset -100.000" in done.err
    assert run("eval", truth, late, "--offset", -100).code == 0


def test_an_offset_is_found_and_its_confidence_is_said(run: Run, tmp_path: Path) -> None:
    truth = written(tmp_path / "gt.tum", drive())
    late = written(tmp_path / "late.tum", drive(), start=1_600_000_003_500_000_000)
    done = run("eval", truth, late, "--offset", "auto", "--json")
    assert done.code == 0, done.err
    pairs = json.loads(done.out)["results"][0]["pairs"]
    assert pairs["offset_s"] == pytest.approx(-3.5, abs=0.01)
    assert 0 < pairs["offset_found"]["confidence"] <= 1
    assert run("eval", truth, late, "--offset", "soon").code == 2


def test_quaternions_that_are_not_unit_are_their_own_error(run: Run, truth: Path, good: Path) -> None:
    lines = good.read_text().splitlines()
    for rows in (range(len(lines)), range(5, 9)):
        changed = list(lines)
        for k in rows:
            changed[k] = " ".join([*changed[k].split()[:4], "0.3", "0.4", "0.5", "0.9"])
        good.write_text("\n".join(changed) + "\n")
        done = run("eval", truth, good)
        assert done.code == 1
        assert "unit quaternion" in done.err or "do not have length 1" in done.err


def test_swapped_columns_are_their_own_error(run: Run, truth: Path, good: Path) -> None:
    rows = [row.split() for row in good.read_text().splitlines()]
    good.write_text("".join(" ".join([*r[:4], r[7], *r[4:7]]) + "\n" for r in rows))
    done = run("eval", truth, good)
    assert done.code == 1
    assert "have w first" in done.err


def test_rows_that_were_not_measured_are_left_out_and_counted(run: Run, truth: Path, good: Path) -> None:
    rows = good.read_text().splitlines()
    for k in (3, 7):
        rows[k] = " ".join([rows[k].split()[0], "nan", "nan", "nan", *rows[k].split()[4:]])
    good.write_text("\n".join(rows) + "\n")
    done = run("eval", truth, good)
    assert done.code == 0, done.err
    assert "2 of 400 rows of Trajectory have no position" in done.out


def test_a_line_determines_no_alignment(run: Run, tmp_path: Path) -> None:
    truth, other = written(tmp_path / "gt.tum", line()), written(tmp_path / "est.tum", line(scale=1.01))
    done = run("eval", truth, other)
    assert done.code == 1
    assert "line" in done.err
    assert run("eval", truth, other, "--align", "origin").code == 0


def test_stamps_given_twice_or_out_of_order_are_counted(run: Run, truth: Path, good: Path) -> None:
    rows = good.read_text().splitlines()
    rows[10], rows[11] = rows[11], rows[10]
    rows.insert(20, rows[20])
    good.write_text("\n".join(rows) + "\n")
    done = run("eval", truth, good)
    assert "1 stamps of the estimate are earlier than the one before" in done.out
    assert "1 stamps of the estimate are given twice in a row" in done.out


def test_lines_that_cannot_be_read_are_exit_code_3_and_strict_refuses(
    run: Run, truth: Path, good: Path
) -> None:
    good.write_text(good.read_text() + "1600000099.5 garbage\n")
    done = run("eval", truth, good)
    assert done.code == 3
    assert "1 lines of" in done.err
    assert run("eval", truth, good, "--strict").code == 1


def test_places_and_arguments_that_cannot_be_meant(run: Run, truth: Path, good: Path, tmp_path: Path) -> None:
    assert run("eval", truth).code == 2
    assert run("eval", truth, good, good, "-o", tmp_path / "one.result").code == 2
    assert run("compare", tmp_path / "nothing").code == 2
    (tmp_path / "bad.result").write_text("no")
    assert run("compare", tmp_path / "bad.result").code == 1


# Where it came from


def test_the_folder_of_a_run_says_what_it_consumed(run: Run, truth: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run7"
    folder.mkdir()
    written(folder / "pose.tum", circle())
    wiring = {"poses": {"stream": "Trajectory", "role": "truth"}}
    import hashlib

    inputs = {"groundtruth.tum": hashlib.sha256(truth.read_bytes()).hexdigest()}
    config = {"wiring": wiring, "used_truth": True, "inputs": inputs}
    (folder / "run.json").write_text(json.dumps({"config": config}))
    for named in (folder, f"{folder}:pose", folder / "pose.tum"):
        done = run("eval", truth, named)
        assert done.code == 0, done.err
        assert "used truth" in done.out
        assert "not independent" in done.out
        assert metrics(run("eval", named, truth, "--json"))["ate"]["translation"]["rmse"] < 1e-6  # type: ignore[index]
    written(folder / "icp.pose.tum", circle())
    assert run("eval", truth, folder).code == 0, "of several it is `pose`"
    for pair in ((truth, f"{folder}:gone"), (f"{folder}:gone", truth)):
        gone = run("eval", *pair)
        assert gone.code == 2
        assert "there are icp.pose, pose" in gone.err
    (folder / "pose.tum").rename(folder / "state.tum")
    for pair in ((truth, folder), (folder, truth)):
        several = run("eval", *pair)
        assert several.code == 2
        assert "there are icp.pose, state" in several.err


def test_an_option_is_for_the_recordings_whose_format_has_it(run: Run, truth: Path, tmp_path: Path) -> None:
    poses, times = tmp_path / "poses.txt", tmp_path / "stamps.txt"
    poses.write_text("".join(f"1 0 0 {k} 0 1 0 {k * k} 0 0 1 0\n" for k in range(9)))
    times.write_text("".join(f"{1_600_000_000 + k}\n" for k in range(9)))
    done = run("eval", truth, poses, "--option", f"times={times}", "--json")
    assert json.loads(done.out)["results"][0]["pairs"]["by"] == "nearest", done.err
    assert "the format tum has no option 'times'" in run("eval", truth, truth, "--option", "times=a").err
    assert "poses has no trajectory" in run("eval", truth, poses, "--read-as", "euroc").err


def test_a_part_of_the_reference_is_compared_alone(run: Run, truth: Path, good: Path, tmp_path: Path) -> None:
    lines = truth.read_text().splitlines(keepends=True)
    times = np.array([float(line.split()[0]) for line in lines])
    first, last = (times - times[0] >= 1.0).argmax(), (times - times[0] >= 3.0).argmax()
    assert 0 < first < last
    part = tmp_path / "part.tum"
    part.write_text("".join(lines[first:last]))
    cut = json.loads(
        run("eval", truth, good, "--reference-from", "+1s", "--reference-to", "+3s", "--json").out
    )
    alone = json.loads(run("eval", part, good, "--json").out)
    assert cut["results"][0]["metrics"] == alone["results"][0]["metrics"]
    assert cut["results"][0]["pairs"]["matched"] == last - first
    refused = run("eval", truth, good, "--reference-from", "+9999s")
    assert (refused.code, "has no pose between +9999s and its end" in refused.err) == (1, True)


def test_a_file_of_relations_is_truth_enough(run: Run, tmp_path: Path) -> None:
    relations = tmp_path / "rel.txt"
    relations.write_text("1.0 3.0 20 0 0 0 0 0\n2.0 4.5 25 0 0 0 0 0\n")
    track = written(tmp_path / "slam.tum", line(100, scale=1.1), start=0)
    done = run("eval", track, "--relations", relations, "--max-diff", 0.01, "--json")
    found = metrics(done)["relations"]
    assert found["translation"]["mean"] == pytest.approx(2.25)  # type: ignore[index]
    assert found["squared"]["translation_m2"] == pytest.approx((4 + 6.25) / 2)  # type: ignore[index]


def test_nothing_heavy_is_imported_to_compare_two_files(truth: Path, good: Path) -> None:
    code = (
        "import sys; from transect.cli import command\n"
        f"command.main(['eval', {str(truth)!r}, {str(good)!r}], standalone_mode=False)\n"
        "heavy = {'matplotlib', 'scipy', 'pandas', 'numba', 'cv2', 'transect.engine', 'rosbags'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.real
@pytest.mark.parametrize(("estimate", "rmse"), [("KITTI_00_ORB", 1.30345), ("KITTI_00_SPTAM", 3.73849)])
def test_kitti_00_is_what_the_readme_of_the_data_says(
    run: Run, real_data: Path, estimate: str, rmse: float
) -> None:
    folder = real_data / "trajectories_evo"
    done = run("eval", folder / "KITTI_00_gt.txt", folder / f"{estimate}.txt", "--json")
    assert metrics(done)["ate"]["translation"]["rmse"] == pytest.approx(rmse, abs=5e-6)  # type: ignore[index]


@pytest.mark.real
def test_a_euroc_truth_is_held_against_a_tum_estimate(run: Run, real_data: Path) -> None:
    folder = real_data / "trajectories_evo"
    done = run("eval", folder / "V102_groundtruth.csv", folder / "V102.txt", "--relation", "all", "--json")
    assert 0 < metrics(done)["ate"]["translation"]["rmse"] < 0.2  # type: ignore[index]


# Which poses belong together


def sampled(hertz: float, shift: float = 0.0, seconds: float = 20.0) -> Trajectory:
    """Return a drive around a circle, sampled at a rate, with a delayed start."""
    t = np.arange(shift, seconds, 1 / hertz)
    where = np.column_stack([5 * np.cos(t / 5), 5 * np.sin(t / 5), 0 * t])
    level = np.tile([0.0, 0.0, 0.0, 1.0], (len(t), 1))
    return Trajectory(np.round(t * 1e9).astype(np.int64), where, level)


def test_a_dense_reference_is_interpolated_where_no_stamps_are_near(run: Run, tmp_path: Path) -> None:
    truth, path = written(tmp_path / "t.tum", sampled(5)), written(tmp_path / "p.tum", sampled(7, 0.047))
    done = run("eval", truth, path, "--json")
    assert done.code == 0, done.err
    result = json.loads(done.out)["results"][0]
    assert result["pairs"]["by"] == "interpolate"
    assert result["pairs"]["matched"] > 0.95 * result["pairs"]["candidates"]
    assert result["metrics"]["ate"]["translation"]["rmse"] < 0.01
    assert any("interpolated" in note for note in result["notes"])
    assert run("eval", truth, path, "--pairs", "nearest").code == 1


def test_stamps_that_are_near_are_paired_as_before(run: Run, tmp_path: Path) -> None:
    truth, path = written(tmp_path / "t.tum", sampled(5)), written(tmp_path / "p.tum", sampled(5, 0.2))
    result = json.loads(run("eval", truth, path, "--json").out)["results"][0]
    assert result["pairs"]["by"] == "nearest"


def test_a_sparse_reference_is_not_interpolated_by_itself(run: Run, tmp_path: Path) -> None:
    truth = written(tmp_path / "t.tum", sampled(0.25, seconds=40))
    path = written(tmp_path / "p.tum", sampled(0.5, 0.47, seconds=40))
    assert run("eval", truth, path).code == 1
    assert run("eval", truth, path, "--pairs", "interpolate").code == 0


@pytest.mark.parametrize("typed", [[], ["--pairs", "nearest"], ["--max-diff", "0.001"],
                                   ["--pairs", "interpolate", "--max-diff", "0.001"]])  # fmt: skip
def test_hints_lead_on(run: Run, tmp_path: Path, typed: list[str]) -> None:
    """What is typed after each hint in turn: within three steps there is a result."""
    truth = written(tmp_path / "t.tum", sampled(0.25, seconds=60))
    path = written(tmp_path / "p.tum", sampled(0.5, 0.97, seconds=60))
    options, seen = list(typed), set()
    for _ in range(3):
        done = run("eval", truth, path, *options)
        if done.code == 0:
            break
        hint = done.err.partition("--")[2].splitlines()[0]
        words = f"--{hint}".replace(",", " ").split()
        told = {words[i]: words[i + 1] for i in range(len(words) - 1) if words[i].startswith("--")}
        name = "--pairs" if "--pairs" in told and told["--pairs"] not in options else "--max-diff"
        name = name if name in told else next(iter(told))
        if name in options:
            at = options.index(name)
            del options[at : at + 2]
        options += [name, told[name].rstrip(".;")]
        assert tuple(options) not in seen, "the hint leads to itself"
        seen.add(tuple(options))
    assert done.code == 0, done.err


def test_a_single_pair_is_no_result(run: Run, truth: Path, tmp_path: Path) -> None:
    one = circle()
    short = Trajectory(one.t_ns[:1], one.positions[:1], one.orientations[:1])
    done = run("eval", truth, written(tmp_path / "one.tum", short), "--align", "origin")
    assert done.code == 1
    assert "only one pose" in done.err


@pytest.mark.parametrize("attitude", [(0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.6, 0.8)])
def test_a_constant_attitude_along_a_bent_path_is_not_an_attitude(
    run: Run, tmp_path: Path, attitude: tuple[float, ...]
):
    """Positions only, written as TUM, which has a quaternion in every row."""
    turned = circle()
    assert turned.orientations is not None
    constant = replace(turned, orientations=np.tile(attitude, (len(turned.positions), 1)))
    reference = written(tmp_path / "positions.tum", constant)
    done = run("eval", reference, written(tmp_path / "estimate.tum", turned), "--json")
    assert done.code == 0, done.err
    (result,) = json.loads(done.out)["results"]
    assert result["metrics"]["ate"]["rotation"] is None
    assert result["metrics"]["ate"]["translation"]["rmse"] < 1e-6
    assert result["metrics"]["rpe"]["translation"]["rmse"] < 1e-6


def test_a_constant_attitude_along_a_straight_path_is_compared(run: Run, tmp_path: Path):
    straight = line()
    assert straight.orientations is not None
    a, b = (written(tmp_path / name, straight) for name in ("a.tum", "b.tum"))
    done = run("eval", a, b, "--align", "yaw")
    assert done.code == 0, done.err
    assert "rotation rmse" in done.out

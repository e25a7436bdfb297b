"""Result files: what is written is read back, what is damaged is refused."""

from __future__ import annotations

import contextlib
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.errors import ParseError
from transect.evaluation.result import Input, Result, dependence, load_result, load_results
from transect.evaluation.tables import describe_differences
from transect.types import Provenance, SourceFile, Trajectory


def result(**changes: object) -> Result:
    made = {
        "estimate": "orb",
        "reference": "truth",
        "metrics": {"ate": {"percent": 1.5, "translation": {"rmse": 0.25}}},
        "arrays": {"t_ns": np.arange(4), "reference": np.eye(3), "none": np.zeros((0, 3))},
        "alignment": {"mode": "se3", "matrix": np.eye(4), "scale": 1.0},
        "pairs": {"matched": 4, "candidates": 5},
        "truth": {"length_m": 12.0},
        "notes": ("frames assumed equal",),
        "provenance": Provenance((SourceFile("a.tum", 3, "ab" * 32),), "transect 1", command="transect eval"),
    }
    return Result(**{**made, **changes})  # type: ignore[arg-type]


def test_everything_is_read_back(tmp_path: Path) -> None:
    result().save(tmp_path / "orb.result")
    again = load_result(tmp_path / "orb.result")
    assert again.to_dict() == result().to_dict()
    assert again.provenance == result().provenance
    for name, array in result().arrays.items():
        np.testing.assert_array_equal(again.arrays[name], array)
        assert again.arrays[name].dtype == array.dtype


def test_the_same_result_is_the_same_bytes_and_nothing_else_is_left(tmp_path: Path) -> None:
    for name in ("a.result", "b.result"):
        result().save(tmp_path / name)
    assert (tmp_path / "a.result").read_bytes() == (tmp_path / "b.result").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.result", "b.result"]


def test_numbers_that_are_not_known_are_null(tmp_path: Path) -> None:
    result(metrics={"ate": {"percent": float("nan")}}).save(tmp_path / "x.result")
    with zipfile.ZipFile(tmp_path / "x.result") as archive:
        assert json.loads(archive.read("result.json"))["metrics"]["ate"]["percent"] is None


@given(cut=st.integers(0, 1500), flip=st.integers(0, 255))
def test_a_damaged_file_is_refused_or_whole(
    tmp_path_factory: pytest.TempPathFactory, cut: int, flip: int
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "x.result"
    result().save(path)
    content = path.read_bytes()
    path.write_bytes(content[: min(cut, len(content) - 1)])
    with pytest.raises(ParseError, match="not a whole result file"):
        load_result(path)
    at = cut % len(content)
    path.write_bytes(content[:at] + bytes([content[at] ^ flip]) + content[at + 1 :])
    with contextlib.suppress(ParseError):
        assert load_result(path).to_dict() == result().to_dict()


@pytest.mark.parametrize("bit", [1, 32, 128])
def test_no_changed_byte_of_a_header_raises_anything_untyped(bit: int, tmp_path: Path) -> None:
    path = tmp_path / "x.result"
    result().save(path)
    content = path.read_bytes()
    directory = content.index(b"PK\1\2")
    for at in (*range(30), *range(directory, len(content))):
        path.write_bytes(content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :])
        with contextlib.suppress(ParseError):
            assert load_result(path).to_dict() == result().to_dict()


def test_pickles_lies_about_size_and_compression_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.result"
    lie = b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999,), }"
    for name, content, how in (
        ("a.npy", lie.ljust(127) + b"\n" + bytes(8), zipfile.ZIP_STORED),
        ("a.npy", lie.replace(b"<f8", b"|O ").ljust(127) + b"\n", zipfile.ZIP_STORED),
        ("bomb.npy", bytes(10_000_000), zipfile.ZIP_DEFLATED),
    ):
        result(arrays={}).save(path)
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(name, content, how)
        with pytest.raises(ParseError, match="not a whole result file"):
            load_result(path)


def test_another_version_is_refused_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "x.result"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("result.json", json.dumps({**result().to_dict(), "version": 99}))
    with pytest.raises(ParseError) as caught:
        load_result(path)
    assert "version 99" in caught.value.why


def side(stream: str, sha256: str = "aa", **run: object) -> Input:
    path = Trajectory(np.arange(3), np.zeros((3, 3)))
    return Input("x", "x", stream, path, files=(SourceFile("x", 1, sha256),), run=run)


def test_a_truth_that_the_run_consumed_is_not_independent() -> None:
    wiring = {"fix": {"stream": "Gnss/Imu"}}
    used = side("pose", "bb", wiring=wiring, inputs={"Gnss.csv": "aa"})
    (said,) = dependence(side("Gnss/Pose"), used)
    assert said.startswith("not independent: the run consumed Gnss/Imu")
    assert dependence(side("truth/trajectory"), used) == ()
    assert dependence(side("Gnss/Pose", "cc"), used) == ()  # of another recording
    (said,) = dependence(side("Gnss/Pose"), side("pose", "bb", used_truth=True))
    assert said.startswith("used truth")
    (said,) = dependence(side("Gnss/Pose"), side("Gnss/Pose"))
    assert "same stream" in said


def test_equal_names_get_the_part_of_their_path_that_differs(tmp_path: Path) -> None:
    for folder in ("monday/drive", "tuesday/drive"):
        (tmp_path / folder).mkdir(parents=True)
        result().save(tmp_path / folder / "pose.result")
    (tmp_path / "other").mkdir()
    result(estimate="gt").save(tmp_path / "other" / "pose.result")
    assert [each.estimate for each in load_results([tmp_path])] == [
        "monday/drive/orb",
        "gt",
        "tuesday/drive/orb",
    ]
    result().save(tmp_path / "monday" / "drive" / "trajectory.result")
    names = [each.estimate for each in load_results([tmp_path / "monday"])]
    assert names == ["drive/pose/orb", "drive/trajectory/orb"]


def test_runs_of_unlike_compounds_are_not_compared_output_by_output() -> None:
    def bare(name: str, digest: str, *outputs: str) -> Result:
        run = {"digest": digest, "outputs": dict.fromkeys(outputs, digest)}
        return Result(name, "", {"run": run})

    many = [f"node.port{n}" for n in range(30)]
    lines = describe_differences(
        [bare("Fusion", "a", "fusion.pose"), bare("Stereo", "b", *many), bare("Again", "c", "fusion.pose")]
    )
    assert lines == [
        "Again against Fusion: of 1 outputs 1 differ (fusion.pose)",
        "not compared with each other, as they have no output in common: Fusion, Stereo",
    ]
    [line] = describe_differences([bare("Stereo", "b", *many), bare("Other", "c", many[0])])
    assert line.endswith(" and 23 more")

"""Rosario sequences that are damaged: what is good is kept, what is not is located."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.datasets.rosario import sample
from tests.datasets.rosario.sample import opened

from transect.datasets.rosario.bags.tables import read_odometry_raw
from transect.errors import ParseError, TransectError


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    sample.write_scripts_layout(tmp_path / "dataset")
    return tmp_path / "dataset"


def test_a_cut_last_line_is_lost_and_located(scripts: Path) -> None:
    for name in ("imu.log", "gps.log", "odometry_raw.log"):
        file = scripts / "sequence01" / name
        file.write_bytes(file.read_bytes()[:-6])
    truth = scripts / "sequence01_gt.txt"
    truth.write_bytes(truth.read_bytes()[:-9])
    rec = opened(scripts)
    assert {(Path(loss.file).name, loss.line) for loss in rec.losses} == {
        ("imu.log", 3),
        ("gps.log", 2),
        ("odometry_raw.log", 3),
        ("sequence01_gt.txt", 2),
    }
    assert [len(rec[n]) for n in ("Imu", "Gps/Fix", "Odometry/Raw", "GroundTruth")] == [2, 1, 2, 1]
    with pytest.raises(ParseError):
        opened(scripts, strict=True)


def test_text_in_a_number_loses_that_row_only(scripts: Path) -> None:
    file = scripts / "sequence01" / "imu.log"
    file.write_text(sample.IMU_9.replace("13.5", "high"))
    rec = opened(scripts)
    assert [(loss.line, loss.count) for loss in rec.losses] == [(2, 1)]
    assert len(rec["Imu"]) == 2


def test_nan_is_kept_as_not_measured(scripts: Path) -> None:
    (scripts / "sequence01" / "imu.log").write_text(sample.IMU_9.replace("13.5", "nan"))
    rec = opened(scripts)
    assert not rec.losses
    assert np.isnan(rec["Imu"]["acc_x"]).tolist() == [False, True, False]


def test_crlf_lines_read_alike(scripts: Path) -> None:
    expected = opened(scripts)["Imu"].table
    (scripts / "sequence01" / "imu.log").write_bytes(sample.IMU_9.replace("\n", "\r\n").encode())
    assert opened(scripts)["Imu"].table.equals(expected)


def test_missing_and_empty_files_leave_the_rest(scripts: Path) -> None:
    (scripts / "sequence01" / "gps.log").unlink()
    shutil.rmtree(scripts / "sequence01" / "zed")
    (scripts / "sequence01" / "imu.log").write_bytes(b"")
    rec = opened(scripts)
    assert [s.name for s in rec] == ["Imu", "Odometry/Raw", "GroundTruth"]
    assert len(rec["Imu"]) == 0
    assert len(rec["Odometry/Raw"]) == 3


def test_clocks_that_jump_back_are_kept_in_order(scripts: Path) -> None:
    (scripts / "sequence01" / "imu.log").write_text(sample.IMU_9 + sample.IMU_9)
    timing = opened(scripts)["Imu"].timing
    assert (timing.count, timing.backwards, timing.repeated) == (6, 1, 2)


def test_a_gps_log_without_times_is_lost_and_located(scripts: Path) -> None:
    (scripts / "sequence01" / "gps.log").write_text(sample.GPS.replace("1514301955.470000 ", ""))
    rec = opened(scripts)
    assert len(rec["Gps/Fix"]) == 0
    assert [loss.line for loss in rec.losses] == [1]


def test_an_image_that_is_not_one_says_so_when_it_is_asked_for(scripts: Path) -> None:
    (scripts / "sequence01" / "zed" / "left_1514301955.465000.png").write_bytes(b"no image")
    with pytest.raises(ParseError, match="not an image"):
        _ = opened(scripts)["Zed/Left"][0].value


def test_an_image_whose_name_is_no_time_is_a_loss(scripts: Path) -> None:
    (scripts / "sequence01" / "zed" / "left_15143019554650001.png").write_bytes(sample.png(0))
    rec = opened(scripts)
    assert len(rec["Zed/Left"]) == 2
    assert [loss.count for loss in rec.losses] == [1]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("cam0:", "cam0: [", "not a calibration"),
        ("[350.5, 351.5, 340.25, 188.75]", "[350.5]", "intrinsics"),
        ("[0.0, 1.0, 0.0, 0.1]", "[0.0, 9.0, 0.0, 0.1]", "rigid"),
        ("[2.5, -5.25, 1.75]", "[2.5, .nan, 1.75]", "finite"),
        ("[2.5, -5.25, 1.75]", "[a, b, c]", "float"),
        ("[0.0, 1.0, 0.0, 0.1]", "7", "4 x 4 numbers"),
        ("[0.0, 1.0, 0.0, 0.1]", "[[0.0], 1.0, 0.0, 0.1]", "4 x 4 numbers"),
        ("cam0:", "cam0: 7\nother:", "not a mapping"),
        (sample.CALIBRATION, "- cam0\n- cam1\n", "not a calibration: it is not a mapping"),
        ("cam0:", "# " + "x" * 1_000_000 + "\ncam0:", "too large for one"),
    ],
)
def test_a_calibration_that_lies_is_a_loss_and_the_robots_values_stand(
    scripts: Path, old: str, new: str, reason: str
) -> None:
    (scripts / "calibration01.yaml").write_text(sample.CALIBRATION.replace(old, new, 1))
    rec = opened(scripts)
    assert any(reason in loss.reason for loss in rec.losses), rec.losses
    assert {"left", "right"} <= set(rec.cameras)
    assert len(rec["Imu"]) == 3


def test_yaml_aliases_of_aliases_cost_nothing(scripts: Path) -> None:
    bomb = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
    for one, next_one in zip("abcdefgh", "bcdefghi", strict=True):
        bomb += f"{next_one}: &{next_one} [{', '.join([f'*{one}'] * 10)}]\n"
    (scripts / "calibration01.yaml").write_text(
        f"{bomb}cam0: {{intrinsics: *i, resolution: *i, T_cam_imu: *i}}\n"
    )
    assert any("expanded aliases" in loss.reason for loss in opened(scripts).losses)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"1514301955.4 MOT 1,2,3", "fields"),
        (b"1514301955.4 MOT", "<csv>"),
        (b"9999999999.0 MOT 1,2,3,0", "time"),
        (b"1514301955.4 MOT 1,2,3,7", "direction"),
        (b"1514301955.4 MOT one,2,3,0", "number"),
    ],
)
def test_telegrams_that_lie_are_lost_one_by_one(line: bytes, reason: str) -> None:
    (parsed,) = read_odometry_raw(
        b"1514301955.3 MOT 1,2,3,0\n" + line + b"\n1514301955.5 MOT 1,2,3,0\n", "o.log"
    )
    assert parsed.table.num_rows == 2
    (loss,) = parsed.losses
    assert loss.line == 2
    assert reason in loss.reason


@given(
    st.sampled_from(["imu.log", "gps.log", "odometry_raw.log", "calibration01.yaml", "sequence01_gt.txt"]),
    st.data(),
)
def test_mutated_bytes_raise_nothing_untyped(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    root = tmp_path_factory.mktemp("mutated")
    folder = root / "sequence01"
    folder.mkdir()
    texts = {
        "imu.log": sample.IMU_9,
        "gps.log": sample.GPS,
        "odometry_raw.log": sample.telegrams(),
        "calibration01.yaml": sample.CALIBRATION,
        "sequence01_gt.txt": sample.TRUTH,
    }
    for file, text in texts.items():
        content = bytearray(text.encode())
        if file == name:
            for _ in range(data.draw(st.integers(1, 5))):
                content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        (root if file[0] in "cs" else folder).joinpath(file).write_bytes(content)
    try:
        rec = opened(root)
        kept = {s.name: len(s) for s in rec}
        lost = sum(loss.count for loss in rec.losses)
    except TransectError:
        return
    rows = {
        "imu.log": ("Imu", 3),
        "odometry_raw.log": ("Odometry/Raw", 3),
        "sequence01_gt.txt": ("GroundTruth", 2),
    }
    if name in rows:
        stream, count = rows[name]
        assert kept[stream] >= count or lost, "rows vanished without a word"

"""Opening by path: recognition, explanation, options, plug-ins."""

from __future__ import annotations

import sys
import types
import zipfile
from pathlib import Path

import numpy as np
import pytest

import transect
from transect import formats
from transect.base import plugins
from transect.base.plugins import Plugin
from transect.errors import TransectError, UnknownFormatError, UnsupportedError, UsageError
from transect.recording import Recording, Source


def euroc(folder: Path, start: int = 1403715273262142976) -> Path:
    imu = folder / "mav0" / "imu0"
    imu.mkdir(parents=True)
    rows = "".join(f"{start + 5_000_000 * i},1,2,3,4,5,6\n" for i in range(10))
    (imu / "data.csv").write_text("#timestamp [ns],wx,wy,wz,ax,ay,az\n" + rows)
    (imu / "sensor.yaml").write_text("sensor_type: imu\n")
    return folder


def test_every_format_recognises_reads_and_says_what_it_is() -> None:
    assert len(formats.names()) >= 20
    for name in formats.names():
        module = formats.load(name)
        assert callable(module.recognises), name
        assert formats.describe(name), name


def test_every_format_gives_a_reason_for_its_refusal(tmp_path: Path) -> None:
    (tmp_path / "readme.md").write_text("nothing here")
    for name, match in formats.recognise(tmp_path):
        assert not match, name
        assert len(match.reason) > 10, name


def test_a_zip_with_a_top_folder_is_looked_into(tmp_path: Path) -> None:
    folder = euroc(tmp_path / "V1_01")
    path = tmp_path / "download.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in folder.rglob("*"):
            if file.is_file():
                archive.write(file, Path("some") / "V1_01" / file.relative_to(folder))
    recording = transect.open(path)
    assert recording.format == "euroc"
    assert len(recording["imu0"]) == 10


def test_several_paths_are_joined(tmp_path: Path) -> None:
    first = euroc(tmp_path / "a")
    second = euroc(tmp_path / "b", start=1403715283262142976)
    recording = transect.open(first, second)
    assert len(recording["imu0"]) == 20
    assert recording["imu0"].seams == (10,)


def test_a_folder_of_recordings_lists_them(tmp_path: Path) -> None:
    euroc(tmp_path / "day" / "V1_01")
    euroc(tmp_path / "day" / "V1_02")
    with pytest.raises(UsageError, match="holds 2 recordings") as caught:
        transect.open(tmp_path / "day")
    assert "V1_01" in str(caught.value)
    assert "V1_02" in str(caught.value)


def test_an_unknown_value_of_an_option_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    from transect.datasets.marulan import logs as sdi
    from transect.formats import boreas

    known = ((sdi.read, "sweeps", "true or false"), (boreas.read, "attitude", "auto or devkit"))
    for read, option, allowed in known:
        with pytest.raises(UsageError, match=f"option {option} of the format x cannot be 'maybe'") as caught:
            formats._check_options("x", read, {option: "maybe"})
        assert caught.value.why == f"it is {allowed}"
    (tmp_path / "a.ply").write_text("ply\nformat ascii 1.0\nelement vertex 0\nend_header\n")
    with pytest.raises(UsageError, match="columns is for raw"):
        transect.open(tmp_path / "a.ply", columns="x,y,z")
    np.zeros(8, "<f4").tofile(tmp_path / "b.bin")
    with pytest.raises(UsageError, match="does not name x, y and z once"):
        transect.open(tmp_path / "b.bin", format="pcd", columns="x,y,w,i")
    cloud = transect.open(tmp_path / "b.bin", format="pcd", columns="x,y,z,w").streams[0][0].payload
    assert (len(cloud), list(cloud.fields)) == (2, ["w"])


def test_an_unknown_option_or_format_is_named(tmp_path: Path) -> None:
    folder = euroc(tmp_path / "a")
    with pytest.raises(UnsupportedError, match="sequence"):
        transect.open(folder, sequence="01")
    with pytest.raises(UnknownFormatError, match="euroc"):
        transect.open(folder, format="euro")


def test_a_path_that_came_near_comes_first_in_the_explanation(tmp_path: Path) -> None:
    (tmp_path / "recording.yaml").write_text("")
    (tmp_path / "a.csv").write_text("1,2\n")
    with pytest.raises(TransectError) as caught:
        transect.open(tmp_path)
    assert "recording.yaml" in str(caught.value)


def test_a_package_outside_may_bring_a_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("mybot_format", "MyBot: a marker file.")

    def recognises(source: Source) -> formats.Match:
        return formats.Match(0.9, "mybot.txt") if "mybot.txt" in source else formats.no("no mybot.txt")

    def read(source: Source) -> Recording:
        return Recording(source.stem, ())

    module.recognises, module.read = recognises, read  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mybot_format", module)

    (tmp_path / "mybot.txt").touch()
    (tmp_path / "other.dat").touch()
    with plugins.added(Plugin(name="mybot", formats={"mybot": "mybot_format"})):
        assert transect.open(tmp_path).format == "mybot"


def test_the_reader_in_the_documentation_works(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()
    code = page.partition("```python\n")[2].partition("```")[0]
    module = types.ModuleType("documented")
    exec(compile(code, "docs/formats.md", "exec"), module.__dict__)  # noqa: S102
    (tmp_path / "log.csv").write_text("stamp,ax,ay,az,gx,gy,gz\n1.5,1,2,3,180,0,0\n")
    from transect.recording import source_of

    source = source_of(tmp_path)
    assert module.recognises(source)
    recording = module.read(source)
    assert recording["Imu"].t_ns.tolist() == [1_500_000_000]
    assert recording["Imu"]["gyro_x"][0] == pytest.approx(3.14159265)


def test_a_joined_recording_names_the_files_of_all_its_parts(tmp_path: Path) -> None:
    first = euroc(tmp_path / "a")
    second = euroc(tmp_path / "b", start=1403715283262142976)
    recording = transect.open(first, second)
    assert recording.losses == ()
    hashes = {source.sha256 for source in recording.provenance.sources if source.path.endswith("data.csv")}
    assert len(hashes) == 2


def test_files_that_open_by_themselves_are_named(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("a readme")
    rows = "".join(f"{1311868164 + i}.5 0 0 {i} 0 0 0 1\n" for i in range(5))
    (tmp_path / "track.txt").write_text(rows)
    with pytest.raises(UnknownFormatError, match=r"track\.txt \(tum\)"):
        transect.open(tmp_path)


def test_a_cut_of_a_join_is_exported_from_the_right_part(tmp_path: Path) -> None:
    import cv2
    import numpy as np

    def camera(folder: Path, start: int, grey: int) -> Path:
        euroc(folder, start)
        data = folder / "mav0" / "cam0" / "data"
        data.mkdir(parents=True)
        for i in range(2):
            cv2.imwrite(str(data / f"{i}.png"), np.full((4, 4), grey + i, np.uint8))
        lines = "".join(f"{start + i * 10**9},{i}.png\n" for i in range(2))
        (folder / "mav0" / "cam0" / "data.csv").write_text("#timestamp [ns],filename\n" + lines)
        return folder

    first = camera(tmp_path / "a", 1403715273000000000, 50)
    second = camera(tmp_path / "b", 1403715373000000000, 100)
    whole = transect.open(first, second)
    assert [sample.payload.data[0, 0] for sample in whole["cam0"]] == [50, 51, 100, 101]
    formats.write(whole.slice("+50s").select("cam0"), tmp_path / "cut", "csv")
    assert [sample.payload.data[0, 0] for sample in transect.open(tmp_path / "cut")["cam0"]] == [100, 101]


def test_an_export_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    recording = transect.open(euroc(tmp_path / "a"))
    with pytest.raises(UsageError):
        formats.write(recording, tmp_path / "out", "tum")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a"]


def test_an_export_without_any_content_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def writes_nothing(recording: Recording, path: Path) -> tuple[str, ...]:
        path.mkdir()
        return ("Odd: there is no place for it",)

    monkeypatch.setattr(formats.load("ameds"), "write", writes_nothing)
    with pytest.raises(UnsupportedError, match="nothing of r can be written as ameds"):
        formats.write(Recording("r", ()), tmp_path / "out", "ameds")
    assert list(tmp_path.iterdir()) == []


def test_recordings_of_two_formats_side_by_side_are_refused_with_their_names(tmp_path: Path) -> None:
    euroc(tmp_path / "both" / "flight")
    drive = tmp_path / "both" / "drive" / "oxts"
    (drive / "data").mkdir(parents=True)
    (drive / "timestamps.txt").write_text("2011-09-30 12:08:26.403042304\n")
    (drive / "data" / "0000000000.txt").write_text(" ".join(["1"] * 30))
    with pytest.raises(UsageError, match="holds 2 recordings") as caught:
        transect.open(tmp_path / "both")
    assert "drive (kitti)" in caught.value.why
    assert "flight (euroc)" in caught.value.why


def test_linked_recordings_are_named_and_not_mixed(tmp_path: Path) -> None:
    euroc(tmp_path / "one")
    euroc(tmp_path / "two")
    links = tmp_path / "links"
    links.mkdir()
    (links / "a").symlink_to(tmp_path / "one")
    with pytest.raises(TransectError, match="holds no files") as caught:
        transect.open(links)
    assert str(links / "a") in caught.value.hint
    (links / "b").symlink_to(tmp_path / "two")
    with pytest.raises(UsageError, match="holds 2 recordings"):
        transect.open(links)


def test_a_drive_in_a_zip_of_several_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "drives.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("first", "second"):
            folder = euroc(tmp_path / name)
            for file in (f for f in folder.rglob("*") if f.is_file()):
                archive.write(file, Path(name) / file.relative_to(folder))
    with pytest.raises(UsageError, match="holds 2 recordings"):
        transect.open(path)
    recording = transect.open(path / "second")
    assert (recording.name, len(recording["imu0"])) == ("second", 10)
    with pytest.raises(TransectError, match="does not exist"):
        transect.open(path / "third")


def test_the_folder_one_is_in_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(euroc(tmp_path / "flight"))
    assert transect.open(".").name == "flight"


def test_a_trajectory_beside_a_recording_that_does_not_read_it_is_said(tmp_path: Path):
    euroc(tmp_path)
    assert not transect.open(tmp_path).notes
    (tmp_path / "groundtruth.txt").write_text("# timestamp tx ty tz qx qy qz qw\n1 0 0 0 0 0 0 1\n")
    (note,) = transect.open(tmp_path).notes
    assert note.startswith(f"{tmp_path / 'groundtruth.txt'} is a trajectory that is not read: transect eval")


def test_papers_are_not_offered_as_data(tmp_path: Path):
    for name in ("SOURCE.txt", "a.clf", "b.clf"):
        (tmp_path / name).write_text("ODOM 0.5 0.1 0.2 0 0 0 1.5 host 1.5\n" * 3)
    with pytest.raises(UnknownFormatError) as caught:
        transect.open(tmp_path)
    first, *files = caught.value.why.split("\n         ")
    assert first == "these files of it open by themselves"
    assert files == [f"{tmp_path / name} (carmen)" for name in ("a.clf", "b.clf")]


def test_descriptions_of_compounds_are_no_recording_and_the_error_says_what_looks_at_them(tmp_path: Path):
    (tmp_path / "filter.yaml").write_text("name: Filter\ninput_ports: []\n")
    with pytest.raises(UnknownFormatError) as caught:
        transect.open(tmp_path)
    assert f"transect graph check {tmp_path / 'filter.yaml'}  looks" in caught.value.hint

"""The archive of InSight's arm, of the sample that the SIS prints: collections, names, labels, numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]
from tests.commands import transect as command
from tests.datasets.insight import sample

import transect
from transect.archive.builder import build_bundle
from transect.archive.bundle_reader import find_products
from transect.datasets.insight.archive.bundle import arm_bundle
from transect.datasets.insight.products.columns import NAMES_57
from transect.errors import UnsupportedError
from transect.formats.shared.images import encode_image
from transect.recording import Recording
from transect.types import Image

CREATED = "2020-12-21T00:00:00Z"
SCIHI = Path("data_raw_calibrated", sample.LABEL_NAME)
PIXELS = np.random.default_rng(3).integers(0, 255, (4, 6, 3), dtype=np.uint8)
PICTURE = "D000M0209_615088548EDR_F0000_0817M_"
CONTEXT = "C000M0209_615088549EDR_F0000_0558M_"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = sample.write_sample(tmp_path_factory.mktemp("ida") / "arm")
    (folder / f"{PICTURE}.PNG").write_bytes(encode_image(Image(PIXELS, "rgb"), ".png"))
    (folder / f"{CONTEXT}.PNG").write_bytes(encode_image(Image(PIXELS[..., 0], "gray"), ".png"))
    (folder / "Sol 209 press.mp4").write_bytes(b"\0\0\0\x18ftypisom")
    return folder


@pytest.fixture(scope="module")
def bundle(folder: Path) -> Path:
    return build_bundle(arm_bundle(transect.open(folder), CREATED), folder.parent / "insight_ida").folder


def _label(path: Path) -> Any:
    return etree.parse(path).getroot()


def _text(label: Any, name: str) -> list[str]:
    return [each.text for each in label.iter(f"{{*}}{name}")]


def test_the_bundle_has_the_collections_of_table_10(bundle: Path):
    label = _label(bundle / "bundle_insight_ida.xml")
    entries = [tuple(child.text for child in entry) for entry in label.iterfind("{*}Bundle_Member_Entry")]
    base = "urn:nasa:pds:insight_ida"
    assert set(entries) == {
        (f"{base}:data_ancillary::1.0", "Primary", "bundle_has_data_collection"),
        (f"{base}:data_raw_calibrated::1.0", "Primary", "bundle_has_data_collection"),
        (f"{base}:document_video::1.0", "Primary", "bundle_has_document_collection"),
        (f"{base}:data_camera::1.0", "Primary", "bundle_has_data_collection"),  # pictures: not in Table 10
        ("urn:nasa:pds:insight_documents:document_ida", "Secondary", "bundle_has_document_collection"),
    }  # fmt: skip


def test_products_are_called_as_4_1_has_them(bundle: Path):
    found = {str(lid): each for lid, each in find_products(bundle).items()}
    # 4.1.1, the example of a product's LID; 4.1.3, the name of its file
    arm = found[
        "urn:nasa:pds:insight_ida:data_ancillary:a0089_0062_602047157_602052923_190129195008_006_arm_float"
    ]
    assert (arm.kind, list(arm.files)) == ("Product_Ancillary", [sample.ARM_NAME])
    kinds = {lid.removeprefix("urn:nasa:pds:insight_ida:").partition(":")[0] for lid in found} - {
        "urn",
    }
    assert kinds == {"data_ancillary", "data_raw_calibrated", "data_camera", "document_video"}
    video = found["urn:nasa:pds:insight_ida:document_video:sol_209_press"]
    assert (video.kind, list(video.files)) == ("Product_Document", ["sol_209_press.mp4"])


def test_levels_are_those_of_table_5(bundle: Path):
    levels = {
        label.parent.name: sorted(set(_text(_label(label), "processing_level")))
        for label in bundle.glob("*/[!c]*.xml")
    }
    assert levels == {
        "data_raw_calibrated": ["Calibrated", "Raw"],
        "data_ancillary": ["Derived"],
        "data_camera": ["Raw"],
        "document_video": [],
    }


def test_clocks_in_a_label_are_those_of_its_data(bundle: Path):
    label = _label(bundle / SCIHI)  # 615088547.8 and 615088548
    assert _text(label, "spacecraft_clock_start") == ["1/615088547-52429"]  # 0.8 s of 65536 ticks
    assert _text(label, "spacecraft_clock_stop") == ["1/615088548-00000"]
    assert _text(label, "start_date_time") == ["2019-06-29T13:56:41.502000Z"]
    assert (_text(label, "start_sol_number"), _text(label, "stop_sol_number")) == (["209"], ["209"])
    status = _label(bundle / "data_ancillary" / sample.ARM_NAME.lower().replace(".txt", ".xml"))
    # its one status is of long before (5.1.1), so that the name of the file is used
    assert _text(status, "spacecraft_clock_start") == ["1/602047157-00000"]
    assert _text(status, "start_sol_number") == ["62"]


def test_a_table_has_the_fields_of_its_file(bundle: Path):
    label = _label(bundle / SCIHI)
    fields = [
        {etree.QName(part).localname: part.text for part in field}
        for field in label.iter("{*}Field_Delimited")
    ]
    assert [field["name"] for field in fields] == list(NAMES_57)  # Table 12
    units = {field["name"]: field["unit"] for field in fields}
    assert (units["th_enc"], units["x_enc"], units["tcase1"], units["htr_cur"]) == ("rad", "m", "degC", "A")
    constants = {field["name"] for field in fields if "Special_Constants" in field}
    assert constants == {"Fr", "Ft", "Fz"}
    assert set(_text(label, "invalid_constant")) == {"-99999.0000"}


def _assert_same(one: Recording, two: Recording) -> None:
    for stream in one:
        other = two[stream.name]
        assert stream.t_ns.tolist() == other.t_ns.tolist()
        for name in set(stream.columns) - {"file"}:
            mine, theirs = stream.column(name), other.column(name)
            if isinstance(mine, list):
                assert mine == theirs, (stream.name, name)
            else:
                assert np.array_equal(mine, theirs, equal_nan=mine.dtype.kind == "f"), (stream.name, name)


def test_the_bundle_opens_as_the_recording_that_it_was_made_of(folder: Path, bundle: Path):
    recording, again = transect.open(folder), transect.open(bundle)
    _assert_same(recording, again)
    for camera in ("IDC", "ICC"):
        assert np.array_equal(recording[camera][0].payload.data, again[camera][0].payload.data)
    assert again.format == "ida"
    assert again.conditions["parameters"] == recording.conditions["parameters"]
    assert again.conditions["sc_coordinates"] == recording.conditions["sc_coordinates"]
    assert again.losses == recording.losses == ()


def test_pds4_tools_reads_the_numbers_of_the_file(folder: Path, bundle: Path):
    import pds4_tools

    [_, table] = pds4_tools.read(str(bundle / SCIHI), quiet=True)
    lines = (folder / "sol0209" / sample.SCIHI_NAME).read_text().splitlines()
    for column, name in enumerate(NAMES_57):
        words = [line.split(",")[column] for line in lines[1:]]
        if name != "stat":
            assert np.array_equal(np.ma.getdata(table[name]).astype(float), np.array(words, float)), name
    assert list(table["stat"]) == ["0", "0x21321"]


def test_pictures_are_arrays_that_pds4_tools_reads_back(bundle: Path):
    import pds4_tools

    for name, pixels in ((PICTURE, np.moveaxis(PIXELS, 2, 0)), (CONTEXT, PIXELS[..., 0])):
        label = bundle / "data_camera" / f"{name.lower()}.xml"
        [array] = pds4_tools.read(str(label), quiet=True)
        assert np.array_equal(np.asarray(array.data), pixels)
        assert _text(_label(label), "start_sol_number") == ["209"]
    again = transect.open(bundle / "data_camera", format="pds4")
    assert np.array_equal(again[PICTURE.lower()][0].payload.data, PIXELS)
    assert np.array_equal(again[CONTEXT.lower()][0].payload.data, PIXELS[..., 0])


def test_a_line_that_is_no_record_is_left_out_and_reported(tmp_path: Path):
    rows = (sample.SNAPSHOT, sample.MOVING.replace("0.4701", "0.x701"), sample.MOVING)
    (tmp_path / "arm").mkdir()
    (tmp_path / "arm" / sample.SCIHI_NAME).write_bytes(
        sample.science(rows=rows).replace("\r\n", "\n").encode()
    )
    recording = transect.open(tmp_path / "arm")
    bundle = build_bundle(arm_bundle(recording, CREATED), tmp_path / "b").folder
    data = (bundle / "data_raw_calibrated" / sample.SCIHI_NAME).read_bytes()
    assert data == sample.science(rows=(rows[0], rows[2])).encode()
    assert _text(_label(bundle / SCIHI), "records") == ["3", "2"]  # of the file, of the table
    recording["Arm/SciHi"].table  # noqa: B018 - losses are known once it is read
    assert sum(loss.count for loss in recording.losses) == 1


def test_a_table_without_records_is_no_product(folder: Path, tmp_path: Path):
    (tmp_path / "arm").mkdir()
    (tmp_path / "arm" / sample.SCIHI_NAME).write_bytes(sample.science(rows=()).encode())
    (tmp_path / "arm" / sample.SCILO_NAME).write_bytes(sample.science().encode())
    bundle = arm_bundle(transect.open(tmp_path / "arm"), CREATED)
    [collection] = bundle.collections
    assert [member.lid.name[:5] for member in collection.members] == ["a0088"]


def test_coordinates_that_cannot_be_read_are_no_product(tmp_path: Path):
    for text, count in ((sample.COORDINATES, 1), (sample.COORDINATES.replace("-283", "-28x"), 0)):
        (tmp_path / "ida_sc_coordinates.csv").write_text(text)
        (tmp_path / sample.ARM_NAME).write_text(sample.ARM_STATUS)
        [collection] = arm_bundle(transect.open(tmp_path), CREATED).collections
        assert len(collection.members) == 1 + count


def test_an_unreadable_collection_is_omitted(tmp_path: Path):
    (tmp_path / "arm").mkdir()
    (tmp_path / "arm" / sample.SCIHI_NAME).write_bytes(sample.science().encode())
    (tmp_path / "arm" / f"{PICTURE}.PNG").write_bytes(encode_image(Image(PIXELS, "rgb"), ".png")[:60])
    done = command("archive", "build", tmp_path / "arm", "-o", tmp_path / "b", "--json")
    assert done.returncode == 3  # finished with data lost
    assert PICTURE in json.loads(done.stdout)["losses"][0]
    assert sorted(path.name for path in (tmp_path / "b").iterdir() if path.is_dir()) == [
        "data_raw_calibrated"
    ]
    assert "data_camera" not in (tmp_path / "b/bundle_insight_ida.xml").read_text()
    (tmp_path / "arm" / sample.SCIHI_NAME).unlink()
    done = command("archive", "build", tmp_path / "arm", "-o", tmp_path / "c")
    assert (done.returncode, (tmp_path / "c").exists()) == (1, False)


def test_a_column_that_was_not_measured_says_so(tmp_path: Path):
    row = sample.SNAPSHOT.replace("-26.9399", "-99999.0000")
    (tmp_path / "arm").mkdir()
    (tmp_path / "arm" / sample.SCIHI_NAME).write_bytes(sample.science(rows=(row,)).encode())
    bundle = build_bundle(arm_bundle(transect.open(tmp_path / "arm"), CREATED), tmp_path / "b").folder
    [field] = [
        each for each in _label(bundle / SCIHI).iter("{*}Field_Delimited") if each[0].text == "tgrapple"
    ]
    assert _text(field, "missing_constant") == ["-99999.0000"]


def test_files_without_a_name_of_4_1_3_get_one(tmp_path: Path):
    (tmp_path / "table.csv").write_bytes(sample.science().encode())
    bundle = build_bundle(arm_bundle(transect.open(tmp_path / "table.csv"), CREATED), tmp_path / "b").folder
    [data] = (bundle / "data_raw_calibrated").glob("A*")
    assert data.name == "A0087_0209_615088547_615088548_190629135641_eu.csv"


def test_simulated_data_are_called_so_in_every_label(folder: Path, tmp_path: Path):
    text = (folder / "sol0062" / sample.PARAMETER_NAME).read_text()
    (tmp_path / "arm").mkdir()
    (tmp_path / "arm" / sample.PARAMETER_NAME).write_text(f"{text}\nParameter Set: SIMULATION\nseed = 1\n")
    (tmp_path / "arm" / sample.SCIHI_NAME).write_bytes(sample.science().encode())
    bundle = build_bundle(arm_bundle(transect.open(tmp_path / "arm"), CREATED), tmp_path / "b").folder
    labels = list(bundle.rglob("*.xml"))
    assert len(labels) == 5
    assert all("Simulated: not data of InSight" in label.read_text() for label in labels)
    assert "Simulated" in (bundle / "readme.txt").read_text()


def test_other_recordings_are_refused():
    with pytest.raises(UnsupportedError, match="no recording of InSight"):
        arm_bundle(Recording("other", ()), CREATED)


def test_a_printed_label_is_wrong_where_appendix_e_is(folder: Path, tmp_path: Path):
    recording = transect.open(folder / "sol0209")
    bundle = build_bundle(arm_bundle(recording, CREATED, as_printed=True), tmp_path / "b").folder
    label = _label(bundle / SCIHI)
    assert "urn:nasa:pds:insight_ida:document:insight_ida_bundle_sis" in _text(label, "lid_reference")
    assert "InSight Lander" in _text(label, "name")
    assert _text(label, "spacecraft_clock_start") == ["615088547"]
    assert _text(label, "md5_checksum") == _text(label, "file_size") == _text(label, "stop_sol_number") == []
    units = {field[0].text: field.findtext("{*}unit") for field in label.iter("{*}Field_Delimited")}
    assert (units["th_enc"], units["htr_cur"]) == ("m", "mA")


def test_the_command_builds_this_archive_of_the_arm(folder: Path, tmp_path: Path):
    done = command("archive", "build", folder, "-o", tmp_path / "b", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["bundle"], said["losses"]) == ("urn:nasa:pds:insight_ida::1.0", [])
    assert said["notes"] == ["the bundle names no author, and cannot be cited: authors: in the YAML file"]
    assert len(said["products"]) == 5 + 2 + 2 + 1 + 4 + 1  # of four collections, these, and the bundle
    assert _text(_label(tmp_path / "b" / SCIHI), "creation_date_time") == ["2019-06-29T13:56:42Z"]
    again = command("archive", "build", folder, "-o", tmp_path / "b", "--as-printed", "--json")
    changed = {lidvid for lidvid, word in json.loads(again.stdout)["products"].items() if word != "none"}
    base = "urn:nasa:pds:insight_ida"
    tables = {
        f"{base}:data_raw_calibrated:{name.lower()[:-4]}::1.1"
        for name in (sample.SCIHI_NAME, sample.SCILO_NAME)
    }
    assert changed == {f"{base}::1.1", f"{base}:data_raw_calibrated::1.1", *tables}


def test_the_file_that_init_writes_describes_this_archive(folder: Path, tmp_path: Path):
    assert command("archive", "init", folder, "-o", tmp_path / "arm.yaml").returncode == 0
    text = (tmp_path / "arm.yaml").read_text()
    assert "profile: ida" in text
    (tmp_path / "arm.yaml").write_text(text.replace('authors: ""', 'authors: "Marteau, E.; JPL"'))
    done = command("archive", "build", tmp_path / "arm.yaml", "-o", tmp_path / "b")
    assert done.returncode == 0, done.stderr
    assert _text(_label(tmp_path / "b/bundle_insight_ida.xml"), "author_list") == ["Marteau, E.; JPL"]
    (tmp_path / "arm.yaml").write_text(text.replace("profile: ida", "profile: arm"))
    done = command("archive", "build", tmp_path / "arm.yaml", "-o", tmp_path / "b")
    assert (done.returncode, "arm.yaml:6" in done.stderr) == (1, True)


def test_other_recordings_have_no_printed_labels(tmp_path: Path):
    (tmp_path / "a.tum").write_text("1 0 0 0 0 0 0 1\n2 1 0 0 0 0 0 1\n")
    done = command("archive", "build", tmp_path / "a.tum", "-o", tmp_path / "b", "--as-printed")
    assert (done.returncode, "--as-printed" in done.stderr) == (2, True)

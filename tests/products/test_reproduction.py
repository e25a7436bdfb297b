"""What a run says it was made from: every file whose bytes reached a node, in any container."""

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from tests.commands import transect

import transect as package
from transect.base import plugins
from transect.base.plugins import Plugin
from transect.engine import compound, node, run
from transect.engine.provenance import listing_of, read_listing
from transect.formats import open as open_recording
from transect.products import Product, ProductQuery, ProductStore, open_store
from transect.products.reproduction import find_changed_files, why_outdated
from transect.products.run_products import keep_run
from transect.recording import Recording
from transect.types import CameraModel, Image, PointCloud
from transect.types.provenance import SourceFile

SAMPLE_COUNT = 20


@node
def brightness(image: Image) -> float:
    """Return the mean of all pixels."""
    return float(np.mean(image.data))


@node
def reach(cloud: PointCloud) -> float:
    """Return the largest coordinate of all points."""
    return float(np.nanmax(np.abs(cloud.points)))


def write_images(folder: Path, changed: int = -1) -> Path:
    """Write images of noise by the names of their times; one of them may be another."""
    rng = np.random.default_rng(1)
    (folder / "left").mkdir(parents=True)
    for number in range(SAMPLE_COUNT):
        pixels = rng.integers(0, 200, (48, 64), dtype=np.uint8)
        if number == changed:
            pixels[20, 30] += 50
        stamp = f"{1_700_000_000 + number / 10:.6f}"
        assert cv2.imwrite(str(folder / "left" / f"{stamp}.png"), pixels)
    return folder


def write_clouds(folder: Path, changed: int = -1) -> Path:
    """Write clouds as PCD; one of them may have another point."""
    rng = np.random.default_rng(2)
    folder.mkdir(parents=True)
    for number in range(SAMPLE_COUNT):
        points = rng.uniform(0, 1, (50, 3))
        if number == changed:
            points[7, 1] = 2.0
        head = (
            "VERSION .7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH 50\nHEIGHT 1\nPOINTS 50\n"
        )
        rows = "\n".join(" ".join(f"{v:.6f}" for v in point) for point in points)
        (folder / f"{1_700_000_000 + number}.000000.pcd").write_text(f"{head}DATA ascii\n{rows}\n")
    return folder


def as_zip(folder: Path) -> Path:
    """Pack a folder."""
    packed = folder.with_suffix(".zip")
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*.png")):
            archive.write(file, f"{folder.name}/{file.relative_to(folder)}")
    return packed


def exported(*options: str, name: str = "out") -> Callable[[Path], Path]:
    """Return what converts a folder by a command."""

    def convert(folder: Path) -> Path:
        out = folder.parent / f"{folder.name}-{name}"
        done = transect("export", folder, "-o", out, *options)
        assert done.returncode in (0, 3), done.stderr
        return out

    return convert


CONTAINERS: dict[str, Callable[[Path], Path]] = {
    "folder": lambda folder: folder,
    "zip": as_zip,
    "ros2 sqlite": exported("--format", "rosbag", name="bag"),
    "ros2 mcap": exported(name="bag.mcap"),
    "ros1": exported(name="bag.bag"),
    "foxglove": exported("--format", "foxglove", name="fox.mcap"),
    "json": exported("--format", "mcap", name="json.mcap"),
    "film": exported(name="film.mp4"),
}


def values(recording: Recording, kind: type = Image) -> tuple[list[float], Any]:
    """Return what the node made of each sample, and the run."""
    [stream] = [stream for stream in recording if stream.type is kind]
    function, port = (brightness, "image") if kind is Image else (reach, "cloud")
    measured = compound("Measured", {"node": function}, [f"{port} -> node.{port}", "node.out -> out"])
    made = run(measured, recording, wire={port: stream.name})
    return list(made["out"].values), made


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_changed_image_is_a_changed_input_in_any_container(container: str, tmp_path: Path) -> None:
    convert = CONTAINERS[container]
    before, one = values(open_recording(convert(write_images(tmp_path / "a" / "day"))))
    after, other = values(open_recording(convert(write_images(tmp_path / "b" / "day", changed=11))))
    assert len(before) == SAMPLE_COUNT
    if container != "film":  # its coding may swallow one pixel
        assert before != after
    assert one.config["inputs"].keys() == other.config["inputs"].keys() != set()
    assert one.config["inputs"] != other.config["inputs"]


def test_a_changed_cloud_is_a_changed_input(tmp_path: Path) -> None:
    before, one = values(open_recording(write_clouds(tmp_path / "a" / "day")), PointCloud)
    after, other = values(open_recording(write_clouds(tmp_path / "b" / "day", changed=11)), PointCloud)
    assert before != after
    assert one.config["inputs"].keys() == other.config["inputs"].keys() == {"*.*.pcd"}
    assert one.config["inputs"] != other.config["inputs"]


# A request for what an own compound makes of images ------------------------------------------------

COMPOUND = """
name: Brightness
doc: How bright images are
input_ports: [{name: image, type: Image}]
output_ports: [{name: brightness, type: float}]
implementations:
  - name: Mean
    nodes: {mean: {node: MeanBrightness}}
    wires: [image -> mean.image, mean.out -> brightness]
"""
NODE = """
from transect.engine import node
from transect.types import Image

@node
def mean_brightness(image: Image, *, scale: float = 1.0) -> float:
    \"\"\"Return the mean of all pixels.\"\"\"
    return scale * float(image.data.mean())
"""


@pytest.fixture
def field(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a recording `day`, and a package `extra` of a third party that has a compound for it."""
    write_images(tmp_path / "day")
    package = tmp_path / f"extra_{abs(hash(tmp_path))}"
    package.mkdir()
    (package / "__init__.py").touch()
    package.joinpath("brightness.yaml").write_text(COMPOUND)
    package.joinpath("mean_brightness.py").write_text(NODE)
    (tmp_path / "extra").symlink_to(package)
    monkeypatch.syspath_prepend(tmp_path)
    with plugins.added(Plugin(name="extra", compounds={"Brightness": f"{package.name}:brightness.yaml"})):
        yield tmp_path


def ask(field: Path, *options: object, recording: str = "day") -> dict[str, Any]:
    """Ask for the brightness; return what was said."""
    command = ("request", "brightness", "--recording", recording, "--store", "a.gpkg", "--json", *options)
    told = transect(*command, cwd=field)
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)


def why_refused(field: Path, identifier: str, *options: object) -> str:
    """Return why a product is no answer to the request that made it."""
    told = ask(field, "--dry-run", *options)
    assert told["stored"] is False
    return next(each["why"] for each in told["refused"] if each["what"] == identifier[:12])


def invert(file: Path) -> None:
    """Replace an image by its negative."""
    pixels = cv2.imread(str(file), cv2.IMREAD_UNCHANGED)
    assert pixels is not None
    assert cv2.imwrite(str(file), 255 - pixels)


def test_a_product_of_the_same_inputs_is_the_answer_and_one_of_others_is_not(field: Path) -> None:
    first = ask(field)
    assert (first["stored"], bool(first["product"])) == (False, True)
    again = ask(field)
    assert (again["stored"], again["product"]) == (True, first["product"])
    changed = sorted((field / "day" / "left").iterdir())[4]
    invert(changed)
    assert f"left/{changed.name} was changed" in why_refused(field, first["product"])
    new = ask(field)
    assert (new["stored"], new["product"] == first["product"]) == (False, False)
    told = transect("products", "reproduce", "a.gpkg", first["product"], cwd=field)
    assert told.returncode == 4
    assert f"left/{changed.name} was changed" in told.stderr
    assert "identical" in transect("products", "reproduce", "a.gpkg", new["product"], cwd=field).stdout


def test_an_image_that_is_gone_or_new_is_another_input(field: Path) -> None:
    made = ask(field)["product"]
    last = max((field / "day" / "left").iterdir())
    added = last.with_name("1700000002.000000.png")
    shutil.copyfile(last, added)
    assert "other samples of" in why_refused(field, made)
    added.unlink()
    assert ask(field)["stored"] is True
    last.unlink()
    assert f"left/{last.name} is gone" in why_refused(field, made)
    told = transect("products", "reproduce", "a.gpkg", made, cwd=field)
    assert (told.returncode, f"left/{last.name} is gone" in told.stderr) == (4, True)


def test_other_code_and_other_parameters_make_other_products(field: Path) -> None:
    made = ask(field)["product"]
    (field / "extra" / "mean_brightness.py").write_text(NODE.replace("return scale", "return 2 * scale"))
    assert why_refused(field, made) == "made by other code of mean_brightness.py"
    (field / "extra" / "mean_brightness.py").write_text(NODE)
    assert ask(field)["product"] == made
    (field / "extra" / "brightness.yaml").write_text(
        COMPOUND.replace("MeanBrightness}", "MeanBrightness, params: {scale: 2.0}}")
    )
    assert "the description of Brightness" in why_refused(field, made)
    (field / "extra" / "brightness.yaml").write_text(COMPOUND)
    ran = transect(
        "run", "Brightness", "day", "--set", "mean.scale=3", "-o", "out", "--store", "a.gpkg", cwd=field
    )
    assert ran.returncode == 0, ran.stderr
    assert ask(field)["product"] == made
    with open_store(field / "a.gpkg") as store:
        store.delete(made, "only the other one is left")
    told = ask(field, "--dry-run")
    assert "made with other parameters: mean.scale" in [each["why"] for each in told["refused"]]


def test_another_version_of_transect_makes_another_product(
    field: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = ask(field)["product"]
    monkeypatch.setattr("transect.engine.provenance.hash_of_package", lambda: "0" * 64)
    assert "another version of transect" in why_refused(field, made)


def test_another_part_of_a_recording_is_another_product(field: Path) -> None:
    made = ask(field)["product"]
    assert "another part of the recording" in why_refused(field, made, "--from", "+0.5s")
    part = ask(field, "--from", "+0.5s")
    again = ask(field, "--from", "+0.5s")
    assert (again["stored"], again["product"]) == (True, part["product"])


def test_a_recording_that_moved_is_the_same_input(field: Path) -> None:
    made = ask(field)["product"]
    (field / "day").rename(field / "elsewhere")
    told = ask(field, recording="elsewhere")
    assert (told["stored"], told["product"]) == (True, made)
    again = transect("products", "reproduce", "a.gpkg", made, "--look-in", ".", cwd=field)
    assert "identical" in again.stdout


def test_what_no_stamp_shows_is_found_when_everything_is_hashed_again(
    field: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a change time, as on some network drives, the same size and time of change hide a change."""
    rng = np.random.default_rng(3)
    [first, *_] = sorted((field / "day" / "left").iterdir())
    noise = rng.integers(0, 255, (300, 300), dtype=np.uint8)
    assert cv2.imwrite(str(first), noise, [cv2.IMWRITE_PNG_COMPRESSION, 0])
    os.utime(first, ns=(1, 1))
    monkeypatch.setattr(
        "transect.recording.source.file_state_of", lambda stat: (stat.st_size, stat.st_mtime_ns, 0, 0)
    )
    made = ask(field)["product"]
    assert cv2.imwrite(str(first), noise[::-1], [cv2.IMWRITE_PNG_COMPRESSION, 0])
    os.utime(first, ns=(1, 1))
    assert ask(field)["stored"] is True
    assert f"left/{first.name} was changed" in why_refused(field, made, "--strict")
    told = transect("products", "reproduce", "a.gpkg", made, "--strict", cwd=field)
    assert (told.returncode, f"left/{first.name} was changed" in told.stderr) == (4, True)


def test_a_change_that_keeps_size_and_time_is_seen(field: Path) -> None:
    [first, *_] = sorted((field / "day" / "left").iterdir())
    noise = np.random.default_rng(3).integers(0, 255, (300, 300), dtype=np.uint8)
    assert cv2.imwrite(str(first), noise, [cv2.IMWRITE_PNG_COMPRESSION, 0])
    os.utime(first, ns=(1, 1))
    made = ask(field)["product"]
    assert cv2.imwrite(str(first), noise[::-1], [cv2.IMWRITE_PNG_COMPRESSION, 0])
    os.utime(first, ns=(1, 1))
    assert f"left/{first.name} was changed" in why_refused(field, made)


def test_a_list_of_inputs_that_is_gone_or_forged_is_no_proof(field: Path) -> None:
    made = ask(field)["product"]
    with open_store(field / "a.gpkg") as store:
        [listing] = [product for product in store.find() if product.kind == "Inputs"]
        assert hashlib.sha256(store.content(listing.id)).hexdigest() == listing.payload.sha256
        store.delete(listing.id, "a test")
    assert "the list of the files left/*.*.png is not in the store" in why_refused(field, made)


def test_a_store_names_no_file_outside_a_recording(field: Path) -> None:
    """Names of inputs come from a store, which anybody may have written: nothing else is opened by them."""
    made = ask(field)["product"]
    (field / "secret").write_text("secret")
    (field / "day" / "link").symlink_to("/etc", target_is_directory=True)
    secret = hashlib.sha256(b"secret").hexdigest()
    with open_store(field / "a.gpkg") as store:
        [run_of] = [product for product in store.find() if product.kind == "Run"]
        names = ("../secret", str(field / "secret"), "link/passwd")
        forged = replace(
            run_of,
            provenance=replace(run_of.provenance, sources=tuple(SourceFile(n, 6, secret) for n in names)),
        )
        problems = find_changed_files(store, forged, open_recording(field / "day"))
    assert problems == sorted(f"{name} is gone" for name in names)
    assert made


def run_and_recording(field: Path) -> tuple[ProductStore, Product, Recording]:
    """Return a store with a run of the day, that run, and the day opened again."""
    ask(field)
    store = open_store(field / "a.gpkg")
    return store, store.find(ProductQuery(kind="Run"))[0], open_recording(field / "day")


def test_what_a_run_would_see_differently_now_is_said(field: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, run_of, recording = run_and_recording(field)
    with store:

        def why(changed: Recording = recording, product: Product = run_of) -> str:
            return why_outdated(store, product, changed)

        assert why() == ""
        assert "opened in another way" in why(recording.replace(options={"stamps": "log"}))
        assert "opened in another way" in why(recording.replace(format="kitti"))
        assert "not from 2 joined recordings" in why(
            recording.replace(parts=(recording.source, recording.source))
        )
        shifted = [s.replace(source=s.table.slice(1)) for s in recording]
        assert "other samples of" in why(recording.replace(streams=tuple(shifted)))
        camera = CameraModel("left", 64, 48, np.diag([50.0, 50.0, 1.0]))
        assert why(recording.replace(cameras={"left": camera})) == "made with another calibration"
        told = run_of.provenance
        assert "none is known" in why(product=replace(run_of, provenance=replace(told, sources=())))
        elsewhere = replace(told, sources=(SourceFile("left/a.png", 1, "ab" * 32, part=3),))
        assert "belongs to no part" in why(product=replace(run_of, provenance=elsewhere))
        old = {**told.parameters, "config": {**told.parameters["config"], "code": {}}}
        assert "another version of transect" in why(
            product=replace(run_of, provenance=replace(told, parameters=old))
        )
        with monkeypatch.context() as patched:
            patched.setattr(sys.modules["transect.engine.provenance"], "versions", lambda: {"numpy": "0.1"})
            assert "another version of" in why()
            assert "numpy" in why()
        gone = {**told.parameters, "config": {**told.parameters["config"], "compound": "Nothing/At"}}
        assert "is not there" in why(product=replace(run_of, provenance=replace(told, parameters=gone)))


def test_a_list_of_inputs_whose_bytes_changed_is_no_proof(field: Path) -> None:
    """The list is a payload that lies beside a GeoPackage, where anybody may change it."""
    made = ask(field)["product"]
    with open_store(field / "a.gpkg") as store:
        listing = store.find(ProductQuery(kind="Inputs"))[0]
        text = store.content(listing.id)
        forged = text.replace(b"left/", b"LEFT/", 1)
        with sqlite3.connect(field / "a.gpkg") as db:
            db.execute("UPDATE products SET payload = ? WHERE id = ?", (forged, listing.id))
        db.close()
    assert "the list of the files" in why_refused(field, made)


def test_names_with_signs_that_end_lines_are_recovered_from_a_listing() -> None:
    names = ["a b.png", "back\\slash\\n.png", "line\nbreak.png", "return\r.png", "# part 7"]
    files = [SourceFile(name, 1, f"{number:064x}", part=number % 2) for number, name in enumerate(names)]
    assert read_listing(listing_of(files)) == {(file.part, file.path): file.sha256 for file in files}


def test_a_compound_whose_nodes_are_missing_cannot_be_reproduced(
    field: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The description is kept; the code of its nodes is not."""
    made = ask(field)["product"]
    offered, find, hidden = plugins.strings, plugins.find, ("nodes", "compounds")
    monkeypatch.setattr(plugins, "strings", lambda kind: {} if kind in hidden else offered(kind))
    monkeypatch.setattr(plugins, "find", lambda kind, name: None if kind in hidden else find(kind, name))
    (field / "extra" / "mean_brightness.py").unlink()
    told = transect("products", "reproduce", "a.gpkg", made, cwd=field)
    assert (told.returncode, "cannot be rebuilt" in told.stderr) == (4, True)
    assert "--look-in names the folder that has it; or install the package" in told.stderr


def test_a_folder_with_one_different_file_is_not_the_one_that_moved(field: Path) -> None:
    made = ask(field)["product"]
    (field / "day").rename(field / "moved")
    invert(min((field / "moved" / "left").iterdir()))
    told = transect("products", "reproduce", "a.gpkg", made, "--look-in", ".", cwd=field)
    assert (told.returncode, "is gone" in told.stderr) == (4, True)
    told = transect("products", "reproduce", "a.gpkg", made, cwd=field)
    assert "--look-in DIR" in told.stderr


JUDGING = """
from transect.engine import Node
from transect.types import Image

class MeanBrightness(Node):
    \"\"\"Mean of all pixels; too dark to be of use.\"\"\"
    def process(self, image: Image) -> float:
        return float(image.data.mean())
    def finish(self) -> None:
        self.ctx.conclude("the images are too dark", bad=True)
"""


def test_a_result_that_must_not_be_trusted_is_said_to_be_whether_new_or_kept(field: Path) -> None:
    (field / "extra" / "mean_brightness.py").write_text(JUDGING)
    command = ("request", "brightness", "--recording", "day", "--store", "a.gpkg")
    for _ in ("made", "kept"):
        told = transect(*command, cwd=field)
        assert told.returncode == 4
        typed = told.stderr.partition("trustworthy; ")[2].split()[:5]
        assert typed[:3] == ["transect", "products", "show"]
        assert "the images are too dark" in transect(*typed[1:], cwd=field).stdout
    with open_store(field / "a.gpkg") as store:
        assert len(store.find(ProductQuery(kind="Run"))) == 1


# What a run says of its inputs ---------------------------------------------------------------------


def test_the_listing_beside_a_run_is_one_that_sha256sum_checks(field: Path) -> None:
    assert transect("run", "Brightness", "day", "-o", "out", cwd=field).returncode == 0
    listed = field / "out" / "inputs.sha256"
    lines = listed.read_text().splitlines()
    files = sorted(str(file.relative_to(field / "day")) for file in (field / "day").rglob("*.png"))
    assert [line.partition("  ")[2] for line in lines] == files
    checked = subprocess.run(["sha256sum", "--quiet", "-c", listed], cwd=field / "day", check=False)
    assert checked.returncode == 0
    invert(field / "day" / files[3])
    checked = subprocess.run(["sha256sum", "--quiet", "-c", listed], cwd=field / "day", check=False)
    assert checked.returncode == 1


def test_parts_of_a_joined_recording_keep_their_files_apart(field: Path) -> None:
    """Both parts have files of the same names."""
    other = field / "later"
    (other / "left").mkdir(parents=True)
    for number, file in enumerate(sorted((field / "day" / "left").iterdir())):
        shutil.copyfile(file, other / "left" / f"{1_700_000_100 + number / 10:.6f}.png")
    (other / "left" / "1700000050.000000.png").write_bytes(b"")
    same = min((field / "day" / "left").iterdir()).name
    made = transect("run", "Brightness", "day", "later", "-o", "both", cwd=field)
    assert made.returncode in (0, 3), made.stderr
    inputs = json.loads((field / "both" / "run.json").read_text())["config"]["inputs"]
    assert inputs.keys() == {"left/*.*.png", "1:left/*.*.png"}
    assert len(set(inputs.values())) == 2
    listed = (field / "both" / "inputs.sha256").read_text()
    assert listed.count(".png\n") == 2 * SAMPLE_COUNT + 1
    assert same in listed


def test_a_file_that_changes_during_a_run_makes_a_bad_result(tmp_path: Path) -> None:
    bag = CONTAINERS["ros2 mcap"](write_images(tmp_path / "day"))
    recording = open_recording(bag)
    before = hashlib.sha256(bag.read_bytes()).hexdigest()
    content = bytearray(bag.read_bytes())
    content[-1] ^= 1
    bag.write_bytes(content)
    _, made = values(recording)
    assert [c.bad for c in made.conclusions if "changed while" in c.text] == [True]
    after = hashlib.sha256(bag.read_bytes()).hexdigest()
    assert not {before, after} & set(made.config["inputs"].values())


def test_a_run_that_goes_on_from_a_keyframe_keeps_the_inputs_before_it(tmp_path: Path) -> None:
    recording = open_recording(write_images(tmp_path / "day"))
    measured = compound("Measured", {"node": brightness}, ["image -> node.image", "node.out -> out"])
    whole = package.run(measured, recording, keyframes=0.4)
    assert whole.replay is not None
    assert len(whole.replay.keyframes) > 2
    forked = whole.fork(at="+1.5s", set={})
    assert forked.config["inputs"] == whole.config["inputs"]
    assert len(forked.inputs) == SAMPLE_COUNT


def test_what_another_run_of_the_session_read_is_no_input(tmp_path: Path) -> None:
    both = write_images(tmp_path / "day")
    (both / "left").rename(both / "keep")
    write_images(both)
    (both / "keep").rename(both / "right")
    recording = open_recording(both)
    left = next(stream.name for stream in recording if "left" in stream.name.lower())
    measured = compound("Measured", {"node": brightness}, ["image -> node.image", "node.out -> out"])
    right = next(stream.name for stream in recording if stream.name != left)
    package.run(measured, recording, wire={"image": right})
    made = package.run(measured, recording, wire={"image": left})
    assert {file.path.partition("/")[0] for file in made.inputs} == {"left"}


def test_a_product_has_a_score_only_if_it_was_evaluated(field: Path, tmp_path: Path) -> None:
    assert transect("run", "Brightness", "day", "-o", "out", "--store", "a.gpkg", cwd=field).returncode == 0
    with open_store(field / "a.gpkg") as store:
        assert [product.score for product in store.find()] == [None] * 3
    [run_file] = (field / "out").glob("run.json")
    said = json.loads(run_file.read_text())
    for change in (
        {"conclusions": [{"node": "mean", "text": "no image", "bad": True}]},
        {"status": "failed"},
    ):
        run_file.write_text(json.dumps(said | change))
        with open_store(field / "b.gpkg") as store:
            kept = [store.get(each) for each in keep_run(store, field / "out")]
            assert {product.score for product in kept if product.kind != "Inputs"} == {0.0}
            for product in kept:
                store.delete(product.id, "the next")


NODE_OF_A_USER = """
from transect.engine import node
from transect.types import Imu

@node
def turning(imu: Imu, *, bias: float = 0.0) -> float:
    return float(abs(imu.angular_velocity[2]) - bias)
"""


def test_a_run_of_a_users_file_is_reproduced_or_the_file_is_named(tmp_path: Path) -> None:
    assert transect("simulate", "rosario", "-o", "day", "--seconds", 1, "--streams", "Imu", cwd=tmp_path)
    (tmp_path / "mine.py").write_text(NODE_OF_A_USER)
    made = transect("run", "mine.py", "day", "-o", "run", "--store", "a.gpkg", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    with open_store(tmp_path / "a.gpkg") as store:
        [product] = [each.id for each in store.find() if each.name == "out"]
    reproduce = ("products", "reproduce", "a.gpkg", product)
    assert "identical" in transect(*reproduce, cwd=tmp_path).stdout
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "mine.py").rename(tmp_path / "elsewhere" / "mine.py")
    told = transect(*reproduce, cwd=tmp_path)
    assert told.returncode == 4
    assert "mine.py as the run used it is neither here nor where it was looked for" in told.stderr
    assert "/tmp" not in told.stderr.replace(str(tmp_path), "")
    assert "identical" in transect(*reproduce, "--look-in", "elsewhere", cwd=tmp_path).stdout
    (tmp_path / "elsewhere" / "mine.py").write_text(f"{NODE_OF_A_USER}# changed\n")
    assert transect(*reproduce, "--look-in", "elsewhere", cwd=tmp_path).returncode == 4

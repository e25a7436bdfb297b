"""YAML is read as PyYAML reads it, within limits; what PyYAML makes of a text is the oracle."""

import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests import commands
from tests.datasets.rosario import sample as rosario_sample
from tests.formats import bag_sample
from tests.formats.test_calibration import KALIBR, ROS

import transect
from transect.base.yaml_parts import YamlPart, parse, parse_all
from transect.errors import ParseError

MERGE_KEY_BOMB = "a0: &a0 {x: 1, y: 2}\n" + "".join(
    f"a{i}: &a{i}\n  <<: [*a{i - 1}, *a{i - 1}]\n  k{i}: 1\n" for i in range(1, 30)
)
"""A text of 1 kB whose mappings have a billion keys, counted as PyYAML's loaders merge them."""
ALIAS_BOMB = "a0: &a0 [1, 1]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 30))
MANY = ", ".join(f"k{i}: 1" for i in range(900))
MERGED_OFTEN = f"a0: &a0 {{{MANY}}}\n" + "".join(f"b{i}: {{<<: *a0}}\n" for i in range(900))
BOMBS = {"merges": MERGE_KEY_BOMB, "aliases": ALIAS_BOMB, "merged often": MERGED_OFTEN}

WORDS = (
    "a",
    "yes",
    "no",
    "~",
    "null",
    "1",
    "-0",
    "0x1F",
    "017",
    "1_000",
    "1:30",
    "1.5",
    "1e3",
    ".inf",
    "-.INF",
)
MORE = ("1:30.5", "2024-02-29", "2024-02-29T01:02:03Z", "2024-2-9 1:02:03.5 +01:30", "'1'", '"\\u00e4"')
SCALARS = st.sampled_from((*WORDS, *MORE, "'<<'", "!!str 1", "!!float 1", "!!binary aGE=", "! 1"))
KEYS = st.sampled_from(("a", "b", "c", "'1'", "1", "~"))


def flow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    lists = st.lists(inner, max_size=3).map(lambda parts: f"[{', '.join(parts)}]")
    mappings = st.dictionaries(KEYS, inner, max_size=3)
    return lists | mappings.map(lambda parts: f"{{{', '.join(f'{k}: {v}' for k, v in parts.items())}}}")


@given(st.recursive(SCALARS, flow, max_leaves=12))
def test_a_text_is_read_as_pyyaml_reads_it(text: str):
    assert repr(parse(f"top: {text}", "a.yaml")[0]) == repr(yaml.safe_load(f"top: {text}"))


def test_marks_of_yaml_1_1_that_stand_for_nothing_are_text():
    assert parse("a: =\nb: <<\n", "a.yaml")[0] == {"a": "=", "b": "<<"}


MAPPINGS = st.lists(
    st.tuples(st.dictionaries(st.sampled_from("abcde"), st.integers(0, 9), max_size=3), st.booleans()),
    min_size=2,
    max_size=5,
)


@given(MAPPINGS, st.data())
def test_mappings_are_merged_as_pyyaml_merges_them(mappings: list[tuple[dict[str, int], bool]], data: Any):
    text = ""
    for i, (own, as_list) in enumerate(mappings):
        text += f"m{i}: &m{i}\n  own{i}: 0\n"
        chosen = data.draw(st.lists(st.integers(0, i - 1), min_size=1, max_size=3)) if i else []
        if chosen:
            listed = ", ".join(f"*m{k}" for k in chosen)
            text += f"  <<: [{listed}]\n" if as_list or len(chosen) > 1 else f"  <<: {listed}\n"
        text += "".join(f"  {key}: {value}\n" for key, value in own.items())
    read, _ = parse(text, "a.yaml")
    assert read == yaml.safe_load(text)
    assert [list(part) for part in read.values()] == [list(part) for part in yaml.safe_load(text).values()]


def test_every_document_of_a_file_is_read_with_its_lines():
    found = parse_all("a: [1]\n---\n- b:\n    c: 2\n", "a.yaml")
    assert [data for data, _ in found] == [{"a": [1]}, [{"b": {"c": 2}}]]
    assert [lines.place(()) for _, lines in found] == ["a.yaml:1", "a.yaml:3"]
    assert found[1][1].place((0, "b", "c")) == "a.yaml:4"
    with pytest.raises(ParseError) as caught:
        parse("a: 1\n---\nb: 2\n", "a.yaml")
    assert (caught.value.where, caught.value.why) == ("a.yaml:3", "it has several documents, one is expected")


def test_the_line_of_a_part_is_where_it_is_written():
    text = "a: &a\n  x: 1\n  y:\n    - 2\n    - 3\nb:\n  <<: *a\n  z: 4\n7: eight\n"
    data, lines = parse(text, "a.yaml")
    places = {("a", "y", 1): 5, ("b", "z"): 8, ("b", "x"): 2, ("b", "y", 0): 4, (7,): 9, ("a", "w"): 1}
    assert {path: YamlPart(data, path, lines).line for path in places} == places


@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS.keys())
def test_a_bomb_is_refused_before_it_is_unfolded(text: str):
    tracemalloc.start()
    try:
        with pytest.raises(ParseError, match="too large") as caught:
            parse(text, "a.yaml")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "expanded aliases" in caught.value.why
    assert peak < 20 * 2**20


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("a: 1\nb: 2024-02-30\n", 2, "'2024-02-30': day"),
        ("a: 2024-13-01T00:00:00Z", 1, "month must be in 1..12"),
        ("a: 2024-01-01T00:00:00+99:00", 1, "strictly between"),
        ("a: 9" + "9" * 400, 1, "a number of 401 characters"),
        ("a: 1" + ":1" * 1_000_000, 1, "a number of 2000001 characters"),
        ("a: !!int x", 1, "invalid literal"),
        ("a: !!bool maybe", 1, "maybe"),
        ("a: !!timestamp x", 1, "'x'"),
        ("a: !!python/name:os.system x", 1, "!!python/name:os.system is not for plain data"),
        ("a: !!set {x}", 1, "!!set is not for plain data"),
        ("[a]: 1", 1, "a list or a mapping cannot be a key"),
        ("a: *b", 1, "the alias *b is not defined"),
        ("a:\n  <<: 1", 2, "<< needs a mapping"),
        ("a: [1", 2, "expected ',' or ']'"),
        ("a: b: c", 1, "mapping values are not allowed"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(text: str, line: int, why: str):
    with pytest.raises(ParseError, match="is not YAML") as caught:
        parse(text, "a.yaml")
    assert caught.value.where == f"a.yaml:{line}"
    assert why in caught.value.why


@pytest.mark.parametrize(
    "text", ["a: 1\nb: 2\na: 3", "1: a\nb: c\n0x1: d", "a: &a {x: 1}\nb:\n <<: *a\n <<: *a"]
)
def test_a_key_that_is_given_twice_is_refused(text: str):
    with pytest.raises(ParseError, match="is given twice"):
        parse(text, "a.yaml")


def test_directives_and_keys_that_cost_quadratic_time_are_refused():
    directives = "".join(f"%TAG !a{i}! x\n" for i in range(101))
    for text in (f"{directives}--- a", f"{2**61 - 1}: a"):
        with pytest.raises(ParseError, match=r"is (not YAML|too large)"):
            parse(text, "a.yaml")
    assert parse(f"{directives.partition('%TAG !a100!')[0]}--- a", "a.yaml")[0] == "a"


TIMES = ("deadline", "lifespan", "liveliness_lease_duration")
TOPIC_YAML = """    - topic_metadata:
        name: /robot/topic_{}
        type: sensor_msgs/msg/Imu
        serialization_format: cdr
        offered_qos_profiles:
          - history: keep_last
            depth: 10
            reliability: reliable
""" + "".join(
    f"            {name}:\n              sec: 9223372036\n              nsec: 854775807\n" for name in TIMES
)


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    return bag_sample.write(tmp_path, "sqlite3")


def test_a_metadata_file_of_megabytes_is_read(bag: Path):
    path = bag / "metadata.yaml"
    text = path.read_text() + "  topics_of_the_fleet:\n" + "".join(map(TOPIC_YAML.format, range(6500)))
    assert len(text) > 3_200_000
    path.write_text(text.replace("message_count: 63", "message_count: 99"))
    tracemalloc.start()
    try:
        recording = transect.open(bag)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [note for note in recording.notes if "metadata.yaml" in note] == [
        next(note for note in recording.notes if "metadata.yaml says 99 messages" in note)
    ]
    assert peak < 100 * 2**20


@pytest.mark.parametrize("text", [*BOMBS.values(), "a: 2024-02-30\n"], ids=[*BOMBS, "date"])
def test_a_bag_is_read_without_metadata_that_cannot_be(bag: Path, text: str):
    (bag / "metadata.yaml").write_text(text)
    done = commands.transect("info", bag)
    assert done.returncode == 0, done.stderr
    assert "/imu" in done.stdout
    assert "the files are read without it" in done.stdout.replace("\n", " ")


@pytest.mark.parametrize("bomb", [*BOMBS.values(), "a: 2024-02-30\n"], ids=[*BOMBS, "date"])
@pytest.mark.parametrize("calibration", [KALIBR, ROS], ids=["kalibr", "ros"])
def test_a_calibration_with_a_bomb_is_refused(tmp_path: Path, calibration: str, bomb: str):
    (tmp_path / "camera.yaml").write_text(calibration + bomb)
    done = commands.transect("info", tmp_path / "camera.yaml", "--read-as", "calibration")
    assert done.returncode == 1
    assert "camera.yaml" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("bomb", [*BOMBS.values(), "a: 2024-02-30\n"], ids=[*BOMBS, "date"])
def test_a_rosario_sequence_is_read_without_a_calibration_that_cannot_be(tmp_path: Path, bomb: str):
    rosario_sample.write_scripts_layout(tmp_path)
    [path] = tmp_path.rglob("calibration*.yaml")
    path.write_text(path.read_text() + bomb)
    recording = transect.open(tmp_path, format="rosario")
    assert len(recording["Imu"])
    assert any("not a calibration: " in loss.reason for loss in recording.losses)


def test_a_setting_that_is_a_bomb_or_an_impossible_date_is_refused():
    for value in ("2024-02-30", "{a: &a [1, 1], b: *c}"):
        done = commands.transect("run", "PoseFusion", ".", "--set", f"fusion.track={value}")
        assert done.returncode == 2
        assert f"--set fusion.track={value} cannot be read" in done.stderr

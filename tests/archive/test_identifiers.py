"""Valid and invalid identifiers, and increments of versions."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.archive.identifiers import (
    Lid,
    Lidvid,
    Vid,
    file_name_problem,
    identifier_part,
    identifier_parts,
    product_part,
)
from transect.errors import UsageError


def test_the_product_of_appendix_e_is_called_by_its_file() -> None:
    """Document 002, 4.1.3 and appendix E."""
    collection = Lid("urn:nasa:pds:insight_ida:data_raw_calibrated")
    product = collection.child(product_part("A0087_0209_615088547_615088547_190629192905_eu.csv"))
    assert product.text.endswith(":data_raw_calibrated:a0087_0209_615088547_615088547_190629192905_eu")
    assert (product.level, product.parent) == ("product", collection)
    assert product.is_member_of(collection)
    assert product.is_member_of(Lid("urn:nasa:pds:insight_ida"))
    assert not product.is_member_of(Lid("urn:nasa:pds:insight"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nasa:pds:x:y", "urn:"),
        ("urn:nasa:pds", "3 parts"),
        ("urn:nasa:pds:a:b:c:d", "7 parts"),
        ("urn:nasa:pds:Etna", "'Etna'"),
        ("urn:nasa:pds:a::b", "''"),
        ("urn:nasa:pds:a b", "'a b'"),
        (f"urn:nasa:pds:{'a' * 250}", "263"),
    ],
)
def test_what_is_no_identifier_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(UsageError) as error:
        Lid(text)
    assert why in error.value.why
    assert "urn:nasa:pds:bundle" in error.value.hint


def test_versions_grow_by_number_and_not_by_letter() -> None:
    assert Vid.parse("1.10") > Vid.parse("1.9")
    assert str(Vid.parse("1.9").next_minor) == "1.10"
    assert str(Vid(3, 7).next_major) == "4.0"
    for text in ("1", "1.", "01.0", "1.0.0", "v1.0"):
        with pytest.raises(UsageError):
            Vid.parse(text)


def test_a_version_of_a_product_is_read_as_it_is_written() -> None:
    text = "urn:nasa:pds:mars2020.spice:document::2.0"
    assert str(Lidvid.parse(text)) == text
    with pytest.raises(UsageError, match="no version"):
        Lidvid.parse("urn:nasa:pds:mars2020.spice")


@given(st.text())
def test_any_name_gives_a_part_that_is_allowed(name: str) -> None:
    assert Lid(f"urn:nasa:pds:{identifier_part(name)}").level == "bundle"


@given(st.lists(st.sampled_from(["Imu", "imu", "IMU ", "imu_2", "é", "/"])))
def test_no_two_names_give_the_same_part(names: list[str]) -> None:
    parts = identifier_parts(names)
    assert len(set(parts)) == len(names)


@pytest.mark.parametrize(
    "name", ["a.out", "A.OUT", "con.csv", "LPT1.txt", "_x.csv", "x", "x.", "a b.csv", "ü.csv"]
)
def test_a_name_that_no_file_may_have_is_refused_with_the_reason(name: str) -> None:
    assert file_name_problem(name)


def test_names_of_files_follow_the_pattern_of_the_core() -> None:
    """ASCII_File_Name of PDS4_PDS_1O00.xsd."""
    pattern = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9]|[-]|[_]|[.])*[.][a-zA-Z0-9]+")
    for name in ("a.csv", "A0087_0209_eu.csv", "imu-1.2.dat", "constant.xml"):
        assert not file_name_problem(name)
        assert pattern.fullmatch(name)

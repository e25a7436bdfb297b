"""Raw pictures of InSight's cameras: names, times, pixels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import transect
from transect.base.clocks import NS
from transect.datasets.insight import products as ida
from transect.datasets.insight.products.names import PictureName, kind_of_name, parse_picture, sol_of_sclk
from transect.formats.shared.file_groups import file_table
from transect.recording import Recording, Stream
from transect.types import Image

PIXELS = np.random.default_rng(1).integers(0, 255, (2, 4, 6, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    ("name", "camera", "sol", "sclk"),
    [  # as published by NASA
        ("D000M0789_666569938EDR_F0000_2696M_.PNG", "IDC", 789, 666569938),
        ("idc/D000M0581_648118580EDR_F0000_0675M_.png", "IDC", 581, 648118580),
        ("D000M1436_724026330EDR_F0000_0817M_.jpg", "IDC", 1436, 724026330),
        ("C000M0024_598662821EDR_F0000_0558M2.png", "ICC", 24, 598662821),
    ],
)
def test_a_published_picture_is_on_the_sol_that_its_name_says(name: str, camera: str, sol: int, sclk: int):
    assert parse_picture(name) == PictureName(camera, sol, sclk)
    assert kind_of_name(name) == "picture"
    assert sol_of_sclk(sclk * NS) == sol


def test_other_pictures_are_not_taken_for_raw_ones():
    for name in (
        "D000M0789_666569938EDR_F0000_2696M_.xml",
        "B000M0789_666569938EDR_F0000_2696M_.PNG",
        "x.png",
    ):
        assert parse_picture(name) is None


def test_pictures_that_are_written_are_read_back(tmp_path: Path):
    t_ns = np.array([615088547, 615088547]) * NS + np.array([0, NS // 2])
    table = file_table(t_ns, ["0", "1"])
    stream = Stream(
        "IDC", Image, table, clock="sclk", loader=lambda row: Image(PIXELS[int(row["payload"])], "rgb")
    )
    said = ida.write(Recording("arm", (stream,)), tmp_path / "out")
    assert said == ("the times of IDC are whole seconds: its file names have no others",)
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == [f"D000M0209_615088547EDR_F0000_000{k}M_.PNG" for k in (0, 1)]
    again = transect.open(tmp_path / "out")
    assert again.format == "ida"
    assert again["IDC"].clock == "sclk"
    assert again["IDC"].t_ns.tolist() == [615088547 * NS] * 2
    for sample, pixels in zip(again["IDC"], PIXELS, strict=True):
        assert np.array_equal(sample.payload.data, pixels)
    assert any("6 x 4 pixels" in note for note in again.notes)

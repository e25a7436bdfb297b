"""SCLK text, UTC and sols, against every count that the SIS prints."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.base.clocks import NS, iso_from_ns, ns_from_decimal
from transect.datasets.insight.products.names import (
    TICKS_PER_SECOND,
    sclk_text,
    sol_of_sclk,
    sol_of_utc,
    utc_from_sclk,
)


@pytest.mark.parametrize(
    ("sclk", "sol"),
    [
        ("602047157", 62),  # 4.1.3: A0089_0062_602047157_602052923, "starting on sol 62"
        ("602052923", 62),
        ("602049206.7", 62),  # 5.1.1: sys_status.time_limit, via_time and time, between those two
        ("602049408.2", 62),
        ("602050014.0", 62),
        ("615088547", 209),  # appendix E: start_sol_number
    ],
)
def test_counts_of_the_document_lie_on_its_sols(sclk: str, sol: int):
    assert sol_of_sclk(ns_from_decimal(sclk)) == sol


def test_the_landing_is_on_sol_0_and_a_test_before_it_is_not():
    landing = dt.datetime(2018, 11, 26, 19, 52, 59, tzinfo=dt.UTC)  # 2.5 has the day
    assert sol_of_utc(int(landing.timestamp()) * NS) == 0
    assert sol_of_sclk(ns_from_decimal("594733695.9")) < 0  # 5.1.1: ra_status.time, three weeks before it


def test_the_label_of_appendix_e_has_its_utc_and_its_text():
    assert iso_from_ns(utc_from_sclk(615088547 * NS)) == "2019-06-29T13:56:40.702"
    assert sclk_text(615088547 * NS, None, whole=True) == "615088547"
    assert sclk_text(615088547 * NS) == "1/615088547-00000"


def test_utc_is_within_three_minutes_of_the_clock_s_nominal_epoch():
    epoch = dt.datetime(2000, 1, 1, 11, 58, 55, 816000, tzinfo=dt.UTC)
    for sclk in (602047157, 615088547):
        nominal = (epoch + dt.timedelta(seconds=sclk - 5)).timestamp()  # five leap seconds from 2000 to 2018
        assert abs(utc_from_sclk(sclk * NS) / NS - nominal) < 180


@pytest.mark.parametrize("sclk", [602047157, 602052923, 615088547, 650000000])
def test_sols_agree_with_the_mean_solar_time_of_allison_and_mcewen(sclk: int):
    """Mars24's equations B-1 and C-2: days of terrestrial time to the Mars sol date, at 135.97 E."""
    utc = utc_from_sclk(sclk * NS) / NS
    terrestrial = 2440587.5 + (utc + 69.184) / 86400
    sol_date = (terrestrial - 2405522.0028779) / 1.0274912517 + 135.97 / 360
    assert sol_of_sclk(sclk * NS) == int(sol_date) - 51511


@given(st.integers(1, 9), st.integers(0, 2**32 - 1), st.integers(0, TICKS_PER_SECOND - 1))
def test_a_count_of_ticks_is_written_exactly(partition: int, seconds: int, ticks: int):
    text = f"{partition}/{seconds:09d}-{ticks:05d}"
    t_ns = seconds * NS + round(ticks * NS / TICKS_PER_SECOND)
    assert sclk_text(t_ns, partition) == text
    assert sclk_text(t_ns, None, whole=True) == f"{seconds:09d}"


def test_a_fraction_next_to_a_second_is_carried():
    assert sclk_text(5 * NS - 1) == "1/000000005-00000"
    assert sclk_text(615088547 * NS + NS // 2) == "1/615088547-32768"

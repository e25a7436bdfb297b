"""The 39 data sets and three calibration sets of the ACFR report (SDI, sections 4.2 to 4.5)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from transect.base.clocks import NS, ns_from_decimal

ZONES_H = {"aedt": 11}
"""Hours from UTC to the printed local times: Australian Eastern Daylight Time."""
DAY_S = 86_400
TITLE = "ACFR Sensor Data Integrity: 39 data sets in dust, smoke and rain, 3 calibration sets"
COLUMNS = ("name", "kind", "area", "start", "duration", "conditions")
"""Columns of the table; `--json` contains all fields."""


@dataclass(frozen=True)
class SdiEntry:
    """One data set as described in the report."""

    name: str  # of its folder
    number: int | None  # chronological; there is no 13, and the calibration sets have none
    kind: str  # `static`, `dynamic` (vehicle) or `calibration`
    area: str  # "" if the report does not state it
    conditions: tuple[str, ...]  # clear, dust, light dust, human, night, ...
    start: str = ""  # printed Unix time, s, at which all sensors were running; "" for calibration sets
    end: str = ""
    duration: str = ""  # s, as printed
    utc: tuple[str, str] = (
        "",
        "",
    )  # printed start and end; if in conflict, the Unix time is correct (errata)
    aedt: tuple[str, str] = ("", "")
    notes: tuple[str, ...] = ()  # remarks of the report for users of the data

    @property
    def span_ns(self) -> tuple[int, int] | None:
        """Start and end in nanoseconds since the Unix epoch; None for calibration sets."""
        return (ns_from_decimal(self.start), ns_from_decimal(self.end)) if self.start else None

    @property
    def radar_reflectors(self) -> bool:
        """Whether two radar reflectors stood in the test area: 22 to 24 (not 24 to 26 as in Table 1)."""
        return "radar reflectors" in self.conditions

    def facts(self) -> dict[str, Any]:
        """Return the entry as `Recording.conditions`."""
        facts = {
            "dataset": self.name,
            "kind": self.kind,
            "area": self.area,
            "environment": self.conditions,
            "radar_reflectors": self.radar_reflectors,
            "printed_start": self.start,
            "printed_end": self.end,
            "printed_duration_s": self.duration,
        }
        return {key: value for key, value in facts.items() if value != ""}


_CONDITIONS = """
01-StaticClear-Video10fps: clear
02-StaticClear-Video15fps: clear
03-StaticClear-Human: clear, human
04-StaticLightDust: dust, light dust
05-StaticHeavyDust: dust, heavy dust
06-StaticLightDust-Human: dust, light dust, human
07-StaticSmoke: smoke
08-StaticHeavyRain: rain, heavy rain
09-StaticHeavyRain-Human: rain, heavy rain, human
10-StaticLightRain: rain, light rain
11-StaticAfterRainEvening: clear, after rain, low sun, evening
12-StaticClearAfterRainAfterSunset: clear, after rain, after sunset, evening
14-StaticMorningClear: clear
15-StaticMorningHeavyDust: dust, heavy dust
16-StaticMorningVeryLightDust: dust, very light dust
17-StaticMorningSmoke: smoke
18-StaticMorningLightRain: rain, light rain
19-StaticMorningRain: rain
20-StaticMorningSmoke: smoke, after rain
21-StaticMorningClearAfterRainAndSmoke: clear, after rain, after smoke
22-StaticMorningClearWithReflectors: clear, radar reflectors
23-StaticMorningClearWithReflectors-Human: clear, human, radar reflectors
24-StaticMorningClearWithReflectors-HumanNearReflectors: clear, human, radar reflectors
25-DynamicNightClearTriangleWithCarLights: clear, night, lights
26-DynamicNightClearTriangleNoCarLights: clear, night
27-DynamicNightClearTriangleWithCarLights2: clear, night, lights
28-DynamicNightClearTriangleNoCarLights2: clear, night
29-DynamicDayTriangleClear: clear
30-DynamicDayTriangleDust: dust
31-DynamicDayTriangleMoreDust: dust
32-DynamicDayTriangleClearAfterDust: clear, after dust
33-DynamicDayHousesClear: clear
34-DynamicDayHouses-Human: clear, human
35-DynamicDayDamClear: clear
36-DynamicDayDamDust: dust
37-DynamicDayDamDust2: dust
38-DynamicDayDamSmoke: smoke
39-DynamicDayDamRain: rain
40-DynamicDayDamClearSunLow: clear, low sun, evening
"""

# number, Unix start and end, duration, UTC start and end, AEDT start and end
_TIMES = """
01  1224050945.437 1224051090.447  145.010  06:09:05.437 06:11:30.447  15:09:05.437 15:11:30.447
02  1224051487.381 1224051619.116  131.735  06:18:07.381 06:20:19.116  15:18:07.381 15:20:19.116
03  1224052418.386 1224052519.662  101.276  06:33:38.386 06:35:20.662  17:33:38.386 17:35:20.662
04  1224053469.229 1224053602.855  133.626  06:51:09.229 06:53:23.855  17:51:09.229 17:53:23.855
05  1224054044.006 1224054110.171   66.165  07:00:44.006 07:01:50.171  18:00:44.006 18:01:50.171
06  1224055857.924 1224055992.320  134.396  07:30:58.924 07:33:12.320  18:30:58.924 18:33:12.320
07  1224056457.502 1224056543.290   85.788  07:40:58.502 07:42:23.290  18:40:58.502 18:42:23.290
08  1224056989.625 1224057123.862  134.237  07:49:50.625 07:52:04.862  18:49:50.625 18:52:04.862
09  1224057199.911 1224057280.261   80.350  07:53:20.911 07:54:40.261  18:53:20.911 18:54:40.261
10  1224057494.661 1224057652.537  157.876  07:58:15.661 08:00:53.537  18:58:15.661 19:00:53.537
11  1224057998.295 1224058157.685  159.390  08:06:38.295 08:09:18.685  19:06:38.295 19:09:18.685
12  1224058839.207 1224058972.002  132.795  08:20:39.207 08:22:52.002  19:20:39.207 19:22:52.002
14  1224112428.048 1224112600.636  172.588  23:13:48.048 23:16:41.636  10:13:48.048 10:16:41.636
15  1224113347.161 1224113448.576  101.415  23:29:07.161 23:30:49.576  10:29:07.161 10:30:49.576
16  1224114064.835 1224114139.801   74.966  23:41:05.835 23:42:20.801  10:41:05.835 10:42:20.801
17  1224114471.313 1224114571.005   99.692  23:47:51.313 23:49:31.005  10:47:51.313 10:49:31.005
18  1224117868.591 1224117989.562  120.971  00:44:29.591 00:46:30.562  11:44:29.591 11:46:30.562
19  1224120580.504 1224120739.598  159.094  01:29:41.504 01:32:20.598  12:29:41.504 12:32:20.598
20  1224120901.096 1224120989.101   88.005  01:35:01.096 01:36:29.101  12:35:01.096 12:36:29.101
21  1224121144.696 1224121263.788  119.092  01:39:05.696 01:41:04.788  12:39:05.696 12:41:04.788
22  1224122292.159 1224122430.871  138.712  01:58:12.159 02:00:31.871  12:58:12.159 13:00:31.871
23  1224122579.975 1224122682.009  102.034  02:03:00.975 02:04:42.009  13:03:00.975 13:04:42.009
24  1224122950.838 1224123096.280  145.442  02:09:11.838 02:11:36.280  13:09:11.838 13:11:36.280
25  1224158167.214 1224158524.566  357.352  11:56:07.214 12:02:05.566  22:56:07.214 23:02:05.566
26  1224158859.005 1224159161.470  302.465  12:07:39.005 12:12:41.470  23:07:39.005 23:12:41.470
27  1224159874.355 1224160153.568  279.213  12:24:34.355 12:29:14.568  23:24:34.355 23:29:14.568
28  1224160333.789 1224160606.918  273.129  12:32:14.789 12:36:47.918  23:32:14.789 23:36:47.918
29  1224198733.114 1224199111.326  378.212  23:12:13.114 23:18:31.326  10:12:13.114 10:18:31.326
30  1224199788.106 1224199986.155  198.049  23:29:48.106 23:33:06.155  10:29:48.106 10:33:06.155
31  1224200313.353 1224200500.152  186.799  23:38:33.353 23:41:40.152  10:38:33.353 10:41:40.152
32  1224201093.019 1224201271.635  178.616  23:51:33.019 23:54:32.635  10:51:33.019 10:54:32.635
33  1224201950.093 1224202213.225  263.132  00:05:50.093 00:10:13.225  11:05:50.093 11:10:13.225
34  1224202880.040 1224203087.626  207.586  00:21:20.040 00:24:48.626  11:21:20.040 11:24:48.626
35  1224216067.282 1224216412.990  345.708  04:01:07.282 04:06:53.990  15:01:07.282 15:06:53.990
36  1224216779.827 1224216962.271  182.444  04:13:00.827 04:16:02.271  15:13:00.827 15:16:02.271
37  1224217352.224 1224217563.883  211.659  04:22:32.224 04:26:04.883  15:22:32.224 15:26:04.883
38  1224217939.781 1224218021.286   81.505  04:32:20.781 04:33:41.286  15:32:20.781 15:33:41.286
39  1224229665.084 1224229783.877  118.793  07:47:45.084 07:49:44.877  18:47:45.084 18:49:44.877
40  1224230071.163 1224230243.984  172.821  07:54:31.163 07:57:24.984  18:54:31.163 18:57:24.984
"""

_AREAS = {
    "static test area": range(1, 25),
    "open area": range(25, 33),
    "houses area": range(33, 35),
    "dam area": range(35, 41),
}

_NOTES = {
    1: "the visual camera ran at 10 frames per second, in the other static sets at 15",
    4: "it starts and ends in clear conditions",
    5: "it starts and ends in clear conditions; the lasers and the radar start 14 to 18 s after the rest",
    6: "it starts and ends in clear conditions",
    7: "it starts and ends in clear conditions",
    8: "the wind drove the rain to the right: there is less on the left",
    9: "the wind drove the rain to the right",
    10: "the wind drove the rain to the right",
    11: "everything is wet, and a few drops still fall from the frame",
    12: "everything is wet, a few drops may still fall; the laser logs stop about 88 s before the rest",
    15: "it starts and ends in clear conditions; the north-eastern corner has little dust",
    16: "it starts and ends in clear conditions",
    17: "it starts and ends in clear conditions; the assistant walks around the test area",
    18: "there is less rain near the sensors, and a leak in the front",
    20: "it starts and ends in clear conditions; everything is wet; the assistant's arm may be in the area",
    21: "everything is wet, and there may be residue of the smoke bomb",
    23: "the human walks past the reflectors",
    24: "the human walks behind, before and beside both reflectors",
    25: "lit by the headlights of a parked car and of the vehicle",
    26: "lit by the vehicle's headlights alone",
    27: "lit by the headlights of a parked car and of the vehicle, and by the open door of the shed",
    28: "lit by the vehicle's headlights alone",
    30: "the assistant who blows the dust walks around and is seen",
    31: "the assistant who blows the dust walks around and is seen",
    32: "things are dustier than in 29",
    36: "the dust is lighter than in the open area",
    37: "the dust is lighter than in the open area",
    38: "the assistant with the smoke bomb moves",
    39: "an assistant sprays water from a hose in front of the vehicle, and moves",
    40: "just before sunset",
}

_LASERS_IN_MM = "the lasers ran in mm mode: at most 8 m and 100 degrees"
_CALIBRATION = (
    SdiEntry("VisualCameraCalibration", None, "calibration", "", (), notes=(_LASERS_IN_MM,)),
    SdiEntry("IRcameraCalibration", None, "calibration", "", (), notes=(_LASERS_IN_MM,)),
    SdiEntry("RangeSensorsCalibration", None, "calibration", "open area", ()),
)


def _entries() -> tuple[SdiEntry, ...]:
    times = {row.split()[0]: row.split()[1:] for row in _TIMES.split("\n") if row}
    entries: list[SdiEntry] = []
    for row in _CONDITIONS.strip().split("\n"):
        name, _, words = row.partition(": ")
        number = int(name[:2])
        start, end, duration, utc_start, utc_end, aedt_start, aedt_end = times[name[:2]]
        entries.append(
            SdiEntry(
                name=name,
                number=number,
                kind="static" if "Static" in name else "dynamic",
                area=next(area for area, numbers in _AREAS.items() if number in numbers),
                conditions=tuple(words.split(", ")),
                start=start,
                end=end,
                duration=duration,
                utc=(utc_start, utc_end),
                aedt=(aedt_start, aedt_end),
                notes=(_NOTES[number],) if number in _NOTES else (),
            )
        )
    return tuple(entries)


CATALOGUE: tuple[SdiEntry, ...] = (*_entries(), *_CALIBRATION)


def find_by_name(name: str) -> SdiEntry | None:
    """Return the data set with this folder name, ignoring case."""
    return next((entry for entry in CATALOGUE if entry.name.lower() == name.lower()), None)


def find_by_time(t_ns: int, margin_ns: int = 30 * NS) -> SdiEntry | None:
    """Return the data set that was recorded at a Unix time, or started at most `margin_ns` after it.

    Loggers were started by hand, and the printed start is that of the last one: the first logger of data set
    05 started some 18 s earlier.
    """
    spans = [(entry, entry.span_ns) for entry in CATALOGUE]
    return next((e for e, span in spans if span and span[0] - margin_ns <= t_ns <= span[1]), None)


@dataclass(frozen=True)
class Misprint:
    """A printed time that contradicts another one."""

    name: str  # of the data set
    which: str  # `start` or `end`
    column: str  # `utc` or `aedt`
    printed: str
    expected: str
    off_s: float  # printed minus expected
    why: str

    def to_dict(self) -> dict[str, Any]:
        """Return the misprint as plain values."""
        return asdict(self)


def find_misprints() -> list[Misprint]:
    """Return the printed times that contradict the Unix time of the same entry, or its own UTC.

    The report prints start and end as Unix time, UTC and local time (AEDT). Seconds of UTC were rounded
    before the fraction was appended.
    """
    return [found for entry in CATALOGUE if entry.start for found in _misprints_of(entry)]


def _misprints_of(entry: SdiEntry) -> Iterator[Misprint]:
    hours = ZONES_H["aedt"]
    for which, unix, utc, local in zip(
        ("start", "end"), (entry.start, entry.end), entry.utc, entry.aedt, strict=True
    ):
        if off := _difference(_of_day(utc), Decimal(unix) % DAY_S):
            rounded = off == 1 and Decimal(unix) % 1 >= Decimal("0.5")
            why = "its seconds were rounded before the fraction was appended" if rounded else ""
            yield Misprint(entry.name, which, "utc", utc, _clock(Decimal(unix)), float(off), why)
        expected = _of_day(utc) + 3600 * hours
        if off := _difference(_of_day(local), expected % DAY_S):
            why = f"it is UTC + {hours + off / 3600:g} h, not UTC + {hours} h"
            yield Misprint(entry.name, which, "aedt", local, _clock(expected), float(off), why)


def _of_day(text: str) -> Decimal:
    hours, minutes, seconds = text.split(":")
    return Decimal(hours) * 3600 + Decimal(minutes) * 60 + Decimal(seconds)


def _difference(a: Decimal, b: Decimal) -> Decimal:
    """Return the difference of two times of day, s, within half a day."""
    off = (a - b) % DAY_S
    return off - DAY_S if off > DAY_S / 2 else off


def _clock(seconds: Decimal) -> str:
    whole, fraction = divmod(seconds % DAY_S, 1)
    return f"{dt.timedelta(seconds=int(whole))!s:0>8}.{int(fraction * 1000):03d}"

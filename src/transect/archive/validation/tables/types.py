"""What texts of each data type look like."""

from __future__ import annotations

from .columns import REAL

_Z, _OR_Z = "Z", "Z?"
_HOUR, _MINUTE, _SECOND = "(?:[01][0-9]|2[0-3])", "[0-5][0-9]", "(?:[0-5][0-9]|60)"
_YEAR = r"-?[0-9]{4}"
_DAY = r"(?:00[1-9]|0[1-9][0-9]|[12][0-9][0-9]|3[0-5][0-9]|36[0-6])"
_MONTH = r"(?:0[1-9]|1[0-2])"
_DATE = rf"{_MONTH}-(?:0[1-9]|[12][0-9]|3[01])"
_LID = r"urn(?::[0-9a-z._-]+){3,5}"
_VID = r"[1-9][0-9]*\.[0-9]+"
_FILE = r"[A-Za-z0-9]*[A-Za-z0-9_.-]*[A-Za-z0-9]\.[A-Za-z0-9]+"
_FOLDER = r"[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?"


def _time(decimals: str) -> str:
    midnight = rf"24(?::00(?::00(?:\.0{decimals})?)?)?"
    return rf"{_HOUR}(?::{_MINUTE}(?::{_SECOND}(?:\.[0-9]{decimals})?)?)?|{midnight}"


_TIME = _time("{1,6}")


def _doy(zone: str) -> str:
    return rf"{_YEAR}(?:-{_DAY}(?:T(?:{_TIME}))?)?{zone}"


def _ymd(zone: str) -> str:
    return rf"{_YEAR}(?:-{_MONTH}|-{_DATE}(?:T(?:{_TIME}))?)?{zone}"


PATTERNS = {
    "ASCII_Integer": r"[+-]?[0-9]+",
    "ASCII_NonNegative_Integer": r"\+?[0-9]+",
    "ASCII_Real": REAL,
    "ASCII_Numeric_Base2": "[01]{1,255}",
    "ASCII_Numeric_Base8": "[0-7]{1,255}",
    "ASCII_Numeric_Base16": "[0-9a-fA-F]{1,255}",
    "ASCII_MD5_Checksum": "[0-9a-fA-F]{32}",
    "ASCII_Boolean": "true|false|1|0",
    "ASCII_AnyURI": r"[^\s<>\"{}|\\^`]+",
    "ASCII_DOI": r"10\.\S+/\S+",
    "ASCII_LID": _LID,
    "ASCII_LIDVID": rf"{_LID}::{_VID}",
    "ASCII_LIDVID_LID": rf"{_LID}(?:::{_VID})?",
    "ASCII_VID": r"[1-9][0-9]*\.[0-9]+(?:\.[0-9]+){0,2}",
    "ASCII_Date_DOY": rf"{_YEAR}(?:-{_DAY})?Z?",
    "ASCII_Date_YMD": rf"{_YEAR}(?:-{_MONTH}|-{_DATE})?Z?",
    "ASCII_Date_Time_DOY": _doy(_OR_Z),
    "ASCII_Date_Time_DOY_UTC": _doy(_Z),
    "ASCII_Date_Time_YMD": _ymd(_OR_Z),
    "ASCII_Date_Time_YMD_UTC": _ymd(_Z),
    "ASCII_Time": rf"(?:{_time('+')})Z?",
    "ASCII_Directory_Path_Name": rf"/?{_FOLDER}(?:/{_FOLDER})*/?",
    "ASCII_File_Name": _FILE,
    "ASCII_File_Specification_Name": rf"/?(?:{_FOLDER}/)*{_FILE}",
    "ASCII_BibCode": r"[0-9]{4}[A-Za-z0-9.&]{5}[A-Za-z0-9.]{9}[A-Z]",
    "ASCII_String": r"[\x00-\x7f]*",
    "ASCII_Short_String_Collapsed": r"[\x00-\x7f]{0,255}",
    "ASCII_Short_String_Preserved": r"[\x00-\x7f]{0,255}",
    "ASCII_Text_Collapsed": r"[\x00-\x7f]*",
    "ASCII_Text_Preserved": r"[\x00-\x7f]*",
}  # fmt: skip
"""Patterns of RE2 by data type; a type that is missing here takes any text."""

NUMERIC = frozenset({"ASCII_Integer", "ASCII_NonNegative_Integer", "ASCII_Real"})
DATES = frozenset(name for name in PATTERNS if name.startswith(("ASCII_Date", "ASCII_Time")))
NO_NUMBER = r"(?i)[+-]?(?:inf(?:inity)?|nan)"
"""Which only real numbers may be."""
LARGEST = {"ASCII_Integer": (-(2**63), 2**63 - 1), "ASCII_NonNegative_Integer": (0, 2**64 - 1)}

FORMAT = r"%([+,-])?([0-9]+)(?:\.([0-9]+))?([doxfeEs])"
"""`field_format`: justification, width, precision, kind."""
FORMATS = {
    "e": r"[+-]?[0-9](?:\.[0-9]*)?[Ee][+-]?[0-9]+",
    "f": r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)",
    "d": r"[+-]?[0-9]+",
    "o": r"\+?[0-7]+",
    "x": r"\+?[0-9a-fA-F]+",
}

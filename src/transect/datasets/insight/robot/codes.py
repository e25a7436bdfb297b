"""Codes of the archive SIS: tools (Table 14) and grapple phases (Table 15)."""

from __future__ import annotations

from enum import IntEnum


class ToolCode(IntEnum):
    """Selected tool of a status or science row, SIS Table 14."""

    BLADE_1 = 0
    BLADE_2 = 1
    SCOOP = 2
    CAMERA = 3  # IDC, on the forearm
    WRIST = 4
    GRAPPLE = 5
    GRAPPLE_ATTACH = 6
    SEIS = 7
    WTS = 8
    HP3 = 9


HANGING_TOOLS = (ToolCode.GRAPPLE, ToolCode.SEIS, ToolCode.WTS, ToolCode.HP3)
"""Tools that hang on the umbilical of the grapple."""
DIGGING_TOOLS = (ToolCode.BLADE_1, ToolCode.BLADE_2, ToolCode.SCOOP)
"""Rigid tools that can be pressed into the ground."""


class GrapplePhase(IntEnum):
    """Phase of the grapple, SIS Table 15."""

    LAUNCH_LOCKED = 0
    STOWED = 1
    OK_TO_OPEN = 2
    SEIS_GRAPPLED = 3
    WTS_GRAPPLED = 4
    HP3_GRAPPLED = 5

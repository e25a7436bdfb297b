"""What the IDA's numbers stand for: status word, tools and grapple phases (SIS Tables 13 to 15)."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PHASES = ("Launch-Locked", "Stowed", "OK-To-Open", "SEIS-Grappled", "WTS-Grappled", "HP3-Grappled")
"""SIS Table 15."""
STATUS_GROUPS = ("motor_on", "rotation_negative", "over_current", "brake_off", "heater_on")
"""SIS Table 13, four bits each from bit 0 on, joint 1 in the lowest. Brake is 0 on, 1 off here, but
`ra_status.mtr.brake` is 0 off, 1 on: both keep their sense and say it in their name."""
STATUS_BITS = tuple(f"{group}_{joint}" for group in STATUS_GROUPS for joint in (1, 2, 3, 4))
SPARE_BITS = 0xFFF0_0000
_OTHER_NAMES = {"rac": "IDC"}
"""The flight software still calls the camera by its Phoenix name."""


@functools.lru_cache(maxsize=1024)
def status_word(text: str) -> int | None:
    """Return the status word that a text stands for, decimal or `0x` hexadecimal; None if it is neither."""
    text = text.strip()
    if re.fullmatch(r"0[xX][0-9a-fA-F]+", text):
        word = int(text, 16)
    elif re.fullmatch(r"\d+(\.0*)?", text):
        word = int(text.partition(".")[0])
    else:
        return None
    return word if word < 2**32 else None


def decode_status(words: NDArray[np.uint32]) -> dict[str, NDArray[np.bool_]]:
    """Return the (n,) bits of (n,) status words by name: `motor_on_1`, ..., `heater_on_4`."""
    import numpy as np

    return {name: (words >> np.uint32(bit)) & np.uint32(1) != 0 for bit, name in enumerate(STATUS_BITS)}


def encode_status(bits: Mapping[str, NDArray[np.bool_]]) -> NDArray[np.uint32]:
    """Return the (n,) status words that have the given bits set; bits that are not given are 0."""
    import numpy as np

    words = np.zeros(len(next(iter(bits.values()))), dtype=np.uint32)
    for bit, name in enumerate(STATUS_BITS):
        if name in bits:
            words |= np.asarray(bits[name], dtype=np.uint32) << np.uint32(bit)
    return words


def names_of_codes(codes: NDArray[np.int64], table: tuple[str, ...]) -> list[str]:
    """Return the name of each code, "" where the table has none."""
    numbers: list[int] = codes.tolist()
    return [table[code] if 0 <= code < len(table) else "" for code in numbers]


def name_of_text(text: str, code: int | None, table: Sequence[str]) -> str:
    """Return the table's name for what the flight software printed, `RA_GRAPPLE` or `5 RA_GRAPPLE`.

    The text wins over the number, which is used only where there is no text.
    """
    word = _bare(re.sub(r"^RA_", "", text.strip(), flags=re.IGNORECASE))
    if word:
        word = _bare(_OTHER_NAMES.get(word, word))
        return next((name for name in table if _bare(name) == word), "")
    return table[code] if code is not None and 0 <= code < len(table) else ""


def _bare(text: str) -> str:
    return re.sub(r"[\W_]", "", text).lower()

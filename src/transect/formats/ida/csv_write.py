"""SciHi and SciLo tables of the IDA, written by SIS Table 12 and appendix E: CRLF, four decimals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.clocks import decimal_from_ns

from . import columns as known

CRLF = "\r\n"
DECIMALS = 4


def science_csv(t_ns: NDArray[np.int64], columns: Mapping[str, Any], units: Mapping[str, str]) -> str:
    """Return the text of a table.

    Parameters
    ----------
    t_ns : (n,) int64 array
        SCLK.
    columns : mapping of str to (n,) array
        Named as in `_ida_columns.COLUMNS`, in the units that these have inside. Documented columns that are
        not given are written as -99999.0000, the codes as 0; `elapsed_time` is left out (Table 12 lacks it).
    units : mapping of str to str
        Units of columns that the SIS does not know.
    """
    elapsed = columns.get("elapsed_time")
    names = known.NAMES_57 if elapsed is None or np.isnan(elapsed).all() else known.NAMES_58
    others = [name for name in columns if name not in known.BY_NAME]
    headings = [known.BY_NAME[name].header for name in names]
    headings += [f"{name}({units[name]})" if units.get(name) else name for name in others]
    fields = [_field(name, t_ns, columns.get(name)) for name in (*names, *others)]
    row = ",".join(form for form, _ in fields)
    rows = zip(*(values for _, values in fields), strict=True)
    return CRLF.join(["#" + ",".join(headings), *(row % values for values in rows)]) + CRLF


def _field(name: str, t_ns: NDArray[np.int64], values: Any) -> tuple[str, list[Any]]:
    """Return how a column is printed, and its values."""
    if name == "time":
        return "%s", _times(t_ns)
    if name == "stat" or name in known.CODES:
        return "%d", _whole(values, len(t_ns))
    if isinstance(values, list):
        return "%s", values
    return f"%.{DECIMALS}f", _numbers(name, values, len(t_ns))


def _whole(values: Any, count: int) -> list[int]:
    return [0] * count if values is None else np.nan_to_num(values).astype(np.int64).tolist()


def _times(t_ns: NDArray[np.int64]) -> list[str]:
    digits = next(d for d in range(1, 10) if not (t_ns % 10 ** (9 - d)).any())
    return [decimal_from_ns(t, digits) for t in t_ns.tolist()]


def _numbers(name: str, values: Any, count: int) -> list[float]:
    if values is None:
        return [known.MISSING] * count
    scale = known.BY_NAME[name].scale if name in known.BY_NAME else 1.0
    numbers = np.asarray(values, dtype=np.float64) / scale
    return np.where(np.isnan(numbers), known.MISSING, numbers).tolist()

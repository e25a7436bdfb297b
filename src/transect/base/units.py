"""Units as people write them, and what one of them is in SI.

Case counts where it has to: `g` is standard gravity and `G` is gauss, `mg` and `mG` a thousandth of each.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from transect.errors import UsageError, did_you_mean

G0 = 9.80665
"""Standard gravity, m/s2."""


@dataclass(frozen=True)
class Unit:
    """A unit: ``SI value = scale * value + offset``, and the SI unit's name."""

    si: str
    scale: float = 1.0
    offset: float = 0.0

    @property
    def is_si(self) -> bool:
        """Whether nothing has to be converted."""
        return self.scale == 1.0 and self.offset == 0.0


_DEGREE = math.pi / 180
_TABLE: dict[str, Unit] = {
    name: Unit(si, scale, offset)
    for si, scale, offset, names in (
        ("", 1.0, 0.0, "1 none - counts ticks"),
        ("", 0.01, 0.0, "% percent"),
        ("m", 1.0, 0.0, "m metre metres meter meters"),
        ("m", 1e-3, 0.0, "mm"),
        ("m", 1e-2, 0.0, "cm"),
        ("m", 1e-6, 0.0, "um"),
        ("m", 1e3, 0.0, "km"),
        ("m", 0.0254, 0.0, "in inch"),
        ("m", 0.3048, 0.0, "ft feet"),
        ("rad", 1.0, 0.0, "rad radian radians"),
        ("rad", 1e-3, 0.0, "mrad"),
        ("rad", _DEGREE, 0.0, "deg degree degrees °"),
        ("rad", 2 * math.pi, 0.0, "rev turn"),
        ("m/s", 1.0, 0.0, "m/s mps"),
        ("m/s", 1e-3, 0.0, "mm/s"),
        ("m/s", 1e-2, 0.0, "cm/s"),
        ("m/s", 1 / 3.6, 0.0, "km/h kmh kph"),
        ("m/s", 1852 / 3600, 0.0, "kn knot knots kt"),
        ("m/s", 0.44704, 0.0, "mph"),
        ("rad/s", 1.0, 0.0, "rad/s"),
        ("rad/s", 1e-3, 0.0, "mrad/s"),
        ("rad/s", _DEGREE, 0.0, "deg/s dps °/s"),
        ("rad/s", _DEGREE / 1e3, 0.0, "mdeg/s mdps"),
        ("rad/s", _DEGREE / 3600, 0.0, "deg/h"),
        ("rad/s", 2 * math.pi / 60, 0.0, "rpm"),
        ("m/s2", 1.0, 0.0, "m/s2 mps2"),
        ("m/s2", G0, 0.0, "g g0"),
        ("m/s2", G0 / 1e3, 0.0, "mg milli-g millig"),
        ("m/s2", 0.01, 0.0, "cm/s2 gal"),
        ("T", 1.0, 0.0, "T tesla"),
        ("T", 1e-3, 0.0, "mT"),
        ("T", 1e-6, 0.0, "uT"),
        ("T", 1e-9, 0.0, "nT"),
        ("T", 1e-4, 0.0, "G gauss Gs"),
        ("T", 1e-7, 0.0, "mG mgauss milligauss"),
        ("degC", 1.0, 0.0, "degC C °C celsius"),
        ("degC", 1.0, -273.15, "K kelvin"),
        ("degC", 5 / 9, -160 / 9, "degF F °F"),
        ("Pa", 1.0, 0.0, "Pa"),
        ("Pa", 100.0, 0.0, "hPa mbar"),
        ("Pa", 1e3, 0.0, "kPa"),
        ("Pa", 1e5, 0.0, "bar"),
        ("V", 1.0, 0.0, "V volt volts"),
        ("V", 1e-3, 0.0, "mV"),
        ("A", 1.0, 0.0, "A amp amps ampere"),
        ("A", 1e-3, 0.0, "mA"),
        ("W", 1.0, 0.0, "W"),
        ("N", 1.0, 0.0, "N"),
        ("N", 1e3, 0.0, "kN"),
        ("N m", 1.0, 0.0, "Nm N.m N*m N·m"),
        ("N m", 1e-3, 0.0, "mNm"),
        ("s", 1.0, 0.0, "s"),
        ("s", 1e-3, 0.0, "ms"),
        ("s", 1e-6, 0.0, "us"),
        ("s", 1e-9, 0.0, "ns"),
        ("Hz", 1.0, 0.0, "Hz"),
        ("Hz", 1e3, 0.0, "kHz"),
        ("kg", 1.0, 0.0, "kg"),
    )
    for name in names.split()
}
_SIGNS = str.maketrans({"²": "2", "µ": "u", "μ": "u", "^": ""})
_SPELLINGS = (
    (r"\bsec(ond)?s?\b", "s"),
    (r"\*\*2", "2"),
    (r"\s*(\bper\b|/)\s*", "/"),
    (r"/s/s\b", "/s2"),
    (r"^degrees?/", "deg/"),
    (r"^radians?/", "rad/"),
    (r"^N\s*m$", "Nm"),
)
_LOWER: dict[str, list[str]] = {}
for _name in _TABLE:
    _LOWER.setdefault(_name.lower(), []).append(_name)


def unit_of(text: str) -> Unit:
    """Return a unit by its name (`deg/s`, `km/h`, `milli-g`, `m/s²`); raise UsageError for others."""
    name = _plain(text)
    if not name:
        return Unit("")
    if name in _TABLE:
        return _TABLE[name]
    alike = _LOWER.get(name.lower(), [])
    if len(alike) == 1:
        return _TABLE[alike[0]]
    if alike:
        raise UsageError(f"the unit {text!r} is ambiguous", hint=f"write {' or '.join(alike)}")
    raise UsageError(f"there is no unit {text!r}", hint=did_you_mean(name, _TABLE))


def is_unit(text: str) -> bool:
    """Tell whether a text names a unit."""
    name = _plain(text)
    return name in _TABLE or len(_LOWER.get(name.lower(), [])) == 1


def _plain(text: str) -> str:
    """Return the one spelling of exponents, micro signs, blanks and long words that the table has."""
    text = text.strip().translate(_SIGNS)
    for pattern, plain in _SPELLINGS:
        text = re.sub(pattern, plain, text)
    return text

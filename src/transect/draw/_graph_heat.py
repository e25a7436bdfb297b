"""The colours of boxes by a number from 0 to 1, and what they mean."""

from __future__ import annotations

from itertools import pairwise
from xml.sax.saxutils import escape

# ColorBrewer's OrRd without its darkest end (Brewer 2003): light to dark also in print without colours.
_STOPS = [(255, 247, 236), (253, 212, 158), (253, 187, 132), (252, 141, 89), (215, 48, 31)]
_DARK = 0.88
_BAR = 160.0


def heat_colour(heat: float) -> str:
    """Return the colour of a number from 0 to 1, as ``#rrggbb``; what is outside counts as the end."""
    at = min(max(heat, 0.0), 1.0) * (len(_STOPS) - 1)
    i = min(int(at), len(_STOPS) - 2)
    low, high = _STOPS[i], _STOPS[i + 1]
    return "#" + "".join(f"{round(a + (at - i) * (b - a)):02x}" for a, b in zip(low, high, strict=True))


def is_dark(heat: float) -> bool:
    """Tell whether white text reads better on that colour."""
    return heat > _DARK


def legend(meaning: str, y: float) -> list[str]:
    """Return a bar of the colours with its two ends named, `y` pixels down."""
    parts: list[str] = []
    count = 10 * (len(_STOPS) - 1)
    for a, b in pairwise(range(count + 1)):
        colour, x, width = heat_colour((a + 0.5) / count), 30 + a * _BAR / count, (b - a) * _BAR / count
        parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width + 0.3:g}" height="12" fill="{colour}"/>')
    parts.append(f'<rect class="inner" x="30" y="{y:g}" width="{_BAR:g}" height="12"/>')
    for text, x, kind in (("0 %", 24, "caption end"), (f"100 %   {meaning}", 30 + _BAR + 6, "caption")):
        parts.append(f'<text class="{kind}" x="{x:g}" y="{y + 10:g}">{escape(text)}</text>')
    return parts

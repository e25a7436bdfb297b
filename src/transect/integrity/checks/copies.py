"""X08: are the samples of two streams the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from transect.integrity.image_statistics import pictures_near, pictures_of
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window
from transect.recording import arrow
from transect.recording.arrow import LOG_NS, PAYLOAD, T_NS
from transect.types import Image, Record

LEAST = 5
"""Different samples of a window that must be the same."""
PAST_S = 3.0
"""Of the peer, in which the samples are looked for: copies may be stamped later."""
THINNED = 0.7
"""Part of a peer's samples that a stream of a lower rate has, at most."""
SLOW_S = 6.0
"""Of a stream that has too few samples in a window."""
KEPT = 20
"""Windows whose samples are remembered."""


PICTURES, PLAIN = 4, 1.0
"""Images of a window that are looked at; variance up to which an image shows nothing."""


class Copies(Check, id="X08", group="cross", version=2):
    """Part of the different samples of a window that another stream of its type has, to the last bit.

    Two sensors never agree to the last bit. Of two copies the one that comes later in the recording is named.
    Samples that do not change, as those of a robot at rest may be, tell nothing. Of images a few are compared
    with those of the same time, clouds are not. A stream with some of the samples and their own stamps is
    another's at a lower rate, and fine.

    Motive: Mistakes of descriptions: one topic that was written twice counts twice in a fusion.
    """

    share = Limit(0.5, 0.9, "DUPLICATE", "", "part of the samples that are those of another stream")

    def reset(self) -> None:
        """No rows are known yet."""
        self._rows: dict[str, dict[int, set[bytes]]] = {}

    def look(self, stream: Window[Any], others: Sequence[Window[Any]] = ()) -> Finding | Unknown:
        """Look for the samples of a window among those of the streams before it."""
        names = _measured(stream)
        pictures = issubclass(stream.stream.type, Image) and stream.stream.role == "measurement"
        if not names and not pictures:
            return Unknown("NO_NUMBERS", n=len(stream))
        before = self._streams_before(stream, others)
        if not before:
            return Unknown("NO_PEER", "no other stream of its type comes before it", len(stream))
        if pictures:
            return _compare_pictures(stream, before)
        own = self._recent(stream, 0.0 if len(stream) >= LEAST else SLOW_S, names)
        back = PAST_S if len(stream) >= LEAST else SLOW_S + PAST_S
        if len(own) < LEAST:
            return Unknown("AT_REST", "its samples do not change", len(stream))
        shares = {each.stream.name: len(own & self._recent(each, back, names)) / len(own) for each in before}
        most = max(shares, key=lambda name: shares[name])
        peer = next(each for each in before if each.stream.name == most)
        if shares[most] > self.share.warn and _is_thinned(stream, peer):
            found = {"share": 0.0}
            return Finding(found, len(stream), note=f"it is {most} at a lower rate", peers=(most,))
        return _told(stream, shares)

    def _recent(self, window: Window[Any], seconds: float, names: Sequence[str]) -> set[bytes]:
        """Return the different samples of the last seconds; each window's are looked at once."""
        kept = self._rows.setdefault(window.stream.name, {})
        first = window.history(seconds).first
        for number in range(first, window.index + 1):
            if number not in kept:
                kept[number] = _rows(window.track.window(number), names)
        for number in [number for number in kept if number <= window.index - KEPT]:
            del kept[number]
        return set[bytes]().union(*(rows for number, rows in kept.items() if number >= first))

    def _streams_before(self, stream: Window[Any], others: Sequence[Window[Any]]) -> list[Window[Any]]:
        recording = self.about.recording
        order = (
            [each.name for each in recording]
            if recording
            else sorted(w.stream.name for w in (stream, *others))
        )
        first = order[: order.index(stream.stream.name)]
        return [
            each
            for each in others
            if each.stream.name in first
            and each.stream.type is stream.stream.type
            and len(each)
            and _measured(each) == _measured(stream)
        ]


def _told(stream: Window[Any], shares: dict[str, float]) -> Finding:
    """Return what the parts of a stream's samples that others have mean."""
    most = max(shares, key=lambda name: shares[name])
    note = f"it has the samples of {most}; leave one of them out" if shares[most] > 0.5 else ""
    return Finding({"share": shares[most]}, len(stream), note=note, peers=(most,))


def _compare_pictures(stream: Window[Any], before: Sequence[Window[Any]]) -> Finding | Unknown:
    """Hold a few images against those that other cameras took at the same time."""
    own = [each for each in pictures_of(stream, PICTURES) if each.variance > PLAIN]
    if not own:
        return Unknown("AT_REST", "its images show nothing", len(stream))
    t_ns = stream.stream.t_ns[[each.row for each in own]]
    shares: dict[str, float] = {}
    for peer in before:
        theirs = pictures_near(peer, t_ns)
        shares[peer.stream.name] = float(
            np.mean([a.digest == b.digest for a, b in zip(own, theirs, strict=True)])
        )
    return _told(stream, shares)


def _is_thinned(stream: Window[Any], peer: Window[Any]) -> bool:
    """Tell whether a stream has some of a peer's samples with their own stamps: that is no mistake."""
    own, theirs = stream.history(SLOW_S), peer.history(SLOW_S)
    return len(own) < THINNED * len(theirs) and bool(np.isin(own.t_ns, theirs.t_ns).all())


def _measured(window: Window[Any]) -> list[str]:
    """Return the columns of numbers that are not times; none for images, clouds, records and estimates."""
    schema = window.stream.table.schema
    told = window.stream.role == "measurement" and not issubclass(window.stream.type, Record)
    if not told or PAYLOAD in schema.names or window.stream.loader is not None:
        return []
    return sorted(f.name for f in schema if arrow.holds_numbers(f.type) and f.name not in (T_NS, LOG_NS))


def _rows(window: Window[Any], names: Sequence[str]) -> set[bytes]:
    """Return the different samples of a window as bytes; those without any number are left out."""
    columns = [window.column(name) for name in names]
    if all(isinstance(column, np.ndarray) for column in columns):
        values = window.array(*names)
        return {row.tobytes() for row in values[np.isfinite(values).any(axis=1)]}
    even = window.array(*(n for n, c in zip(names, columns, strict=True) if isinstance(c, np.ndarray)))
    uneven = [column for column in columns if not isinstance(column, np.ndarray)]
    told = np.asarray(np.isfinite(even).any(axis=1))
    return {
        b"".join([even[k].tobytes(), *(column[k].tobytes() for column in uneven)])
        for k in range(len(window))
        if told[k] or any(np.isfinite(column[k]).any() for column in uneven)
    }

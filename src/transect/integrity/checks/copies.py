"""X08: are the samples of two streams identical."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.integrity.image_statistics import image_statistics, image_statistics_near
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window
from transect.recording import arrow
from transect.recording.arrow import LOG_NS, PAYLOAD, T_NS
from transect.types import Image, Record


@dataclass(frozen=True)
class CopiesSettings:
    """Numbers of the comparison of samples."""

    min_samples: int = 5  # Different samples of a window that are compared.
    peer_span_s: float = 3.0  # Past of the peer: copies may be stamped later.
    max_decimated_ratio: float = 0.7  # Ratio of a peer's samples that a decimated stream has.
    slow_span_s: float = 6.0  # Past of a stream with too few samples in a window.
    max_windows: int = 20  # Windows whose samples are kept.
    max_images: int = 4  # Images per window that are compared.
    min_image_variance: float = 1.0  # Variance of an image with content.


class Copies(Check, id="X08", group="cross", version=2):
    """Fraction of the different samples of a window that another stream of the type has, bit by bit.

    Two sensors never agree in all bits. Of two copies the one that is later in the recording is reported.
    Constant samples, as of a robot at rest, are not evidence. A few images are compared with those of the
    same time; clouds are not compared. A stream that has some of the samples with their own stamps is a
    decimated copy, and OK.

    Motive: Mistakes of descriptions: one topic that was written twice counts twice in a fusion.
    """

    settings = CopiesSettings()

    share = Limit(0.5, 0.9, "DUPLICATE", "", "fraction of the samples that are those of another stream")

    def reset(self) -> None:
        """Start without samples."""
        self._rows: dict[str, dict[int, set[bytes]]] = {}

    def evaluate(self, stream: Window[Any], others: Sequence[Window[Any]] = ()) -> Finding | Unknown:
        """Search the samples of a window in the streams before it."""
        names = _numeric_columns(stream)
        pictures = issubclass(stream.stream.type, Image) and stream.stream.role == "measurement"
        if not names and not pictures:
            return Unknown("NO_NUMBERS", n=len(stream))
        before = self._streams_before(stream, others)
        if not before:
            return Unknown("NO_PEER", "no other stream of its type comes before it", len(stream))
        if pictures:
            return _compare_pictures(stream, before, self.settings)
        own = self._recent(
            stream, 0.0 if len(stream) >= self.settings.min_samples else self.settings.slow_span_s, names
        )
        back = (
            self.settings.peer_span_s
            if len(stream) >= self.settings.min_samples
            else self.settings.slow_span_s + self.settings.peer_span_s
        )
        if len(own) < self.settings.min_samples:
            return Unknown("AT_REST", "its samples do not change", len(stream))
        ratios = {each.stream.name: len(own & self._recent(each, back, names)) / len(own) for each in before}
        best = max(ratios, key=lambda name: ratios[name])
        peer = next(each for each in before if each.stream.name == best)
        if ratios[best] > self.share.warn and _is_decimated(stream, peer, self.settings):
            found = {"share": 0.0}
            return Finding(found, len(stream), note=f"it is {best} at a lower rate", peers=(best,))
        return _judge(stream, ratios)

    def _recent(self, window: Window[Any], seconds: float, names: Sequence[str]) -> set[bytes]:
        """Return the different samples of the last seconds; each window is read once."""
        kept = self._rows.setdefault(window.stream.name, {})
        first = window.history(seconds).first
        for number in range(first, window.index + 1):
            if number not in kept:
                kept[number] = _rows(window.windowed.window(number), names)
        for number in [number for number in kept if number <= window.index - self.settings.max_windows]:
            del kept[number]
        return set[bytes]().union(*(rows for number, rows in kept.items() if number >= first))

    def _streams_before(self, stream: Window[Any], others: Sequence[Window[Any]]) -> list[Window[Any]]:
        recording = self.context.recording
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
            and _numeric_columns(each) == _numeric_columns(stream)
        ]


def _judge(stream: Window[Any], ratios: dict[str, float]) -> Finding:
    """Return the finding for the ratios of samples that other streams have."""
    best = max(ratios, key=lambda name: ratios[name])
    note = f"it has the samples of {best}; leave one of them out" if ratios[best] > 0.5 else ""
    return Finding({"share": ratios[best]}, len(stream), note=note, peers=(best,))


def _compare_pictures(
    stream: Window[Any], before: Sequence[Window[Any]], settings: CopiesSettings
) -> Finding | Unknown:
    """Compare a few images with those that other cameras took at the same time."""
    own = [
        each
        for each in image_statistics(stream, settings.max_images)
        if each.variance > settings.min_image_variance
    ]
    if not own:
        return Unknown("AT_REST", "its images show nothing", len(stream))
    t_ns = stream.stream.t_ns[[each.row for each in own]]
    ratios: dict[str, float] = {}
    for peer in before:
        peer_statistics = image_statistics_near(peer, t_ns)
        ratios[peer.stream.name] = float(
            np.mean([a.digest == b.digest for a, b in zip(own, peer_statistics, strict=True)])
        )
    return _judge(stream, ratios)


def _is_decimated(stream: Window[Any], peer: Window[Any], settings: CopiesSettings) -> bool:
    """Return whether a stream has some of a peer's samples with their own stamps."""
    own, others = stream.history(settings.slow_span_s), peer.history(settings.slow_span_s)
    return len(own) < settings.max_decimated_ratio * len(others) and bool(
        np.isin(own.t_ns, others.t_ns).all()
    )


def _numeric_columns(window: Window[Any]) -> list[str]:
    """Return the numeric columns but times; none for images, clouds, records and estimates."""
    schema = window.stream.table.schema
    is_known = window.stream.role == "measurement" and not issubclass(window.stream.type, Record)
    if not is_known or PAYLOAD in schema.names or window.stream.loader is not None:
        return []
    return sorted(f.name for f in schema if arrow.holds_numbers(f.type) and f.name not in (T_NS, LOG_NS))


def _rows(window: Window[Any], names: Sequence[str]) -> set[bytes]:
    """Return the different samples of a window as bytes, without empty ones."""
    columns = [window.column(name) for name in names]
    if all(isinstance(column, np.ndarray) for column in columns):
        values = window.array(*names)
        return {row.tobytes() for row in values[np.isfinite(values).any(axis=1)]}
    even = window.array(*(n for n, c in zip(names, columns, strict=True) if isinstance(c, np.ndarray)))
    uneven = [column for column in columns if not isinstance(column, np.ndarray)]
    is_known = np.asarray(np.isfinite(even).any(axis=1))
    return {
        b"".join([even[k].tobytes(), *(column[k].tobytes() for column in uneven)])
        for k in range(len(window))
        if is_known[k] or any(np.isfinite(column[k]).any() for column in uneven)
    }

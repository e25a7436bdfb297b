"""A simulated sensor that can be set: a camera whose rate and exposure really change what it gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from transect.base.clocks import NS
from transect.errors import UsageError
from transect.recording import Stream
from transect.types import Image


class SimulatedCamera:
    """A camera on a simulated day.

    Light is gathered for `exposure` seconds: twice as long, and an image is twice as bright, until it is
    white. The rate is at most that of the stream, which is rendered image by image.

    Parameters
    ----------
    stream : Stream
        Of images, as the day renders them.
    exposure : float
        Seconds for which the images of the stream are exposed.
    """

    def __init__(self, stream: Stream, exposure: float = 0.01) -> None:
        if stream.type is not Image or len(stream) < 2:
            raise UsageError(f"{stream.name} is no film", hint="a stream of at least two images")
        self.stream, self._usual = stream, exposure
        self._times = np.asarray(stream.t_ns)
        self._fastest = NS / float(np.median(np.diff(self._times)))
        self._settings = {"rate": self._fastest, "exposure": exposure}
        self._next = 0
        self._due_ns = int(self._times[0])

    @property
    def settings(self) -> Mapping[str, float]:
        """`rate` in Hz and `exposure` in s."""
        return dict(self._settings)

    def change(self, setting: str, value: float) -> None:
        """Set the rate or the exposure, from the next image on."""
        most = {"rate": self._fastest, "exposure": 1.0 / self._settings["rate"]}
        if setting not in most:
            raise UsageError(f"a camera has no {setting!r}", hint="rate, exposure")
        if not 0.0 < value <= most[setting] * (1 + 1e-9):
            why = f"it must be above 0 and at most {most[setting]:.4g}"
            raise UsageError(f"the {setting} of {self.stream.name} cannot be {value:g}", why=why)
        self._settings[setting] = value

    def images(self, until_ns: int) -> Iterator[tuple[int, Image]]:
        """Give the images that are taken from where it was up to a time (ns), which is not included."""
        while self._next < len(self._times) and self._times[self._next] < until_ns:
            t_ns = int(self._times[self._next])
            sample, self._next = self.stream[self._next], self._next + 1
            if t_ns < self._due_ns - NS / self._fastest / 2:  # its stamps jitter
                continue
            step = round(NS / self._settings["rate"])
            self._due_ns = max(self._due_ns, t_ns - step // 2) + step
            yield t_ns, self._expose(sample.payload)

    def _expose(self, image: Image) -> Image:
        gain = self._settings["exposure"] / self._usual
        if gain == 1.0:
            return image
        most = np.iinfo(image.data.dtype).max
        return replace(image, data=np.clip(image.data * gain, 0, most).astype(image.data.dtype))

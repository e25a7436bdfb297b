"""C09: does one line of a camera that stands still keep its contrast."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transect.base.arrays import Floats
from transect.engine.nodes import param
from transect.integrity.image_statistics import CameraCheck, Clear, Picture
from transect.integrity.model import Finding, Limit, Unknown
from transect.integrity.motion import Moving, is_moving
from transect.integrity.windows import Window
from transect.types import Image

CLEAR = 0.15
"""Loss of contrast up to which a line is clear."""
BURNED = 0.3
"""Part of an image that is white, from which on a loss of contrast is one of exposure."""
PARTS, UNEVEN = 4, 0.25
"""Parts of the line, and the spread of their losses from which on the air is no even haze."""
ORANGE = 60.0
"""Grey levels by which the light of smoke is redder than blue; that of dust is so by less."""
PATIENCE = 10
"""Windows with another line that is as clear, after which the camera looks elsewhere for good."""


class ColourLine(CameraCheck, id="C09", group="content"):
    """Red, green and blue of one row over time, against the last clear windows.

    ``contrast = 1 - std(I) / std(I_ref) / min(1, mean(I) / mean(I_ref))`` along the row, mean of the three
    colours: less light takes from both. ``correlation`` of I with I_ref counts where contrast is lost; where
    it is not, another line is another view, and after ten windows learned anew. ``airlight``: how much more
    red than blue there is than before, over the contrast that is lost. An even loss is HAZE, an uneven one
    OBSCURANT, one by orange light SMOKE. It is for cameras of a robot that is known to stand.

    Motive: Document 004, 5.3: "evolution in time of the R,G,B information of one specific line"; in smoke it
    is "practically almost impossible to identify the features".
    """

    contrast = Limit(0.3, 0.6, "HAZE", "", "part of the line's contrast that is lost")
    correlation = Limit(0.9, 0.5, "HAZE", "", "correlation with the clear line")
    row: float = param(0.5, ge=0.0, le=1.0, doc="which row: 0 is the top of the image, 1 the bottom")

    learns_baseline = True

    def reset(self) -> None:
        """Nothing is usual yet."""
        self._clear = Clear()
        self._elsewhere = 0

    def look(self, camera: Window[Image], moving: Sequence[Window[Moving]] = ()) -> Finding | Unknown:
        """Compare the line with the clear one."""
        pictures = self.see(camera)
        if isinstance(pictures, Unknown):
            return pictures
        if is_moving(moving) is not False:
            self._clear.forget()
            return Unknown("MOVING", "no stream tells that the robot stands", len(pictures))
        if np.median([picture.bright for picture in pictures]) > BURNED:
            return Unknown("OVEREXPOSED", "white pixels have no contrast", len(pictures))
        line = np.median([self._line(picture) for picture in pictures], axis=0)
        usual = self._clear.usual
        if usual is None or usual.shape != line.shape:
            self._clear.learn(line)
            return Unknown("LEARNING", n=len(pictures))
        lost, correlation = _loss(line, usual), _correlate(line, usual)
        shift = float((line[:, 0] - line[:, 2]).mean() - (usual[:, 0] - usual[:, 2]).mean())
        found = {"airlight": shift / max(lost, CLEAR), "line_correlation": correlation}
        if lost <= CLEAR:
            if correlation < self.correlation.fail:
                self._elsewhere += 1
                if self._elsewhere >= PATIENCE:
                    self.reset()
                return Unknown("MOVING", "the line is another one, and as clear", len(pictures), found)
            self._elsewhere = 0
            self._clear.learn(line)
            return Finding({"contrast": max(lost, 0.0), "correlation": np.nan}, len(pictures), found)
        parts = [_loss(*each) for each in _parts(line, usual)]
        found["unevenness"] = float(np.ptp(parts)) if parts else 0.0
        reason = (
            "SMOKE" if found["airlight"] > ORANGE else "OBSCURANT" if found["unevenness"] > UNEVEN else "HAZE"
        )
        statistics = {"contrast": lost, "correlation": correlation}
        return Finding(statistics, len(pictures), found, reason=reason)

    def _line(self, picture: Picture) -> Floats:
        """Return the row (w, 3) of a picture."""
        rows = len(picture.colours)
        return picture.colours[min(int(self.row * rows), rows - 1)].astype(np.float64)


def _loss(line: Floats, usual: Floats) -> float:
    kept = line.std(axis=0) / np.maximum(usual.std(axis=0), 1.0)
    light = np.minimum(1.0, line.mean(axis=0) / np.maximum(usual.mean(axis=0), 1.0))
    return 1.0 - float((kept / np.maximum(light, 1e-3)).mean())


def _correlate(line: Floats, usual: Floats) -> float:
    a, b = line - line.mean(axis=0), usual - usual.mean(axis=0)
    size = np.sqrt((a**2).sum(axis=0) * (b**2).sum(axis=0))
    return float(((a * b).sum(axis=0) / np.maximum(size, 1e-9)).mean())


def _parts(line: Floats, usual: Floats) -> list[tuple[Floats, Floats]]:
    """Return pieces of a line that have something to see."""
    pieces = zip(np.array_split(line, PARTS), np.array_split(usual, PARTS), strict=True)
    return [(a, b) for a, b in pieces if b.std(axis=0).mean() > 3.0]

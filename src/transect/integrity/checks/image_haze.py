"""Checks of haze, dust and smoke in images (C09, C10, X02)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats
from transect.engine.nodes import param
from transect.integrity.image_statistics import CameraCheck, ClearBaseline, ImageStatistics, median_of
from transect.integrity.model import Finding, Limit, Unknown
from transect.integrity.motion import Moving, is_moving
from transect.integrity.windows import Window
from transect.types import Image


@dataclass(frozen=True)
class ColourLineSettings:
    """Numbers of the line, and of the names of its losses."""

    max_clear_loss: float = 0.15  # Loss of contrast of a clear line.
    max_white_ratio: float = 0.3  # Ratio of white pixels of an overexposed image.
    parts: int = 4  # Parts of the line, ...
    min_unevenness: float = 0.25  # ... and range of their losses in an uneven cloud.
    min_smoke_redness: float = 60.0  # Grey levels of red over blue in the light of smoke; dust has less.
    # Windows with another clear line, after which the camera has turned for good.
    max_other_view_windows: int = 10


class ColourLine(CameraCheck, id="C09", group="content"):
    """Red, green and blue of one image row over time, compared with the last clear windows.

    ``contrast = 1 - std(I) / std(I_ref) / min(1, mean(I) / mean(I_ref))`` along the row, mean of the
    three colours: less light reduces both. ``correlation`` of I with I_ref counts if contrast is lost;
    otherwise another line is another view, which is learned after ten windows. ``airlight``: increase of
    red over blue divided by the contrast lost. An even loss is HAZE, an uneven one OBSCURANT, one by
    orange light SMOKE. The check is for cameras of a robot that is known to stand.

    Motive: SDI, 5.3: "evolution in time of the R,G,B information of one specific line"; in smoke it is
    "practically almost impossible to identify the features".
    """

    settings = ColourLineSettings()

    contrast = Limit(0.3, 0.6, "HAZE", "", "fraction of the line's contrast that is lost")
    correlation = Limit(0.9, 0.5, "HAZE", "", "correlation with the clear line")
    row: float = param(0.5, ge=0.0, le=1.0, doc="image row: 0 is the top, 1 the bottom")

    learns_baseline = True

    def reset(self) -> None:
        """Start without a baseline."""
        self._clear = ClearBaseline()
        self._other_view_windows = 0

    def evaluate(self, camera: Window[Image], moving: Sequence[Window[Moving]] = ()) -> Finding | Unknown:
        """Compare the line with the clear one."""
        pictures = self.measure(camera)
        if isinstance(pictures, Unknown):
            return pictures
        if is_moving(moving) is not False:
            self._clear.forget()
            return Unknown("MOVING", "no stream shows that the robot stands", len(pictures))
        if np.median([picture.bright for picture in pictures]) > self.settings.max_white_ratio:
            return Unknown("OVEREXPOSED", "white pixels have no contrast", len(pictures))
        line = np.median([self._line(picture) for picture in pictures], axis=0)
        usual = self._clear.usual
        if usual is None or usual.shape != line.shape:
            self._clear.learn(line)
            return Unknown("LEARNING", n=len(pictures))
        lost, correlation = _loss(line, usual), _correlate(line, usual)
        shift = float((line[:, 0] - line[:, 2]).mean() - (usual[:, 0] - usual[:, 2]).mean())
        found = {"airlight": shift / max(lost, self.settings.max_clear_loss), "line_correlation": correlation}
        if lost <= self.settings.max_clear_loss:
            if correlation < self.correlation.fail:
                self._other_view_windows += 1
                if self._other_view_windows >= self.settings.max_other_view_windows:
                    self.reset()
                return Unknown(
                    "MOVING", "the camera sees another scene, as clear as before", len(pictures), found
                )
            self._other_view_windows = 0
            self._clear.learn(line)
            return Finding({"contrast": max(lost, 0.0), "correlation": np.nan}, len(pictures), found)
        parts = [_loss(*each) for each in _parts(line, usual, self.settings)]
        found["unevenness"] = float(np.ptp(parts)) if parts else 0.0
        reason = (
            "SMOKE"
            if found["airlight"] > self.settings.min_smoke_redness
            else "OBSCURANT"
            if found["unevenness"] > self.settings.min_unevenness
            else "HAZE"
        )
        statistics = {"contrast": lost, "correlation": correlation}
        return Finding(statistics, len(pictures), found, reason=reason)

    def _line(self, picture: ImageStatistics) -> Floats:
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


def _parts(line: Floats, usual: Floats, settings: ColourLineSettings) -> list[tuple[Floats, Floats]]:
    """Return the parts of a line that have contrast."""
    pieces = zip(np.array_split(line, settings.parts), np.array_split(usual, settings.parts), strict=True)
    return [(a, b) for a, b in pieces if b.std(axis=0).mean() > 3.0]


@dataclass(frozen=True)
class HazeSettings:
    """Numbers that distinguish haze from other images without contrast."""

    max_haze_contrast: float = 0.15  # Local contrast of haze, for any brightness of the scene.
    # Transmission of haze; images without contrast beyond it are dark, smooth or blurred.
    max_haze_transmission: float = 0.85
    max_white_ratio: float = 0.4  # Overexposed: the check is UNKNOWN.
    min_edge_contrast: float = 0.1  # Local contrast (p99) of an edge.
    max_noise_contrast: float = 0.02  # Local contrast (p90), and ...
    max_noise_ratio: float = 1.8  # ... the same over the median, of noise alone.
    wall_score: float = 0.2  # Minimum score of images that may show a wall.


class Haze(CameraCheck, id="C10", group="content"):
    """Transmission by the dark channel, and local contrast.

    ``transmission = 1 - 0.95 median(dark) / A``: dark is the minimum colour within 15 x 15 pixels of the
    image reduced to 160 columns, A the 99th percentile of brightness. ``contrast``: 90th percentile of
    std / mean within 3 x 3 of these pixels. Bright ground has no dark pixels either, but contrast: the
    transmission counts if the contrast is at most 0.15, the contrast if the transmission is at most 0.85.
    A wall in front of the camera has no contrast either: with the 99th percentile above 0.1 (an edge), or
    the 90th below 0.02 and less than 1.8 times the median (noise alone), the check is SUSPECT at most.
    Water on the lens looks like haze.

    Motive: SDI, 5.3: what smoke and dust do to colour images.
    """

    settings = HazeSettings()

    transmission = Limit(0.6, 0.3, "HAZE", "", "fraction of the scene's light that is transmitted")
    contrast = Limit(0.1, 0.03, "HAZE", "", "local contrast of the clearest parts")

    def evaluate(self, camera: Window[Image]) -> Finding | Unknown:
        """Measure transmission and contrast."""
        pictures = self.measure(camera)
        if isinstance(pictures, Unknown):
            return pictures
        if pictures[0].thermal:
            return Unknown("THERMAL", "it measures heat, not light", len(pictures))
        if median_of(pictures, "bright") > self.settings.max_white_ratio:
            return Unknown("OVEREXPOSED", "white pixels have no contrast", len(pictures))
        light = median_of(pictures, "transmission")
        usual, contrast, edge = np.median([picture.contrasts for picture in pictures], axis=0).tolist()
        statistics = {
            "transmission": light if contrast <= self.settings.max_haze_contrast else 1.0,
            "contrast": contrast if light <= self.settings.max_haze_transmission else np.nan,
        }
        found = {"measured": light, "local_contrast": contrast, "strongest": edge}
        ambiguous = edge > self.settings.min_edge_contrast or contrast < min(
            self.settings.max_noise_contrast, self.settings.max_noise_ratio * usual
        )
        unclear = ambiguous and contrast < self.contrast.warn
        note = "a wall close to the camera looks the same" if unclear else ""
        return Finding(
            statistics,
            len(pictures),
            found,
            note=note,
            min_score=self.settings.wall_score if ambiguous else 0.0,
        )


@dataclass(frozen=True)
class VisualInfraredSettings:
    """Numbers of the comparison of visual and infrared contrast."""

    min_infrared_loss: float = 0.03  # Loss of infrared contrast of an obscurant; less is a change of light.
    max_clear_loss: float = 0.1  # Loss of contrast of a window that updates the baseline.


class VisualInfrared(CameraCheck, id="X02", group="cross"):
    """Contrast that a camera lost and the infrared camera beside it did not.

    ``difference = c_visual - c_infrared``, c = 1 - std(I) / std(I_ref) of the reduced images, I_ref of
    the last clear windows. If both lost contrast it is an obscurant; if only the visual image did it is
    the light, and the check is OK. Only for a robot that is known to stand, as another scene has another
    contrast.

    Motive: SDI, 5.3: the "effect is lower on the infra-red data".
    """

    settings = VisualInfraredSettings()

    difference = Limit(
        0.2, 0.4, "OBSCURANT", "", "difference of the contrast lost in the visual and in the infrared image"
    )

    learns_baseline = True

    def reset(self) -> None:
        """Start without a baseline."""
        self._clear = ClearBaseline()

    def evaluate(
        self, camera: Window[Image], others: Sequence[Window[Image]], moving: Sequence[Window[Moving]] = ()
    ) -> Finding | Unknown:
        """Compare the two losses."""
        pictures = self.measure(camera)
        if isinstance(pictures, Unknown):
            return pictures
        if _is_infrared(camera, pictures):
            return Unknown("NO_PEER", "it is the infrared camera", len(pictures))
        seen = [(each.stream.name, self.measure(each), each) for each in others]
        peer = next(
            ((name, p) for name, p, w in seen if not isinstance(p, Unknown) and _is_infrared(w, p)), None
        )
        if peer is None:
            return Unknown("NO_PEER", "there is no infrared image", len(pictures))
        if is_moving(moving) is not False:
            self._clear.forget()
            return Unknown("MOVING", "no stream shows that the robot stands", len(pictures))
        now = np.sqrt([median_of(pictures, "variance"), median_of(peer[1], "variance")])
        if (usual := self._clear.usual) is None:
            self._clear.learn(now)
            return Unknown("LEARNING", n=len(pictures))
        visual, infrared = (1.0 - now / np.maximum(usual, 1e-3)).tolist()
        found = {"visual": visual, "infrared": infrared}
        if max(visual, infrared) <= self.settings.max_clear_loss:
            self._clear.learn(now)
        is_obscurant = infrared > self.settings.min_infrared_loss
        note = (
            ""
            if is_obscurant or visual < self.difference.warn
            else "only the visual image changed: the light has changed"
        )
        difference = max(visual - infrared, 0.0) if is_obscurant else 0.0
        return Finding({"difference": difference}, len(pictures), found, note=note, peers=(peer[0],))


def _is_infrared(window: Window[Image], pictures: Sequence[ImageStatistics]) -> bool:
    return window.stream.tag == "infrared" or pictures[0].thermal

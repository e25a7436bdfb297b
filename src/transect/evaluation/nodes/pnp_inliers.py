"""How many points agree with a pose that was found from them."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from transect.engine import Batch, Node, Shape, outputs, param
from transect.evaluation.vision import FAIL, WARN, pose_quality


@outputs
class InlierShare:
    """How far a pose can be trusted.

    Attributes
    ----------
    share : float
        Points that agree divided by all.
    trusted : bool
        Whether the share is at least `warn`.
    usable : bool
        Whether it is at least `fail`.
    """

    share: float
    trusted: bool
    usable: bool


class PnpInliers(Node):
    """Judges a pose by its inliers (CDFF's quality of PerspectiveNPointSolving).

    Inputs
    ------
    success
        Whether there is a pose; without one, no point agrees.
    inliers
        Which of the points agree with the pose, one with each success.
    """

    warn: float = param(WARN, ge=0, le=1, doc="share of inliers below which a pose is doubtful")
    fail: float = param(FAIL, ge=0, le=1, doc="share of inliers below which a pose must not be used")

    def process(
        self, success: bool, inliers: Batch[Annotated[np.ndarray, Shape("n")]] = ()
    ) -> InlierShare | None:
        if not success:
            return InlierShare(0.0, False, False)
        if not inliers or not len(inliers[-1]):
            return self.ctx.skip("there are no points")
        found = pose_quality(int(np.count_nonzero(inliers[-1])), len(inliers[-1]), self.warn, self.fail)
        return InlierShare(found.ratio, found.level == "ok", found.level != "fail")

"""The model of a scene, as often as somebody wants it."""

from __future__ import annotations

from dataclasses import replace

from transect.algorithms.clouds.selection import select
from transect.engine import Node, param
from transect.types import PointCloud


class SceneModel(Node):
    """The model so far with every n-th cloud that was added, and once more when all are in.

    Points that too few pictures agree on are left out, where the cloud counts them (`count`).
    """

    out_name = "pointCloud"
    after: int = param(0, ge=0, doc="number of clouds after which the model is emitted; 0: once, at the end")
    least: int = param(1, ge=1, doc="smallest number of measurements of a point of the model")

    def reset(self) -> None:
        self.model: PointCloud | None = None
        self.added = 0
        self.given = 0

    def process(self, model: PointCloud) -> PointCloud | None:
        self.model, self.added = model, self.added + 1
        return self._show() if self.after and self.added % self.after == 0 else None

    def finish(self) -> PointCloud | None:
        return None if self.model is None or self.given == self.added else self._show()

    def _show(self) -> PointCloud | None:
        assert self.model is not None
        self.given = self.added
        count = self.model.fields.get("count")
        sure = self.model if count is None else select(self.model, count >= self.least)
        return replace(sure, t_ns=self.ctx.time)

"""The Orchestrator of one recording and one store, which answers requests for products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from transect.errors import UsageError
from transect.products import Area, ProductStore

from .policy import SensorPolicy
from .preferences import Preferences
from .requests import Answer, ProductRequest, answer

if TYPE_CHECKING:
    from transect.recording import Recording

    from .forms import ProductForm


@dataclass(frozen=True)
class Orchestrator:
    """Answers requests from a store, or by running compounds on a recording and keeping their outputs."""

    recording: Recording
    store: ProductStore
    preferences: Preferences | None = None  # which compound is tried first; None for the default table
    policy: SensorPolicy | None = None  # what replaces a BAD sensor; None for the default table
    mission: str = ""  # the campaign that new products belong to

    def request(
        self,
        kind: str,
        *,
        area: Area | None = None,
        time: tuple[int, int] | None = None,
        frame: str | None = None,
        max_age: float | None = None,
        min_quality: float | None = None,
        check: bool = False,
        dry_run: bool = False,
    ) -> Answer:
        """Return the answer to a `ProductRequest` with these fields; see `answer`."""
        request = ProductRequest(kind, time, area, frame, max_age, min_quality)
        return answer(
            request, self.recording, self.store, preferences=self.preferences, policy=self.policy,
            mission=self.mission, check=check, dry_run=dry_run,
        )  # fmt: skip

    def deliver(self, answer: Answer, form: ProductForm) -> bytes:
        """Return the bytes of an answer's product in another file type, frame, unit or resolution."""
        from .conversion import convert

        if answer.product is None:
            raise UsageError("there is no product: it was only planned", hint="dry_run=False makes it")
        content = self.store.content(answer.product.id)
        return convert(answer.product, content, form, self.recording.frames)

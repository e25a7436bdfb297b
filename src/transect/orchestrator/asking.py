"""The Orchestrator of one recording and one store: ask it for products, in the form that is wanted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from transect.errors import UsageError
from transect.products import Area, ProductStore

from .policy import Policy
from .preferences import Preferences
from .requesting import Answer, Request, answer

if TYPE_CHECKING:
    from transect.recording import Recording

    from .translating import Form


@dataclass(frozen=True)
class Orchestrator:
    """Answers requests from a store, or by running compounds on a recording and keeping what they give.

    Attributes
    ----------
    recording : Recording
    store : ProductStore
    preferences : Preferences or None
        Which compound is tried first; None for ours.
    policy : Policy or None
        What stands in for what while a sensor is BAD; None for ours.
    mission : str
        Which campaign what is made belongs to.
    """

    recording: Recording
    store: ProductStore
    preferences: Preferences | None = None
    policy: Policy | None = None
    mission: str = ""

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
        """Return a product as `answer` does; what may be asked for is that of `Request`."""
        wanted = Request(kind, time, area, frame, max_age, min_quality)
        return answer(
            wanted, self.recording, self.store, preferences=self.preferences, policy=self.policy,
            mission=self.mission, check=check, dry_run=dry_run,
        )  # fmt: skip

    def deliver(self, given: Answer, form: Form) -> bytes:
        """Return the bytes of what a request gave, in another form: file type, frame, unit, resolution."""
        from .translating import translate

        if given.product is None:
            raise UsageError("there is no product: it was only planned", hint="dry_run=False makes it")
        content = self.store.content(given.product.id)
        return translate(given.product, content, form, self.recording.frames)

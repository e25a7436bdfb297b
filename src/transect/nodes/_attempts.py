"""How often a node failed to find what it is there for; most of the time is a failed result."""

from __future__ import annotations

from transect.engine.context import Context

MAX_FAILED_RATIO = 0.5
"""Failures of all attempts in a result that can be trusted."""


class Attempts:
    """Counts attempts, and failures among them."""

    def __init__(self) -> None:
        self.count = self.failed = 0

    def add(self, succeeded: bool) -> None:
        """Count one attempt."""
        self.count += 1
        self.failed += not succeeded

    def add_many(self, count: int, failed: int) -> None:
        """Count several attempts."""
        self.count += count
        self.failed += failed

    def report(self, ctx: Context, failure: str, consequence: str) -> None:
        """Log the failures; if they are most of the attempts, conclude that the result is bad.

        Parameters
        ----------
        failure : str
            What failed: "scans did not match those before them".
        consequence : str
            What must not be trusted: "the map and the path".
        """
        if not self.failed:
            return
        said = f"{self.failed} of {self.count} {failure}"
        if self.failed > MAX_FAILED_RATIO * self.count:
            ctx.conclude(f"{said}: do not trust {consequence}", bad=True)
        else:
            ctx.log(said)

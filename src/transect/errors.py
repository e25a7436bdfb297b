"""The errors a person sees: what went wrong, where, why we think so, and what to try."""

from __future__ import annotations

from collections.abc import Iterable


class TransectError(Exception):
    """Base of every error that transect raises on purpose.

    Parameters
    ----------
    what : str
        What went wrong, one line.
    where : str
        `file:line`, `file@byte`, or `stream@time`.
    why : str
        What makes us think so.
    hint : str
        What to try next.
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", why: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what, self.where, self.why, self.hint = what, where, why, hint

    def __str__(self) -> str:
        parts = [self.what]
        parts += [f"  where: {self.where}"] if self.where else []
        parts += [f"  why:   {self.why}"] if self.why else []
        parts += [f"  try:   {self.hint}"] if self.hint else []
        return "\n".join(parts)


class UsageError(TransectError):
    """The caller asked for something that cannot be meant."""

    exit_code = 2


class ParseError(TransectError):
    """A file does not hold what its format promises."""


class UnknownFormatError(TransectError):
    """No format recognises the path."""


class UnsupportedError(TransectError):
    """A format cannot carry, or cannot do, what was asked."""


class UnknownOptionError(UnsupportedError):
    """A format does not have the option that was given."""

    option = ""


class MissingExtraError(TransectError):
    """An optional library is not installed."""

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(
            f"this needs {library}, which is not installed",
            why=f"{library} belongs to the optional extra [{extra}]",
            hint=f"pip install 'transect[{extra}]'",
        )


class ImportFailedError(TransectError):
    """A file of nodes or controllers that cannot be imported."""


class StreamError(TransectError, LookupError):
    """A stream, column or sample that is not there."""


class TimeError(TransectError, ValueError):
    """A time that cannot be read, or clocks that cannot be compared."""


class FrameError(TransectError, LookupError):
    """A frame or a path between frames that is not known."""


class GeometryError(TransectError, ValueError):
    """Arrays of the wrong shape, or a set of points that does not determine the answer."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``did you mean 'x'?`` for the nearest known name, or a list of what there is."""
    import difflib  # seldom needed, and slow to import

    choices = sorted(known)
    near = difflib.get_close_matches(name, choices, n=3, cutoff=0.5)
    if near:
        return "did you mean " + " or ".join(repr(n) for n in near) + "?"
    shown = ", ".join(choices[:12]) + (", ..." if len(choices) > 12 else "")
    return f"known are: {shown}" if choices else "there are none"

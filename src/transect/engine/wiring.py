"""Wiring without configuration: which stream of a recording feeds which input of a compound.

By type, then by tag; only streams of role measurement are wired automatically, and one stream feeds one
input. Other wirings are requested by ``--wire INPUT=STREAM``, or ``--wire INPUT=none``.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from transect.base.tables import table_lines
from transect.base.units import Unit, unit_of
from transect.errors import StreamError, UsageError, did_you_mean
from transect.recording import Recording, Stream, arrow

from .offsets import offset_hint
from .ports import type_name

BY_TYPE = "by type"
NONE = "none"
"""Argument of `--wire INPUT=none`, for an input that stays unwired."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


class WiringError(UsageError):
    """An input for which no stream fits, or more than one does."""

    # For each input that cannot be wired, or several that stand for each other, what could be typed:
    # ``--wire image=cam/l``
    options: Sequence[Sequence[str]] = ()


class UncalibratedError(WiringError):
    """An input is fed by images of no calibrated camera."""


class CompoundInput(NamedTuple):
    """An input of a compound, its type resolved; a plain tuple (name, type, tag) will do."""

    name: str
    type: type  # of one sample; `object` for any
    # Which of several streams alike (left, right, ...); "" where the name says it or nothing does
    tag: str = ""
    many: bool = False  # whether it takes all streams of its type that no other input takes
    # Inputs with the same word stand for each other: the first that can be wired is, and one must be
    one_of: str = ""


HEADINGS = ("input", "type", "stream", "how")


class WiredInput(NamedTuple):
    """One row of a wiring: an input, its stream (None where it stays unwired), and how that was found."""

    input: CompoundInput
    stream: Stream | None
    how: str


@dataclass(frozen=True)
class Wiring:
    """Which stream feeds which input; `str` is a table."""

    # In the order of the inputs, those that stay unwired among them; several for one that takes many
    links: tuple[WiredInput, ...]
    # What would be typed to wire inputs that stay unwired because more than one stream could feed them,
    # or one could feed several of them; a sentence each
    unsure: tuple[str, ...] = ()
    conversions: tuple[str, ...] = ()  # units of streams that are converted, a sentence each

    @property
    def pairs(self) -> list[tuple[str, Stream]]:
        """Input and stream of each wire."""
        return [(link.input.name, link.stream) for link in self.links if link.stream is not None]

    @property
    def streams(self) -> dict[str, Stream]:
        """The stream of each input that is wired, the first of several."""
        return dict(reversed(self.pairs))

    @property
    def used_truth(self) -> bool:
        """Whether a stream of role truth is among them; a result says so."""
        return any(stream.role == "truth" for _, stream in self.pairs)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes in addition to the table, a sentence each."""
        roles = (
            f"{name} takes {stream.name}, which is {_a(stream.role)}"
            for name, stream in self.pairs
            if stream.role != "measurement"
        )
        return (*roles, *self.unsure, *self.conversions)

    def to_dict(self) -> dict[str, Any]:
        """Return stream, type, role, clock and how for each wired input, as plain values.

        The second stream of an input is called `input 2`, and so on.
        """
        links: dict[str, Any] = {}
        for wanted, stream, how in self.links:
            if stream is None:
                continue
            before = sum(key.partition(" ")[0] == wanted.name for key in links)
            links[f"{wanted.name} {before + 1}" if before else wanted.name] = {
                "stream": stream.name,
                "type": stream.type.__name__,
                "role": stream.role,
                "clock": stream.clock,
                "how": how,
            }
        return links

    @property
    def rows(self) -> list[tuple[str, str, str, str]]:
        """Input, type, stream and how, for a table."""
        return [
            (wanted.name, type_name(wanted.type), stream.name if stream else "-", how)
            for wanted, stream, how in self.links
        ]

    def __str__(self) -> str:
        return "\n".join(table_lines([HEADINGS, *self.rows]))


def wire_inputs(
    inputs: Mapping[str, CompoundInput | tuple[str, type, str]],
    recording: Recording,
    asked: Mapping[str, str] | None = None,
    optional: Collection[str] = (),
) -> Wiring:
    """Choose a stream for each input of a compound.

    Parameters
    ----------
    inputs : mapping of str to Input
        By name.
    recording : Recording
    asked : mapping of str to str
        Input name to stream name, as `--wire` gives them: any role, and one stream for several inputs.
    optional : collection of str
        Inputs that nobody needs; they stay unwired where no stream, or more than one, fits.

    Raises
    ------
    WiringError
        That lists the candidates of every input that cannot be wired, and the `--wire` to type.
    """
    wanted = {
        name: given if isinstance(given, CompoundInput) else CompoundInput(*given)
        for name, given in inputs.items()
    }
    links = _link_asked(wanted, recording, asked or {})
    links |= _link_others_of_choices(wanted, links)
    rest = {name: each for name, each in wanted.items() if name not in links}
    single = {name: each for name, each in rest.items() if not each.many}
    found, left = _match(single, _free(recording, links), optional)
    links |= _choose_first(single, found, left)
    links |= _link_others_of_choices(wanted, links)
    for each in rest.values():
        if each.many and (free := [s for s in _free(recording, links) if fits(each.type, s.type)]):
            links[each.name] = [WiredInput(each, stream, BY_TYPE) for stream in free]
    unwired = [each for name, each in wanted.items() if name not in links]
    free = _free(recording, links)
    unsure = {name: [s for s in streams if s in free] for name, streams in left.items()}
    faults = [_fault(each, unsure.get(each.name, ()), recording, links) for each in unwired]
    if grave := _list_grave(faults, optional):
        raise _error(grave, recording)
    links |= {f.input.name: [WiredInput(f.input, None, f"stays unwired: {f.short}")] for f in faults}
    wiring = Wiring(tuple(link for name in wanted for link in links[name]), _list_unsure(faults))
    _refuse_several_clocks(wiring)
    return _convert_units(wiring)


def _link_asked(
    wanted: Mapping[str, CompoundInput], recording: Recording, asked: Mapping[str, str]
) -> dict[str, list[WiredInput]]:
    links: dict[str, list[WiredInput]] = {}
    for name, stream_name in asked.items():
        if name not in wanted:
            option = f"--wire {name}={stream_name}"
            raise WiringError(f"{option}: there is no input {name!r}", hint=did_you_mean(name, wanted))
        nothing = stream_name == NONE and NONE not in recording
        stream = None if nothing else _find_asked(wanted[name], recording, stream_name)
        links[name] = [WiredInput(wanted[name], stream, "asked")]
    return links


def _list_wired(links: Mapping[str, Sequence[WiredInput]]) -> list[WiredInput]:
    return [link for several in links.values() for link in several if link.stream is not None]


def _link_others_of_choices(
    wanted: Mapping[str, CompoundInput], links: Mapping[str, list[WiredInput]]
) -> dict[str, list[WiredInput]]:
    """Leave the inputs alone for which another one, that is wired, stands."""
    chosen = {link.input.one_of: link for link in _list_wired(links) if link.input.one_of}
    return {
        name: [WiredInput(each, None, f"not needed: {chosen[each.one_of].input.name} stands for it")]
        for name, each in wanted.items()
        if each.one_of in chosen and name not in links
    }


def _choose_first(
    inputs: Mapping[str, CompoundInput], found: Mapping[str, WiredInput], left: Mapping[str, Sequence[Stream]]
) -> dict[str, list[WiredInput]]:
    """Return the links found; of inputs that stand for each other the first, and none after an unsure one."""
    decided: set[str] = set()
    kept: dict[str, list[WiredInput]] = {}
    for name, each in inputs.items():
        if name in found and each.one_of not in decided:
            kept[name] = [found[name]]
        if each.one_of and (name in found or left.get(name)):
            decided.add(each.one_of)
    return kept


def _find_asked(wanted: CompoundInput, recording: Recording, name: str) -> Stream:
    option = f"--wire {wanted.name}={name}"
    try:
        stream = recording[name]
    except StreamError as error:
        raise WiringError(f"{option}: {error.what}", hint=error.hint) from error
    if not fits(wanted.type, stream.type):
        fitting = [s.name for s in recording if fits(wanted.type, s.type)]
        raise WiringError(
            f"{option}: {stream.name} cannot feed {wanted.name}",
            why=f"its samples are {stream.type.__name__}, the input takes {type_name(wanted.type)}",
            hint=f"these fit: {', '.join(fitting)}" if fitting else f"no stream of {recording.name} fits",
        )
    return stream


def fits(wanted: type, given: type) -> bool:
    """Return whether an input accepts a stream's type: the same type or a subtype."""
    return wanted is object or issubclass(given, wanted)


def _free(recording: Recording, links: Mapping[str, Sequence[WiredInput]]) -> list[Stream]:
    """Return the streams that may be wired automatically: measurements that feed nothing yet."""
    taken = {link.stream for link in _list_wired(links)}
    return [s for s in recording if s.role == "measurement" and s not in taken]


def _match(
    rest: Mapping[str, CompoundInput], free: Sequence[Stream], optional: Collection[str]
) -> tuple[dict[str, WiredInput], dict[str, list[Stream]]]:
    """Wire what has one candidate, again and again without what is taken; return the others' candidates.

    All inputs are looked at before any stream is taken, so that their order does not matter.
    """
    links: dict[str, WiredInput] = {}
    while True:
        taken = {link.stream for link in links.values()}
        there = [stream for stream in free if stream not in taken]
        found = {name: _candidates(each, there) for name, each in rest.items() if name not in links}
        single = [
            WiredInput(rest[name], streams[0], how)
            for name, (streams, how) in found.items()
            if len(streams) == 1
        ]
        won = _winners(single, optional)
        if not won:
            return links, {name: streams for name, (streams, _) in found.items()}
        links |= {link.input.name: link for link in won}


def _winners(links: Sequence[WiredInput], optional: Collection[str]) -> list[WiredInput]:
    """Where several inputs have but the same stream: one that is needed, then one by tag, takes it."""

    def claim(link: WiredInput) -> tuple[bool, bool]:
        return link.input.name not in optional, link.how != BY_TYPE

    won: list[WiredInput] = []
    for stream in dict.fromkeys(link.stream for link in links):
        rivals = [link for link in links if link.stream is stream]
        best = max(map(claim, rivals))
        strongest = [link for link in rivals if claim(link) == best]
        won += strongest if len(strongest) == 1 else []
    return won


def _candidates(wanted: CompoundInput, streams: Sequence[Stream]) -> tuple[list[Stream], str]:
    """Return the candidate streams of an input, and the criterion."""
    typed = [stream for stream in streams if fits(wanted.type, stream.type)]
    if wanted.tag:
        tagged = [stream for stream in typed if words(stream.tag) == words(wanted.tag)]
        # A stream that says it is another one is not taken for want of the right one.
        return (tagged, f"by tag {wanted.tag}") if tagged else ([s for s in typed if not s.tag], BY_TYPE)
    named = [stream for stream in typed if stream.tag and words(stream.tag) <= words(wanted.name)]
    if named:
        most = max(len(words(stream.tag)) for stream in named)
        named = [stream for stream in named if len(words(stream.tag)) == most]
        return named, f"by tag {named[0].tag}"
    plain = [stream for stream in typed if not stream.tag]  # others say which of several they are
    return (plain, "without a tag") if len(plain) == 1 < len(typed) else (typed, BY_TYPE)


def words(name: str) -> frozenset[str]:
    """Return the words of a name, split at camelCase and underscores, in lower case."""
    return frozenset(word.lower() for word in _WORD.findall(name))


class _Fault(NamedTuple):
    """Why an input is not wired: its candidates, and a long and a short reason.

    `unsure` is true if one of several measurements, or one for several inputs, would have been wired.
    """

    input: CompoundInput
    candidates: Sequence[Stream]
    why: str
    short: str
    unsure: bool = False


def _fault(
    wanted: CompoundInput,
    candidates: Sequence[Stream],
    recording: Recording,
    links: Mapping[str, Sequence[WiredInput]],
) -> _Fault:
    kind = _a(type_name(wanted.type))
    if candidates:
        listed = ", ".join(map(_describe, candidates))
        why = f"it could be {listed}" + ("" if len(candidates) > 1 else ", but so could another input")
        return _Fault(wanted, candidates, why, why, unsure=True)
    typed = [stream for stream in recording if fits(wanted.type, stream.type)]
    tagged = f" with the tag {wanted.tag}" if wanted.tag else ""
    reasons = [f"no measurement of type {type_name(wanted.type)}{tagged} is left for it"]
    reasons += [_explain_refusal(stream, links) for stream in typed]
    near = [s for s in recording if s not in typed and _is_near(wanted.type, s.type)]
    reasons += [f"{stream.name} is {_a(stream.type.__name__)}, not {kind}" for stream in near]
    return _Fault(wanted, typed, "; ".join(reasons), "nothing fits")


def _list_grave(faults: Sequence[_Fault], optional: Collection[str]) -> list[_Fault]:
    """Return the faults of inputs that are needed; where all that stand for each other have one, they are."""
    return [f for f in faults if f.input.one_of or f.input.name not in optional]


def _list_unsure(faults: Sequence[_Fault]) -> tuple[str, ...]:
    """Say, for each choice that a person may make, what is not used and what to type."""
    faults_of: dict[str, list[_Fault]] = {}
    for fault in faults:
        if fault.unsure:
            faults_of.setdefault(_either([s.name for s in fault.candidates]), []).append(fault)
    return tuple(
        f"{streams} could feed {_either([each.input.name for each in same])}, and nothing does:"
        f" to choose, --wire {same[0].input.name}={same[0].candidates[0].name}"
        for streams, same in faults_of.items()
    )


def _either(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def _explain_refusal(stream: Stream, links: Mapping[str, Sequence[WiredInput]]) -> str:
    """Return why a stream of the right type is not wired automatically."""
    if stream.role != "measurement":
        return f"{stream.name} fits but is {_a(stream.role)}"
    takers = [link.input.name for link in _list_wired(links) if link.stream is stream]
    if takers:
        return f"{stream.name} feeds {' and '.join(takers)} already"
    return f"{stream.name} has the tag {stream.tag}"


def _is_near(wanted: type, given: type) -> bool:
    """Return whether a type has the columns that another needs, or is a general form of it."""
    needed = _list_needed(wanted)
    return issubclass(wanted, given) or (bool(needed) and needed <= _columns(given))


def _columns(kind: type) -> set[str]:
    return set(getattr(kind, "units", dict)())


def _list_needed(kind: type) -> set[str]:
    """Return the columns that every sample of a type has; all of them where none is a must."""
    known = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    musts = [field for field in known if field.default is dataclasses.MISSING]
    return {name for field in musts for name in field.metadata.get("columns", ())} or _columns(kind)


def _error(faults: Sequence[_Fault], recording: Recording) -> WiringError:
    """Return one error for all inputs that cannot be wired."""
    explained = [f for f in faults if f.candidates or not f.input.one_of] or faults
    several = [f"{f.input.name}: {f.why}" for f in explained] if len(faults) > 1 else [faults[0].why]
    choices: dict[str, list[_Fault]] = {}
    for fault in faults:
        choices.setdefault(fault.input.one_of or f"{fault.input.name} ", []).append(fault)
    named = [
        _either([f"{f.input.name} ({type_name(f.input.type)})" for f in group]) for group in choices.values()
    ]
    error = WiringError(
        f"cannot tell which stream of {recording.name} feeds {', '.join(named)}",
        why="\n         ".join(several),
    )
    wires = (
        [f"--wire {_quote(f'{f.input.name}={stream.name}')}" for f in group for stream in f.candidates]
        for group in choices.values()
    )
    error.options = [each for each in wires if each]
    error.hint = "\n         ".join(map(" or ".join, error.options)) or (
        f"transect info lists the streams of {recording.name}"
    )
    return error


def _quote(text: str) -> str:
    import shlex

    return shlex.quote(text)


def _convert_units(wiring: Wiring) -> Wiring:
    """Return a wiring whose streams are in the units of their types, as inputs expect them."""
    streams = {stream.name: convert_units(stream) for _, stream in wiring.pairs}
    if not any(texts for _, texts in streams.values()):
        return wiring
    links = [
        link if link.stream is None else link._replace(stream=streams[link.stream.name][0])
        for link in wiring.links
    ]
    conversions = tuple(text for _, texts in streams.values() for text in texts)
    return dataclasses.replace(wiring, links=tuple(links), conversions=conversions)


def _refuse_several_clocks(wiring: Wiring) -> None:
    """Refuse streams whose times cannot be compared; what holds for all times goes with any clock."""
    timed = {s.name: s.clock for _, s in wiring.pairs if not s.meta.get("timeless")}
    clocks = sorted(set(timed.values()))
    if len(clocks) < 2:
        return
    named = {clock: [name for name, each in timed.items() if each == clock] for clock in clocks}
    raise WiringError(
        f"the inputs are on different clocks: {', '.join(clocks)}",
        why="; ".join(f"{clock}: {', '.join(names)}" for clock, names in named.items()),
        hint=offset_hint(named),
    )


def _describe(stream: Stream) -> str:
    return f"{stream.name} ({stream.tag})" if stream.tag else stream.name


def _a(noun: str) -> str:
    if noun in ("truth", "derived"):
        return noun
    return f"an {noun}" if noun[0] in "AEIOUaeiou" else f"a {noun}"


def convert_units(stream: Stream) -> tuple[Stream, tuple[str, ...]]:
    """Return a stream in the units of its type, and what was converted, a sentence each.

    A column without a unit is taken to have the right one.

    Raises
    ------
    UsageError
        If a column has a unit of another kind, such as m/s where rad/s is wanted, or one that is not known.
    """
    canonical: dict[str, str] = getattr(stream.type, "units", dict)()
    others = {
        name: (unit, canonical[name])
        for name, unit in (stream.units if canonical else {}).items()
        if unit and canonical.get(name) and unit != canonical[name]
    }
    table, conversions = stream.table if others else None, list[str]()
    for name, (unit, si) in others.items():
        known = _comparable(stream, name, unit, si)
        if table is None or known.is_si:
            continue
        values = known.to_si(np.asarray(stream.column(name), np.float64))
        column = arrow.table(stream.t_ns, {name: values}, units={name: si})
        place = table.column_names.index(name)
        table = table.set_column(place, column.schema.field(name), column.column(name))
        conversions.append(f"{stream.name}: {name} is in {unit}, and is converted to {si}")
    if table is None or not conversions:
        return stream, ()
    return stream.replace(source=replace(stream.parsed, table=table)), tuple(conversions)


def _comparable(stream: Stream, name: str, unit: str, si: str) -> Unit:
    """Return a unit, if it measures the same as another one does."""
    try:
        known = unit_of(unit)
    except UsageError as error:
        raise _unit_error(stream, name, unit, si, error.what) from error
    if known.si != unit_of(si).si:
        raise _unit_error(stream, name, unit, si, f"that is a unit of another kind than {si}")
    return known


def _unit_error(stream: Stream, name: str, unit: str, si: str, why: str) -> UsageError:
    return UsageError(
        f"{stream.name} has {name} in {unit}, where {si} is wanted",
        why=why,
        hint=f"correct the unit of {name} where the recording is described, or --wire another stream",
    )

"""What a robot or a place changes: limits, parameters, sensors, and verdicts that do not count.

.. code-block:: yaml

    window: 1.0
    checks:
      gap: {limits: {ratio: [3, 10]}}                 # by name or identifier: [warn, fail]
    streams:
      "Laser*": {checks: {rate: {params: {rate: 75}}}}
      "oxts/*": {sensor: oxts}
      "History/*": {session: history}                 # not logged together with the others
    conditions:
      night: {checks: {exposure: {limits: {entropy: [4, 2]}}}}
    mute:
      - {checks: jitter, streams: "zed*", reason: stamped when read from USB}
    skip: [C04]

Later ones win: checks, then streams that match in their order, then conditions in theirs.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from transect.base import plugins, yaml_fields
from transect.base.yaml_parts import Part, is_number, parse, refuse
from transect.errors import ParseError, TransectError
from transect.recording import Recording, Stream

from . import catalogue
from .model import Check, CheckContext


@dataclass(frozen=True)
class CheckConfig:
    """Of one check: its limits as [warn, fail], its parameters, and after how many windows it is declared."""

    limits: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    params: dict[str, Any] = field(default_factory=dict[str, Any])
    k_on: int | None = None
    k_off: int | None = None


def _no_checks() -> dict[str, CheckConfig]:
    return {}


@dataclass(frozen=True)
class StreamConfig:
    """Of the streams that match a pattern: their sensor, their session, and what differs for them."""

    sensor: str = ""
    session: str = ""
    checks: dict[str, CheckConfig] = field(default_factory=_no_checks)


def _no_streams() -> dict[str, StreamConfig]:
    return {}


@dataclass(frozen=True)
class ConditionConfig:
    """What differs in a condition of the recording, such as night."""

    checks: dict[str, CheckConfig] = field(default_factory=_no_checks)
    streams: dict[str, StreamConfig] = field(default_factory=_no_streams)


def _no_conditions() -> dict[str, ConditionConfig]:
    return {}


@dataclass(frozen=True)
class Mute:
    """Verdicts that do not count, and why; patterns of checks and streams."""

    reason: str
    checks: str = "*"
    streams: str = "*"

    def fits(self, check: str, identifier: str, stream: str) -> bool:
        """Tell whether it is about a check of a stream."""
        named = any(fnmatch.fnmatchcase(each.lower(), self.checks.lower()) for each in (check, identifier))
        return named and fnmatch.fnmatchcase(stream.lower(), self.streams.lower())


@dataclass(frozen=True)
class Config:
    """What `check` is told; see the module."""

    window: float = 1.0
    checks: dict[str, CheckConfig] = field(default_factory=_no_checks)
    streams: dict[str, StreamConfig] = field(default_factory=_no_streams)
    conditions: dict[str, ConditionConfig] = field(default_factory=_no_conditions)
    mute: list[Mute] = field(default_factory=list[Mute])
    skip: list[str] = field(default_factory=list[str])

    def check(self, part: Part) -> None:
        """Note names that are no check, limit or parameter, and limits that are no pair."""
        if self.window <= 0:
            part.child("window").wrong("window should be more than 0 s")
        for place, checks in self._check_configs(part):
            for name, config in checks.items():
                _check_names(place.child(name), name, config)
        for index, name in enumerate(self.skip):
            _find(part.child("skip").child(index), name)

    def _check_configs(self, part: Part) -> Iterator[tuple[Part, Mapping[str, CheckConfig]]]:
        yield part.child("checks"), self.checks
        here = [(part.child("streams"), self.streams)]
        for name, condition in self.conditions.items():
            inside = part.child("conditions").child(name)
            yield inside.child("checks"), condition.checks
            here.append((inside.child("streams"), condition.streams))
        for place, streams in here:
            for pattern, stream in streams.items():
                yield place.child(pattern).child("checks"), stream.checks


def _find(part: Part, name: str) -> str | None:
    try:
        return catalogue.find(name)
    except TransectError as error:
        part.wrong(error.what, error.hint)
        return None


def _check_names(part: Part, name: str, config: CheckConfig) -> None:
    if (found := _find(part, name)) is None:
        return
    for limit, pair in config.limits.items():
        if len(pair) != 2 or not all(map(is_number, pair)):
            part.child("limits").child(limit).wrong(f"{limit} should be [warn, fail]")
            return
    try:
        _make(found, [config])
    except TransectError as error:
        part.wrong(error.what, error.hint)


def load_config(path: Path | str) -> Config:
    """Read a YAML file; everything that is wrong with it is in one error."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ParseError(f"{path} is not text", where=str(path), why=str(error)) from error
    return read_config(text, str(path))


def read_config(text: str, file: str) -> Config:
    """Return what a YAML text says."""
    data, lines = parse(text, file)
    part = Part(data if data is not None else {}, (), lines)
    config = yaml_fields.read(part, Config, "the configuration")
    refuse(part.problems, file)
    return config or Config()


def plain_config(config: Config) -> dict[str, Any]:
    """Return a configuration as plain values, whose text as JSON `read_config` reads again."""
    return _without_defaults(asdict(config))


def _without_defaults(value: Any) -> Any:
    if isinstance(value, dict):
        pairs: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
        return {k: _without_defaults(v) for k, v in pairs.items() if v not in (None, {}, [], "")}
    return [_without_defaults(each) for each in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]


def config_of(recording: Recording) -> Config:
    """Return the limits that hold for the recording's robot; nothing for robots that are not known."""
    name = recording.robot.name if recording.robot else ""
    known = name in plugins.strings("limits")
    return load_config(plugins.file_of("limits", name)) if known else Config()


@dataclass(frozen=True)
class Settings:
    """Configurations that hold together, later ones win, and the conditions of the recording."""

    configs: Sequence[Config]
    conditions: frozenset[str] = frozenset()

    @property
    def window(self) -> float:
        """Seconds; the last configuration that does not have the default decides."""
        return next((c.window for c in reversed(self.configs) if c.window != Config.window), Config.window)

    def sensor_of(self, stream: str) -> str:
        """Return the sensor that a stream belongs to; its own name unless a configuration says otherwise."""
        named = [s.sensor for s, _ in self._matching(stream) if s.sensor]
        return named[-1] if named else stream

    def session_of(self, stream: str) -> str:
        """Return the session that a stream is kept in; "" for that of most streams."""
        named = [s.session for s, _ in self._matching(stream) if s.session]
        return named[-1] if named else ""

    def skips(self, name: str) -> bool:
        """Tell whether a check is not wanted."""
        return any(catalogue.find(each) == name for config in self.configs for each in config.skip)

    def mutes(self, name: str, identifier: str, stream: str) -> str:
        """Return why verdicts of a check on a stream do not count, "" if they do."""
        reasons = [m.reason for c in self.configs for m in c.mute if m.fits(name, identifier, stream)]
        return reasons[0] if reasons else ""

    def make(self, name: str, stream: Stream, context: CheckContext) -> Check:
        """Return a check for a stream."""
        given: list[CheckConfig] = []
        for config in self.configs:
            given += _named(config.checks, name)
        for match, _ in self._matching(stream.name):
            given += _named(match.checks, name)
        for config in self.configs:
            for condition in self._conditions(config):
                given += _named(condition.checks, name)
        return _make(name, given, context)

    def _conditions(self, config: Config) -> Iterator[ConditionConfig]:
        return (part for word, part in config.conditions.items() if word.lower() in self.conditions)

    def _matching(self, stream: str) -> Iterator[tuple[StreamConfig, str]]:
        for config in self.configs:
            for streams in (config.streams, *(c.streams for c in self._conditions(config))):
                for pattern, part in streams.items():
                    if fnmatch.fnmatchcase(stream.lower(), pattern.lower()):
                        yield part, pattern


def _named(checks: Mapping[str, CheckConfig], name: str) -> list[CheckConfig]:
    return [config for key, config in checks.items() if catalogue.find(key) == name]


def _make(name: str, given: Sequence[CheckConfig], context: CheckContext | None = None) -> Check:
    limits = {key: (pair[0], pair[1]) for config in given for key, pair in config.limits.items()}
    params = {key: value for config in given for key, value in config.params.items()}
    counts = {
        what: next((n for c in reversed(given) if (n := getattr(c, what)) is not None), None)
        for what in ("k_on", "k_off")
    }
    return catalogue.load(name)(limits, context, **counts, **params)


def conditions_of(recording: Recording, given: Sequence[str] = ()) -> frozenset[str]:
    """Return the words for the recording's conditions: what its catalogue or folder says, and those given."""
    words: list[str] = [*given]
    for value in recording.conditions.values():
        several: Sequence[Any] = value if isinstance(value, list | tuple) else (value,)
        words += [word for word in several if isinstance(word, str)]
    return frozenset(word.lower() for word in words)

"""Configuration of checks for a robot or a site: limits, parameters, sensors, and muted verdicts.

.. code-block:: yaml

    window: 1.0
    checks:
      gap: {limits: {ratio: [3, 10]}}                 # by name or identifier: [warn, fail]
    streams:
      "Laser*": {checks: {rate: {params: {rate: 75}}}}
      "oxts/*": {sensor: oxts}
      "History/*": {session: history}                 # logged separately from the others
    conditions:
      night: {checks: {exposure: {limits: {entropy: [4, 2]}}}}
    mute:
      - {checks: jitter, streams: "zed*", reason: stamped when read from USB}
    skip: [C04]

Precedence increases from `checks` to `streams` to `conditions`, and within each in the order of the file.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from transect.base import plugins, yaml_fields
from transect.base.yaml_parts import YamlPart, is_number, parse, refuse
from transect.errors import ParseError, TransectError
from transect.recording import Recording, Stream

from . import catalogue
from .model import Check, CheckContext


@dataclass(frozen=True)
class CheckConfig:
    """Limits [warn, fail], parameters, and declaration counts of one check."""

    limits: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    params: dict[str, Any] = field(default_factory=dict[str, Any])
    k_on: int | None = None
    k_off: int | None = None


def _no_checks() -> dict[str, CheckConfig]:
    return {}


@dataclass(frozen=True)
class StreamConfig:
    """Sensor, session, and check configurations of the streams that match a pattern."""

    sensor: str = ""
    session: str = ""
    checks: dict[str, CheckConfig] = field(default_factory=_no_checks)


def _no_streams() -> dict[str, StreamConfig]:
    return {}


@dataclass(frozen=True)
class ConditionConfig:
    """Overrides for a condition of the recording, such as night."""

    checks: dict[str, CheckConfig] = field(default_factory=_no_checks)
    streams: dict[str, StreamConfig] = field(default_factory=_no_streams)


def _no_conditions() -> dict[str, ConditionConfig]:
    return {}


@dataclass(frozen=True)
class Mute:
    """Verdicts to ignore, by patterns of checks and streams, and the reason."""

    reason: str
    checks: str = "*"
    streams: str = "*"

    def matches(self, check: str, identifier: str, stream: str) -> bool:
        """Return whether a check of a stream is muted."""
        named = any(fnmatch.fnmatchcase(each.lower(), self.checks.lower()) for each in (check, identifier))
        return named and fnmatch.fnmatchcase(stream.lower(), self.streams.lower())


@dataclass(frozen=True)
class Config:
    """Configuration of `check`; the module docstring has an example."""

    window: float = 1.0
    checks: dict[str, CheckConfig] = field(default_factory=_no_checks)
    streams: dict[str, StreamConfig] = field(default_factory=_no_streams)
    conditions: dict[str, ConditionConfig] = field(default_factory=_no_conditions)
    mute: list[Mute] = field(default_factory=list[Mute])
    skip: list[str] = field(default_factory=list[str])

    def check(self, part: YamlPart) -> None:
        """Report unknown checks, limits and parameters, and limits that are not a pair."""
        if self.window <= 0:
            part.child("window").wrong("window should be more than 0 s")
        for parent, checks in self._check_configs(part):
            for name, config in checks.items():
                _check_names(parent.child(name), name, config)
        for index, name in enumerate(self.skip):
            _find(part.child("skip").child(index), name)

    def _check_configs(self, part: YamlPart) -> Iterator[tuple[YamlPart, Mapping[str, CheckConfig]]]:
        yield part.child("checks"), self.checks
        stream_sections = [(part.child("streams"), self.streams)]
        for name, condition in self.conditions.items():
            section = part.child("conditions").child(name)
            yield section.child("checks"), condition.checks
            stream_sections.append((section.child("streams"), condition.streams))
        for section, streams in stream_sections:
            for pattern, stream in streams.items():
                yield section.child(pattern).child("checks"), stream.checks


def _find(part: YamlPart, name: str) -> str | None:
    try:
        return catalogue.find(name)
    except TransectError as error:
        part.wrong(error.what, error.hint)
        return None


def _check_names(part: YamlPart, name: str, config: CheckConfig) -> None:
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
    """Read a YAML file. One error reports all of its problems."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ParseError(f"{path} is not text", where=str(path), why=str(error)) from error
    return read_config(text, str(path))


def read_config(text: str, file: str) -> Config:
    """Parse a configuration from YAML text."""
    data, lines = parse(text, file)
    part = YamlPart(data if data is not None else {}, (), lines)
    config = yaml_fields.read(part, Config, "the configuration")
    refuse(part.problems, file)
    return config or Config()


def plain_config(config: Config) -> dict[str, Any]:
    """Return a configuration as plain values; `read_config` accepts their JSON text."""
    return _without_defaults(asdict(config))


def _without_defaults(value: Any) -> Any:
    if isinstance(value, dict):
        pairs: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
        return {k: _without_defaults(v) for k, v in pairs.items() if v not in (None, {}, [], "")}
    return [_without_defaults(each) for each in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]


def config_of(recording: Recording) -> Config:
    """Return the configuration of the recording's robot, empty for unknown robots."""
    name = recording.robot.name if recording.robot else ""
    known = name in plugins.strings("limits")
    return load_config(plugins.file_of("limits", name)) if known else Config()


@dataclass(frozen=True)
class LayeredConfig:
    """Several configurations, with increasing precedence, and the conditions of the recording."""

    configs: Sequence[Config]
    conditions: frozenset[str] = frozenset()

    @property
    def window(self) -> float:
        """Window length, s, of the last configuration that differs from the default."""
        return next((c.window for c in reversed(self.configs) if c.window != Config.window), Config.window)

    def sensor_of(self, stream: str) -> str:
        """Return the sensor of a stream; its own name unless a configuration sets another."""
        named = [s.sensor for s, _ in self._matching(stream) if s.sensor]
        return named[-1] if named else stream

    def session_of(self, stream: str) -> str:
        """Return the session of a stream; "" for the default session."""
        named = [s.session for s, _ in self._matching(stream) if s.session]
        return named[-1] if named else ""

    def skips(self, name: str) -> bool:
        """Return whether a check is disabled."""
        return any(catalogue.find(each) == name for config in self.configs for each in config.skip)

    def mutes(self, name: str, identifier: str, stream: str) -> str:
        """Return why verdicts of a check on a stream are ignored, "" if they are not."""
        reasons = [m.reason for c in self.configs for m in c.mute if m.matches(name, identifier, stream)]
        return reasons[0] if reasons else ""

    def make(self, name: str, stream: Stream, context: CheckContext) -> Check:
        """Create the configured check for a stream."""
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
    """Return the recording's conditions from its catalogue or folder, and those given, in lower case."""
    words: list[str] = [*given]
    for value in recording.conditions.values():
        several: Sequence[Any] = value if isinstance(value, list | tuple) else (value,)
        words += [word for word in several if isinstance(word, str)]
    return frozenset(word.lower() for word in words)

"""What a bag that we wrote remembers of the streams it was made from.

ROS wants topics with a leading slash and messages without NaN. So that a recording reads back as it was, one
message on the topic `/transect`, a std_msgs/String with JSON in it, says what each topic was called, which
of its columns were not measured, and its clock, role, tag and child frame. Other readers can ignore it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from transect.errors import ParseError

from .topics import LABELS, Head, Topic

TOPIC, TYPE = "/transect", "std_msgs/msg/String"
STREAMS_KEY = "streams"


def topic_names(names: Sequence[str]) -> list[str]:
    """Return names of streams as topics: with a leading slash, without odd characters, all different.

    Names that are topics already are kept.
    """
    reserved, used = {TOPIC, *names}, {TOPIC}
    topics: list[str] = []
    for name in names:
        topic = wanted = _topic_name(name)
        number = 2
        while topic in used or (topic in reserved and topic != name):
            topic, number = f"{wanted}_{number}", number + 1
        used.add(topic)
        topics.append(topic)
    return topics


def _topic_name(name: str) -> str:
    """Return a name as ROS 1 and ROS 2 both allow it: no part of it is empty or begins with a digit."""
    parts = [part for part in re.sub(r"[^A-Za-z0-9_/]", "_", name).split("/") if part]
    return "".join(f"/_{part}" if part[0].isdigit() else f"/{part}" for part in parts) or "/_"


def restore_names(topics: Sequence[Topic]) -> list[Topic]:
    """Return topics under the names of the streams they were written from, without the message about them."""
    note = next((t for t in topics if (t.name, t.channel.type) == (TOPIC, TYPE)), None)
    told = _read(note) if note is not None else {}
    if not told:
        return list(topics)
    others = [topic for topic in topics if topic is not note]
    names = [str(told.get(topic.name, {}).get("name", topic.name)) for topic in others]
    if len(set(names)) < len(names):
        names = [topic.name for topic in others]
    restored = [
        _restore(topic, name, told.get(topic.name, {})) for topic, name in zip(others, names, strict=True)
    ]
    return sorted(restored, key=lambda topic: topic.name)


def _restore(topic: Topic, name: str, told: Mapping[str, Any]) -> Topic:
    labels = {label: told[label] for label in LABELS if isinstance(told.get(label), str)}
    return replace(topic, name=name, unmeasured=_texts(told.get("not measured")), labels=labels)


def _read(note: Topic) -> dict[str, dict[str, Any]]:
    """Return the attributes of topics in the first message of a topic; empty for other writers."""
    try:
        raw = note.first_whole()
        text = Head(raw, note.channel.encoding).text() if raw else ""
        found: Any = json.loads(text or "{}")
    except (ParseError, ValueError, RecursionError):
        return {}
    streams: Any = found.get(STREAMS_KEY) if isinstance(found, dict) else None
    told: Iterable[tuple[Any, Any]] = streams.items() if isinstance(streams, dict) else ()
    return {str(topic): said for topic, said in told if isinstance(said, dict)}


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()

"""Reading MCAP files without ROS."""

from __future__ import annotations

from transect.recording import Recording, Source

from ..shared.bags.mcap import McapFile
from ..shared.bags.streams import recording_of
from ..shared.bags.topics import topics_of


def read(source: Source) -> Recording:
    """Read an MCAP file; each channel is a stream, or the frames or calibrations of Foxglove's schemas."""
    name = source.names[0]
    file = McapFile(name, source.content(name))
    topics = topics_of([file])
    if not any(topic.channel.encoding in ("json", "protobuf") for topic in topics):
        return recording_of(source, [file], topics=topics)
    from .foxglove_reading import attach, is_known

    known = [topic for topic in topics if is_known(topic)]
    others = recording_of(source, [file], topics=[topic for topic in topics if topic not in known])
    return attach(others, source, known) if known else others

"""How `archive init` and `archive build` come to the arm's archive: the file that describes it, and back."""

from __future__ import annotations

import json

from transect.archive.bundle import Bundle
from transect.archive.identifiers import Vid
from transect.archive.labels.areas import Citation
from transect.archive.making.config import Config, date_text
from transect.errors import UsageError
from transect.recording import Recording

from .bundle import Arm, arm_bundle, last_moment
from .mission import BUNDLE, LANDER, MISSION

PROFILE = "ida"
"""What `profile:` is in the file."""


def describe(recording: Recording, named: str) -> str:
    """Return the file that describes the arm's archive of a recording, which it calls by `named`."""
    created = last_moment(recording)
    title = Arm.of(recording, created).title
    return f"""\
# What transect archive build makes the bundle of InSight's arm of. Lines that begin with # are remarks.

recording: {json.dumps(named)}
# Collections, names and labels as in document 002. `general` makes a bundle by the streams instead; what
# else the file may say then, transect archive init writes for recordings of other robots.
profile: {PROFILE}
authority: {":".join(BUNDLE.parts[:3])}

# When the archive is made, in UTC. Filled in with the end of the recording: no clock is asked, so that
# building twice gives the same bytes.
created: "{created}"

bundle:
  name: {BUNDLE.name}
  title: {title}
  authors: ""  # Doe, Jo; Roe, Ann; A University
  year: {created[:4]}
  doi: ""  # 10.17189/...
  keywords: [InSight, Mars, robotic arm]

# As registered; the profile says nothing else.
investigation: {{name: {MISSION.name}, type: {MISSION.type}, lid: "{MISSION.lid}"}}
host: {{name: {LANDER.name}, type: Lander, lid: "{LANDER.lid}"}}
"""


def make_bundle(config: Config, recording: Recording | None, *, as_printed: bool = False) -> Bundle:
    """Return the archive of the arm that a file describes.

    Raises
    ------
    UsageError
        If the file names no recording.
    """
    said = config.said.bundle
    if recording is None:
        raise UsageError("the file names no recording of the arm", where=str(config.file))
    created = date_text(config.said.created)
    title = said.description or said.title
    citation = Citation(title, said.year or int(created[:4]), said.authors, said.doi, tuple(said.keywords))
    vid = Vid.parse(said.vid) if said.vid else None
    return arm_bundle(recording, created, citation, vid, as_printed=as_printed)

"""Areas of discipline dictionaries: missions (msn), processing (proc), display (disp), geometry (geom)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from transect.types.provenance import Provenance

from ..identifiers import Lid, Lidvid
from ..xml import LabelElement, ascii_text, group, leaf, nil
from .areas import LabelReference, short_text

MAX_PARAMETERS = 64
"""Largest number of parameters of a process in a label."""
ARRAY = "image"
"""What labels call the array of an image."""


@dataclass(frozen=True)
class Mission:
    """Which part of a mission a product belongs to; what is "" or None is not said."""

    phase: str = ""  # `SURFACE MISSION`
    product_type: str = ""
    clock: tuple[str, str] | None = None  # (str, str) start and stop of the spacecraft's clock
    partition: int | None = None  # of the clock, where `clock` has none
    sols: tuple[int, int | None] | None = None  # (int, int or None) first and last day of the surface mission

    def element(self) -> LabelElement | None:
        """Return its element in a label; None if nothing is known."""
        start, stop = self.clock or ("", "")
        first, last = self.sols or (None, None)
        surface = None
        if first is not None:
            numbers = (leaf("msn:start_sol_number", first), leaf("msn:stop_sol_number", last))
            surface = group("msn:Surface_Mission", numbers)
        found = group(
            "msn:Mission_Information", leaf("msn:mission_phase_name", ascii_text(self.phase)),
            leaf("msn:product_type_name", self.product_type), leaf("msn:spacecraft_clock_start", start),
            leaf("msn:spacecraft_clock_stop", stop), leaf("msn:spacecraft_clock_partition", self.partition),
            surface,
        )  # fmt: skip
        return found if found.content else None


def processing(
    provenance: Provenance, inputs: Iterable[Lid | Lidvid | str], identifier: str = "file"
) -> LabelElement | None:
    """Return what a product was made from, and by what; None if neither is known.

    Parameters
    ----------
    inputs : iterable of Lid, Lidvid or str
        Products, and texts for what is none.
    identifier : str
        What the label calls the file or object that was made.
    """
    listed = [_input(each) for each in inputs]
    name, _, version = provenance.tool.partition(" ")
    parameters = [
        group("proc:Parameter", leaf("proc:name", short_text(key)), leaf("proc:value", short_text(value)))
        for key, value in list(flat_parameters(provenance.parameters))[:MAX_PARAMETERS]
    ]
    program = group(
        "proc:Software_Program", leaf("proc:name", name),
        leaf("proc:description", short_text(provenance.command)),
        group("proc:Software_Program_Parameters", parameters) if parameters else None,
    )  # fmt: skip
    software = group(
        "proc:Software", leaf("proc:name", name), leaf("proc:software_version_id", version),
        program if parameters or provenance.command else None,
    )  # fmt: skip
    kept = _local(identifier, "processing_information_to_data_object")
    read = f"read as {provenance.format}" if provenance.format else ""
    process = group("proc:Process", leaf("proc:description", read), software if name else None)
    products = group("proc:Input_Product_List", listed) if listed else None
    known = [each for each in (products, process if process.content else None) if each is not None]
    return group("proc:Processing_Information", kept, known) if known else None


def flat_parameters(values: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    """Yield parameters by name, those inside others as `outer.inner`; long texts and lists are left out."""
    for key, value in sorted(values.items()):
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from flat_parameters(value, f"{name}.")  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(value, str | int | float) and 0 < len(str(value)) <= 255:
            yield name, str(value)


def _input(what: Lid | Lidvid | str) -> LabelElement:
    if isinstance(what, str):
        return group("proc:Input_Product", group("External_Reference", leaf("reference_text", what)))
    return group("proc:Input_Product", LabelReference(what, "data_to_input_product").element())


def _local(identifier: str, type: str) -> LabelElement:
    return group(
        "Local_Internal_Reference",
        leaf("local_identifier_reference", identifier),
        leaf("local_reference_type", type),
    )


def display(colour: bool, identifier: str = ARRAY, upward: bool = False) -> LabelElement:
    """Return how an image is shown: from left to right, and from top to bottom unless it is `upward`."""
    direction = group(
        "disp:Display_Direction", leaf("disp:horizontal_display_axis", "Sample"),
        leaf("disp:horizontal_display_direction", "Left to Right"),
        leaf("disp:vertical_display_axis", "Line"),
        leaf("disp:vertical_display_direction", "Bottom to Top" if upward else "Top to Bottom"),
    )  # fmt: skip
    channels = group(
        "disp:Color_Display_Settings", leaf("disp:color_display_axis", "Band"),
        leaf("disp:red_channel_band", 1), leaf("disp:green_channel_band", 2),
        leaf("disp:blue_channel_band", 3),
    )  # fmt: skip
    shown = _local(identifier, "display_settings_to_array")
    return group("disp:Display_Settings", shown, direction, channels if colour else None)


@dataclass(frozen=True)
class FrameDefinition:
    """Pose of a frame in another one."""

    name: str
    parent: str
    position: Sequence[float]  # metres, of its origin in `parent`
    quaternion: Sequence[float]  # x, y, z, w: takes vectors of the frame to `parent`


@dataclass(frozen=True)
class ArmState:
    """The joints of an arm at one time."""

    device: str
    angles: Sequence[tuple[str, float]]  # names and angles in radians


def geometry(
    frames: Sequence[FrameDefinition] = (), arms: Sequence[ArmState] = (), description: str = ""
) -> LabelElement | None:
    """Return poses of frames and joint angles of arms; None if nothing is known."""
    if not frames and not arms:
        return None
    spaces = (_space(frame, number) for number, frame in enumerate(frames, 1))
    lander = group(
        "geom:Geometry_Lander",
        leaf("geom:description", description),
        (_arm(arm) for arm in arms),
        spaces,
    )
    return group("geom:Geometry", lander)


def _space(frame: FrameDefinition, number: int) -> LabelElement:
    x, y, z = frame.position
    qx, qy, qz, qw = frame.quaternion
    origin = group(
        "geom:Vector_Origin_Offset", leaf("geom:x_position", _number(x), unit="m"),
        leaf("geom:y_position", _number(y), unit="m"), leaf("geom:z_position", _number(z), unit="m"),
    )  # fmt: skip
    turn = group(
        "geom:Quaternion_Plus_Direction", leaf("geom:qcos", _number(qw)), leaf("geom:qsin1", _number(qx)),
        leaf("geom:qsin2", _number(qy)), leaf("geom:qsin3", _number(qz)),
        leaf("geom:rotation_direction", "Present to Reference"),
    )  # fmt: skip
    return group(
        "geom:Coordinate_Space_Definition", leaf("local_identifier", f"frame_{number}"),
        group("geom:Coordinate_Space_Present", _index_frame(frame.name)), origin, turn,
        group("geom:Coordinate_Space_Reference", _index_frame(frame.parent)),
    )  # fmt: skip


def _index_frame(name: str) -> LabelElement:
    """Return a frame by its name; the dictionary's list of types has those of a few rovers only."""
    index = group("geom:Coordinate_Space_Index", leaf("geom:index_id", ascii_text(name)))
    return group(
        "geom:Coordinate_Space_Indexed", nil("geom:coordinate_space_frame_type", "inapplicable"), index
    )


def _arm(arm: ArmState) -> LabelElement:
    angles = (
        group(
            "geom:Device_Angle_Index", leaf("geom:index_id", ascii_text(name)),
            leaf("geom:index_value_angle", _number(angle), unit="rad"),
        )
        for name, angle in arm.angles
    )  # fmt: skip
    return group(
        "geom:Articulation_Device_Parameters",
        leaf("geom:device_name", ascii_text(arm.device)),
        group("geom:Device_Angle", angles),
    )


def _number(value: float) -> str:
    return repr(float(value))

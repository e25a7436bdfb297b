"""PairedTrajectories of one estimate with its reference: all metrics as one result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from transect._version import __version__
from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.errors import GeometryError, UsageError
from transect.geometry import se3
from transect.geometry.rotations import rotation_vector_from_matrix
from transect.recording.source import sha256_bytes
from transect.types import Provenance, SourceFile, Trajectory

from .association import MIN_MATCHED_RATIO, Pairing, Pairs, associate
from .body_frames import at_frame_of, refuse_swapped, turn_bodies
from .positions.paths import facts_of
from .result import Input, Result, dependence
from .trajectory_errors import (
    AbsoluteError,
    Align,
    Per,
    Statistics,
    absolute_error,
    matrices,
    relative_error,
    travelled_distance,
)

if TYPE_CHECKING:
    from .association import EstimatedOffset
    from .relative_motions import RelationErrors, Relations

Relation = Literal["ate", "rpe", "segments", "relations", "drift", "nees"]
ALL: tuple[Relation, ...] = ("ate", "rpe", "segments", "relations", "drift", "nees")
MAX_RELATION_DIFFERENCE_S = 0.5  # between the times of a relation and of poses, by default
DEFAULT_RELATIONS: tuple[Relation, ...] = ("ate", "rpe")


@dataclass(frozen=True)
class EvaluationSettings:
    """How to compare."""

    align: Align = "se3"
    # Metrics; those that cannot be computed are skipped, unless they were named one by one (`named`)
    relations: tuple[Relation, ...] = DEFAULT_RELATIONS
    named: bool = False
    step: float = 1.0  # of the relative errors
    per: Per = "frames"
    by: Pairing = "nearest"
    # Largest difference (s) of the stamps of a pair; None is 0.01, 1.5 periods of an interpolated reference,
    # and 0.5 for relations from a file
    max_diff: float | None = None
    least: float = MIN_MATCHED_RATIO
    offset: float | Literal["auto"] = 0.0  # seconds to add to the estimate's times
    truths: Relations | None = None  # true relative motions
    truths_file: SourceFile | None = None  # the file of these

    @property
    def between_relations(self) -> float:
        """Largest difference (s) between the times of a relation and of poses."""
        return MAX_RELATION_DIFFERENCE_S if self.max_diff is None else self.max_diff

    def with_relations(self, file: Path, *, alone: bool = False) -> EvaluationSettings:
        """Return this with true relative motions from a file; if `alone`, they are all that is compared."""
        from .relative_motions import read_relations

        content = file.read_bytes()
        source = SourceFile(str(file), len(content), sha256_bytes(content))
        relations: tuple[Relation, ...] = ("relations",) if alone else self.relations
        return replace(self, relations=relations, truths=read_relations(file), truths_file=source)


@dataclass(frozen=True, eq=False)
class PairedTrajectories:
    """Pairs and the absolute error, which all metrics use."""

    pairs: Pairs
    absolute: AbsoluteError
    asked: EvaluationSettings


Metric = tuple[dict[str, Any], dict[str, NDArray[Any]]]
"""Statistics, and arrays for figures."""


def evaluate(reference: Input, estimate: Input, asked: EvaluationSettings, command: str = "") -> Result:
    """Compare an estimate with its reference.

    Raises
    ------
    AssociationError, GeometryError, UsageError
        If they cannot be compared, or a relation that was named cannot be computed.
    """
    framed = at_frame_of(reference.trajectory, estimate.trajectory, reference.frames, estimate.frames)
    found, seconds = _offset(reference.trajectory, framed.estimate, asked)
    pairs = associate(
        reference.trajectory, framed.estimate, by=asked.by, max_diff=asked.max_diff, offset=seconds,
        least=asked.least,
    )  # fmt: skip
    if flat := [side.name for side in (reference, estimate) if side.flat]:
        pairs = _in_the_plane(pairs, f"{' and '.join(flat)} has no heights: compared in the plane")
    refuse_swapped(pairs)
    without_attitudes = _position_only(pairs)  # before attitudes that cannot be compared are removed
    pairs, note = turn_bodies(pairs, framed, asked.align)
    absolute = absolute_error(pairs, asked.align)  # raises if no error remains
    compared = PairedTrajectories(pairs, absolute, asked)
    metrics, arrays, left_out = _compute(compared)
    if not metrics:
        raise GeometryError("no error can be computed", why="; ".join(left_out))
    notes = [note, *dependence(reference, estimate), *([str(found)] if found else []), *pairs.notes]
    notes += [*reference.notes, *estimate.notes, *without_attitudes, *left_out]
    return Result(
        estimate.name,
        reference.name,
        metrics,
        {**_paths(compared), **arrays},
        {"mode": asked.align, "matrix": absolute.alignment, "scale": absolute.scale},
        _describe(pairs, asked, found),
        facts_of(reference.trajectory),
        tuple(dict.fromkeys(notes)),
        provenance_of((reference, estimate), asked, command),
    )


def judge_relations(
    estimate: Input, relations: Relations, asked: EvaluationSettings, command: str = ""
) -> Result:
    """Compare an estimate with true relative motions alone."""
    if asked.offset == "auto":
        raise UsageError("there is no reference to estimate an offset from", hint="--offset SECONDS")
    moved = replace(estimate.trajectory, t_ns=estimate.trajectory.t_ns + round(asked.offset * NS))
    from .relative_motions import relation_errors

    statistics, arrays = _relate(relation_errors(relations, moved, asked.between_relations))
    matched = statistics["count"]
    return Result(
        estimate.name,
        f"{len(relations)} relations",
        {"relations": statistics},
        arrays,
        {"mode": "none", "matrix": np.eye(4), "scale": 1.0},
        {"matched": matched, "candidates": len(relations), "by": "nearest", "offset_s": asked.offset},
        notes=estimate.notes,
        provenance=provenance_of((estimate,), asked, command),
    )


def report_failure(reference: Input | None, estimate: str, why: str, command: str = "") -> Result:
    """Return the result of an estimate that could not be compared: a tracking failure is also a result."""
    files = reference.files if reference else ()
    return Result(
        estimate,
        reference.name if reference else "",
        truth=facts_of(reference.trajectory) if reference else {},
        provenance=Provenance(files, f"transect {__version__}", command=command),
        failure=why,
    )


def provenance_of(inputs: tuple[Input, ...], settings: EvaluationSettings, command: str) -> Provenance:
    """Return the files with hashes, and all settings."""
    parameters = {key: value for key, value in vars(settings).items() if not key.startswith("truths")}
    given = (settings.truths_file,) if settings.truths_file else ()
    files = tuple(dict.fromkeys([*(file for each in inputs for file in each.files), *given]))
    return Provenance(files, f"transect {__version__}", "", command, parameters)


def _offset(
    reference: Trajectory, estimate: Trajectory, settings: EvaluationSettings
) -> tuple[EstimatedOffset | None, float]:
    if settings.offset != "auto":
        return None, settings.offset
    from .association import find_offset

    found = find_offset(reference, estimate)
    return found, found.seconds


def _in_the_plane(pairs: Pairs, note: str) -> Pairs:
    sides = {name: getattr(pairs, name) for name in ("reference", "estimate")}
    flat = {name: replace(side, positions=side.positions * (1.0, 1.0, 0.0)) for name, side in sides.items()}
    return replace(pairs, notes=(*pairs.notes, note), **flat)


def _compute(compared: PairedTrajectories) -> tuple[dict[str, Any], dict[str, NDArray[Any]], list[str]]:
    """Return statistics by relation, arrays, and the skipped metrics; those that were named must not fail."""
    metrics: dict[str, Any] = {}
    arrays: dict[str, NDArray[Any]] = {}
    left_out: list[str] = []
    for relation in compared.asked.relations:
        try:
            metrics[relation], more = METRICS[relation](compared)
        except (GeometryError, UsageError) as error:
            if compared.asked.named:
                raise
            left_out.append(f"{relation} left out: {error.what}")
            continue
        arrays |= {f"{relation}_{name}": values for name, values in more.items()}
    return metrics, arrays, left_out


def _paths(compared: PairedTrajectories) -> dict[str, NDArray[Any]]:
    reference = compared.pairs.reference
    return {
        "t_ns": reference.t_ns,
        "distance": travelled_distance(reference.positions),
        "reference": reference.positions,
        "aligned": compared.absolute.aligned,
    }


def _describe(pairs: Pairs, settings: EvaluationSettings, found: EstimatedOffset | None) -> dict[str, Any]:
    return {
        "matched": len(pairs),
        "candidates": pairs.candidates,
        "by": pairs.by,
        "max_diff_s": pairs.max_diff,
        "offset_s": pairs.offset_ns / NS,
        "offset_found": asdict(found) if found else None,
    }


def _position_only(pairs: Pairs) -> list[str]:
    lacking = [name for name in ("reference", "estimate") if getattr(pairs, name).orientations is None]
    if not lacking:
        return []
    return [f"the {' and the '.join(lacking)} has positions only: motions are compared in the aligned frame"]


# Metrics


def _ate(compared: PairedTrajectories) -> Metric:
    error = compared.absolute
    rotation = error.rotation
    statistics = {
        "translation": error.statistics.to_dict(),
        "rotation": Statistics.of(rotation).to_dict() if rotation is not None else None,
        "percent": error.percent,
        "path_m": error.path,
    }
    return statistics, {"translation": error.translation} | (
        {} if rotation is None else {"rotation": rotation}
    )


def _rpe(compared: PairedTrajectories) -> Metric:
    error = relative_error(_full(compared), compared.asked.step, compared.asked.per)
    has_turned = _has_attitudes(compared.pairs)
    statistics = {
        "step": error.step,
        "per": error.per,
        "translation": error.statistics.to_dict(),
        "rotation": error.rotation_statistics.to_dict() if has_turned else None,
    }
    arrays: dict[str, NDArray[Any]] = {"t_ns": error.t_ns, "translation": error.translation}
    return statistics, arrays | ({"rotation": error.rotation} if has_turned else {})


def _segments(compared: PairedTrajectories) -> Metric:
    from .relative_motions import segment_errors

    errors = segment_errors(_full(compared))
    has_turned = _has_attitudes(compared.pairs)
    by_length = [
        {
            "length_m": length,
            "percent": percent,
            "deg_per_m": rotation if has_turned else None,
            "count": count,
        }
        for length, (percent, rotation, count) in errors.by_length().items()
    ]
    statistics = {
        "percent": errors.percent,
        "deg_per_m": errors.degrees_per_metre if has_turned else None,
        "count": len(errors.length),
        "by_length": by_length,
    }
    return statistics, {"length": errors.length, "translation": errors.translation}


def _relations(compared: PairedTrajectories) -> Metric:
    """Relations from a file, else between the poses of the reference that are a step apart."""
    from .relative_motions import RelationErrors, relation_errors

    settings = compared.asked
    if settings.truths is not None:
        return _relate(relation_errors(settings.truths, compared.pairs.estimate, settings.between_relations))
    error = relative_error(_full(compared), settings.step, settings.per)
    statistics, arrays = _relate(RelationErrors(error.translation, error.rotation, 0))
    if not _has_attitudes(compared.pairs):
        statistics["rotation"], statistics["squared"]["rotation_rad2"] = None, None
        del arrays["rotation"]
    return statistics, arrays


def _relate(errors: RelationErrors) -> Metric:
    translation, rotation = errors.absolute
    squared = dict(zip(("translation_m2", "rotation_rad2"), errors.squared, strict=True))
    statistics = {
        "translation": translation.to_dict(),
        "rotation": rotation.to_dict(),
        "squared": squared,
        "count": len(errors.translation),
        "left_out": errors.left_out,
    }
    return statistics, {"translation": errors.translation, "rotation": errors.rotation}


def _drift(compared: PairedTrajectories) -> Metric:
    from .relative_motions import drift_curve

    curve = drift_curve(_full(compared))
    arrays = {"distance": curve.distance, "median": curve.median, "high": curve.high}
    return {"settled_percent": curve.settled}, arrays


def _nees(compared: PairedTrajectories) -> Metric:
    """Errors in the estimate's frame, to which the truth is aligned at the first pose (vins_eval #1)."""
    pairs = compared.pairs
    spread = pairs.estimate.covariances
    if spread is None:
        raise UsageError("NEES needs covariances, the estimate has none")
    errors = _errors_at_estimate(pairs, compared.absolute)
    known = np.isfinite(spread).all(axis=(1, 2)) & np.isfinite(errors).all(axis=1)
    if errors.shape[1] == 3 or not known.any():
        errors, spread = errors[:, :3], spread[:, :3, :3]
        known = np.isfinite(spread).all(axis=(1, 2))
    truth = pairs.reference.covariances
    if truth is not None and np.isfinite(truth[:, : errors.shape[1], : errors.shape[1]]).all():
        spread = spread + truth[:, : errors.shape[1], : errors.shape[1]]
    from .trajectory_errors import consistency

    found = consistency(errors[known], spread[known])
    statistics = {
        "mean": float(found.nees.mean()),
        "dimension": found.dimension,
        "normalised_mean": found.normalised_mean,
        "inside": found.inside,
        "bounds": found.bounds,
        "mean_bounds": found.mean_bounds,
        "count": int(known.sum()),
    }
    return statistics, {"values": found.nees, "t_ns": pairs.reference.t_ns[known]}


def _errors_at_estimate(pairs: Pairs, absolute: AbsoluteError) -> Floats:
    """Return (n, 6) translation (m) and rotation (rad) errors, or (n, 3) without attitudes."""
    estimate = pairs.estimate
    if not _has_attitudes(pairs):
        truth = se3.apply(np.linalg.inv(absolute.alignment), pairs.reference.positions)
        return estimate.positions - truth
    found, true = matrices(estimate), matrices(pairs.reference)
    if absolute.mode != "none":
        true = found[0] @ se3.invert(true[0]) @ true
    rotation_vectors = rotation_vector_from_matrix(found[:, :3, :3] @ true[:, :3, :3].transpose(0, 2, 1))
    return np.hstack([found[:, :3, 3] - true[:, :3, 3], rotation_vectors])


METRICS: Mapping[Relation, Callable[[PairedTrajectories], Metric]] = {
    "ate": _ate,
    "rpe": _rpe,
    "segments": _segments,
    "relations": _relations,
    "drift": _drift,
    "nees": _nees,
}


def _has_attitudes(pairs: Pairs) -> bool:
    return pairs.reference.orientations is not None and pairs.estimate.orientations is not None


def _full(compared: PairedTrajectories) -> Pairs:
    """Return pairs for relative errors: scaled as aligned, and without attitudes as displacements."""
    pairs, absolute = compared.pairs, compared.absolute
    if _has_attitudes(pairs):
        if absolute.scale == 1.0:
            return pairs
        scaled = replace(pairs.estimate, positions=absolute.scale * pairs.estimate.positions)
        return replace(pairs, estimate=scaled)
    upright = np.tile([0.0, 0.0, 0.0, 1.0], (len(pairs), 1))
    return replace(
        pairs,
        reference=replace(pairs.reference, orientations=upright),
        estimate=replace(pairs.estimate, positions=absolute.aligned, orientations=upright),
    )

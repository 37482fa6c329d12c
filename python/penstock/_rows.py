"""Rows that are selected, as the extension takes them."""

from __future__ import annotations

from typing import Any

from ._checks import MOST


def ranges_of(rows: Any, what: str = "rows are selected") -> list[tuple[int, int]] | None:
    """(first, count) of slices and ranges; None where it is something else."""
    parts = [rows] if isinstance(rows, (slice, range)) else rows if isinstance(rows, (list, tuple)) else []
    if not parts or not all(isinstance(part, (slice, range)) for part in parts):
        return None
    ranges = []
    for part in parts:
        bounds = part.start or 0, part.stop
        is_whole = all(hasattr(bound, "__index__") for bound in bounds)
        first, end = (bound.__index__() for bound in bounds) if is_whole else (1, 0)
        if part.step not in (None, 1) or not 0 <= first <= end <= MOST:
            raise ValueError(f"{what} from a first one up to a last one, both from 0 on, not by {part!r}")
        ranges.append((first, end - first))
    return ranges


def numbers_of(rows: Any) -> tuple[bytes, int | None]:
    """Numbers of rows, as the extension takes them, and of how many rows an array of bool tells."""
    import numpy

    array = numpy.asarray(rows)
    told = len(array) if array.dtype == bool and array.ndim == 1 else None
    if told is not None:
        array = numpy.flatnonzero(array)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu") or (array < 0).any():
        raise ValueError("rows are selected by slices, or by an array of one dimension of row numbers or of bool")
    return array.astype(numpy.uint64).tobytes(), told

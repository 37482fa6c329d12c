"""What an HDF5 file holds."""

from __future__ import annotations

import os
from dataclasses import dataclass

from . import _core
from ._checks import path as path_bytes
from ._interrupt import interruptible


@dataclass(frozen=True)
class Dataset:
    """One dataset, and how Penstock would read it."""

    path: str
    shape: tuple[int, ...]
    #: NumPy's code ("<f4"); None where it is no plain array of numbers, which type_text then names
    dtype: str | None
    type_text: str
    layout: str
    chunks: tuple[int, ...] | None
    filters: tuple[str, ...]
    stored_bytes: int
    #: "direct": on many threads, outside libhdf5; "staged": once through libhdf5; "locked": through libhdf5
    access: str
    reason: str
    missing_sources: tuple[str, ...]
    #: why it cannot be read; empty where it can
    unreadable: str


def inspect(path: str | os.PathLike[str]) -> list[Dataset]:
    """Every dataset of the file, by name. Raises DataError."""
    return [Dataset(**described) for described in interruptible(_core.inspect, path_bytes("the file", path))]

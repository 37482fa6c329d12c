"""What can go wrong. Wrong arguments are ValueError and TypeError, as everywhere in Python."""

from __future__ import annotations

from typing import Any


class PenstockError(Exception):
    """Base of what Penstock raises for work that failed. The message is one sentence: what, where, what would help."""


class DataError(PenstockError, OSError):
    """A file could not be opened, understood or read."""

    file: str = ""
    dataset: str = ""
    first_row: int = 0
    row_count: int = 0
    #: libhdf5's own messages, one a line
    hdf5: str = ""
    #: of an epoch that ended by it: the stage, the epoch and the rows it was at
    stage: str = ""
    epoch: int | None = None
    rows: str = ""

    def __reduce__(self) -> Any:
        return type(self), self.args, {**self.__dict__, "errno": self.errno}


class BudgetError(PenstockError, MemoryError):
    """A plan does not fit its budget; nothing was allocated. The message holds the itemised list of bytes."""

    #: bytes that were allowed, by the names of Loader's arguments
    limits: dict[str, int] = {}
    #: the smallest that would do
    smallest: dict[str, int] = {}


class DeviceError(PenstockError):
    """CUDA refused, or the device is not there."""

    stage: str = ""
    epoch: int | None = None
    rows: str = ""


class PipelineError(PenstockError):
    """What ended an epoch otherwise: batches that are held too long, for instance."""

    stage: str = ""
    epoch: int | None = None
    rows: str = ""


class GivenBackError(PenstockError):
    """A batch was used after its loop went on, or after release() or close()."""


class ClosedError(PenstockError):
    """A loader was used after close(), or closed while a loop was at work."""


class ForkError(PenstockError):
    """A loader was used in a child process that was forked from the one that made it; or one was made in a child that was
    forked from a process that had made loaders, closed or not, or had used CUDA; or anything was asked for in a child that
    was forked while Penstock was at work."""

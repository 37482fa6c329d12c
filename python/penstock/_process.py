"""Loaders and the processes that they live in: the interpreter's end, and children that were forked."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import weakref
from typing import TYPE_CHECKING, Any

from . import _core
from ._errors import DeviceError, ForkError
from ._interrupt import interruptible

if TYPE_CHECKING:
    from ._order import Order
    from ._run import Run
    from ._source import Source

_imported_by = os.getpid()
_live: weakref.WeakSet[Run] = weakref.WeakSet()


def stream_loader(source: Source, order: Order, options: dict[str, Any]) -> _core.StreamLoader:
    """What streams, built. Ctrl-C ends the wait for it, and it is closed as soon as it is there. Raises ForkError where a
    fork has made threads or CUDA unusable."""
    asked = (source._request(), list(source._maps), order._request(), options)
    try:
        # Functions of where() see signals by themselves, on the main thread.
        return _core.StreamLoader(*asked) if source._asks_python else interruptible(_core.StreamLoader, *asked)
    except DeviceError as e:
        if os.getpid() == _imported_by or "cudaErrorInitializationError" not in str(e):
            raise
        raise ForkError(
            f"this process was forked from process {_imported_by}, which had used CUDA; a forked child cannot use it. Make "
            "the loader in that process, where one reads on all processors, or start this one with 'spawn'"
        ) from e


def close_at_exit(run: Run) -> None:
    """Threads stop while there is a Python to stop them in."""
    _live.add(run)


def _close_all() -> None:
    try:
        for run in list(_live):
            run.core.close()  # which does nothing in a forked child
    except BaseException:  # Ctrl-C: a function of map(), or a read, does not end, and the interpreter cannot beside it
        try:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
        finally:
            os._exit(128 + signal.SIGINT)


atexit.register(_close_all)

"""Ctrl-C during work that looks at no signals."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Any, Callable, TypeVar

_T = TypeVar("_T")


def interruptible(work: Callable[..., _T], *arguments: Any) -> _T:
    """What `work` returns or raises, which leaves the GIL alone for long. Ctrl-C ends the wait for it at once: it goes on,
    unheard, on a thread of its own, which the interpreter's end waits for."""
    if threading.current_thread() is not threading.main_thread():
        return work(*arguments)  # signals go to the main thread
    done: Future[_T] = Future()
    threading.Thread(target=_run, args=(done, work, arguments), name="penstock").start()
    try:
        return done.result()
    finally:
        del done  # an exception's traceback holds this frame


def _run(done: Future[_T], work: Callable[..., _T], arguments: tuple[Any, ...]) -> None:
    try:
        done.set_result(work(*arguments))
    except BaseException as e:
        done.set_exception(e)

"""What stands behind a loader's loops: which batch comes next, and the one in hand."""

from __future__ import annotations

import gc
import os
import threading
from typing import TYPE_CHECKING, Any, Callable, Iterator, Optional, Tuple, TypeVar

from ._batch import Batch, stream_handle, torch_stream
from ._errors import DataError, DeviceError, PipelineError
from ._process import close_at_exit

if TYPE_CHECKING:
    from ._core import BatchHandle, StreamLoader

_T = TypeVar("_T")
_Taken = Tuple[int, Optional[Tuple[int, int]]]  # the batch's number in its epoch, and what _resume was before


class Run:
    """Takes batches of the core's for one loop at a time, and begins the core's run anew where a loop goes elsewhere."""

    def __init__(self, core: StreamLoader, alike: bool, device: tuple[int, int], stream: Any) -> None:
        """`alike`: epochs have the same rows, so that they follow each other without a gap, whatever their numbers."""
        self.core, self.alike, self.device = core, alike, device
        self._stream, self._stream_object = stream_handle(stream), stream  # which lives as long as the run may use it
        self.fields = {field["name"]: (field["dtype"], tuple(field["row_shape"])) for field in core.plan()["fields"]}
        self.batches: int = core.batches
        self.position = (0, 0)  # (epoch, batch) that comes next
        self._resume: tuple[int, int] | None = None  # where go_on_at() said, until that loop has a batch
        self._core_at: tuple[int, int] | None = None  # the core's next batch, by its own number of the epoch
        self._core_epoch = 0  # of the loop: alike ones go on under another number
        self._asked: dict[int, int] = {}  # by those numbers of the run: the epochs that loops asked for
        self._loop: object = None  # the loop that may take batches
        self._handle: BatchHandle | None = None  # the batch that was taken last
        self._turn = threading.RLock()  # one thread's loop at a time
        self._process = os.getpid()
        close_at_exit(self)

    def epoch(self, number: int) -> Epoch:
        """A loop over an epoch, or over what is left of it where go_on_at() said so."""
        saved = self._resume
        return Epoch(self, number, saved[1] if saved is not None and saved[0] == number else 0)

    def go_on_at(self, epoch: int, batch: int) -> None:
        """The next loop over that epoch begins there; a loop in progress ends."""
        self.core.refuse_caller()
        with self._turn:
            self._let_go()
            self._loop = None
            self.core.pause()
            self.position = self._resume = (epoch, batch)

    def take(self, loop: Epoch, taken: list[_Taken | None]) -> Batch:
        """The next batch of a loop, and in `taken` that it counts as taken. Raises StopIteration at its end."""
        self.core.refuse_caller()
        with self._turn:
            at = loop._first + loop._taken
            if self._loop is not loop._token:
                if loop._taken and at >= self.batches:  # it has ended before
                    raise StopIteration
                self._begin(loop)
            if at >= self.batches:
                self._let_go()  # while the streams that used it are there
                self.core.pause()
                raise StopIteration
            handle = self._handle = self._next(loop.number, at)
            batch = Batch(handle, self.fields, self.device, loop.number)
            is_last = at + 1 == self.batches
            self._core_at = (self._core_epoch + 1, 0) if is_last else (self._core_epoch, at + 1)
            after = (loop.number + 1, 0) if is_last else (loop.number, at + 1)
            before = (at, self._resume)
            resume = None if self._is_resumed_by(loop) else self._resume
            # The last of all, and at once: what Ctrl-C keeps from being handed out comes again, in a saved state too.
            self.position, self._resume, loop._taken, taken[0] = after, resume, loop._taken + 1, before
            return batch

    def take_back(self, loop: Epoch, taken: _Taken) -> None:
        """The batch that was taken last, by `loop`, has reached nobody: it comes again. Ctrl-C may end a call when the batch
        is taken, on its way out."""
        at, resume = taken
        with self._turn:
            if self._loop is loop._token and loop._first + loop._taken == at + 1:  # else other threads have gone on
                self.position, self._resume, loop._taken, self._core_at = (loop.number, at), resume, loop._taken - 1, None

    def leave(self, loop: Epoch) -> None:
        """Nobody has the loop any more. It waits for no turn: the garbage collector may call it on any thread."""
        if self._loop is loop._token:
            self.core.pause()

    def close(self) -> None:
        """Ends all loops, and gives back the batch that one which was left by `break` had in hand."""
        self.core.close()  # whoever waits for a batch lets go of the turn
        if os.getpid() == self._process:  # else a thread that is the parent's alone may have it
            with self._turn:
                self._let_go()

    def _begin(self, loop: Epoch) -> None:
        if loop._taken:
            raise PipelineError(f"the loop over epoch {loop.number} ended when another one was begun, or a state was loaded")
        self._let_go()
        start = (loop.number, loop._first)
        core_at = self._core_at
        if core_at is not None and (core_at == start or (self.alike and core_at[1] == start[1])):
            self._core_epoch = core_at[0]
        elif start[1] < self.batches:
            self._start(*start)
        self.position = start
        self._loop = loop._token

    def _is_resumed_by(self, loop: Epoch) -> bool:
        return self._resume is not None and self._resume[0] == loop.number

    def _next(self, epoch: int, at: int) -> BatchHandle:
        self._let_go()
        self._core_at = None  # until a batch is in hand: an error ends the run, and Ctrl-C may lose what was taken
        handle = self._of_core(epoch, at)
        if handle is None:
            self._start(epoch, at)
            handle = self._of_core(epoch, at)
        assert handle is not None
        return handle

    def _of_core(self, epoch: int, at: int) -> BatchHandle | None:
        try:
            return self._of_run(epoch, at)
        except (DataError, DeviceError, PipelineError) as e:
            # An error of a later epoch, read ahead, ends the run. Nobody has asked for that: this one goes on alone.
            if e.epoch is None or e.epoch <= epoch or not self._can_start(epoch, at, epochs=1):
                raise
        return self._of_run(epoch, at)

    def _of_run(self, epoch: int, at: int) -> BatchHandle | None:
        self._asked[self._core_epoch] = epoch
        try:
            return _patiently(self.core.next, self._core_epoch, at, epoch)
        except (DataError, DeviceError, PipelineError) as e:
            self._name_as_asked(e)
            raise

    def _name_as_asked(self, error: DataError | DeviceError | PipelineError) -> None:
        """Errors name epochs as their loops do: that of a batch which is still held, or one that was only read ahead."""
        core = error.epoch
        if core is None:
            return
        epoch = self._asked.get(core, self._asked[self._core_epoch] + core - self._core_epoch)
        error.epoch = epoch
        error.args = (str(error.args[0]).replace(f" of epoch {core}", f" of epoch {epoch}", 1),)

    def _can_start(self, epoch: int, batch: int, epochs: int) -> bool:
        try:
            self._start(epoch, batch, epochs)
        except PipelineError:  # arrays are in the way
            return False
        return True

    def _start(self, epoch: int, batch: int, epochs: int | None = None) -> None:
        """`epochs`: of the run; None: as many as loops may ask for."""
        before, self._core_at = self._core_at, None  # until the run has begun: Ctrl-C may end that
        stream = self._stream if self._stream is not None else torch_stream(self.device)
        try:
            _patiently(self.core.begin, epoch, batch, stream, epochs)
        except PipelineError as e:
            if e.stage == "consumer":
                e.epoch = epoch
                self._core_at = before  # arrays are in the way, and the run before can go on
            raise
        self._core_at, self._core_epoch, self._asked = (epoch, batch), epoch, {}

    def _let_go(self) -> None:
        if self._handle is not None:
            self._handle.release()
            self._handle = None


class Epoch(Iterator[Batch]):
    """The batches of one epoch. len() is the number of batches, so that progress bars know it."""

    def __init__(self, run: Run, number: int, first: int) -> None:
        self._run, self.number, self._first = run, number, first
        self._taken = 0
        self._token = object()

    def __iter__(self) -> Epoch:
        return self

    def __next__(self) -> Batch:
        taken: list[_Taken | None] = [None]
        try:
            return self._run.take(self, taken)
        except BaseException:
            if taken[0] is not None:
                self._run.take_back(self, taken[0])
            raise

    def __del__(self) -> None:
        run = getattr(self, "_run", None)
        if run is not None and run._loop is not None:
            run.leave(self)  # left by `break`, or by an error

    def __len__(self) -> int:
        return max(0, self._run.batches - self._first)

    def __reduce__(self) -> Any:
        raise refuse_to_send()

    def __repr__(self) -> str:
        return f"Epoch({self.number}: {len(self)} batches, {self._taken} taken)"


def refuse_to_send() -> TypeError:
    """What pickling says of loaders and of their loops."""
    return TypeError(
        "a penstock.Loader cannot be sent to another process: its memory and threads stay here. Worker processes "
        "are not needed; use the loader itself in place of a DataLoader"
    )


def _patiently(call: Callable[..., _T], *arguments: Any) -> _T:
    """Arrays in reference cycles (tracebacks, graphs) hold batches until they are collected."""
    try:
        return call(*arguments)
    except PipelineError as e:
        if e.stage != "consumer":
            raise
    gc.collect()
    return call(*arguments)

"""The loader: epochs of batches, resumed where they were."""

from __future__ import annotations

import atexit
import gc
import json
import os
import sys
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, Callable, Iterator, NamedTuple, TypeVar

from . import _core
from ._batch import Batch, stream_handle, torch_stream
from ._checks import finite, whole
from ._errors import DeviceError, ForkError, PipelineError
from ._order import ORDERS, Order, Sequential
from ._report import Plan, Report
from ._source import Source

if TYPE_CHECKING:
    from ._core import BatchHandle

_T = TypeVar("_T")
_live: weakref.WeakSet[Loader] = weakref.WeakSet()
_imported_by = os.getpid()
_MOST_EPOCHS = 2**62  # as of a state


class RowPlace(NamedTuple):
    """Where a row is stored."""

    file: str
    dataset: str
    row: int


class Loader:
    """Streams a source in batches, within budgets: all memory is planned first and allocated once.

    source          what to read
    batch_size      rows of a batch
    order           Sequential(), Shuffled(seed=...), Random(seed=...), Weighted(...) or Balanced(...)
    device          "cuda:0", "cuda" (the one with the most free memory), "host", "auto" (a GPU where there is one), or
                    a torch.device
    device_memory, pinned_memory, host_memory
                    budgets: bytes, or "512MiB"
    last            what becomes of rows that do not fill a batch: "keep" them as a short batch, "drop" them, or "pad"
                    the batch with zeros, and batch.mask says so
    held            batches whose arrays may be held beside the next one
    threads         blocks read and decoded at once; 0: the processors, less some for the consumer, or twice the
                    processors where uncompressed rows are read around the page cache
    block_bytes     stored bytes of a block, what is read and copied at once; 0: chosen
    stream          the CUDA stream that uses the batches; None: torch's current one where torch is imported, else one
                    of Penstock's (then use DLPack, which orders streams)
    rank, world_size
                    this process, of so many that share the rows of each epoch; None: those of torch.distributed, where
                    it is initialised. All get the same number of batches: last is then "drop" or "pad"
    shards          into how many parts the order is dealt, a multiple of world_size; None: world_size. Every world_size
                    that divides it sees the same rows in each step, where all ranks' batches together are of one size
    poisoned        for finding mistakes: rows that were given back are overwritten with bytes 0xff (NaN, -1)
    calibrate       blocks and slots are chosen by trying some, on these rows and within these budgets, before memory is
                    taken: True, for less than a second, or for how many seconds. plan() tells what was tried; functions of
                    map() are called for it
    trace           host memory for what each block goes through, as "8MiB", which write_trace() writes; 0: no trace

    Raises BudgetError (with the smallest budgets that would do), DataError, DeviceError, ValueError. One loop at a time;
    a batch belongs to whoever took it until anybody takes the next one. Worker processes are not needed: reading uses all
    processors without the GIL."""

    def __init__(
        self,
        source: Source,
        batch_size: int = 256,
        *,
        order: Order = Sequential(),
        device: Any = "auto",
        device_memory: int | str = "512MiB",
        pinned_memory: int | str = "256MiB",
        host_memory: int | str = "512MiB",
        last: str = "keep",
        held: int = 1,
        threads: int = 0,
        block_bytes: int | str = 0,
        stream: Any = None,
        rank: int | None = None,
        world_size: int | None = None,
        shards: int | None = None,
        poisoned: bool = False,
        calibrate: bool | float = False,
        trace: int | str = 0,
    ) -> None:
        if not isinstance(source, Source):
            raise TypeError(f"a loader reads a penstock.Source, not {type(source).__name__}")
        if not isinstance(order, ORDERS):
            raise TypeError(f"an order is one of {', '.join(kind.__name__ + '()' for kind in ORDERS)}, not {order!r}")
        if (rank is None) != (world_size is None):
            raise TypeError("rank and world_size are given together")
        if rank is None or world_size is None:
            rank, world_size = _distributed()
        options = {
            "batch_size": whole("batch_size", batch_size, 1),
            "last": str(last),
            "held": whole("held", held, 0),
            "threads": whole("threads", threads, 0),
            "block_bytes": _bytes("block_bytes", block_bytes),
            "device": str(device),
            "device_memory": _bytes("device_memory", device_memory),
            "pinned_memory": _bytes("pinned_memory", pinned_memory),
            "host_memory": _bytes("host_memory", host_memory),
            "rank": whole("rank", rank, 0),
            "world_size": whole("world_size", world_size, 1),
            "shards": whole("shards", world_size if shards is None else shards, 1),
            "poisoned": bool(poisoned),
            "calibrate": _seconds(calibrate),
            "trace": _bytes("trace", trace),
            "damaged": source._damaged,
        }
        self._core = _stream_loader(source, order, options)
        # Epochs that are alike follow each other without a gap, whatever their numbers; a mix goes on from one to the
        # next, and functions are told the number.
        self._alike = isinstance(order, Sequential) and not source._parts and not source._maps
        self._process = os.getpid()
        self._stream = stream_handle(stream)
        plan = self._core.plan()
        self._rows: int = plan["rows"]
        self._device_name: str = plan["device"]
        ordinal = self._device_name.partition(":")[2]
        self._device = (2, int(ordinal)) if ordinal else (1, 0)
        self._fields = {field["name"]: (field["dtype"], tuple(field["row_shape"])) for field in plan["fields"]}
        self._batches: int = self._core.batches
        self._position = (0, 0)  # (epoch, batch) that comes next
        self._resume: tuple[int, int] | None = None
        self._run_at: tuple[int, int] | None = None  # what the core's next batch is
        self._loop: object = None  # the loop that may take batches
        self._handle: BatchHandle | None = None  # the batch that was taken last
        self._clock = _Clock()
        self._turn = threading.RLock()  # one thread's loop at a time
        _live.add(self)

    def epoch(self, number: int) -> Epoch:
        """The batches of one epoch, to loop over once. Shuffled, each epoch has an order of its own. After
        load_state_dict() the saved epoch begins where it was left.

        While a loop works on its last batches, Penstock reads on into the next epoch: epochs in sequence follow each
        other without a gap."""
        number = whole("epoch", number, 0, _MOST_EPOCHS)
        first = 0
        if self._resume is not None and self._resume[0] == number:
            first = self._resume[1]
        return Epoch(self, number, first)

    def __iter__(self) -> Epoch:
        """The batches of `next_epoch`: each loop over the loader itself is another epoch, after load_state_dict() what is
        left of the saved one. A loop that was left by `break` begins its epoch again."""
        return self.epoch(self.next_epoch)

    def __len__(self) -> int:
        """Batches of an epoch."""
        return self._batches

    @property
    def rows(self) -> int:
        """Rows of an epoch, of this rank."""
        return self._rows

    @property
    def device(self) -> str:
        """Where batches are: "host" or "cuda:N"."""
        return self._device_name

    @property
    def fields(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Type and row shape of each field of a batch."""
        return dict(self._fields)

    @property
    def next_epoch(self) -> int:
        """The epoch of the batch that comes next: `for epoch in range(loader.next_epoch, 10)` begins or goes on."""
        return self._position[0]

    def plan(self) -> Plan:
        """What was chosen for the budgets, with the ledger of every byte."""
        return Plan(self._core.plan())

    def report(self) -> Report:
        """What was done since the loader was made, and what it waited for."""
        return Report(self._core.report(self._clock.seconds))

    def write_trace(self, path: str | os.PathLike[str]) -> int:
        """Writes what was traced as JSON that Perfetto (ui.perfetto.dev) and chrome://tracing open: a track for each thread,
        spans of reading, transforms, copies, gathers and waits. Returns how many spans had no room. The loader was made
        with trace="8MiB", or ValueError says so."""
        return self._core.write_trace(os.fsencode(path))

    def place_of(self, field: str, row: int) -> RowPlace:
        """The file, the dataset and the row in it where a row of the source is stored."""
        return RowPlace(*self._core.place_of(field, whole("row", row)))

    def state_dict(self) -> dict[str, Any]:
        """Where the loop is, with all that decides which rows follow: plain values, for torch.save() or JSON. The batch in
        hand counts as done."""
        state: dict[str, Any] = json.loads(self._core.state(*self._position))
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on where `state` was taken: the next loop over that epoch sees the batches that were left, the same
        rows; a loop in progress ends. Budgets, threads, devices and the files' folder may differ. Raises ValueError that
        names both sides where another source, order or batch size would make them others."""
        if not isinstance(state, dict) or "penstock_state" not in state:
            raise ValueError("this is not the state of a loader; give what state_dict() returned")
        epoch, batch = self._core.resume_at(json.dumps(state))
        at = (epoch + 1, 0) if 0 < self._batches == batch else (epoch, batch)  # C++ may say the end of an epoch
        self._core.refuse_caller()
        with self._turn:
            self._let_go()
            self._loop = None
            self._position = self._resume = at

    def close(self) -> None:
        """Stops reading and frees what no array holds. Loops in progress end with ClosedError."""
        self._core.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError(
            "a penstock.Loader cannot be sent to another process: its memory and threads stay here. Worker processes "
            "are not needed; use the loader itself in place of a DataLoader"
        )

    def __repr__(self) -> str:
        return f"Loader({self._rows} rows, {self._batches} batches an epoch, {self._device_name})"

    # --- for Epoch

    def _take(self, loop: Epoch) -> Batch:
        self._core.refuse_caller()
        with self._turn:
            return self._take_next(loop)

    def _take_next(self, loop: Epoch) -> Batch:
        if self._loop is not loop._token:
            if loop._taken:
                why = "another one was begun, or a state was loaded"
                raise PipelineError(f"the loop over epoch {loop.number} ended when {why}")
            self._begin(loop)
        self._clock.tick()
        at = loop._first + loop._taken
        if at >= self._batches:
            raise StopIteration
        self._let_go()
        self._run_at = None  # until a batch is in hand: an error ends the run, and Ctrl-C may lose what was taken
        help = "Arrays hold it: copy what is needed later (x.clone()), or make the loader with a larger `held`"
        handle = _patiently(self._core.next, help)
        if handle is None or handle.index != at:
            handle = None
            self._start_run(loop.number, at)
            handle = _patiently(self._core.next, help)
        assert handle is not None
        self._clock.tick()
        self._handle = handle
        loop._taken += 1
        self._position = self._run_at = (loop.number, at + 1) if at + 1 < self._batches else (loop.number + 1, 0)
        return Batch(handle, self._fields, self._device, loop.number)

    def _begin(self, loop: Epoch) -> None:
        self._clock.start()
        self._let_go()
        start = (loop.number, loop._first)
        run_at = self._run_at
        goes_on = run_at is not None and (run_at == start or (self._alike and run_at[1] == start[1]))
        if not goes_on and start[1] < self._batches:
            self._run_at = None  # until the run has begun: Ctrl-C may end that
            self._start_run(*start)
        self._run_at = self._position = start
        if self._resume is not None and self._resume[0] == loop.number:
            self._resume = None
        self._loop = loop._token

    def _start_run(self, epoch: int, batch: int) -> None:
        stream = self._stream if self._stream is not None else torch_stream(self._device)
        help = "Arrays hold them: delete those (del x), or copy what is needed later"
        _patiently(lambda: self._core.begin(epoch, batch, stream), help)

    def _let_go(self) -> None:
        if self._handle is not None:
            self._handle.release()
            self._handle = None


class Epoch(Iterator[Batch]):
    """The batches of one epoch. len() is the number of batches, so that progress bars know it."""

    def __init__(self, loader: Loader, number: int, first: int) -> None:
        self._loader, self.number, self._first = loader, number, first
        self._taken = 0
        self._token = object()

    def __iter__(self) -> Epoch:
        return self

    def __next__(self) -> Batch:
        return self._loader._take(self)

    def __len__(self) -> int:
        return max(0, len(self._loader) - self._first)

    def __repr__(self) -> str:
        return f"Epoch({self.number}: {len(self)} batches, {self._taken} taken)"


class _Clock:
    """Seconds from start() to the last tick(), summed. A loop that is left costs nothing, and there is nothing to tell."""

    def __init__(self) -> None:
        self.seconds, self._mark = 0.0, 0.0

    def start(self) -> None:
        self._mark = time.perf_counter()

    def tick(self) -> None:
        now = time.perf_counter()
        self.seconds, self._mark = self.seconds + now - self._mark, now


def _patiently(call: Callable[[], _T], help: str) -> _T:
    """Arrays in reference cycles (tracebacks, graphs) hold batches until they are collected. `help` is what to do about
    others."""
    try:
        return call()
    except PipelineError as e:
        if e.stage != "consumer":
            raise
    gc.collect()
    try:
        return call()
    except PipelineError as e:
        if e.stage == "consumer":
            e.args = (f"{e}. {help}",)
        raise


def _stream_loader(source: Source, order: Order, options: dict[str, Any]) -> _core.StreamLoader:
    try:
        return _core.StreamLoader(source.request(), list(source._maps), order.request(), options)
    except DeviceError as e:
        if os.getpid() == _imported_by or "cudaErrorInitializationError" not in str(e):
            raise
        raise ForkError(
            f"this process was forked from process {_imported_by}, which had used CUDA; a forked child cannot use it. Make "
            "the loader in that process, where one reads on all processors, or start this one with 'spawn'"
        ) from e


def _bytes(name: str, value: Any) -> int:
    return _core.parse_bytes(value) if isinstance(value, str) else whole(name, value)


def _seconds(calibrate: bool | float) -> float:
    if isinstance(calibrate, bool):
        return 0.8 if calibrate else 0.0
    seconds = finite("calibrate", calibrate)
    if seconds <= 0:
        raise ValueError(f"calibrate is True, False or for how many seconds, not {seconds}")
    return seconds


def _distributed() -> tuple[int, int]:
    """Rank and world size of torch.distributed; (0, 1) where it is not used."""
    torch = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return 0, 1
    return distributed.get_rank(), distributed.get_world_size()


def _close_all() -> None:
    """At the interpreter's end: threads stop while there is a Python to stop them in."""
    for loader in list(_live):
        if loader._process == os.getpid():
            loader.close()


atexit.register(_close_all)

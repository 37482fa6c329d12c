"""The loader: epochs of batches, resumed where they were."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple, NoReturn, SupportsFloat, SupportsIndex

from . import _core
from ._checks import path as path_bytes
from ._checks import positive, text, whole
from ._options import byte_count, device_name, seconds_of, share_of
from ._order import ORDERS, Order, Sequential
from ._process import stream_loader
from ._report import Plan, Report
from ._run import Epoch, Run, refuse_to_send
from ._source import Source

_MOST_EPOCHS = 2**62 - 1  # so that the state after it is one, too


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
    device          "cuda:0", "cuda" (torch's current one, or else the one with the most free memory), "host", "auto" (as
                    "cuda" where there is a GPU), or a torch.device
    device_memory, pinned_memory, host_memory
                    budgets: bytes, or "512MiB"
    last            what becomes of rows that do not fill a batch: "keep" them as a short batch, "drop" them, or "pad"
                    the batch with zeros, and batch.mask says so
    held            batches whose arrays may be held beside the next one
    threads         blocks read and decoded at once; 0: the processors, less some for the consumer, or twice the
                    processors where uncompressed rows are read around the page cache
    block_bytes     stored bytes of a block, what is read and copied at once; 0: chosen
    slots           blocks in host memory at once, read or on their way to the device; 0: chosen for the budgets
    stream          the CUDA stream that uses the batches; None: torch's current one where torch is imported, else one
                    of Penstock's (then use DLPack, which orders streams). An object of torch's or CuPy's is kept; of a
                    number, and of torch's current one, the stream lives until a loop begins elsewhere (another run of
                    the loader's, on what is current then), or the loader is closed
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
    a batch belongs to whoever took it until anybody takes the next one, or the loop ends. Worker processes are not needed:
    reading uses all processors without the GIL."""

    def __init__(
        self,
        source: Source,
        batch_size: SupportsIndex = 256,
        *,
        order: Order = Sequential(),
        device: Any = "auto",
        device_memory: SupportsIndex | str = "512MiB",
        pinned_memory: SupportsIndex | str = "256MiB",
        host_memory: SupportsIndex | str = "512MiB",
        last: str = "keep",
        held: SupportsIndex = 1,
        threads: SupportsIndex = 0,
        block_bytes: SupportsIndex | str = 0,
        slots: SupportsIndex = 0,
        stream: Any = None,
        rank: SupportsIndex | None = None,
        world_size: SupportsIndex | None = None,
        shards: SupportsIndex | None = None,
        poisoned: bool = False,
        calibrate: bool | SupportsFloat = False,
        trace: SupportsIndex | str = 0,
    ) -> None:
        if not isinstance(source, Source):
            raise TypeError(f"a loader reads a penstock.Source, not {type(source).__name__}")
        if not isinstance(order, ORDERS):
            raise TypeError(f"an order is one of {', '.join(kind.__name__ + '()' for kind in ORDERS)}, not {order!r}")
        options = {
            "batch_size": whole("batch_size", batch_size, 1),
            "last": text("last", last),
            "held": whole("held", held, 0),
            "threads": whole("threads", threads, 0),
            "block_bytes": byte_count("block_bytes", block_bytes),
            "slots": whole("slots", slots, 0),
            "device": device_name(device),
            "device_memory": byte_count("device_memory", device_memory),
            "pinned_memory": byte_count("pinned_memory", pinned_memory),
            "host_memory": byte_count("host_memory", host_memory),
            **share_of(rank, world_size, shards),
            "poisoned": bool(poisoned),
            "calibrate": seconds_of(calibrate),
            "trace": byte_count("trace", trace),
            "damaged": source._damaged,
        }
        self._core = stream_loader(source, order, options)
        _refuse_cut_values(source, self._core)
        plan = self._core.plan()
        self._rows: int = plan["rows"]
        self._device: str = plan["device"]
        ordinal = self._device.partition(":")[2]
        # A mix goes on from one epoch to the next, and functions are told the number.
        alike = isinstance(order, Sequential) and not source._parts and not source._maps
        self._run = Run(self._core, alike, (2, int(ordinal)) if ordinal else (1, 0), stream)

    def epoch(self, number: SupportsIndex) -> Epoch:
        """The batches of one epoch, to loop over once. Shuffled, each epoch has an order of its own. After
        load_state_dict() the saved epoch begins where it was left.

        While a loop works on its last batches, Penstock reads on into the next epoch: epochs in sequence follow each
        other without a gap."""
        return self._run.epoch(whole("epoch", number, 0, _MOST_EPOCHS))

    def __iter__(self) -> Epoch:
        """The batches of `next_epoch`: each loop over the loader itself is another epoch, after load_state_dict() what is
        left of the saved one. A loop that was left by `break` begins its epoch again."""
        return self.epoch(self.next_epoch)

    def __len__(self) -> int:
        """Batches of an epoch."""
        return self._run.batches

    @property
    def rows(self) -> int:
        """Rows of an epoch, of this rank."""
        return self._rows

    @property
    def device(self) -> str:
        """Where batches are: "host" or "cuda:N"."""
        return self._device

    @property
    def fields(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Type and row shape of each field of a batch."""
        return dict(self._run.fields)

    @property
    def next_epoch(self) -> int:
        """The epoch of the batch that comes next: `for epoch in range(loader.next_epoch, 10)` begins or goes on."""
        return self._run.position[0]

    def plan(self) -> Plan:
        """What was chosen for the budgets, with the ledger of every byte. Can be asked for after close(), too."""
        return Plan(self._core.plan())

    def report(
        self, *, link_bytes_per_second: SupportsFloat | None = None, storage_bytes_per_second: SupportsFloat | None = None
    ) -> Report:
        """What was done since the loader was made, and what it waited for; after close(), what it was then. Beside what the
        link to the device and the storage of the files carry at best, where they were measured (penstock-throughput and
        benchmark/train_speed.py do that): shares of it are told then."""
        names = ("link_bytes_per_second", "storage_bytes_per_second")
        limits = [
            None if rate is None else positive(name, rate)
            for name, rate in zip(names, (link_bytes_per_second, storage_bytes_per_second))
        ]
        return Report(self._core.report(*limits))

    def write_trace(self, path: str | os.PathLike[str]) -> int:
        """Writes what was traced as JSON that Perfetto (ui.perfetto.dev) and chrome://tracing open: a track for each thread,
        spans of reading, transforms, copies, gathers and waits. Returns how many spans had no room. The loader was made
        with trace="8MiB", or ValueError says so."""
        return self._core.write_trace(path_bytes("the trace's file", path))

    def place_of(self, field: str, row: SupportsIndex) -> RowPlace:
        """The file, the dataset and the row in it where a row of the source is stored."""
        return RowPlace(*self._core.place_of(text("field", field), whole("row", row)))

    def class_names(self, field: str) -> tuple[str, ...]:
        """What the numbers of a field of texts of variable length stand for: the texts of all its files, sorted, whichever
        rows take part; number n is text n. They are those of this source: another one, as that of a test set, has a list and
        numbers of its own. Empty for other types. Not after close(). Raises ValueError for a field that there is not."""
        if text("field", field) not in self._run.fields:
            raise ValueError(f"the source has no field '{field}'; it has {', '.join(self._run.fields)}")
        return tuple(self._core.class_names(field))

    def state_dict(self) -> dict[str, Any]:
        """Where the loop is, with all that decides which rows follow: plain values, for torch.save() or JSON. The batch in
        hand counts as done."""
        state: dict[str, Any] = json.loads(self._core.state(*self._run.position))
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on where `state` was taken: the next loop over that epoch sees the batches that were left, the same
        rows; a loop in progress ends. Budgets, threads, devices and the files' folder may differ. Raises ValueError that
        names both sides where another source, order or batch size would make them others."""
        epoch, batch = self._core.resume_at(_json_of(state))
        at = (epoch + 1, 0) if 0 < len(self) == batch else (epoch, batch)  # C++ may say the end of an epoch
        self._run.go_on_at(*at)

    def close(self) -> None:
        """Stops reading and frees what no array holds: the last batch of a loop is given back, one's that was left by `break`,
        too. Loops in progress end with ClosedError. plan() and report() say what
        they said before. A signal handler that runs while its thread waits for a batch of this loader cannot close it, and
        gets PenstockError: let it raise an exception. Ctrl-C ends the wait for functions of map() and for reads; closing goes
        on by itself then."""
        self._run.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise refuse_to_send()

    def __getitem__(self, _: Any) -> NoReturn:
        raise TypeError(
            "a penstock.Loader is no Dataset: it makes the batches itself, in place of a DataLoader: `for batch in "
            "loader.epoch(number)`"
        )

    def __repr__(self) -> str:
        return f"Loader({self._rows} rows, {len(self)} batches an epoch, {self._device})"


def _json_of(state: Any) -> str:
    try:
        if isinstance(state, dict) and "penstock_state" in state:
            return json.dumps(state, default=lambda value: value.__index__())  # NumPy's and torch's numbers
    except (AttributeError, TypeError, ValueError):
        pass
    raise ValueError("this is not the state of a loader; give what state_dict() returned")


def _refuse_cut_values(source: Source, core: _core.StreamLoader) -> None:
    """Fractions of whole numbers are cut where the type stays as stored, which nobody wants without saying so."""
    for field in core.plan()["fields"]:
        if field["name"] in source._fractional and "int" in field["dtype"]:
            core.close()
            raise ValueError(
                f"the scaled values of field '{field['name']}' would be cut to {field['dtype']}, its type; say another one: "
                f"source.astype({field['name']}='float32')"
            )

"""Plans and reports: text for people, dicts for programs."""

from __future__ import annotations

import copy
from typing import Any, SupportsIndex

from . import _core
from ._checks import text, whole
from ._interrupt import interruptible
from ._order import ORDERS, Order
from ._source import Source


class _Described:
    __slots__ = ("_values", "_text")

    def __init__(self, values: dict[str, Any]) -> None:
        self._text: str = values.pop("text")
        self._values = values

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return copy.deepcopy(self._values)

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__


class Plan(_Described):
    """What was chosen before anything was allocated: sizes, threads, each field's way of reading, and the ledger of
    every byte."""

    __slots__ = ()


class Report(_Described):
    """What a loader did, and what it waited for. Seconds and rates are those of the loops over its epochs: between them
    the clocks stand still, until a loop asks for its next batch."""

    __slots__ = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON.

        | key | what it holds |
        |---|---|
        | epochs, batches, rows | that loops took |
        | bytes | stored bytes of those rows |
        | failures | errors that ended runs |
        | seconds | of the loops |
        | first_batch_seconds | from asking for the first batch of the last run until it was there |
        | stages | a list: name; blocks, bytes that it worked on, those read ahead too; bytes_per_second, over `seconds`; busy_seconds and wait_seconds, summed over workers; waits, seconds by what was waited for; waited_for, most of them; workers, blocks that it can work on at once; mean_at_work, blocks that it worked on at once; mean_queue and most_queue, blocks that waited in front of it |
        | reading | stored_bytes read and decoded_bytes put out by decoders, of all fields; read_seconds, decode_seconds, library_seconds (in libhdf5), summed over threads |
        | readers | blocks read at once: now, first, most; as_asked_for (threads=); measured, a list of what numbers of readers gave in bytes_per_second |
        | consumer_waits | seconds that loops waited, by cause; they add up to consumer_wait_seconds |
        | device_stalled_seconds | that the stream waited on the device for rows, estimated; None on the host. Of device_waits waits, device_wait_samples were timed |
        | slots | planned (0: blocks land where they are used); mean_slots_in_use, most_slots_in_use |
        | memory | a list: what, planned_bytes, peak_bytes (most in use at once), cut_short (a larger budget would give more) |
        | device_bytes, pinned_bytes, host_bytes | planned, and allocated before the first batch |
        | fields | sentences: how each field is read, and why |
        | choices | sentences: block, slots and readers, and why so many |
        | damaged_row_count | rows that were left out |
        | damaged | a list of where they are: field; first, count, rows of the source; file, dataset, first_stored, the row in it; why |
        | link_share, storage_share | of the rates that report() was given; None without them |
        | bottleneck | a sentence |
        """
        return super().as_dict()


class Price(_Described):
    """What an order costs, and what it gives for that: bytes of its pool and its tables, bytes read for each byte that is
    used, and how well batches mix classes (0: each is of one class; 1: as a uniform shuffle mixes them) and sources."""

    __slots__ = ()

    @property
    def pool_bytes(self) -> int:
        """Of device memory: the rows that rows are drawn from."""
        return int(self._values["pool_bytes"])

    @property
    def table_bytes(self) -> int:
        """Of host memory: rows that take part, weights, classes."""
        return int(self._values["table_bytes"])

    @property
    def read_amplification(self) -> float:
        """Bytes read or decoded for each byte that is used, at most: rows of a block that share a chunk share its decoding."""
        return float(self._values["read_amplification"])

    @property
    def mixing(self) -> float | None:
        """None where no field of classes was named."""
        mixing: float | None = self._values["mixing"]
        return mixing

    @property
    def batches_of_one_source(self) -> float | None:
        """The share of batches whose rows are all of one of the sources that are mixed; None where there are no several."""
        share: float | None = self._values["batches_of_one_source"]
        return share


def price(source: Source, order: Order, batch_size: SupportsIndex = 256, *, classes: str | None = None) -> Price:
    """What an order costs before it runs. `classes`: a field whose mixing in batches of `batch_size` rows is looked at;
    it is read for that. Raises DataError, ValueError."""
    if not isinstance(source, Source):
        raise TypeError(f"what is read is a penstock.Source, not {type(source).__name__}")
    if not isinstance(order, ORDERS):
        raise TypeError(f"an order is one of {', '.join(kind.__name__ + '()' for kind in ORDERS)}, not {order!r}")
    rows = whole("batch_size", batch_size, 1)
    asked = (source._request(), order._request(), rows, text("classes", classes or "").encode())
    # Functions of where() see signals by themselves, on the main thread.
    return Price(_core.price(*asked) if source._asks_python else interruptible(_core.price, *asked))

"""Batches and their fields. No value is copied on the way to another library."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any, Callable, Iterator

from ._checks import text, whole

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ._core import BatchHandle

_CPU, _CUDA = 1, 2  # DLPack's device types
_NEW_IN_TORCH = ("uint16", "uint32", "uint64")


def stream_handle(stream: Any) -> int | None:
    """CUDA's handle of a stream: an int, or an object of torch, CuPy or any library with __cuda_stream__."""
    if stream is None:
        return None
    if isinstance(stream, int) and not isinstance(stream, bool):
        return whole("stream", stream)
    protocol: Any = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return int((protocol() if callable(protocol) else protocol)[1])
    for attribute in ("cuda_stream", "ptr", "handle"):
        if hasattr(stream, attribute):
            return int(getattr(stream, attribute))
    raise TypeError(f"a stream is a number or a stream of torch or CuPy, not {stream!r}")


def torch_stream(device: tuple[int, int]) -> int | None:
    """The handle of torch's current stream, where a torch with CUDA is imported and the device is CUDA's."""
    if device[0] != _CUDA or "torch" not in sys.modules:
        return None
    return _stream_lookup(device[1])(device[1])


@functools.lru_cache(maxsize=None)
def _stream_lookup(ordinal: int) -> Callable[[int], int | None]:
    """What gives the handle of torch's current stream on a device: with each field of each batch, so that the short way
    is taken where this torch has it. torch.cuda.current_stream() makes an object, which costs more than the batch."""
    torch = sys.modules["torch"]
    if not torch.cuda.is_available():  # one for the CPU alone, beside JAX or CuPy on the GPU
        return lambda _: None
    torch.cuda.current_stream(ordinal)  # initialises torch's CUDA
    short: Callable[[int], int] | None = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return short or (lambda number: int(torch.cuda.current_stream(number).cuda_stream))


@functools.lru_cache(maxsize=None)
def _torch_from_dlpack() -> Callable[[Any], Any]:
    import torch

    take: Callable[[Any], Any] = torch.utils.dlpack.from_dlpack
    return take


def _refuse_to_send(what: str) -> TypeError:
    return TypeError(
        f"{what} are lent in this process, and cannot be pickled; send a copy: batch.torch(name).clone(), "
        "batch.numpy(name).copy()"
    )


class Field:
    """One field of a batch. A DLPack tensor: np.from_dlpack(field), torch.from_dlpack(field) and the like take it."""

    __slots__ = ("_handle", "_name", "_key", "_dtype", "_shape", "_device")

    def __init__(
        self, handle: BatchHandle, name: str, dtype: str, shape: tuple[int, ...], device: tuple[int, int], key: str | None
    ) -> None:
        self._handle, self._name, self._dtype, self._shape, self._device = handle, name, dtype, shape, device
        self._key = key

    @property
    def name(self) -> str:
        """The field's name in the source."""
        return self._name

    @property
    def dtype(self) -> str:
        """The type's name: "float32", "bfloat16"."""
        return self._dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows of the batch, then the shape of a row."""
        return self._shape

    @property
    def device(self) -> str:
        """"cpu" or "cuda:N"."""
        return "cpu" if self._device[0] == _CPU else f"cuda:{self._device[1]}"

    def __len__(self) -> int:
        return self._shape[0]

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule. `stream` as the array API has it for CUDA: None and 1 the legacy default stream, 2 the per-thread
        one (arrays for it are deleted, and the batch is given back, on this thread), -1 no ordering (the consumer waits
        for the batch's stream by itself), else a handle."""
        return self._lend(self._handle.capsule, stream, max_version, dl_device, copy)

    def _lend(
        self,
        made: Callable[[str | None, int | None, bool], Any],
        stream: int | None,
        max_version: tuple[int, int] | None,
        dl_device: tuple[int, int] | None,
        copy: bool | None,
    ) -> Any:
        if max_version is not None and not (isinstance(max_version, tuple) and len(max_version) == 2):
            raise TypeError(f"max_version is (major, minor) of DLPack, not {max_version!r}")
        if copy:
            raise BufferError("Penstock lends rows without a copy; copy them with the library that takes them")
        if dl_device is not None and tuple(dl_device) != self._device:
            raise BufferError(f"the rows are on {self.device}; copy them with the library that takes them")
        consumer = None
        if self._device[0] == _CUDA:
            if stream == 0:
                raise ValueError("stream 0 is ambiguous: 1 is the legacy default stream, 2 the per-thread one")
            consumer = 1 if stream is None else None if stream == -1 else stream_handle(stream)
        elif stream not in (None, -1):
            raise ValueError(f"rows on the host have no stream, and {stream!r} was given")
        return made(self._key, consumer, max_version is not None and max_version[0] >= 1)

    def numpy(self) -> np.ndarray[Any, Any]:
        """A NumPy array of these rows, on the host. It keeps the batch held as long as it lives."""
        import numpy

        if self._device[0] != _CPU:
            raise TypeError(f"field '{self._name}' is on {self.device}; NumPy reads host memory: torch(name).cpu() copies it")
        if self._dtype == "bfloat16":
            raise TypeError(f"NumPy has no bfloat16, the type of field '{self._name}'; read it as float32")
        return numpy.from_dlpack(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError(f"field '{self._name}' is {self._dtype}; another type takes a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    def torch(self) -> Any:
        """A torch.Tensor of these rows, for work on torch's current stream. It keeps the batch held. Raises TypeError
        where this torch lacks the type (uint16, uint32 and uint64 came with 2.3)."""
        take = _torch_from_dlpack()  # before the stream is asked for: it imports torch
        capsule = self._handle.capsule(self._key, torch_stream(self._device), False)
        try:
            return take(capsule)
        except (RuntimeError, BufferError) as e:
            if self._dtype not in _NEW_IN_TORCH:
                raise
            raise TypeError(
                f"this torch has no {self._dtype}, the type of field '{self._name}'; read it as another one: "
                f"source.astype({self._name}='int64' or 'float32')"
            ) from e

    def jax(self) -> Any:
        """A jax.Array of these rows. A copy of them where their address does not suit JAX: on a GPU one that is no multiple
        of 16 bytes, as that of every other batch of 50 rows of int32."""
        import jax.dlpack

        if self._device[0] == _CPU or not (before := self._handle.elements_before(self._key)):
            return jax.dlpack.from_dlpack(self)  # on the host JAX copies by itself
        return _cut(jax.dlpack.from_dlpack(_Flat(self)), before, self._shape)

    def cupy(self) -> Any:
        """A cupy.ndarray of these rows, for work on CuPy's current stream."""
        import cupy

        return cupy.from_dlpack(self)

    def __reduce__(self) -> Any:
        raise _refuse_to_send("a field's rows")

    def __repr__(self) -> str:
        return f"Field('{self._name}', {self._dtype}, {self._shape}, {self.device})"


class _Flat:
    """A field's rows as XLA's programs for GPUs take them, with elements before them: BatchHandle.flat_capsule()."""

    __slots__ = ("_field",)

    def __init__(self, field: Field) -> None:
        self._field = field

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._field._device

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        return self._field._lend(self._field._handle.flat_capsule, stream, max_version, dl_device, copy)


def _cut(flat: Any, before: int, shape: tuple[int, ...]) -> Any:
    """The rows of a flat array, copied on its device."""
    return flat[before:].reshape(shape)


class Batch:
    """The rows that one step sees: batch["image"], batch.torch("image"), batch.numpy("label").

    A batch is given back when its loop takes the next one. Arrays made from it stay valid as long as they live; they
    keep their rows held, of which a loader has a planned number (Loader's `held`)."""

    __slots__ = ("_handle", "_fields", "_device", "epoch")

    def __init__(
        self, handle: BatchHandle, fields: dict[str, tuple[str, tuple[int, ...]]], device: tuple[int, int], epoch: int
    ) -> None:
        self._handle, self._fields, self._device = handle, fields, device
        self.epoch = epoch

    @property
    def index(self) -> int:
        """Number of this batch in its epoch."""
        return self._handle.index

    @property
    def rows(self) -> int:
        """Rows in memory, padding included."""
        return self._handle.rows

    @property
    def valid_rows(self) -> int:
        """Rows of the source; the rest are zeros (last="pad")."""
        return self._handle.valid_rows

    def __len__(self) -> int:
        return self._handle.rows

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields' names."""
        return tuple(self._fields)

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def keys(self) -> tuple[str, ...]:
        """The fields' names: dict(batch) and {**batch} work."""
        return self.fields

    def __contains__(self, name: object) -> bool:
        return name in self._fields

    def __getitem__(self, name: str) -> Field:
        if name not in self._fields:
            raise KeyError(f"the batch has no field '{name}'; it has {', '.join(self._fields)}")
        dtype, row_shape = self._fields[name]
        return Field(self._handle, name, dtype, (self._handle.rows, *row_shape), self._device, name)

    @property
    def mask(self) -> Field | None:
        """uint8: 1 for a valid row, 0 for padding. None unless last="pad". Must not be written to."""
        if not self._handle.has_mask:
            return None
        return Field(self._handle, "mask", "uint8", (self._handle.rows,), self._device, None)

    def numpy(self, name: str) -> np.ndarray[Any, Any]:
        """batch[name].numpy()"""
        return self[name].numpy()

    def torch(self, name: str) -> Any:
        """batch[name].torch()"""
        return self[name].torch()

    def jax(self, name: str) -> Any:
        """batch[name].jax()"""
        return self[name].jax()

    def cupy(self, name: str) -> Any:
        """batch[name].cupy()"""
        return self[name].cupy()

    def row_ids(self) -> npt.NDArray[np.uint64]:
        """Numbers in the source of the valid rows, computed when asked."""
        import numpy

        return numpy.frombuffer(self._handle.row_ids(), dtype=numpy.uint64)

    def row_identities(self, name: str) -> npt.NDArray[np.uint64]:
        """Where the valid rows lie: pairs of the number of a dataset among those of the field, and of the row in it. They
        tell rows apart whatever else the source has; Loader.place_of() knows the files' names. Computed when asked."""
        import numpy

        return numpy.frombuffer(self._handle.row_identities(text("name", name)), dtype=numpy.uint64).reshape(-1, 2)

    @property
    def stream(self) -> int | None:
        """CUDA's handle of the stream that the rows are for: work on it sees them, and they are given back in its order. 0: the
        legacy default stream; None on the host."""
        return self._handle.stream

    def used_on(self, stream: Any) -> None:
        """Says that work on another CUDA stream uses the rows too: it waits for them now, and they are given back only
        after it. Takes a stream of torch or CuPy, or a handle; the stream must live until the batch is given back. On the
        host there is nothing to wait for."""
        handle = stream_handle(stream)
        if handle is None:
            raise TypeError("used_on() takes the stream that uses the rows: one of torch or CuPy, or its handle, not None")
        if self._device[0] == _CUDA:
            self._handle.used_on(handle)

    def release(self) -> None:
        """Gives the batch back now, instead of when the loop goes on. Arrays made from it stay valid."""
        self._handle.release()

    def __reduce__(self) -> Any:
        raise _refuse_to_send("a batch's rows")

    def __repr__(self) -> str:
        state = ", given back" if self._handle.is_released else ""
        return f"Batch({self.index} of epoch {self.epoch}, {self.rows} rows of {', '.join(self._fields)}{state})"

"""What is read: named fields."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any, Callable, Iterable, Sequence, Tuple, Union

#: "FILE:/DATASET", (FILE, DATASET), or a list of these, joined by row. FILE and DATASET may hold wildcards.
Place = Union[str, Tuple[Union[str, "os.PathLike[str]"], str], Sequence[Any]]


@dataclass(frozen=True)
class _Field:
    name: str
    places: tuple[tuple[str, str], ...]
    dtype: str = ""
    scale: float = 1.0
    shift: float = 0.0

    def request(self) -> tuple[bytes, list[tuple[bytes, bytes]], str, float, float]:
        places = [(os.fsencode(file), os.fsencode(dataset)) for file, dataset in self.places]
        return os.fsencode(self.name), places, self.dtype, self.scale, self.shift


def _places(field: str, where: Any) -> Iterable[tuple[str, str]]:
    if isinstance(where, str):
        file, colon, dataset = where.rpartition(":/")
        if not colon or not file:
            raise ValueError(f"field '{field}' is 'FILE:/DATASET', as 'shards/*.h5:/images', not {where!r}")
        yield file, "/" + dataset
    elif isinstance(where, tuple) and len(where) == 2 and isinstance(where[1], str) and ":/" not in where[1]:
        yield os.fspath(where[0]), where[1]
    elif isinstance(where, (list, tuple)) and where:
        for part in where:
            yield from _places(field, part)
    else:
        raise TypeError(f"field '{field}' is 'FILE:/DATASET', (FILE, DATASET) or a list of these, not {where!r}")


def _dtype_name(dtype: Any) -> str:
    """"float32" for "float32", numpy.float32, numpy.dtype("f4"), torch.float32, jax.numpy.float32."""
    if isinstance(dtype, str):
        return dtype
    for text in (getattr(dtype, "name", None), getattr(dtype, "__name__", None), str(dtype)):
        if isinstance(text, str):
            return text.rpartition(".")[2]
    raise TypeError(f"no type of elements: {dtype!r}")


class Source:
    """Named fields with the same number of rows. A description: nothing is opened until a Loader is made.

    Source(image="shards/*.h5:/images", label="shards/*.h5:/labels"): each field is the rows of one dataset, or of many
    joined one after another; files sort as people count ("part2" before "part10"). Immutable: methods return another
    Source."""

    __slots__ = ("_fields", "_rows")

    def __init__(self, **fields: Place) -> None:
        if not fields:
            raise ValueError("a source has at least one field: Source(x='file.h5:/x')")
        self._fields = tuple(_Field(name, tuple(_places(name, where))) for name, where in fields.items())
        self._rows: tuple[tuple[Any, ...], ...] = ()  # criteria that all hold, as the extension takes them

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields' names, in order."""
        return tuple(field.name for field in self._fields)

    def astype(self, **dtypes: Any) -> Source:
        """With other element types in the batches. The link carries the stored bytes; the device converts. Takes names,
        NumPy's and torch's types: float16, bfloat16, float32, float64, uint8, int32, int64, or the stored one."""
        return self._with({name: {"dtype": _dtype_name(dtype)} for name, dtype in dtypes.items()})

    def scaled(self, **factors: float | tuple[float, float]) -> Source:
        """With values of value * scale, or value * scale + shift for (scale, shift); computed on the device."""
        changes = {}
        for name, factor in factors.items():
            scale, shift = factor if isinstance(factor, tuple) else (factor, 0.0)
            changes[name] = {"scale": float(scale), "shift": float(shift)}
        return self._with(changes)

    def select(self, rows: Any) -> Source:
        """Only some rows, each once and in the order of their numbers: a slice or range (a step is not possible), a list
        of these, a list or array of row numbers, or an array of bool."""
        ranges = _ranges(rows)
        return self._only(("ranges", ranges) if ranges is not None else ("rows", _numbers(rows)))

    def where(self, field: str, keep: Callable[[float], bool]) -> Source:
        """Only rows for which `keep` holds of the value of `field`, which has one number in each row. `keep` is called for
        each row when a Loader is made."""
        self._check(field)
        return self._only(("where", field, keep))

    def split(self, validation: float = 0.1, *, seed: int = 0, group: str | None = None) -> tuple[Source, Source]:
        """A training and a validation source: each row falls into the second with this probability, which depends on the
        seed and its number alone. With `group`, a field's name, rows with the same value in it stay together."""
        if group is not None:
            self._check(group)
        training, validating = (self._only(("part", float(validation), seed, group or "", it)) for it in (False, True))
        return training, validating

    def _check(self, name: str) -> None:
        if name not in self.fields:
            raise ValueError(f"the source has no field '{name}'; it has {', '.join(self.fields)}")

    def _only(self, criterion: tuple[Any, ...]) -> Source:
        other = self._with({})
        other._rows = (*self._rows, criterion)
        return other

    def _with(self, changes: dict[str, dict[str, Any]]) -> Source:
        for name in changes:
            self._check(name)
        other = Source.__new__(Source)
        other._fields = tuple(replace(field, **changes.get(field.name, {})) for field in self._fields)
        other._rows = self._rows
        return other

    def __repr__(self) -> str:
        parts = []
        for field in self._fields:
            where = " + ".join(":".join(place) for place in field.places)
            parts.append(f"{field.name}={where}" + (f" as {field.dtype}" if field.dtype else ""))
        return f"Source({', '.join(parts)}{', only some rows' if self._rows else ''})"


def _ranges(rows: Any) -> list[tuple[int, int]] | None:
    """(first, count) of slices and ranges; None where it is something else."""
    parts = [rows] if isinstance(rows, (slice, range)) else rows if isinstance(rows, (list, tuple)) else []
    if not parts or not all(isinstance(part, (slice, range)) for part in parts):
        return None
    ranges = []
    for part in parts:
        first, end = part.start or 0, part.stop
        if part.step not in (None, 1) or end is None or not 0 <= first <= end:
            raise ValueError(f"rows are selected from a first one up to a last one, both from 0 on, not by {part!r}")
        ranges.append((first, end - first))
    return ranges


def _numbers(rows: Any) -> bytes:
    import numpy

    array = numpy.asarray(rows)
    if array.dtype == bool:
        array = numpy.flatnonzero(array)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu") or (array < 0).any():
        raise ValueError("rows are selected by slices, or by an array of one dimension of row numbers or of bool")
    return array.astype(numpy.uint64).tobytes()

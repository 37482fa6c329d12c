"""What is read: named fields."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any, Iterable, Sequence, Tuple, Union

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

    __slots__ = ("_fields",)

    def __init__(self, **fields: Place) -> None:
        if not fields:
            raise ValueError("a source has at least one field: Source(x='file.h5:/x')")
        self._fields = tuple(_Field(name, tuple(_places(name, where))) for name, where in fields.items())

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields' names, in order."""
        return tuple(field.name for field in self._fields)

    def astype(self, **dtypes: Any) -> Source:
        """With other element types in the batches. The link carries the stored bytes; the device converts. Takes names,
        NumPy's and torch's types; "float16" and "bfloat16" too."""
        return self._with({name: {"dtype": _dtype_name(dtype)} for name, dtype in dtypes.items()})

    def scaled(self, **factors: float | tuple[float, float]) -> Source:
        """With values of value * scale, or value * scale + shift for (scale, shift); computed on the device."""
        changes = {}
        for name, factor in factors.items():
            scale, shift = factor if isinstance(factor, tuple) else (factor, 0.0)
            changes[name] = {"scale": float(scale), "shift": float(shift)}
        return self._with(changes)

    def _with(self, changes: dict[str, dict[str, Any]]) -> Source:
        for name in changes:
            if name not in self.fields:
                raise ValueError(f"the source has no field '{name}'; it has {', '.join(self.fields)}")
        other = Source.__new__(Source)
        other._fields = tuple(replace(field, **changes.get(field.name, {})) for field in self._fields)
        return other

    def __repr__(self) -> str:
        parts = []
        for field in self._fields:
            where = " + ".join(":".join(place) for place in field.places)
            parts.append(f"{field.name}={where}" + (f" as {field.dtype}" if field.dtype else ""))
        return f"Source({', '.join(parts)})"

"""One field of a source: where its rows lie, and what becomes of them."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any, Iterable, Mapping, Sequence, Tuple, Union

from ._checks import path, text, whole
from ._rows import ranges_of

#: "FILE:/DATASET", (FILE, DATASET), or a list of these, joined by row. FILE and DATASET may hold wildcards.
Place = Union[str, Tuple[Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"], str], Sequence[Any]]


@dataclass(frozen=True)
class FieldRequest:
    """A field with all that was said of it."""

    name: str
    places: tuple[tuple[str, str], ...]
    dtype: str = ""
    scale: float = 1.0
    shift: float = 0.0
    netcdf: bool = False
    masked: float = math.nan
    allow_missing_sources: bool = False
    around_page_cache: bool = False
    row_axis: int = 0
    region: tuple[tuple[int, int, int], ...] = ()

    @property
    def is_fractional(self) -> bool:
        """Whether whole numbers may be scaled to others."""
        return not (self.scale.is_integer() and self.shift.is_integer())

    def request(self) -> tuple[bytes, list[tuple[bytes, bytes]], str, dict[str, Any], int, list[tuple[int, int, int]]]:
        """As the extension takes it."""
        places = [(os.fsencode(file), os.fsencode(dataset)) for file, dataset in self.places]
        names = ("scale", "shift", "netcdf", "masked", "allow_missing_sources", "around_page_cache")
        options = {name: getattr(self, name) for name in names}
        return os.fsencode(self.name), places, self.dtype, options, self.row_axis, list(self.region)


def places_of(field: str, where: Any) -> Iterable[tuple[str, str]]:
    """(file or pattern, dataset) of what a Place names. Raises TypeError, ValueError."""
    if isinstance(where, str):
        file, colon, dataset = where.rpartition(":/")
        if not colon or not file:
            raise ValueError(f"field '{field}' is 'FILE:/DATASET', as 'shards/*.h5:/images', not {where!r}")
        yield _place(field, file, "/" + dataset)
    elif _is_pair(where):
        yield _place(field, *where)
    elif isinstance(where, (list, tuple)) and where:
        for part in where:
            yield from places_of(field, part)
    else:
        raise TypeError(f"field '{field}' is 'FILE:/DATASET', (FILE, DATASET) or a list of these, not {where!r}")


def _is_pair(where: Any) -> bool:
    """Whether it is (FILE, DATASET), and not two of 'FILE:/DATASET'."""
    if not (isinstance(where, tuple) and len(where) == 2 and isinstance(where[1], str)):
        return False
    file, dataset = where
    return ":/" not in file or ":/" not in dataset if isinstance(file, str) else isinstance(file, (bytes, os.PathLike))


def _place(field: str, file: Any, dataset: str) -> tuple[str, str]:
    both = path(f"the file of field '{field}'", file), path(f"the dataset of field '{field}'", dataset)
    return os.fsdecode(both[0]), os.fsdecode(both[1])


#: NumPy's and Python's other names for types; the byte order is that of the machine, whatever the code says.
_CODES = {f"{kind}{size}": f"{name}{8 * size}" for kind, name in (("i", "int"), ("u", "uint")) for size in (1, 2, 4, 8)}
_CODES |= {"f2": "float16", "f4": "float32", "f8": "float64", "float": "float64", "int": "int64"}
_CODES |= {"e": "float16", "f": "float32", "d": "float64"}
_CODES |= {"b": "int8", "h": "int16", "i": "int32", "l": "int64", "q": "int64"}
_CODES |= {"B": "uint8", "H": "uint16", "I": "uint32", "L": "uint64", "Q": "uint64"}
_CODES |= {"half": "float16", "single": "float32", "double": "float64"}


def dtype_name(dtype: Any) -> str:
    """"float32" for "float32", "f4", numpy.float32, numpy.dtype("f4"), torch.float32, jax.numpy.float32."""
    names = [dtype] if isinstance(dtype, str) else [getattr(dtype, name, None) for name in ("name", "__name__")]
    written = next((name for name in names if isinstance(name, str)), str(dtype))
    name = written.rpartition(".")[2].lstrip("<>=|")
    if name.startswith("bool") or name in ("?", "b1"):
        raise ValueError("there are no booleans on the device: those of a file come as uint8, without astype() too")
    return text("a type's name", _CODES.get(name, name))


def region_of(name: str, part: Any) -> tuple[tuple[int, int, int], ...]:
    """{axis: slice(first, end)} as (axis, first, count). Raises TypeError, ValueError."""
    if not isinstance(part, Mapping):
        raise TypeError(f"a region of '{name}' is {{axis: slice(first, end)}}, not {part!r}")
    found = []
    for axis, extent in part.items():
        if not isinstance(extent, (slice, range)):
            raise TypeError(f"a region of '{name}' is {{axis: slice(first, end)}}, not {extent!r}")
        (first, count), *_ = ranges_of(extent, f"a part of an axis of '{name}' goes") or [(0, 0)]
        found.append((whole(f"an axis of '{name}'", axis), first, count))
    return tuple(found)


def output_of(name: str, declared: Any) -> tuple[str, str, list[int]]:
    """What map() puts out, (type, row shape), as (name, type, row shape). Raises TypeError, ValueError."""
    name = text("the name of an output", name)
    if not isinstance(declared, tuple) or len(declared) != 2 or not isinstance(declared[1], (list, tuple)):
        raise TypeError(f"the output '{name}' is declared as (type, row shape): ('float32', (3, 32, 32)), not {declared!r}")
    dtype, shape = dtype_name(declared[0]), declared[1]
    if dtype == "bfloat16":
        raise ValueError(
            f"NumPy has no bfloat16, which the output '{name}' is declared as; declare it float32, and let astype() (of a "
            "field of the source) or torch convert it"
        )
    return name, dtype, [whole(f"an extent of '{name}'", extent) for extent in shape]

"""What is read: named fields."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Callable, Iterable, Mapping, Sequence, SupportsFloat, SupportsIndex

from ._checks import finite, names, number, text, whole
from ._field import FieldRequest, Place, dtype_name, output_of, places_of, region_of
from ._map import MapFunction
from ._rows import numbers_of, ranges_of


class Source:
    """Named fields with the same number of rows. A description: nothing is opened until a Loader is made.

    Source(image="shards/*.h5:/images", label="shards/*.h5:/labels"): each field is the rows of one dataset, or of many
    joined one after another; files sort as people count ("part2" before "part10"). Immutable: methods return another
    Source."""

    __slots__ = ("_fields", "_rows", "_maps", "_damaged", "_parts", "_mixed_rows")

    def __init__(self, /, **fields: Place) -> None:
        if not fields:
            raise ValueError("a source has at least one field: Source(x='file.h5:/x')")
        named = {text("a field's name", name): tuple(places_of(name, where)) for name, where in fields.items()}
        self._fields = tuple(FieldRequest(*field) for field in named.items())
        self._rows: tuple[tuple[Any, ...], ...] = ()  # criteria that all hold, as the extension takes them
        self._maps: tuple[tuple[Any, ...], ...] = ()  # likewise
        self._damaged: tuple[int, str] | None = None  # (limit of rows, name of the mask)
        self._parts: tuple[tuple[Source, float], ...] = ()  # with their ratios, of a mixed source: its fields are theirs
        self._mixed_rows = 0  # of an epoch

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields' names, in order."""
        return tuple(field.name for field in self._fields)

    def astype(self, /, **dtypes: Any) -> Source:
        """With other element types in the batches. The link carries the stored bytes; the device converts. Takes names,
        NumPy's codes ("f4", "d") and types, and torch's: float16, bfloat16, float32, float64, uint8, int32, int64, or the
        stored one. Floats become whole numbers toward zero; what lies outside the type becomes the nearest end of its
        range, where NumPy wraps it, and NaN 0. Whole numbers become smaller ones by their low bits, as NumPy's do."""
        return self._with({name: {"dtype": dtype_name(dtype)} for name, dtype in dtypes.items()})

    def scaled(self, /, **factors: SupportsFloat | tuple[SupportsFloat, SupportsFloat]) -> Source:
        """With values of value * scale, or value * scale + shift for (scale, shift); computed on the device, in float32, or
        in float64 where the stored type or that of the batch has 64 bits or is a whole number of 32. Said again, the last
        one counts. What lies outside the type becomes the nearest end of its range, where NumPy wraps it: scaled(x=2) makes
        255 of 200 in uint8. Fields that are stored as whole numbers need astype() too, or the Loader raises ValueError,
        where scale or shift is no whole number, and where their type is not uint8, int32 or int64."""
        changes = {}
        for name, factor in factors.items():
            scale, shift = factor if isinstance(factor, tuple) and len(factor) == 2 else (factor, 0.0)
            changes[name] = {"scale": finite(f"scale of '{name}'", scale), "shift": finite(f"shift of '{name}'", shift)}
        return self._with(changes)

    def netcdf(self, *fields: str, masked: SupportsFloat = math.nan) -> Source:
        """With netCDF's packing undone in these fields; in all, without names: `_FillValue` becomes `masked`, then
        `scale_factor` and `add_offset` count. Rows are floats then, also on the link. Nothing else is looked at: not
        `_Unsigned`, `missing_value`, `valid_range`, nor default fill values."""
        return self._with({name: {"netcdf": True, "masked": number("masked", masked)} for name in fields or self.fields})

    def reading(
        self, *fields: str, around_page_cache: bool | None = None, allow_missing_sources: bool | None = None
    ) -> Source:
        """How these fields' files are read; all, without names. `around_page_cache`: with O_DIRECT, for files that are
        read once or are larger than memory. `allow_missing_sources`: rows of virtual datasets whose files are missing are
        fill values, instead of an error."""
        options = {"around_page_cache": around_page_cache, "allow_missing_sources": allow_missing_sources}
        changes = {name: bool(value) for name, value in options.items() if value is not None}
        return self._with({name: dict(changes) for name in fields or self.fields})

    def skip_damaged(self, *, limit_rows: SupportsIndex = 1000, mask: str = "intact") -> Source:
        """With rows left out whose stored bytes cannot be read or decoded, up to `limit_rows` of the source; without it, the
        first one ends the epoch. Batches have one more field, `mask`, float32: 0 for such a row, whose damaged fields are
        zeros before map(), scale and shift work on them, and for padding; 1 for the others. Multiply the loss by it.
        Functions of map() see it among the fields. The report lists the rows."""
        if text("mask", mask) in {*self.fields, *self._put_out}:
            raise ValueError(f"the source has a field '{mask}'; give the mask of damaged rows another name")
        other = self._with({})
        other._damaged = (whole("limit_rows", limit_rows), mask)
        return other

    def rows_along(self, /, **axes: SupportsIndex) -> Source:
        """The axis of a field's datasets that counts its rows, instead of the first; the others follow in their order."""
        numbers = {name: whole(f"the axis of the rows of '{name}'", axis) for name, axis in axes.items()}
        return self._with({name: {"row_axis": number} for name, number in numbers.items()})

    def region(self, /, **parts: Mapping[Any, slice | range]) -> Source:
        """Parts of a field's other axes, by the axis' number in the dataset: region(x={1: slice(0, 32)})."""
        return self._with({name: {"region": region_of(name, part)} for name, part in parts.items()})

    def map(
        self,
        function: MapFunction,
        *,
        fields: Sequence[str] | None = None,
        outputs: Mapping[str, tuple[Any, Sequence[int]]] | None = None,
        name: str = "",
        threads: SupportsIndex = 1,
    ) -> Source:
        """With a function that works on blocks of rows on the host, as they are stored and before they travel. It takes
        a Block and returns new values, {"image": array}; None leaves all as it is.

        fields      names of those that it sees; None: all. Each costs a copy
        outputs     fields whose type or row shape it changes, and new ones: {"image": ("float32", (3, 32, 32))}
        name        in reports and errors; the function's own without one
        threads     blocks at once; the function must stand that

        It runs on Penstock's threads with the GIL, so that pure Python in it holds up the loop. What it raises ends the
        epoch with a PipelineError, whose __cause__ it is."""
        if not callable(function):
            raise TypeError(f"map() takes a function of a block, not {function!r}")
        at_once = whole("threads", threads, 1)
        mask = None if self._damaged is None else self._damaged[1]
        known = {*self.fields, *self._put_out, *([] if mask is None else [mask])}
        seen = None if fields is None else names("fields of map()", fields)
        for wanted in seen or ():
            if wanted not in known:
                raise ValueError(f"the source has no field '{wanted}'; it has {', '.join(sorted(known))}")
        if not isinstance(outputs, (Mapping, type(None))):
            raise TypeError(f"outputs of map() are {{name: (type, row shape)}}, not {outputs!r}")
        made = [output_of(out, declared) for out, declared in (outputs or {}).items()]
        if any(out == mask for out, *_ in made):
            raise ValueError(f"the output '{mask}' has the name of the mask of damaged rows; give one of them another")
        title = text("name of map()", name) or _title_of(function)
        other = self._with({})
        other._maps = (*self._maps, (title, function, seen, made, at_once))
        return other

    def select(self, rows: Any) -> Source:
        """Only some rows, each once and in the order of their numbers: a slice or range (a step is not possible), a list
        of these, a list or array of row numbers, or an array of bool, one for each row."""
        ranges = ranges_of(rows)
        return self._only(("ranges", ranges) if ranges is not None else ("rows", *numbers_of(rows)))

    def where(self, field: str, keep: Callable[[float], bool]) -> Source:
        """Only rows for which `keep` holds of the value of `field`, which has one number in each row: as it is stored
        (netcdf() counts; astype(), scaled() and map() do not), a float. `keep` is called once for each row, in their order
        and on this thread, when a Loader is made, or price() is asked."""
        self._check(field)
        if not callable(keep):
            raise TypeError(f"where() takes a function of a value, not {keep!r}")
        return self._only(("where", field, keep))

    def split(
        self, validation: SupportsFloat = 0.1, *, seed: SupportsIndex = 0, group: str | None = None
    ) -> tuple[Source, Source]:
        """A training and a validation source: each row falls into the second with this probability, which depends on the
        seed and its number alone. With `group`, a field's name, rows with the same value in it stay together."""
        if group is not None:
            self._check(group)
        how = finite("validation", validation), whole("seed", seed), group or ""
        training, validating = (self._only(("part", *how, it)) for it in (False, True))
        return training, validating

    def _request(self) -> tuple[Any, ...]:
        """As the extension takes it, but for maps and damage."""
        fields = [] if self._parts else [field.request() for field in self._fields]
        return fields, list(self._rows), [(part._request(), ratio) for part, ratio in self._parts], self._mixed_rows

    @property
    def _put_out(self) -> set[str]:
        """Fields that functions of map() declare."""
        return {output[0] for of in self._maps for output in of[3]}

    @property
    def _fractional(self) -> set[str]:
        """Fields that are scaled by other than whole numbers, and whose type is that of the file."""
        if self._parts:
            return {name for part, _ in self._parts for name in part._fractional}
        return {field.name for field in self._fields if not field.dtype and field.is_fractional}

    @property
    def _asks_python(self) -> bool:
        """Whether a function of the user's says which rows take part."""
        return any(kind == "where" for kind, *_ in self._rows) or any(part._asks_python for part, _ in self._parts)

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
        other._rows, other._maps, other._damaged = self._rows, self._maps, self._damaged
        other._parts, other._mixed_rows = self._parts, self._mixed_rows
        if changes:
            other._parts = tuple((part._with(changes), ratio) for part, ratio in self._parts)
        return other

    def __repr__(self) -> str:
        parts = [f"{ratio:g} of {part!r}" for part, ratio in self._parts]
        for field in () if parts else self._fields:
            where = " + ".join(":".join(place) for place in field.places)
            parts.append(f"{field.name}={where}" + (f" as {field.dtype}" if field.dtype else ""))
        parts += ["only some rows"] if self._rows else []
        parts += [f"mapped by {of[0]}" for of in self._maps]
        return f"Source({', '.join(parts)})"


def mixed(
    parts: Iterable[Source | tuple[Source, SupportsFloat]] | Mapping[Source, SupportsFloat], *, rows: SupportsIndex = 0
) -> Source:
    """One source out of several: mixed([(a, 3), (b, 1)]), or mixed({a: 3, b: 1}), takes three rows of `a` for one of `b`,
    whatever their sizes. Rows of a source that is too small for its part come several times; of one that is too large not
    all come in an epoch, and the next one goes on where it ended.

    parts   sources with their ratios (1 without one), which have the same fields
    rows    of an epoch; 0: as many as all have together

    What comes in turn is a row, or a run where the order is Shuffled; within a source rows come as in the order. Row
    numbers count on from one source to the next. What is said of the mixed source's fields holds for all of its parts;
    map() and skip_damaged() are said of it, not of them."""
    if isinstance(parts, Source) or not isinstance(parts, Iterable):
        raise TypeError(f"what is mixed are several sources, with their ratios: [(source, 3), ...], not {parts!r}")
    all_parts: Iterable[Any] = parts.items() if isinstance(parts, Mapping) else parts
    shares: list[tuple[Any, Any]] = [part if isinstance(part, tuple) and len(part) == 2 else (part, 1.0) for part in all_parts]
    of_epoch = whole("rows", rows)
    if not shares:
        raise ValueError("a mix needs at least one source")
    for place, (part, ratio) in enumerate(shares, 1):
        if not isinstance(part, Source):
            raise TypeError(f"what is mixed are sources, with their ratios: [(source, 3), ...], not {part!r}")
        if not hasattr(ratio, "__float__") or not 0 < number(f"the ratio of source {place} of a mix", ratio) < math.inf:
            raise ValueError(f"source {place} of a mix has the ratio {ratio}; ratios are above 0")
        if part._maps or part._damaged:
            what = "is mapped" if part._maps else "says what becomes of damaged rows"
            raise ValueError(f"source {place} of a mix {what}; say it of the mixed source instead")
    joined: Source = shares[0][0]._with({})
    joined._rows, joined._mixed_rows = (), of_epoch
    joined._parts = tuple((part, float(ratio)) for part, ratio in shares)
    return joined


def _title_of(function: Any) -> str:
    """The function's own name; "map" where it has none that can be written."""
    try:
        return text("name", getattr(function, "__name__", None)) or "map"
    except (TypeError, ValueError):
        return "map"

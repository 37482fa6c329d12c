"""Functions of the user's on blocks of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Block:
    """Some rows of one epoch, as many as travel together, on the host: block["image"] is a NumPy array of this function's
    own, of the stored type. Which rows share a block is not part of the order: what is random must come from `seed`,
    `epoch` and `row_ids`, so that every run gives the same values."""

    __slots__ = ("seed", "epoch", "row_ids", "_fields")

    def __init__(self, seed: int, epoch: int, row_ids: npt.NDArray[np.uint64], fields: dict[str, Any]) -> None:
        #: of the order
        self.seed = seed
        self.epoch = epoch
        #: numbers of the rows in the source
        self.row_ids = row_ids
        self._fields = fields

    def __len__(self) -> int:
        return len(self.row_ids)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields' names."""
        return tuple(self._fields)

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        if name not in self._fields:
            raise KeyError(f"the block has no field '{name}'; it has {', '.join(self._fields)}")
        array: np.ndarray[Any, Any] = self._fields[name]
        return array

    def __repr__(self) -> str:
        return f"Block({len(self)} rows of {', '.join(self._fields)})"


#: Takes a block and returns its new values: {"image": array}; None for none.
MapFunction = Callable[[Block], "Mapping[str, Any] | None"]


def _dtype(field: str, name: str) -> Any:
    import numpy

    if name == "bfloat16":
        raise TypeError(f"NumPy has no bfloat16, the type of field '{field}'; name the fields that the function needs")
    return numpy.dtype(name)


def apply(
    function: MapFunction,
    seed: int,
    epoch: int,
    row_ids: bytes,
    inputs: dict[str, tuple[Any, str, tuple[int, ...]]],
    outputs: dict[str, tuple[Any, str, tuple[int, ...]]],
    declared: list[str],
) -> dict[str, Any]:
    """Calls the function, and gives what it returned as contiguous arrays of the shapes that were declared."""
    import numpy

    fields = {
        name: numpy.frombuffer(values, dtype=_dtype(name, dtype)).reshape(shape)
        for name, (values, dtype, shape) in inputs.items()
    }
    made = function(Block(seed, epoch, numpy.frombuffer(row_ids, dtype=numpy.uint64), fields))
    made = {} if made is None else made
    if not hasattr(made, "items"):
        raise TypeError(f"it returns a dict of its fields' new values, or None, not {type(made).__name__}")
    for name in declared:
        if name not in made:
            raise ValueError(f"it declares the output '{name}', and returned {', '.join(made) or 'nothing'}")
    results = {}
    for name, values in made.items():
        if name not in outputs:
            raise ValueError(f"it returned '{name}', which is no field; declare it in outputs")
        _, dtype, shape = outputs[name]
        array = numpy.asarray(values)
        if array.shape != tuple(shape) or array.dtype != _dtype(name, dtype):
            raise ValueError(
                f"'{name}' is {dtype} {tuple(shape)} in its batches, and it returned {array.dtype} {array.shape}; other "
                "types and shapes are declared in outputs"
            )
        results[name] = numpy.ascontiguousarray(array)
    return results

"""Orders of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Union

from ._checks import text, whole


@dataclass(frozen=True)
class Sequential:
    """Rows as they lie in the source."""

    def _request(self) -> tuple[Any, ...]:
        """As the extension takes it."""
        return ("sequential",)


@dataclass(frozen=True)
class Shuffled:
    """Rows shuffled by runs and pool: runs of `run_rows` consecutive rows are permuted, and within each window of
    `pool_rows` rows of that sequence every row is drawn. Another epoch, another order; the same seed and epoch, the
    same order, whatever the budgets and threads. 0: a default that depends on the source and on `shards`."""

    seed: int = 0
    run_rows: int = 0
    pool_rows: int = 0

    def __post_init__(self) -> None:
        _check(self, "seed", "run_rows", "pool_rows")

    def _request(self) -> tuple[Any, ...]:
        """As the extension takes it."""
        return ("shuffled", self.seed, self.run_rows, self.pool_rows)


@dataclass(frozen=True)
class Random:
    """Rows in an order drawn from all orders, every row by itself. Mixes best, and reads worst: each row is a read of its
    own, and where rows lie in compressed chunks, each costs its whole chunk, but for those of a block that share one."""

    seed: int = 0

    def __post_init__(self) -> None:
        _check(self, "seed")

    def _request(self) -> tuple[Any, ...]:
        """As the extension takes it."""
        return ("random", self.seed)


@dataclass(frozen=True, eq=False)
class Weighted:
    """Rows drawn with repetition, each draw by itself: a row comes with probability weight / sum of the weights. `weights`
    is a field of the source with one number in each row, or an array of them, one for each row of the source. `rows`: of an
    epoch; 0: as many as take part. Read as Random is, at its price."""

    weights: Any
    seed: int = 0
    rows: int = 0

    def __post_init__(self) -> None:
        _check(self, "seed", "rows")

    def _request(self) -> tuple[Any, ...]:
        """As the extension takes it."""
        if isinstance(self.weights, str):
            return ("weighted", self.seed, text("weights of Weighted", self.weights).encode(), b"", self.rows)
        import numpy

        try:
            weights = numpy.asarray(self.weights, dtype=numpy.float64)
        except OverflowError:
            raise ValueError("a weight of Weighted is larger than float64 holds") from None
        if weights.ndim != 1 or not weights.size:
            raise ValueError("the weights of Weighted are a field's name, or one number for each row of the source")
        return ("weighted", self.seed, b"", weights.tobytes(), self.rows)


@dataclass(frozen=True)
class Balanced:
    """Rows drawn with repetition so that every class comes equally often: rounds in which each class comes once. `field`
    holds the class of each row. `rows`: of an epoch; 0: as many as take part. Read as Random is, at its price."""

    field: str = "label"
    seed: int = 0
    rows: int = 0

    def __post_init__(self) -> None:
        _check(self, "seed", "rows")
        text("field of Balanced", self.field)

    def _request(self) -> tuple[Any, ...]:
        """As the extension takes it."""
        return ("balanced", self.seed, self.field.encode(), self.rows)


Order = Union[Sequential, Shuffled, Random, Weighted, Balanced]
#: what isinstance() takes
ORDERS = (Sequential, Shuffled, Random, Weighted, Balanced)


def _check(order: Any, *names: str) -> None:
    for name in names:
        number = whole(f"{name} of {type(order).__name__}", getattr(order, name))
        object.__setattr__(order, name, number)  # NumPy's numbers too become Python's

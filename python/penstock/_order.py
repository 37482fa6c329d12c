"""Orders of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Union


@dataclass(frozen=True)
class Sequential:
    """Rows as they lie in the source."""

    def request(self) -> tuple[Any, ...]:
        return ("sequential",)


@dataclass(frozen=True)
class Shuffled:
    """Rows shuffled by runs and pool: runs of `run_rows` consecutive rows are permuted, and within each window of
    `pool_rows` rows of that sequence every row is drawn. Another epoch, another order; the same seed and epoch, the
    same order, whatever the budgets and threads. 0: a default that depends on the source alone."""

    seed: int = 0
    run_rows: int = 0
    pool_rows: int = 0

    def __post_init__(self) -> None:
        _check(self, "seed", "run_rows", "pool_rows")

    def request(self) -> tuple[Any, ...]:
        return ("shuffled", self.seed, self.run_rows, self.pool_rows)


@dataclass(frozen=True)
class Random:
    """Rows in an order drawn from all orders, every row by itself. Mixes best, and reads worst: each row is a read of its
    own, and where rows lie in compressed chunks, each costs its whole chunk."""

    seed: int = 0

    def __post_init__(self) -> None:
        _check(self, "seed")

    def request(self) -> tuple[Any, ...]:
        return ("random", self.seed)


Order = Union[Sequential, Shuffled, Random]


def _check(order: Any, *names: str) -> None:
    for name in names:
        value = getattr(order, name)
        if not isinstance(value, int) or not 0 <= value < 2**64:
            raise ValueError(f"{name} of {type(order).__name__} is a number from 0 on, not {value!r}")

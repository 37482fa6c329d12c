"""Orders of rows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sequential:
    """Rows as they lie in the source."""


@dataclass(frozen=True)
class Shuffled:
    """Rows shuffled by runs and pool: runs of `run_rows` consecutive rows are permuted, and within each window of
    `pool_rows` rows of that sequence every row is drawn. Another epoch, another order; the same seed and epoch, the
    same order, whatever the budgets and threads. 0: a default that depends on the source alone."""

    seed: int = 0
    run_rows: int = 0
    pool_rows: int = 0

    def __post_init__(self) -> None:
        for name in ("seed", "run_rows", "pool_rows"):
            value = getattr(self, name)
            if not isinstance(value, int) or not 0 <= value < 2**64:
                raise ValueError(f"{name} of Shuffled is a number from 0 on, not {value!r}")

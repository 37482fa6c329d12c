"""Plans and reports: text for people, dicts for programs."""

from __future__ import annotations

from typing import Any


class _Described:
    __slots__ = ("_values", "_text")

    def __init__(self, values: dict[str, Any]) -> None:
        self._text: str = values.pop("text")
        self._values = values

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return dict(self._values)

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__


class Plan(_Described):
    """What was chosen before anything was allocated: sizes, threads, each field's way of reading, and the ledger of
    every byte."""

    __slots__ = ()


class Report(_Described):
    """What a loader did, and what it waited for. Seconds and rates are those of the loops over its epochs."""

    __slots__ = ()

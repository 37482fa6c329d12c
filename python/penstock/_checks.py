"""Arguments that are not what they should be: refused with their name, before the extension sees them."""

from __future__ import annotations

import math
from typing import Any

MOST = 2**64 - 1


def whole(name: str, value: Any, least: int = 0, most: int = MOST) -> int:
    """A whole number, also NumPy's. Raises TypeError, ValueError."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} is a whole number, not {value!r}")
    number = int(value.__index__())
    if number < least:
        raise ValueError(f"{name} is at least {least}, not {number}")
    if number > most:
        raise ValueError(f"{name} is at most {most}, not {number}")
    return number


def finite(name: str, value: Any) -> float:
    """A number. Raises TypeError, ValueError."""
    if isinstance(value, (str, bytes, bool)) or not hasattr(value, "__float__") or getattr(value, "shape", ()) != ():
        raise TypeError(f"{name} is a number, not {value!r}")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{name} is a finite number, not {number}")
    return number


def positive(name: str, value: Any) -> float:
    """A number above 0. Raises TypeError, ValueError."""
    number = finite(name, value)
    if number <= 0:
        raise ValueError(f"{name} is above 0, not {number}")
    return number

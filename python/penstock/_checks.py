"""Arguments that are not what they should be: refused with their name, before the extension sees them."""

from __future__ import annotations

import math
import os
from typing import Any, Iterable

MOST = 2**64 - 1


def whole(name: str, value: Any, least: int = 0, most: int = MOST) -> int:
    """A whole number, also NumPy's. Raises TypeError, ValueError."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} is a whole number, not {value!r}")
    number = int(value.__index__())
    if number < least:
        raise ValueError(f"{name} is at least {least}, not {_short(number)}")
    if number > most:
        raise ValueError(f"{name} is at most {most}, not {_short(number)}")
    return number


def number(name: str, value: Any) -> float:
    """A number, infinite ones and NaN too. Raises TypeError, ValueError."""
    if isinstance(value, (str, bytes, bool)) or not hasattr(value, "__float__") or getattr(value, "shape", ()) != ():
        raise TypeError(f"{name} is a number, not {value!r}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} is a number that float64 holds, not {_short(value)}") from None


def finite(name: str, value: Any) -> float:
    """A number. Raises TypeError, ValueError."""
    found = number(name, value)
    if not math.isfinite(found):
        raise ValueError(f"{name} is a finite number, not {found}")
    return found


def positive(name: str, value: Any) -> float:
    """A number above 0. Raises TypeError, ValueError."""
    found = finite(name, value)
    if found <= 0:
        raise ValueError(f"{name} is above 0, not {found}")
    return found


def text(name: str, value: Any) -> str:
    """A text that UTF-8 holds, without zero bytes. Raises TypeError, ValueError."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is a text, not {value!r}")
    try:
        _refuse_zero(name, value, value.encode())
    except UnicodeEncodeError:
        raise ValueError(f"{name} is a text of Unicode, not {value!r}") from None
    return value


def path(name: str, value: Any) -> bytes:
    """The bytes of a path, or of a name in a file: these may be any but zero. Raises TypeError, ValueError."""
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise TypeError(f"{name} is a path, not {value!r}")
    try:
        return _refuse_zero(name, value, os.fsencode(value))
    except UnicodeEncodeError:
        raise ValueError(f"{name} holds characters that no file's name has: {value!r}") from None


def names(name: str, value: Any) -> list[str]:
    """Several names. Raises TypeError, ValueError."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise TypeError(f"{name} are a sequence of names, as ['label'], not {value!r}")
    return [text(f"one of {name}", one) for one in value]


def _refuse_zero(name: str, value: Any, encoded: bytes) -> bytes:
    if b"\0" in encoded:
        raise ValueError(f"{name} holds a zero byte: {value!r}")
    return encoded


def _short(number: Any) -> str:
    """Thousands of digits help nobody, and Python writes no more than 4300."""
    return str(number) if abs(number) < 10**40 else "one of more than 40 digits"

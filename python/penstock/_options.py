"""Loader's arguments, checked and as the extension takes them."""

from __future__ import annotations

import sys
from typing import Any, SupportsFloat, SupportsIndex

from . import _core
from ._checks import finite, text, whole


def byte_count(name: str, value: Any) -> int:
    """Bytes as a number, or as text: "512MiB". Raises TypeError, ValueError."""
    return _core.parse_bytes(text(name, value)) if isinstance(value, str) else whole(name, value)


def device_name(device: Any) -> str:
    """As the extension takes it. A GPU that is left open is torch's current one, where torch is imported and has any: there
    its tensors are, and each process of several has one of its own."""
    name = text("device", str(device))
    torch = sys.modules.get("torch")
    if name not in ("cuda", "auto") or torch is None or not (_core.has_cuda and torch.cuda.is_available()):
        return name
    return f"cuda:{torch.cuda.current_device() if torch.cuda.is_initialized() else 0}"


def seconds_of(calibrate: bool | SupportsFloat) -> float:
    """For how many seconds blocks and slots are tried; 0: not at all. Raises TypeError, ValueError."""
    if isinstance(calibrate, bool):
        return 0.8 if calibrate else 0.0
    seconds = finite("calibrate", calibrate)
    if seconds <= 0:
        raise ValueError(f"calibrate is True, False or for how many seconds, not {seconds}")
    return seconds


def share_of(rank: SupportsIndex | None, world_size: SupportsIndex | None, shards: SupportsIndex | None) -> dict[str, int]:
    """This process' part of the rows; where nothing is said, as one of torch.distributed's. Raises TypeError, ValueError."""
    if (rank is None) != (world_size is None):
        raise TypeError("rank and world_size are given together")
    if rank is None or world_size is None:
        rank, world_size = _distributed()
    return {
        "rank": whole("rank", rank),
        "world_size": whole("world_size", world_size, 1),
        "shards": whole("shards", world_size if shards is None else shards, 1),
    }


def _distributed() -> tuple[int, int]:
    """Rank and world size of torch.distributed; (0, 1) where it is not used."""
    torch = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return 0, 1
    return distributed.get_rank(), distributed.get_world_size()

"""Compares answers of two engines."""

from __future__ import annotations

import math
from typing import Any


def agree(a: Any, b: Any) -> bool:
    """Doubles agree to 1e-9, relatively; all else is equal and of one kind (a DECIMAL is not a DOUBLE)."""
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9) or (math.isnan(a) and math.isnan(b))
    return type(a) is type(b) and bool(a == b)


def differences(ours: dict[str, list[Any]], theirs: dict[str, list[Any]]) -> list[str]:
    """Say where two tables, as columns, differ; row by row, in order."""
    if len(ours) != len(theirs):
        return [f"{len(ours)} columns, not {len(theirs)}"]
    out = []
    for (name, a), b in zip(ours.items(), theirs.values(), strict=True):
        if len(a) != len(b):
            return [f"{len(a)} rows, not {len(b)}"]
        pairs = enumerate(zip(a, b, strict=True))
        out += [f"row {i}, {name}: {x!r}, not {y!r}" for i, (x, y) in pairs if not agree(x, y)]
    return out

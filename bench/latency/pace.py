"""Events at a steady rate."""

from __future__ import annotations

import time
from collections.abc import Callable


def pace(rate: int, seconds: float, tick_ms: float, hand_over: Callable[[int, int], None]) -> None:
    """Call hand_over(first, count) every tick with the events that are due; what is behind catches up at once."""
    began, sent, total = time.perf_counter(), 0, int(rate * seconds)
    while sent < total:
        due = min(int((time.perf_counter() - began) * rate), total)
        if due > sent:
            hand_over(sent, due - sent)
            sent = due
        time.sleep(tick_ms / 1e3)

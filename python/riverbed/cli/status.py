"""The line by which `riverbed run` tells how its pipelines go."""

from __future__ import annotations

import time
from typing import Any, TextIO

__all__ = ["Status"]


class Status:
    """A line on a terminal, written over itself; elsewhere only what is told once."""

    def __init__(self, to: TextIO, *, quiet: bool = False) -> None:
        self._to = to
        self._quiet = quiet
        self._live = not quiet and to.isatty()
        self._width = 0
        self._before: tuple[float, int] | None = None

    def started(self, metrics: dict[str, Any]) -> None:
        """Tell that a pipeline runs."""
        if self._quiet:
            return
        self.clear()
        epoch = f", from epoch {metrics['epoch']}" if metrics.get("epoch") else ""
        print(f"started: {metrics['pipeline']}{epoch}", file=self._to, flush=True)

    def show(self, metrics: list[dict[str, Any]], now: float | None = None) -> None:
        """Show how those that run go: rows a second since the last time, lag, epoch."""
        if not self._live:
            return
        now = time.monotonic() if now is None else now
        rows = sum(m["rows_in"] for m in metrics)
        rate = ""
        if self._before is not None and now > self._before[0]:
            rate = f", {max(rows - self._before[1], 0) / (now - self._before[0]):,.0f} rows/s"
        self._before = now, rows
        lag = max((m["lag_ms"] for m in metrics if m["lag_ms"]), default=None)
        line = (
            f"{len(metrics)} running, {rows:,} rows in{rate}"
            + (f", {lag / 1000:,.1f} s behind" if lag is not None else "")
            + (f", epoch {max(m['epoch'] for m in metrics)}" if any(m["epoch"] for m in metrics) else "")
            + "".join(f", waiting: {m['waiting_for']}" for m in metrics if m.get("waiting_for"))
        )[:200]
        self._to.write("\r" + line.ljust(self._width))
        self._to.flush()
        self._width = len(line)

    def clear(self) -> None:
        """Make the line empty for what is printed next."""
        if self._width:
            self._to.write("\r" + " " * self._width + "\r")
            self._to.flush()
            self._width = 0

"""Drives a query over streams, row by row, and adds its changes up."""

from __future__ import annotations

from collections import Counter
from typing import Any

import riverbed as rb
from riverbed.testing import Run

Pushed = list[tuple[str, dict[str, Any]]]


class Streams:
    """A session whose sources are streams with a watermark, or with retractions."""

    def __init__(self) -> None:
        self.session = rb.Session({"timezone": "UTC"})

    def create(self, name: str, schema: dict[str, str], *, watermark: str | None, updating: bool) -> None:
        options: dict[str, Any] = {}
        if watermark:
            options["watermark"] = watermark
        if updating:
            options["updating"] = True
        self.session.create_stream(name, source=rb.MemoryStream(**options), schema=schema)

    def rows(self, query: str, phases: list[Pushed], size: int = 1) -> list[tuple[Any, ...]]:
        """Run the query to the end of its streams and return what stands then.

        A step takes `size` rows of each stream; between phases the run crashes and is restored.
        """
        run = Run(self.session.sql(query))
        total: Counter[str] = Counter()
        kept: dict[str, tuple[Any, ...]] = {}
        unread: set[str] = set()  # streams that the query does not read

        def add() -> None:
            for weight, row in run.step():
                total[repr(row)] += weight
                kept[repr(row)] = row

        try:
            for number, phase in enumerate(phases):
                if number and phase:
                    run.crash()
                streams: dict[str, list[dict[str, Any]]] = {}
                for name, row in phase:
                    streams.setdefault(name, []).append(row)
                longest = max((len(rows) for rows in streams.values()), default=0)
                for at in range(0, longest, size):
                    for name, rows in streams.items():
                        if name not in unread and rows[at : at + size]:
                            try:
                                run.push(name, rows[at : at + size])
                            except rb.RiverbedUsageError:
                                unread.add(name)
                    add()
            run.end()
            add()
        finally:
            run.close()
        return [kept[key] for key, n in total.items() for _ in range(max(n, 0))]

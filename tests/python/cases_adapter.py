"""The engine as the runners of test data kept beside the project ask for it.

`connect()` gives a fresh engine: `engine(sql)` runs statements and returns the last one's rows as a `pyarrow.Table`;
`engine.continuous(ddl, query)` runs a query on changes, a step at a time, through `riverbed.testing.Run`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import riverbed as rb
from riverbed.testing import Run


class Engine:
    """One session."""

    def __init__(self) -> None:
        self._session = rb.Session({"timezone": "UTC"})

    def __call__(self, sql: str) -> pa.Table:
        """Run every statement of the text."""
        return self._session.sql(sql).to_arrow()

    def continuous(self, ddl: str, query: str) -> Continuous:
        """Run a query over the tables of the DDL on changes."""
        return Continuous(ddl, query)

    def close(self) -> None:
        """Close the session."""
        self._session.close()


class Continuous:
    """A query that runs on changes.

    Tables whose changes end a window by a watermark are append-only streams; their event time is the first TIMESTAMP.
    All others are in-memory tables, which take retractions.
    """

    def __init__(self, ddl: str, query: str) -> None:
        self._session = rb.Session({"timezone": "UTC"})
        self._session.sql(ddl).close()
        tables = [row["name"] for row in self._session.sql("SHOW TABLES").to_pylist()]
        if "EMIT ON WATERMARK" in query.upper():
            for table in tables:
                columns = self._session.sql(f"SELECT * FROM {table}").schema
                self._session.sql(f"DROP TABLE {table}").close()
                event_time = next(name for name, kind in columns if kind.startswith("TIMESTAMP"))
                self._session.create_stream(table, source=rb.MemoryStream(event_time=event_time), schema=dict(columns))
        self._streams = "EMIT ON WATERMARK" in query.upper()
        self._run = Run(self._session.sql(query.strip().rstrip(";")))
        self._tables = tables

    def apply(self, table: str, row: list[Any], weight: int) -> None:
        """Queue a change for the next step."""
        self._run.push(table, [tuple(row) if self._streams else (*row, weight)] if weight > 0 and self._streams else [self._weighted(table, row, weight)])

    def watermark(self, at: str) -> None:
        """Set the watermark of every stream."""
        for table in self._tables:
            self._run.watermark(table, at)

    def step(self) -> pa.Table:
        """Run one step and return its changes."""
        return self._run.step().batch.to_arrow()

    def close(self) -> None:
        """End the run."""
        self._run.close()
        self._session.close()


def connect() -> Engine:
    """Return a fresh engine."""
    return Engine()

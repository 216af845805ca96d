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

    Under EMIT ON WATERMARK the tables are append-only streams, whose event time is the first TIMESTAMP and whose
    watermark the case sets by hand. Otherwise they are in-memory tables, which take retractions.
    """

    def __init__(self, ddl: str, query: str) -> None:
        self._session = rb.Session({"timezone": "UTC"})
        self._session.sql(ddl)
        self._tables = [row["name"] for row in self._session.sql("SHOW TABLES").to_pylist()]
        self._streams = "EMIT ON WATERMARK" in query.upper()
        if self._streams:
            for table in self._tables:
                self._make_stream(table)
        self._run = Run(self._session.sql(query.strip().rstrip(";")))

    def _make_stream(self, table: str) -> None:
        columns = self._session.sql(f"SELECT * FROM {table}").schema
        self._session.sql(f"DROP TABLE {table}")
        event_time = next(name for name, kind in columns if kind.startswith("TIMESTAMP"))
        source = rb.MemoryStream(watermark=f"{event_time} - INTERVAL '100 years'")  # never moves it within a case
        self._session.create_stream(table, source=source, schema=dict(columns))

    def apply(self, table: str, row: list[Any], weight: int) -> None:
        """Queue a change for the next step."""
        if self._streams:
            self._run.push(table, [tuple(row)])
            return
        names = [name for name, _ in self._session.sql(f"SELECT * FROM {table}").schema]
        self._run.push(table, [{**dict(zip(names, row, strict=True)), "__weight": weight}])

    def watermark(self, at: str) -> None:
        """Set the watermark of every stream."""
        for table in self._tables:
            self._run.watermark(table, at)

    def step(self) -> pa.Table:
        """Run one step and return its changes."""
        return pa.Table.from_batches([self._run.step().batch.to_arrow()])

    def close(self) -> None:
        """End the run."""
        self._run.close()
        self._session.close()


def connect() -> Engine:
    """Return a fresh engine."""
    return Engine()

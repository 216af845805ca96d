"""Tests of incremental queries in virtual time: nothing moves unless the test says so.

A `Run` takes the place of the sources and of the clock. A test pushes rows, moves the watermark, takes steps, crashes
and restores, and says which changes it wants to see.

Examples
--------
A window is shown when the watermark has passed its end, and once:

>>> import riverbed as rb
>>> from riverbed.testing import Run
>>> session = rb.Session()
>>> _ = session.create_stream("t", source=rb.MemoryStream(watermark="ts"), schema={"k": "TEXT", "ts": "TIMESTAMP"})
>>> query = session.sql('''
...     SELECT k, TUMBLE_END(ts, INTERVAL '1 minute') AS e, count(*) AS n
...     FROM t GROUP BY k, TUMBLE(ts, INTERVAL '1 minute') EMIT ON WATERMARK
... ''')
>>> with Run(query) as run:
...     run.push("t", [("a", "2024-01-01 00:00:10"), ("a", "2024-01-01 00:00:20")])
...     run.step().shows()
...     run.push("t", [("b", "2024-01-01 00:01:00")])
...     run.step().shows("+1 a 2024-01-01 00:01:00 2")

A restart changes nothing, and a running total retracts what it said before:

>>> query = session.sql("SELECT k, count(*) AS n FROM t GROUP BY k EMIT IMMEDIATE")
>>> with Run(query) as run:
...     run.push("t", [("a", "2024-01-01 00:00:10")])
...     run.step().shows("+1 a 1")
...     run.crash()
...     run.push("t", [("a", "2024-01-01 00:00:20")])
...     run.step().shows("-1 a 1", "+1 a 2")
"""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

from riverbed import _native, _values
from riverbed.batch import Batch
from riverbed.connectors.memory import exported, pieces
from riverbed.errors import RiverbedUsageError
from riverbed.query import Query

__all__ = ["Changes", "Run"]

WEIGHT = "__weight"


class Changes:
    """What one step changed: rows with weights. `lines` and `shows` add equal rows up.

    Attributes
    ----------
    batch : Batch
        The rows as they left the engine.
    step : int
        The step.
    watermark : datetime.datetime or None
        The watermark after it.

    Examples
    --------
    >>> import riverbed as rb
    >>> session = rb.Session()
    >>> _ = session.create_stream("t", source=rb.MemoryStream(), schema={"k": "TEXT"})
    >>> with Run(session.sql("SELECT k FROM t EMIT IMMEDIATE")) as run:
    ...     run.push("t", [("a",), ("b",), ("a",)])
    ...     run.step().lines()
    ['+1 b', '+2 a']
    """

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.step = batch.step
        self.watermark = batch.watermark

    def __iter__(self) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Iterate over (weight, row)."""
        for row in self.batch.to_pylist():
            weight = row.pop(WEIGHT, 1)
            yield weight, tuple(row.values())

    def __len__(self) -> int:
        return self.batch.num_rows

    def lines(self) -> list[str]:
        """Return the changes as text, one a row: weight, then the values, NULL for none; by weight and row."""
        weights: Counter[str] = Counter()
        for weight, row in self:
            weights[" ".join(_text(v) for v in row)] += weight
        return [f"{w:+d} {row}".rstrip() for row, w in sorted(weights.items(), key=lambda i: (i[1], i[0])) if w]

    def shows(self, *lines: str) -> None:
        """Assert that these and no other changes were shown, in any order.

        Parameters
        ----------
        *lines : str
            `"+1 a 2"`: the weight, then the values, separated by spaces; timestamps as `2024-01-01 00:01:00`.

        Raises
        ------
        AssertionError
            With both sides, and the step.
        """
        got, want = Counter(self.lines()), Counter(" ".join(line.split()) for line in lines)
        if got != want:
            missing = "".join(f"\n  missing     {line}" for line in (want - got).elements())
            extra = "".join(f"\n  unexpected  {line}" for line in (got - want).elements())
            raise AssertionError(f"step {self.step} (watermark {self.watermark}) showed other changes:{missing}{extra}")

    def __repr__(self) -> str:
        return f"<riverbed.testing.Changes: step {self.step}, watermark {self.watermark}: {self.lines()}>"


class Run:
    """An incremental run of a query, driven by hand.

    Parameters
    ----------
    query : Query
        Over streams of any connector; their sources are not opened.
    now : str or datetime, optional
        Where the clock stands at the start; 1970 when left out.
    parallelism : int, optional
        Workers; the session's setting when left out.
    strict : bool
        Fail on a watermark that goes back, and on the retraction of a row that was never there.

    Examples
    --------
    >>> import riverbed as rb
    >>> session = rb.Session()
    >>> _ = session.create_stream("t", source=rb.MemoryStream(), schema={"v": "BIGINT"})
    >>> with Run(session.sql("SELECT sum(v) AS total FROM t EMIT IMMEDIATE")) as run:
    ...     run.push("t", [(1,), (2,)])
    ...     run.step().lines()
    ['+1 3']
    """

    def __init__(
        self,
        query: Query,
        *,
        now: str | datetime.datetime | None = None,
        parallelism: int = 0,
        strict: bool = True,
    ) -> None:
        options = {"now_us": 0 if now is None else _values.to_micros(now), "parallelism": parallelism, "strict": strict}
        handle = _native.call_handle("rb_query_manual", query._number, *_native.as_json(options))
        assert handle is not None
        self._handle = handle
        self._query = query
        self._columns: dict[str, list[tuple[str, str]]] = {}

    def push(
        self,
        stream: str,
        rows: Iterable[Mapping[str, Any] | Sequence[Any]] | Any,
        *,
        split: str = "0",
    ) -> None:
        """Queue rows for the next step.

        Parameters
        ----------
        stream : str
            The stream.
        rows : iterable of tuples or mappings, or an Arrow, pandas or Polars object
            The rows. A column `__weight` says how often a row is inserted, or, negative, retracted; of an upsert stream
            -1 deletes the key.
        split : str
            The part of the source that they come from; each has a watermark of its own.
        """
        if stream not in self._columns:
            fields = json.loads(_native.call_text("rb_manual_fields", *self._at(stream)))
            self._columns[stream] = [(f["name"], f["type"]) for f in fields]
        for piece in pieces(rows, self._columns[stream]):
            array, schema, _keep = exported(piece)
            _native.call("rb_manual_push", *self._at(stream), *_native.chars(split), array, schema)

    def watermark(self, stream: str, at: str | datetime.datetime | int) -> None:
        """Set a stream's watermark by hand."""
        _native.call("rb_manual_watermark", *self._at(stream), _values.to_micros(at))

    def open(self, stream: str, *, split: str) -> None:
        """Announce a split: it holds the watermark back until its first row."""
        _native.call("rb_manual_split", *self._at(stream), *_native.chars(split), 0)

    def idle(self, stream: str, *, split: str = "0") -> None:
        """Mark a split idle until its next row: its watermark holds nobody back."""
        _native.call("rb_manual_split", *self._at(stream), *_native.chars(split), 1)

    def advance(self, duration: datetime.timedelta) -> None:
        """Move the clock that `now()` reads."""
        if not isinstance(duration, datetime.timedelta):
            raise RiverbedUsageError(
                f"advance() takes a datetime.timedelta, not {type(duration).__name__}\n"
                "Hint: advance(datetime.timedelta(seconds=5)); a stream's watermark is set with watermark()"
            )
        _native.call("rb_manual_advance", self._handle.value, duration // datetime.timedelta(microseconds=1))

    def end(self, stream: str | None = None) -> None:
        """End a stream, or all of them: its watermark passes everything, and no more rows can be pushed."""
        _native.call("rb_manual_end", *self._at(stream or ""))

    def step(self) -> Changes:
        """Run one step over what was pushed, and return what it changed."""
        with self._query._callbacks.causes():
            batch = _native.wait(self._handle, _native.call_handle, "rb_manual_step", self._handle.value)
        assert batch is not None
        return Changes(Batch(batch))

    def crash(self, *, parallelism: int = 0) -> None:
        """Forget everything, and restore from the snapshot after the last step. Rows not yet stepped are lost.

        Parameters
        ----------
        parallelism : int, optional
            Go on with another number of workers.
        """
        _native.call("rb_manual_crash", self._handle.value, parallelism)

    def late(self) -> list[dict[str, Any]]:
        """Return the rows of `__late` so far: what came behind the watermark."""
        return self._relation("__late")

    def bad(self) -> list[dict[str, Any]]:
        """Return the rows of `__bad` so far: what could not be decoded or computed."""
        return self._relation("__bad")

    def close(self) -> None:
        """End the run."""
        self._handle.close()

    def _at(self, stream: str) -> tuple[int, bytes, int]:
        return (self._handle.value, *_native.chars(stream))

    def _relation(self, name: str) -> list[dict[str, Any]]:
        batch = _native.call_handle("rb_manual_relation", *self._at(name))
        return [] if batch is None else Batch(batch).to_pylist()

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _text(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    return str(value)

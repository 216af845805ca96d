"""Queries: what one SQL text means, run once or subscribed to."""

from __future__ import annotations

import collections
import contextlib
import functools
import json
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from riverbed import _arrow, _native
from riverbed.batch import Batch, Shape
from riverbed.errors import RiverbedUsageError
from riverbed.pipeline import Pipeline

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from riverbed.connectors import Connector
    from riverbed.session import Session

__all__ = ["Query", "Subscription"]

T = TypeVar("T")


class Query:
    """A planned statement. It runs when it is read, each time anew.

    A query over files and tables is read with `to_arrow`, `to_polars`, `to_pandas`, `to_pylist`, `batches`, `show`,
    or handed to any library that takes Arrow streams. A query over streams is read with `subscribe`, or sent on with
    `sink`. A statement without rows (CREATE, INSERT, SET, …) has run already and has no columns.
    """

    def __init__(self, handle: _native.Handle | None, session: Session, prompt: bool = False) -> None:
        self._handle = handle
        self._prompt = prompt  # to start a run waits for nothing
        self._session = session  # it lives as long as its queries
        self._callbacks = session._callbacks

    @property
    def _number(self) -> int:
        if self._handle is None:
            raise RiverbedUsageError("the statement has run and has no rows")
        return self._handle.value

    @functools.cached_property
    def _described(self) -> dict[str, Any]:
        if self._handle is None:
            return {"columns": [], "live": False, "pipeline": False}
        described: dict[str, Any] = json.loads(_native.call_text("rb_query_describe", self._number))
        return described

    @property
    def is_live(self) -> bool:
        """Whether it reads a stream, so that only `subscribe` and `sink` can read it."""
        return bool(self._described["live"])

    @property
    def is_pipeline(self) -> bool:
        """Whether it is an INSERT INTO a sink over live input, which `pipeline()` makes runnable."""
        return bool(self._described["pipeline"])

    @property
    def follows(self) -> bool:
        """Whether it reads `__late` or `__bad`: as a pipeline it takes what the others of its session leave out."""
        return bool(self._described["follows"])

    @property
    def schema(self) -> list[tuple[str, str]]:
        """Names and SQL types of the columns.

        Examples
        --------
        >>> import riverbed as rb
        >>> rb.sql("SELECT 1 AS a, 'x' AS b").schema
        [('a', 'INTEGER'), ('b', 'VARCHAR')]
        """
        return [(c["name"], c["type"]) for c in self._described["columns"]]

    @property
    def columns(self) -> list[str]:
        """Names of the columns.

        Examples
        --------
        >>> import riverbed as rb
        >>> rb.sql("SELECT 1 AS a, 'x' AS b").columns
        ['a', 'b']
        """
        return [name for name, _ in self.schema]

    @property
    def bad_rows(self) -> int:
        """How many rows its last run left out because an expression failed on them (`on_error = 'bad'`).

        The rows themselves stand in `__bad`, with their place in the source and the error. A run over streams counts
        its own in `metrics()`.

        Examples
        --------
        >>> import riverbed as rb
        >>> session = rb.Session(config={"on_error": "bad"})
        >>> _ = session.sql("CREATE TABLE t AS SELECT * FROM (VALUES ('1'), ('x'), ('3')) v(s)")
        >>> query = session.sql("SELECT s::INTEGER AS n FROM t")
        >>> query.to_pylist(), query.bad_rows
        ([{'n': 1}, {'n': 3}], 1)
        >>> session.sql("SELECT position, row FROM __bad").to_pylist()
        [{'position': 'rowid 1', 'row': "{'s': x}"}]
        """
        if self._handle is None:
            return 0
        described = json.loads(_native.call_text("rb_query_describe", self._number))
        return int(described["bad_rows"])

    def batches(self) -> Iterator[Batch]:
        """Run, and hand out the result batch by batch; needs no other package.

        Examples
        --------
        >>> import riverbed as rb
        >>> sum(batch.num_rows for batch in rb.sql("SELECT * FROM range(10)").batches())
        10
        """
        if self._handle is None:
            return
        result = self._run()
        try:
            while (batch := self._next(result)) is not None:
                yield Batch(batch)
        finally:
            result.close()

    def to_arrow(self) -> pyarrow.Table:
        """Run, and return a pyarrow Table over the result's memory.

        Examples
        --------
        >>> import riverbed as rb
        >>> rb.sql("SELECT 1 + 1 AS two").to_arrow().to_pydict()
        {'two': [2]}
        """
        pa = _arrow.need("pyarrow", "to_arrow()")
        if self._handle is None:
            return pa.table({})
        result = self._run()
        try:
            schema = pa.schema(_ResultSchema(result))
            batches = []
            while (batch := self._next(result)) is not None:
                batches.append(Batch(batch).to_arrow())
            return pa.Table.from_batches(batches, schema=schema)
        finally:
            result.close()

    def to_polars(self) -> polars.DataFrame:
        """Run, and return a Polars frame over the result's memory.

        Examples
        --------
        >>> import riverbed as rb
        >>> rb.sql("SELECT 1 + 1 AS two").to_polars().item()
        2
        """
        pl = _arrow.need("polars", "to_polars()")
        _arrow.need("pyarrow", "to_polars()")
        frame: polars.DataFrame = pl.from_arrow(self.to_arrow())
        return frame

    def to_pandas(self) -> pandas.DataFrame:
        """Run, and return a pandas frame.

        Examples
        --------
        >>> import riverbed as rb
        >>> rb.sql("SELECT 1 + 1 AS two").to_pandas().two.tolist()
        [2]
        """
        _arrow.need("pandas", "to_pandas()")
        _arrow.need("pyarrow", "to_pandas()")
        return self.to_arrow().to_pandas()

    def to_pylist(self) -> list[dict[str, Any]]:
        """Run, and return the rows as dictionaries of Python values; needs no other package.

        Of columns with equal names (case does not count) the later ones are called `x_1`, `x_2`, … as in a table that
        DuckDB makes of the query; rows of batches and `--json` of the command line are the same.

        Examples
        --------
        >>> import riverbed as rb
        >>> rb.sql("SELECT 1 + 1 AS two").to_pylist()
        [{'two': 2}]
        """
        if self._handle is None:
            return []
        result = self._run()
        try:
            rows: list[dict[str, Any]] = []
            while (batch := self._next(result)) is not None:
                rows += _arrow.read_batch(batch)
            return rows
        finally:
            result.close()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Run, and export the result as a stream that is computed while it is read."""
        if self._handle is None:
            raise RiverbedUsageError("the statement has run and has no rows")
        if self._callbacks.used:
            # The consumer may hold the GIL while it pulls, and a Python function in the query would wait for it.
            return self.to_arrow().__arrow_c_stream__(requested_schema)
        result = self._run()
        stream = _arrow.alloc(_arrow.CStream)
        capsule = _arrow.stream_capsule(stream)
        _native.call("rb_result_stream", result.value, stream)
        return capsule

    def explain(self, mode: str | None = None) -> str:
        """Return the plan as text.

        Parameters
        ----------
        mode : {"batch", "incremental"}, optional
            Explain that mode; the one that would run when left out.

        Examples
        --------
        >>> import riverbed as rb
        >>> print(rb.sql("SELECT 1 AS a").explain().splitlines()[0])
        mode   batch, because every input is bounded
        """
        return _native.call_text("rb_query_explain", self._number, *_native.chars(mode or ""))

    def show(self, limit: int = 40) -> None:
        """Run, and print the first rows as a table; needs no other package.

        Examples
        --------
        >>> import riverbed as rb
        >>> rb.sql("SELECT 1 AS a, 'x' AS b").show()  # doctest: +ELLIPSIS +NORMALIZE_WHITESPACE
        ┌...
        """
        if self._handle is not None:
            print(self._render("text", limit))

    def _repr_html_(self) -> str:
        if self._handle is None:
            return "<p>done</p>"
        return self._render("html", 40)

    def __repr__(self) -> str:
        if self._handle is None:
            return "<riverbed.Query: done>"
        return f"<riverbed.Query: {', '.join(f'{name} {kind}' for name, kind in self.schema)}>"

    def _render(self, form: str, limit: int) -> str:
        number = self._number
        return self._wait(self._handle, _native.call_text, "rb_query_render", number, *_native.chars(form), limit)

    def subscribe(self, *, until: str | None = None, queue_size: int = 0) -> Subscription:
        """Run incrementally, and iterate over the changes step by step.

        Parameters
        ----------
        until : {"latest"}, optional
            End where the sources end now; without it a live query runs until it is closed.
        queue_size : int, optional
            Steps that may wait for a slow reader, who then holds the run back. As many, but no more than 16, may have
            been taken out of the queue before they are read.

        Examples
        --------
        >>> import riverbed as rb
        >>> session = rb.Session()
        >>> words = rb.MemoryStream()
        >>> _ = session.create_stream("words", source=words, schema={"w": "TEXT"})
        >>> words.push([("a",), ("b",)])
        >>> words.end()
        >>> for batch in session.sql("SELECT upper(w) AS w FROM words EMIT IMMEDIATE").subscribe():
        ...     print([(row["w"], row["__weight"]) for row in batch])
        [('A', 1), ('B', 1)]
        """
        options = {"until": until or "", "queue_size": queue_size}
        with self._callbacks.causes():
            handle = _native.wait(
                self._handle, _native.call_handle, "rb_query_subscribe", self._number, *_native.as_json(options)
            )
        assert handle is not None
        return Subscription(handle, self, queue_size)

    def sink(
        self,
        sink: Connector | Callable[[Batch], object],
        *,
        exactly_once: bool = False,
        pipeline_id: str | None = None,
    ) -> Pipeline:
        """Make a pipeline that runs incrementally and writes the changes of every step to a sink.

        Parameters
        ----------
        sink : Connector or callable
            `rb.Kafka(...)`, `rb.Parquet(...)`, `rb.Console()`, or a function that takes a `Batch`.
        exactly_once : bool
            Refuse what cannot show each row exactly once: a sink without commits, a source without positions, a session
            without `checkpoint_url`. With a `checkpoint_url` a sink that can is exactly once in any case.
        pipeline_id : str, optional
            The name under which a pipeline finds its checkpoints and the sink's markers after a restart. Without it one
            is made of the query's text and the sink.

        Raises
        ------
        RiverbedExactlyOnceError
            Exactly-once was asked for, and cannot be kept.

        Examples
        --------
        >>> import riverbed as rb
        >>> session = rb.Session()
        >>> words = rb.MemoryStream()
        >>> _ = session.create_stream("words", source=words, schema={"w": "TEXT"})
        >>> words.push([("a",), ("b",)])
        >>> words.end()
        >>> seen = []
        >>> pipeline = session.sql("SELECT w FROM words EMIT IMMEDIATE").sink(seen.extend)
        >>> pipeline.run().metrics()["state"], [row["w"] for row in seen]
        ('stopped', ['a', 'b'])
        """
        from riverbed import connectors

        if not isinstance(sink, connectors.Connector):
            if not callable(sink):
                raise RiverbedUsageError(f"a sink is a connector or a function, not {type(sink).__name__}")
            sink = connectors.Callable(sink)
        function, context = _native.SINK(), 0
        if isinstance(sink, connectors.Callable):
            function, context = self._callbacks.sink(sink.function)
        spec = sink.spec() | {"exactly_once": exactly_once, "id": pipeline_id or ""}
        if isinstance(sink, connectors.Callable):  # its name tells it from others of the same query
            named = sink.function if hasattr(sink.function, "__qualname__") else type(sink.function)
            spec["options"] = {"function": f"{named.__module__}.{named.__qualname__}"}
        try:
            handle = _native.call_handle("rb_query_sink", self._number, *_native.as_json(spec), function, context)
        except BaseException:
            self._callbacks.forget(context)
            raise
        assert handle is not None
        self._callbacks.bind(context, handle)
        return Pipeline(handle, self)

    def pipeline(self, *, exactly_once: bool = False) -> Pipeline:
        """Return the pipeline of an INSERT INTO a sink; it is not started. Its id is the sink's name.

        Parameters
        ----------
        exactly_once : bool
            Refuse what cannot show each row exactly once; see `sink`.
        """
        spec = _native.as_json({"exactly_once": exactly_once})
        handle = _native.call_handle("rb_query_sink", self._number, *spec, _native.SINK(), 0)
        assert handle is not None
        return Pipeline(handle, self)

    def close(self) -> None:
        """Free the plan, and what it holds of variables that it reads."""
        if self._handle is not None:
            self._handle.close()

    def _run(self) -> _native.Handle:
        if self._prompt:
            result = _native.call_handle("rb_query_run", self._number)
        else:
            result = self._wait(self._handle, _native.call_handle, "rb_query_run", self._number)
        assert result is not None
        return result

    def _next(self, result: _native.Handle) -> _native.Handle | None:
        if not self._callbacks.used:
            return _native.next_batch(result)
        with self._callbacks.causes():
            return _native.next_batch(result)

    def _wait(self, cancel: _native.Handle | None, function: Callable[..., T], *arguments: Any) -> T:
        with self._callbacks.causes():
            return _native.wait(cancel, function, *arguments)


class _ResultSchema:
    def __init__(self, result: _native.Handle) -> None:
        self._result = result

    def __arrow_c_schema__(self) -> object:
        schema = _arrow.alloc(_arrow.CSchema)
        capsule = _arrow.schema_capsule(schema)
        _native.call("rb_result_schema", self._result.value, schema)
        return capsule


class Subscription:
    """A running query whose changes are iterated over: each item is the `Batch` of one step.

    With EMIT IMMEDIATE and EMIT EVERY a batch has the column `__weight`: +1 a row that came, -1 one that went. A slow
    reader holds the run back. Close it, or leave its `with` block, to stop the run.
    """

    _POLL_MS = 50

    def __init__(self, handle: _native.Handle, query: Query, queue_size: int = 0) -> None:
        self._handle = handle
        self._query = query  # it holds what the run reads
        self._room = min(queue_size, _native.ROOM) if queue_size > 0 else _native.ROOM
        self._ready: collections.deque[Batch] = collections.deque()
        self._shape = Shape()

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        while True:
            batch = self._take(self._POLL_MS)
            if batch is not None:
                if batch.num_rows:
                    return batch
            elif self.ended:
                raise StopIteration

    ended: bool = False

    def next(self, timeout: float = 0.0) -> Batch | None:
        """Return the next batch, or None when none came within `timeout` seconds or the run has `ended`.

        Unlike iteration, this also returns empty batches, which carry a watermark alone.
        """
        return self._take(int(timeout * 1000))

    def _take(self, timeout_ms: int) -> Batch | None:
        """Return what was read already, or else read what is there."""
        if self._ready:
            with contextlib.suppress(IndexError):  # another thread may be reading
                return self._ready.popleft()
        with self._query._callbacks.causes():
            changes, self.ended = _native.next_changes(self._handle, timeout_ms, self._room)
        if not changes:
            return None
        batches = [Batch(handle, info, self._shape) for handle, info in changes]
        self._ready.extend(batches[1:])
        return batches[0]

    def metrics(self) -> dict[str, Any]:
        """Return what the run tells about itself; see `PipelineHandle.metrics`."""
        metrics: dict[str, Any] = json.loads(_native.call_text("rb_subscription_metrics", self._handle.value))
        return metrics

    def close(self) -> None:
        """Stop the run."""
        self._ready.clear()
        self._handle.close()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

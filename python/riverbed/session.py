"""Sessions: a catalog, settings, and the statements over them."""

from __future__ import annotations

import inspect
import json
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FrameType, TracebackType
from typing import Any

from riverbed import _arrow, _callbacks, _native, _params
from riverbed.connectors import Connector, MemoryStream
from riverbed.errors import RiverbedSchemaError, RiverbedUsageError
from riverbed.query import Query

__all__ = ["Session", "Stream", "Table", "default_session", "sql"]

Params = Sequence[Any] | Mapping[str, Any] | None
Schema = Mapping[str, str] | Iterable[tuple[str, str]] | Any


class Session:
    """Tables, streams, functions and settings, and the queries over them.

    Parameters
    ----------
    config : mapping, optional
        Settings, lower case without the prefix of the environment variable: `{"parallelism": 4}`. They win over the
        environment; an unknown one is an error that names the nearest.

    Examples
    --------
    >>> import riverbed as rb
    >>> with rb.Session() as session:
    ...     session.sql("CREATE TABLE t AS SELECT 1 AS a UNION ALL SELECT 2")
    ...     session.sql("SELECT sum(a) AS total FROM t").to_pylist()
    <riverbed.Query: done>
    [{'total': 3}]
    """

    def __init__(self, config: Mapping[str, object] | None = None) -> None:
        handle = _native.call_handle("rb_session_open", *_native.as_json(_texts(config or {})))
        assert handle is not None
        self._handle = handle
        self._callbacks = _callbacks.Callbacks()

    def sql(self, query: str, params: Params = None) -> Query:
        """Plan one SQL statement. A query runs when it is read; DDL, DML and SET run at once.

        A name that is no relation of the session and is a pandas, Polars or Arrow variable of the caller can be
        queried; it is not copied.

        Parameters
        ----------
        query : str
            The statement. Of several, separated by semicolons, the last one's query is returned.
        params : sequence or mapping, optional
            Values of the parameters: a list for `$1`, `$2` or `?`, a mapping for `$name` or `:name`. A query that runs
            for ever keeps the values that it was planned with.

        Raises
        ------
        RiverbedSchemaError
            A name does not resolve, types do not unify, or the text is no SQL.

        Examples
        --------
        >>> import riverbed as rb
        >>> rb.Session().sql("SELECT 1 + 1 AS two").to_pylist()
        [{'two': 2}]
        >>> rb.Session().sql("SELECT $1 + 1 AS three, $2 AS word", params=[2, "x"]).to_pylist()
        [{'three': 3, 'word': 'x'}]
        >>> rb.Session().sql("SELECT 2 * :n AS double", {"n": 21}).to_pylist()
        [{'double': 42}]
        """
        return self._sql(query, inspect.currentframe(), params)

    def _sql(self, query: str, frame: FrameType | None, params: Params = None) -> Query:
        if not isinstance(query, str):
            raise RiverbedUsageError(f"sql() takes a str, not {type(query).__name__}")
        values = _params.as_values(params)
        unknown = _native.prepare(self._handle, query)
        if isinstance(unknown, _native.Handle):
            if not values:
                return Query(unknown, self, prompt=True)
            unknown.close()
            unknown = []
        names: list[str] = []
        relations: list[_native.Handle] = []
        try:
            for name in unknown:
                value = _variable(name, frame)
                if value is not None:
                    relations.append(_arrow.import_stream(value))
                    names.append(name)
            with self._callbacks.causes():
                handle = _native.wait(self._handle, _native.run_sql, self._handle, query, names, relations, values)
        except RiverbedSchemaError as error:
            raise _with_variable(error, unknown, frame) from error.__cause__
        finally:
            for relation in relations:
                relation.close()
        return Query(handle, self)

    def create_stream(self, name: str, source: Connector, schema: Schema = None) -> Stream:
        """Declare a stream over a source.

        Parameters
        ----------
        name : str
            How queries name it.
        source : Connector
            Where rows come from: `Kafka`, `Parquet`, `Generator`, `MemoryStream`, …
        schema : mapping, iterable of pairs or Arrow schema, optional
            Column names and SQL types, `{"symbol": "TEXT", "price": "DOUBLE", "ts": "TIMESTAMP"}`. Without it the
            columns are inferred from the first records.

        Examples
        --------
        >>> import riverbed as rb
        >>> session = rb.Session()
        >>> session.create_stream("clicks", source=rb.MemoryStream(), schema={"page": "TEXT"})
        <riverbed.Stream clicks (page VARCHAR)>
        """
        handle = self._create("stream", name, source, schema)
        stream = Stream(self, name)
        if isinstance(source, MemoryStream):
            assert handle is not None
            source._bind(handle, stream.columns)
        return stream

    def create_table(self, name: str, source: Any, schema: Schema = None) -> Table:
        """Declare a table: over files, or in memory from an Arrow, pandas or Polars object.

        Parameters
        ----------
        name : str
            How queries name it.
        source : Connector, or a table of another library
            Files are read when a query runs. An object's rows are copied into the session.
        schema : optional
            As in `create_stream`.

        Examples
        --------
        >>> import riverbed as rb, polars as pl
        >>> session = rb.Session()
        >>> session.create_table("t", source=pl.DataFrame({"a": [1, 2]}))
        <riverbed.Table t (a BIGINT)>
        """
        if isinstance(source, Connector):
            self._create("table", name, source, schema)
        elif _arrow.is_tabular(source) or hasattr(source, "__arrow_c_array__"):
            if schema is not None:
                raise RiverbedUsageError("schema= is for connectors; an Arrow object brings its own")
            relation = _arrow.import_stream(source)
            try:
                _native.call("rb_session_register", self._handle.value, *_native.chars(name), relation.value)
            finally:
                relation.close()
        else:
            _arrow.check_tabular(source)
            raise RiverbedUsageError(
                f"a table cannot be made from {type(source).__name__}\n"
                "Hint: hand over a connector (rb.Parquet(...)) or an Arrow, pandas or Polars object"
            )
        return Table(self, name)

    def _create(self, kind: str, name: str, source: Connector, schema: Schema) -> _native.Handle | None:
        if not isinstance(source, Connector):
            raise RiverbedUsageError(f"source= takes a connector such as rb.Kafka(...), not {type(source).__name__}")
        spec = source.spec() | {
            "kind": kind,
            "name": name,
            "columns": [{"name": n, "type": t} for n, t in _columns(schema)],
            "watermark": source.watermark or "",
            "event_time": source.event_time or "",
        }
        if isinstance(source, MemoryStream) and source.bound:
            raise RiverbedUsageError("this MemoryStream belongs to a stream already\nHint: make one for each stream")
        return _native.wait(
            self._handle, _native.call_handle, "rb_session_create", self._handle.value, *_native.as_json(spec)
        )

    def register_udf(
        self,
        fn: Callable[..., Any],
        *,
        name: str | None = None,
        return_type: str,
        arg_types: Iterable[str] | None = None,
        deterministic: bool = False,
    ) -> None:
        """Make a Python function callable from SQL. It is vectorised: Arrow arrays in, one array of as many values out.

        Parameters
        ----------
        fn : callable
            Takes one `pyarrow.Array` an argument, returns an Arrow array (or anything `pyarrow.array` takes).
        name : str, optional
            The name in SQL; the function's own when left out.
        return_type : str
            The SQL type of the result.
        arg_types : iterable of str, optional
            SQL types of the arguments; any are accepted when left out.
        deterministic : bool
            Whether equal arguments always give equal results. Only then may it stand over data that is updated.

        Examples
        --------
        >>> import riverbed as rb, pyarrow.compute as pc
        >>> session = rb.Session()
        >>> session.register_udf(lambda a: pc.add(a, 1), name="plus_one", return_type="BIGINT")
        >>> session.sql("SELECT plus_one(41) AS x").to_pylist()
        [{'x': 42}]
        """
        if not callable(fn):
            raise RiverbedUsageError(
                f"register_udf takes a function, not {type(fn).__name__}\n"
                'Hint: register_udf(lambda a: a, name="same", return_type="BIGINT")'
            )
        given = name or getattr(fn, "__name__", None)
        if not isinstance(given, str):
            raise RiverbedUsageError(
                "the function has no name of its own\nHint: give it one, register_udf(..., name=...)"
            )
        types = [arg_types] if isinstance(arg_types, str) else arg_types
        if not isinstance(types, (Iterable, type(None))) or not all(isinstance(t, str) for t in types or []):
            raise RiverbedUsageError('arg_types= takes SQL types, such as ["BIGINT", "VARCHAR"]')
        if not isinstance(return_type, str):
            raise RiverbedUsageError('return_type= takes an SQL type, such as "BIGINT"')
        spec = {
            "name": given,
            "args": list(types or []),
            "returns": return_type,
            "deterministic": deterministic,
        }
        function, context = self._callbacks.udf(fn)
        _native.call("rb_session_udf", self._handle.value, *_native.as_json(spec), function, context)

    def statements(self, script: str) -> list[str]:
        """Split a script into its statements, without running them.

        Examples
        --------
        >>> import riverbed as rb
        >>> rb.Session().statements("CREATE TABLE t (a INT); SELECT ';' FROM t;")
        ['CREATE TABLE t (a INT)', "SELECT ';' FROM t"]
        """
        statements: list[str] = json.loads(_native.call_text("rb_statements", *_native.chars(script)))
        return statements

    def replay(
        self,
        pipeline_id: str,
        *,
        repaired: str | os.PathLike[str] | None = None,
        source: str | None = None,
        into: str | None = None,
    ) -> dict[str, int]:
        """Feed bad rows of a pipeline back to where their stream reads, each row once, and count them.

        The session has the pipeline's streams, and its `checkpoint_url`. Which rows went back is kept in checkpoints of
        its own, so that a replay may be asked for again, also after a crash.

        Parameters
        ----------
        pipeline_id : str
            Whose rows.
        repaired : str or path-like, optional
            JSON lines or Parquet with the columns `number` and `raw` of `state('pipeline', '__bad')`: these rows go
            back, as they are there. Without it all rows that have bytes go back as they were.
        source : str, optional
            Only rows of this stream.
        into : str, optional
            A sink of the session which takes the column `raw`, instead of the topic or the folder of the stream.

        Returns
        -------
        dict
            How many rows were `replayed`, how many had gone back `already`, and how many have `no_bytes`.
        """
        spec = {
            "pipeline": pipeline_id,
            "repaired": os.fspath(repaired) if repaired is not None else "",
            "source": source or "",
            "into": into or "",
        }
        told = _native.wait(
            self._handle, _native.call_text, "rb_session_replay", self._handle.value, *_native.as_json(spec)
        )
        counts: dict[str, int] = json.loads(told)
        return counts

    def functions(self) -> list[dict[str, Any]]:
        """Return what SQL functions there are: one dictionary each, as `SHOW FUNCTIONS` gives them.

        Examples
        --------
        >>> import riverbed as rb
        >>> next(f["kind"] for f in rb.Session().functions() if f["name"] == "upper")
        'scalar'
        """
        return self.sql("SHOW FUNCTIONS").to_pylist()

    def close(self) -> None:
        """Stop what runs in the session, and free it. Nothing works afterwards."""
        self._handle.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Relation:
    """A named relation of a session. `str()` gives the name, quoted where SQL needs it."""

    def __init__(self, session: Session, name: str) -> None:
        self._session = session
        self.name = name

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Names and SQL types of the columns."""
        return self.query().schema

    def query(self) -> Query:
        """Return `SELECT * FROM` it."""
        return self._session.sql(f"SELECT * FROM {self}")

    def __str__(self) -> str:
        return _arrow.quoted(self.name)

    def __repr__(self) -> str:
        columns = ", ".join(f"{name} {kind}" for name, kind in self.columns)
        return f"<riverbed.{type(self).__name__} {self} ({columns})>"


class Stream(Relation):
    """A stream, as `Session.create_stream` returns it.

    Attributes
    ----------
    name : str
        Its name in SQL.
    """


class Table(Relation):
    """A table, as `Session.create_table` returns it.

    Attributes
    ----------
    name : str
        Its name in SQL.
    """

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the rows as an Arrow stream."""
        return self.query().__arrow_c_stream__(requested_schema)


def _texts(config: Mapping[str, object]) -> dict[str, str]:
    from riverbed.connectors.base import as_text

    if not isinstance(config, Mapping):
        raise RiverbedUsageError(f'config= takes {{"setting": value, ...}}, not {type(config).__name__}')
    return {name: as_text(value) for name, value in config.items() if value is not None}


def _columns(schema: Schema) -> list[tuple[str, str]]:
    if schema is None:
        return []
    if isinstance(schema, Mapping):
        return [(str(n), str(t)) for n, t in schema.items()]
    if hasattr(schema, "__arrow_c_schema__"):
        return _arrow.sql_columns(schema)
    pairs = list(schema) if isinstance(schema, Iterable) else [schema]
    if not all(isinstance(p, (tuple, list)) and len(p) == 2 for p in pairs):
        raise RiverbedSchemaError('schema= takes {"column": "TYPE", ...}, pairs of both, or an Arrow schema')
    return [(str(n), str(t)) for n, t in pairs]


def _variable(name: str, frame: FrameType | None) -> Any:
    """Find a pandas, Polars or Arrow variable in the frames of the caller, nearest first."""
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] != "riverbed":
            for scope in (frame.f_locals, frame.f_globals):
                value = scope.get(name)
                if value is not None and _arrow.is_tabular(value):
                    return value
        frame = frame.f_back
    return None


def _with_variable(error: RiverbedSchemaError, unknown: list[str], frame: FrameType | None) -> RiverbedSchemaError:
    """Let the error about a name that is no relation say what the caller's variable of that name is."""
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "riverbed":
        frame = frame.f_back
    for name in unknown:
        if frame is None or not error.message.endswith(f'"{name}"'):
            continue
        scope = next((scope for scope in (frame.f_locals, frame.f_globals) if name in scope), None)
        if scope is None:
            continue
        kind = type(scope[name]).__name__
        if kind == "LazyFrame":
            hint = f"the variable {name} is a LazyFrame; its collect() can be queried"
        else:
            hint = f"the variable {name} is of the type {kind}, no table of Arrow, pandas or Polars"
        return type(error)(
            str(error).partition("\nHint: ")[0] + f"\nHint: {hint}",
            message=error.message,
            hint=hint,
            line=error.line,
            column=error.column,
            sql=error.sql,
        )
    return error


_default: Session | None = None
_default_lock = threading.Lock()


def default_session() -> Session:
    """Return the session that the module-level `sql` uses; it is made at the first call."""
    global _default
    with _default_lock:
        if _default is None:
            _default = Session()
    return _default


def sql(query: str, params: Params = None) -> Query:
    """Plan one SQL statement in the default session; see `Session.sql`.

    Examples
    --------
    >>> import riverbed as rb
    >>> rb.sql("SELECT 'hello' AS greeting").to_pylist()
    [{'greeting': 'hello'}]
    """
    return default_session()._sql(query, sys._getframe(), params)

"""Rows pushed by the program itself."""

from __future__ import annotations

import ctypes
import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from riverbed import _arrow, _native, _values
from riverbed.connectors import _columns
from riverbed.connectors.base import Connector
from riverbed.errors import RiverbedSchemaError, RiverbedUsageError

__all__ = ["MemoryStream"]

Row = Mapping[str, Any] | Sequence[Any]


class MemoryStream(Connector):
    """A stream that the program pushes rows into.

    Give it to `Session.create_stream` with a schema, then push. Pushes before the first run wait for it; a push
    waits while the run is behind by more than the queue holds.

    Parameters
    ----------
    watermark, event_time : str, optional
        See `Connector`. Without one, set the watermark by hand with `advance`.
    upsert : bool
        The stream is a table by key: a row takes the place of the row of its key, and `delete` takes it away.
    primary_key : str or list of str, optional
        The columns of the key of such a stream.
    **options
        Further options; `docs/connectors/memory.md` lists them.

    Examples
    --------
    >>> import riverbed as rb
    >>> session = rb.Session()
    >>> clicks = rb.MemoryStream()
    >>> _ = session.create_stream("clicks", source=clicks, schema={"page": "VARCHAR"})
    >>> clicks.push([{"page": "/"}, {"page": "/about"}, {"page": "/"}])
    >>> clicks.end()
    >>> query = session.sql("SELECT page, count(*) AS n FROM clicks GROUP BY page ORDER BY n DESC LIMIT 1")
    >>> [row for batch in query.subscribe() for row in batch]
    [{'page': '/', 'n': 2, '__weight': 1}]

    A table by key:

    >>> stock = rb.MemoryStream(upsert=True, primary_key="item")
    >>> _ = session.create_stream("stock", source=stock, schema={"item": "VARCHAR", "n": "BIGINT"})
    >>> stock.push([("pen", 3), ("ink", 1), ("pen", 2)])
    >>> stock.delete([("ink",)])
    >>> stock.end()
    >>> [row for batch in session.sql("SELECT item, n FROM stock").subscribe(until="latest") for row in batch]
    [{'item': 'pen', 'n': 2, '__weight': 1}]
    """

    def __init__(
        self,
        *,
        watermark: str | None = None,
        event_time: str | None = None,
        upsert: bool | None = None,
        primary_key: str | Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            "memory", watermark=watermark, event_time=event_time, upsert=upsert, primary_key=primary_key, **options
        )
        self._handle: _native.Handle | None = None
        self._columns: list[tuple[str, str]] = []
        self._takes = _columns.Takes([])
        self._layout: _Layout | None = None  # of the last batch that was lent

    def _bind(self, handle: _native.Handle, columns: list[tuple[str, str]]) -> None:
        self._handle, self._columns, self._takes = handle, columns, _columns.Takes(columns)

    @property
    def bound(self) -> bool:
        """Whether a stream was made over it."""
        return self._handle is not None

    @property
    def _bound(self) -> int:
        if self._handle is None:
            raise RiverbedUsageError(
                "this MemoryStream belongs to no stream\nHint: give it to Session.create_stream first"
            )
        return self._handle.value

    def push(self, rows: Any | Iterable[Row], *, split: str = "") -> None:
        """Append rows: an Arrow, pandas or Polars object, or dictionaries or tuples of Python values.

        Python values become those of the columns' types where nothing is lost (2.0 as a BIGINT, a date as a TIMESTAMP,
        scalars of NumPy); texts of dates, times, UUIDs and decimals are read, and decimals rounded, as CAST does. So a
        text in a TIMESTAMP column keeps the time that it shows, whatever its offset; a datetime with a time zone is
        a moment, and becomes that moment in UTC. In TIMESTAMP WITH TIME ZONE both are moments, without a zone in UTC.

        Columns of Arrow, pandas and Polars objects have the stream's types, or become them where nothing is lost:
        numbers and times of other widths and units, whole floats as integers, integers as decimals, dates as
        timestamps, dictionaries, columns without values; a DOUBLE becomes the nearest FLOAT. A value that does not fit
        is an error that names it, and so is a type that means something else (a text is no number, a number no text):
        both say how to cast. The order of columns does not matter, and the index of a pandas frame is no column.

        Arrow and Polars data of the stream's own types are not copied: they are read where they lie, and held until the
        changes made of them are read. So arrays over memory that is written to again (of NumPy, of a file that changes)
        are not to be pushed.

        A column named `__weight` says how often each row is inserted (or, negative, retracted), once where a row says
        nothing; the stream has to be declared as updating for that. Of an upsert stream -1 deletes the key.
        """
        number, (name, size) = self._bound, _native.chars(split)
        layout = self._layout
        if layout is not None and not layout.fits(rows):
            layout = None
        frozen = layout is not None or type(rows).__module__.partition(".")[0] in _FROZEN
        parts: Iterable[Any] = pieces(rows, self._columns, self._takes) if layout is None else (rows,)
        for piece in parts:
            if frozen and piece.num_rows >= _LENT_ROWS and piece.num_columns == len(self._columns):
                full = (layout or self._layout_of(piece)).lend(number, name, piece)
            else:
                array, schema, _keep = exported(piece)
                full = _native.call_handle("rb_stream_push", number, name, size, array, schema)
            if full is not None:  # only a push that waits costs a helper thread
                _native.wait(self._handle, _native.call, "rb_push_wait", full.value)
                full.close()

    def _layout_of(self, batch: Any) -> _Layout:
        layout = self._layout
        if layout is None or not layout.fits(batch):
            layout = self._layout = _Layout(batch)
        return layout

    def delete(self, keys: Iterable[Row | Any], *, split: str = "") -> None:
        """Delete rows of an upsert stream.

        Parameters
        ----------
        keys : iterable of tuples or mappings
            The values of the columns of the key; where it has one column, plain values will do. Deleting a key that is
            not there changes nothing.
        split : str
            As in `push`.
        """
        names = [name.strip() for name in self.options.get("primary_key", "").split(",") if name.strip()]
        if not names:
            raise RiverbedUsageError(
                "this MemoryStream has no key to delete by\nHint: make it with upsert=True, primary_key=…"
            )
        if len(names) == 1 and isinstance(keys, Iterable) and not isinstance(keys, (str, bytes)):
            keys = [key if isinstance(key, (Mapping, tuple, list)) else (key,) for key in keys]
        rows = []
        for key in _listed(keys, "delete", "keys"):
            if not isinstance(key, Mapping):
                if len(key) != len(names):
                    raise RiverbedSchemaError(f"a key has {len(names)} values, one for each of {', '.join(names)}")
                key = dict(zip(names, key, strict=True))
            rows.append({**key, "__weight": -1})
        self.push(rows, split=split)

    def advance(self, watermark: str | datetime.datetime | int, *, split: str = "") -> None:
        """Set the watermark: behind the rows pushed so far no earlier event time will come."""
        _native.call("rb_stream_watermark", self._bound, *_native.chars(split), _values.to_micros(watermark))

    def idle(self, *, split: str = "") -> None:
        """Say that no rows come until the next push: others need not wait for this stream's watermark."""
        _native.call("rb_stream_idle", self._bound, *_native.chars(split))

    def end(self) -> None:
        """End the stream: all its windows close."""
        _native.call("rb_stream_end", self._bound)


# Whose data nobody changes in place. A pandas frame may be changed when push has returned.
_FROZEN = ("pyarrow", "polars", "riverbed")

# A batch of fewer rows is copied sooner than it is kept track of.
_LENT_ROWS = 256


class _Layout:
    """The schema of batches in the order of a stream, as the library has read it: once, and not for every batch."""

    def __init__(self, batch: Any) -> None:
        schema = _arrow.CSchema()
        batch.schema._export_to_c(ctypes.addressof(schema))
        handle = _native.call_handle("rb_layout_open", ctypes.addressof(schema))
        assert handle is not None
        self._handle, self._number = handle, handle.value
        self._schema, self._kind = batch.schema, type(batch)

    def fits(self, rows: Any) -> bool:
        """Whether rows are a batch of this schema."""
        return type(rows) is self._kind and bool(rows.schema.equals(self._schema, True))

    def lend(self, stream: int, split: bytes, batch: Any) -> _native.Handle | None:
        """Push a batch that is not copied; the handle of a push that has to wait, or None."""
        array = _arrow.CArray()
        address = ctypes.addressof(array)
        batch._export_to_c(address)
        try:
            return _native.lend(stream, split, address, self._number)
        except BaseException:
            _arrow.release(array)  # if it was not taken
            raise


def pieces(rows: Any, columns: list[tuple[str, str]], takes: _columns.Takes | None = None) -> Iterable[Any]:
    """Give rows as batches of pyarrow with the columns in order, or, of Python values, as one `_arrow.Rows`."""
    if isinstance(rows, (Mapping, str, bytes)):
        raise RiverbedUsageError("push takes a list of rows\nHint: put the row into a list")
    if _arrow.is_tabular(rows) or hasattr(rows, "__arrow_c_array__"):
        return _in_order(rows, [name for name, _ in columns], takes or _columns.Takes(columns))
    known = {name for name, _ in columns}
    rows = _listed(rows, "push", "rows")
    if "__weight" not in known and any(isinstance(r, Mapping) and "__weight" in r for r in rows):
        columns = [*columns, ("__weight", "BIGINT")]
        rows = [_weighted(row, len(known)) for row in rows]
    return [_arrow.Rows(columns, rows)]


def exported(piece: Any) -> tuple[int, int, Any]:
    """Give a piece as (ArrowArray address, ArrowSchema address, what keeps them alive)."""
    if isinstance(piece, _arrow.Rows):
        return *piece.addresses, piece
    array, schema = _arrow.CArray(), _arrow.CSchema()
    addresses = ctypes.addressof(array), ctypes.addressof(schema)
    piece._export_to_c(*addresses)
    return *addresses, (array, schema)


def _weighted(row: Any, columns: int) -> Any:
    """Return a row among rows with weights; one that says nothing of its weight is inserted once."""
    if isinstance(row, Mapping):
        return {"__weight": 1, **row}
    return (*row, 1) if len(row) == columns else row


def _listed(values: Any, call: str, what: str) -> list[Any]:
    """Return what a call was given as a list of dictionaries and tuples."""
    _arrow.check_tabular(values)
    if not isinstance(values, Iterable) or isinstance(values, (str, bytes)):
        raise RiverbedUsageError(
            f"{call} takes a list of {what}, not {type(values).__name__}\n"
            'Hint: [{"column": value}, ...] or [(value, ...), ...], or an Arrow, pandas or Polars object'
        )
    out = list(values)
    for value in out:
        if isinstance(value, (str, bytes)) or not (isinstance(value, Mapping) or hasattr(value, "__len__")):
            raise RiverbedUsageError(
                f"{call} takes a list of {what}, each a dictionary or a tuple of values, not {type(value).__name__}\n"
                "Hint: one of a single column is (value,)"
            )
    return out


def _in_order(rows: Any, names: list[str], takes: _columns.Takes) -> list[Any]:
    """Return the batches of an Arrow-like object with the columns of a stream, in its order and of its types."""
    pa = _arrow.need("pyarrow", "push() of an Arrow, pandas or Polars object")
    if isinstance(rows, pa.RecordBatch) and rows.schema.names == names:
        rows = takes.converted(rows)
        return rows.to_batches() if isinstance(rows, pa.Table) else [rows]
    table = pa.table(_arrow.arrow_table(rows))
    for name in table.column_names:
        if name not in names and name != "__weight":
            raise RiverbedSchemaError(f"the stream has no column {name!r}; its columns are {', '.join(names)}")
    for name in names:
        if name not in table.column_names:
            raise RiverbedSchemaError(f"the rows have no column {name!r}, which the stream has")
    weight = ["__weight"] if "__weight" in table.column_names else []
    batches: list[Any] = takes.converted(table.select(names + weight)).to_batches()
    return batches

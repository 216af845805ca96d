"""Arrow without pyarrow: C structs, capsules, batches ↔ Python values.

`show()`, `to_pylist()` and `riverbed.testing` work in a process that has no pyarrow. Values are Python's own: int,
float, bool, str, bytes, date, time, datetime, timedelta, Decimal, UUID, list, dict.
"""

from __future__ import annotations

import ctypes
import datetime as dt
import decimal
import functools
import importlib
import itertools
import re
import struct
import uuid
from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Any

from riverbed import _native, _values
from riverbed.errors import RiverbedSchemaError, RiverbedUsageError


def need(package: str, what: str) -> Any:
    """Import a package that only some calls need, or say which call needs it."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:  # it is there, and lacks something itself
            raise
        raise RiverbedUsageError(
            f"{what} needs the package {package}, which is not installed\n"
            f"Hint: pip install {package}; to_pylist(), batches() and show() need no other package",
            hint=f"pip install {package}",
        ) from error


class CSchema(ctypes.Structure):
    """struct ArrowSchema."""


class CArray(ctypes.Structure):
    """struct ArrowArray."""


class CStream(ctypes.Structure):
    """struct ArrowArrayStream."""


RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

CSchema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(CSchema))),
    ("dictionary", ctypes.POINTER(CSchema)),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]
CArray._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(CArray))),
    ("dictionary", ctypes.POINTER(CArray)),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]
CStream._fields_ = [
    ("get_schema", ctypes.c_void_p),
    ("get_next", ctypes.c_void_p),
    ("get_last_error", ctypes.c_void_p),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]


# --- capsules -------------------------------------------------------------------------------------------------------


@functools.cache
def _new_capsule() -> Any:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new


@functools.cache
def _destructor(name: str) -> Any:
    return ctypes.cast(getattr(_native.library(), name), ctypes.c_void_p)


def _capsule(address: int, name: bytes, destructor: str) -> object:
    return _new_capsule()(address, name, _destructor(destructor))


# Names live as long as the capsules that point at them.
_SCHEMA, _ARRAY, _STREAM = b"arrow_schema", b"arrow_array", b"arrow_array_stream"


def alloc(kind: type[ctypes.Structure]) -> int:
    """Zeroed C memory for a struct that a capsule will own."""
    return int(_native.library().rb_alloc(ctypes.sizeof(kind)))


def schema_capsule(address: int) -> object:
    """Own a filled struct by a capsule of the Arrow PyCapsule protocol."""
    return _capsule(address, _SCHEMA, "rb_capsule_schema")


def array_capsule(address: int) -> object:
    """Own a filled struct by a capsule of the Arrow PyCapsule protocol."""
    return _capsule(address, _ARRAY, "rb_capsule_array")


def stream_capsule(address: int) -> object:
    """Own a filled struct by a capsule of the Arrow PyCapsule protocol."""
    return _capsule(address, _STREAM, "rb_capsule_stream")


def capsule_address(capsule: object, name: bytes) -> int:
    """Return the address of the struct in somebody's capsule."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype = ctypes.c_void_p
    get.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return int(get(capsule, name))


# What is one column exports Arrow streams and arrays too.
_COLUMNS = {"Series", "ChunkedArray", "Array"}


def check_tabular(source: Any) -> None:
    """Raise an error that says what to do with a column, or with a query of another library that has not run."""
    kind = type(source).__name__
    if kind == "LazyFrame":
        raise RiverbedUsageError(
            "a LazyFrame is a query that has not run, and has no rows yet\nHint: hand over what its collect() returns",
            hint="hand over what its collect() returns",
        )
    bases = {base.__name__ for base in type(source).__mro__}
    column = "Series" in bases or (bases & _COLUMNS and hasattr(source, "type"))
    if column and "StructArray" not in bases:
        hint = "make a table of it: " + (
            "its to_frame()" if "Series" in bases else 'pyarrow.table({"name": column}), by the name of the column'
        )
        raise RiverbedUsageError(f"this {kind} is one column and no table\nHint: {hint}", hint=hint)
    columns = getattr(source, "columns", None)
    if isinstance(columns, Sized) and len(columns) == 0:
        raise RiverbedUsageError(
            f"this {kind} has no columns\nHint: a table has at least one; rows it may lack",
            hint="a table has at least one; rows it may lack",
        )


def arrow_table(source: Any) -> Any:
    """Return what has `__arrow_c_stream__` for anything Arrow-like: the one place where frames come in.

    The index of a pandas frame is no column, whatever it is and whatever pandas' own export makes of it.
    """
    check_tabular(source)
    if _is_pandas(source):
        pa = need("pyarrow", f"reading a {type(source).__name__}")
        try:
            return pa.Table.from_pandas(source, preserve_index=False)
        except pa.ArrowException as cause:
            hint = "a column has values of one type; see frame.dtypes, and astype() changes one"
            raise RiverbedSchemaError(f"this DataFrame is no table: {'; '.join(map(str, cause.args))}\nHint: {hint}",
                                      hint=hint) from cause  # fmt: skip
    if hasattr(source, "__arrow_c_stream__"):
        return source
    pa = need("pyarrow", f"reading a {type(source).__name__}")
    return pa.Table.from_batches([pa.record_batch(source)])


def import_stream(source: Any) -> _native.Handle:
    """Move anything Arrow-like into the library."""
    capsule = arrow_table(source).__arrow_c_stream__()
    relation = _native.call_handle("rb_import_stream", capsule_address(capsule, _STREAM))
    assert relation is not None
    return relation


def _is_pandas(value: object) -> bool:
    return any(c.__name__ == "DataFrame" and c.__module__.partition(".")[0] == "pandas" for c in type(value).__mro__)


def is_tabular(value: object) -> bool:
    """Whether a variable can be queried by its name."""
    if isinstance(value, type):
        return False
    return (
        hasattr(value, "__arrow_c_stream__")
        or (hasattr(value, "__arrow_c_array__") and type(value).__name__ == "RecordBatch")
        or _is_pandas(value)
    )


# --- reading --------------------------------------------------------------------------------------------------------

_EPOCH_DAY = dt.date(1970, 1, 1)
_FIXED = {"c": "b", "C": "B", "s": "h", "S": "H", "i": "i", "I": "I", "l": "q", "L": "Q", "f": "f", "g": "d"}
_UNIT = {"s": 1_000_000, "m": 1_000, "u": 1}


def read_batch(batch: _native.Handle) -> list[dict[str, Any]]:
    """Return a batch's rows as dictionaries."""
    array, schema = CArray(), CSchema()
    _native.call("rb_batch_export", batch.value, ctypes.addressof(array), ctypes.addressof(schema))
    try:
        names = distinct([schema.children[i].contents.name.decode() for i in range(schema.n_children)])
        columns = [_read(array.children[i].contents, schema.children[i].contents) for i in range(array.n_children)]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)] if columns else []
    finally:
        release(array)
        release(schema)


def distinct(names: list[str]) -> list[str]:
    """Tell equal names apart by a number behind them, as DuckDB does when it makes a table of a query.

    Examples
    --------
    >>> distinct(["x", "x", "x_1", "X"])
    ['x', 'x_1', 'x_1_1', 'X_2']
    """
    taken: dict[str, int] = {}
    out = []
    for name in names:
        new = name
        while new.lower() in taken:
            new = f"{name}_{taken[name.lower()]}"
            taken[name.lower()] += 1
        taken[new.lower()] = 1
        out.append(new)
    return out


def release(value: ctypes.Structure) -> None:
    """Release an Arrow struct in place, if it is not released."""
    if value.release:
        RELEASE(value.release)(ctypes.addressof(value))


def schema_names(schema: CSchema) -> list[str]:
    """Return the column names of a schema."""
    return [schema.children[i].contents.name.decode() for i in range(schema.n_children)]


# Words that are no names unless quoted; a test compares them with the parser's list.
_RESERVED = """
    all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create default
    deferrable desc describe distinct do else end except false fetch for foreign from group having in initially
    intersect into lambda lateral leading limit not null offset on only or order pivot pivot_longer pivot_wider placing
    primary qualify references returning select show some summarize symmetric table then to trailing true union unique
    unpivot using variadic when where window with anti asof at authorization between binary collation concurrently cross
    freeze full glob ilike inner is isnull join left like natural notnull outer overlaps positional right semi similar
    tablesample verbose"""


def quoted(name: str) -> str:
    """Write a name as SQL needs it.

    Examples
    --------
    >>> print(quoted("orders"), quoted("order"), quoted("Two words"))
    orders "order" "Two words"
    """
    if re.fullmatch("[a-z_][a-z0-9_]*", name) and name not in _RESERVED.split():
        return name
    return '"' + name.replace('"', '""') + '"'


_SQL = {
    "c": "TINYINT", "s": "SMALLINT", "i": "INTEGER", "l": "BIGINT", "C": "UTINYINT", "S": "USMALLINT",
    "I": "UINTEGER", "L": "UBIGINT", "f": "FLOAT", "g": "DOUBLE", "b": "BOOLEAN", "u": "VARCHAR", "U": "VARCHAR",
    "vu": "VARCHAR", "z": "BLOB", "Z": "BLOB", "vz": "BLOB", "tdD": "DATE", "ttu": "TIME", "tin": "INTERVAL",
}  # fmt: skip
_SQL_TIMES = {"s": "TIMESTAMP_S", "m": "TIMESTAMP_MS", "u": "TIMESTAMP", "n": "TIMESTAMP_NS"}


def sql_columns(source: Any) -> list[tuple[str, str]]:
    """Return names and SQL types of an Arrow schema."""
    capsule = source.__arrow_c_schema__()
    schema = CSchema.from_address(capsule_address(capsule, _SCHEMA))
    return [
        (schema.children[i].contents.name.decode(), _sql_type(schema.children[i].contents))
        for i in range(schema.n_children)
    ]


def _sql_type(schema: CSchema) -> str:
    form = schema.format.decode()
    if form in _SQL:
        return _SQL[form]
    if form.startswith("ts"):
        return "TIMESTAMP WITH TIME ZONE" if form[4:] else _SQL_TIMES[form[2]]
    if form.startswith("d:"):
        return f"DECIMAL({','.join(form[2:].split(',')[:2])})"
    children = [schema.children[i].contents for i in range(schema.n_children)]
    if form in ("+l", "+L"):
        return f"{_sql_type(children[0])}[]"
    if form == "+s":
        return "STRUCT(" + ", ".join(f"{quoted(c.name.decode())} {_sql_type(c)}" for c in children) + ")"
    raise RiverbedSchemaError(
        f"column {schema.name.decode()!r} has an Arrow type ({form}) that a stream's schema cannot have"
    )


def _metadata(schema: CSchema) -> dict[str, str]:
    if not schema.metadata:
        return {}
    at, out = schema.metadata, {}

    def number() -> int:
        nonlocal at
        value = ctypes.c_int32.from_address(at).value
        at += 4
        return value

    def text() -> str:
        nonlocal at
        size = number()
        value = ctypes.string_at(at, size).decode()
        at += size
        return value

    for _ in range(number()):
        key = text()
        out[key] = text()
    return out


def _read(array: CArray, schema: CSchema) -> list[Any]:
    values = _decoded(array, schema)
    bitmap = array.buffers[0] if array.n_buffers and array.null_count != 0 else None
    if not bitmap:
        return values
    bits = ctypes.string_at(bitmap, (array.offset + array.length + 7) // 8)
    return [
        value if bits[(array.offset + i) >> 3] >> ((array.offset + i) & 7) & 1 else None
        for i, value in enumerate(values)
    ]


def _numbers(array: CArray, code: str, buffer: int = 1, extra: int = 0) -> tuple[Any, ...]:
    size, count = struct.calcsize(code), array.length + extra
    if count == 0:
        return ()
    data = ctypes.string_at(array.buffers[buffer] + array.offset * size, count * size)
    return struct.unpack(f"={count}{code}", data)


def _decoded(array: CArray, schema: CSchema) -> list[Any]:
    form = schema.format.decode()
    n = array.length
    if n == 0:
        return []
    if form in _FIXED:
        return list(_numbers(array, _FIXED[form]))
    if form == "n":
        return [None] * n
    if form == "b":
        bits = ctypes.string_at(array.buffers[1], (array.offset + n + 7) // 8)
        return [bool(bits[(array.offset + i) >> 3] >> ((array.offset + i) & 7) & 1) for i in range(n)]
    if form in ("u", "z"):
        offsets = _numbers(array, "i", extra=1)
        data = ctypes.string_at(array.buffers[2] + offsets[0], offsets[-1] - offsets[0]) if offsets[-1] else b""
        parts = [data[a - offsets[0] : b - offsets[0]] for a, b in itertools.pairwise(offsets)]
        return [p.decode() for p in parts] if form == "u" else list(parts)
    if form == "tdD":
        return [_day(v) for v in _numbers(array, "i")]
    if form == "ttu":
        return [(_values.EPOCH + dt.timedelta(microseconds=v)).time() if 0 <= v < 86_400_000_000 else v
                for v in _numbers(array, "q")]  # fmt: skip
    if form.startswith("ts"):
        zone = dt.UTC if form[4:] else None
        return [_moment(v, form[2], zone) for v in _numbers(array, "q")]
    if form == "tin":
        data = ctypes.string_at(array.buffers[1] + array.offset * 16, n * 16)
        return [_interval(*struct.unpack_from("=iiq", data, 16 * i)) for i in range(n)]
    if form.startswith("d:"):
        scale = int(form[2:].split(",")[1])
        data = ctypes.string_at(array.buffers[1] + array.offset * 16, n * 16)
        kind = _metadata(schema).get("riverbed.type")
        signed = kind != "UHUGEINT"
        numbers = [int.from_bytes(data[16 * i : 16 * i + 16], "little", signed=signed) for i in range(n)]
        if kind in ("HUGEINT", "UHUGEINT"):
            return list(numbers)
        return [decimal.Decimal(v).scaleb(-scale, _EXACT) for v in numbers]
    if form.startswith("w:"):
        width = int(form[2:])
        data = ctypes.string_at(array.buffers[1] + array.offset * width, n * width)
        parts = [data[width * i : width * i + width] for i in range(n)]
        return [uuid.UUID(bytes=p) for p in parts] if _metadata(schema).get("riverbed.type") == "UUID" else list(parts)
    if form in ("+l", "+m"):
        offsets = _numbers(array, "i", extra=1)
        child = _read(array.children[0].contents, schema.children[0].contents)
        lists = [child[a:b] for a, b in itertools.pairwise(offsets)]
        if form == "+l":
            return list(lists)
        key, value = schema_names(schema.children[0].contents)
        return [{e[key]: e[value] for e in entries} for entries in lists]
    if form == "+s":
        names = schema_names(schema)
        columns = [
            _read(array.children[i].contents, schema.children[i].contents)[array.offset : array.offset + n]
            for i in range(array.n_children)
        ]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    raise RiverbedSchemaError(f"a column of the Arrow format {form!r} cannot be read without pyarrow")


_EXACT = decimal.Context(prec=60)


def _day(days: int) -> Any:
    try:
        return _EPOCH_DAY + dt.timedelta(days=days)
    except OverflowError:
        return days  # before year 1 or after 9999: Python has no date for it


def _moment(value: int, unit: str, zone: dt.tzinfo | None) -> Any:
    try:
        micros = value // 1000 if unit == "n" else value * _UNIT[unit]
        return (_values.EPOCH + dt.timedelta(microseconds=micros)).replace(tzinfo=zone)
    except OverflowError:
        return value


def _interval(months: int, days: int, nanoseconds: int) -> Any:
    if months == 0:
        return dt.timedelta(days=days, microseconds=nanoseconds // 1000)
    return {"months": months, "days": days, "nanoseconds": nanoseconds}


# --- writing --------------------------------------------------------------------------------------------------------


class Rows:
    """Python rows as one Arrow batch, in the memory of this object: it must outlive the call that gets the pair.

    The receiver copies during the call and releases; release is a function of the library that marks and nothing more.
    """

    def __init__(self, columns: Sequence[tuple[str, str]], rows: Iterable[Mapping[str, Any] | Sequence[Any]]) -> None:
        self._keep: list[Any] = []
        names = [name for name, _ in columns]
        table: list[list[Any]] = [[] for _ in columns]
        self.length = 0
        for row in rows:
            self.length += 1
            for column, value in zip(table, _in_order(names, row), strict=True):
                column.append(value)
        children = [self._column(name, kind, values) for (name, kind), values in zip(columns, table, strict=True)]
        self.array, self.schema = CArray(), CSchema()
        self._fill(self.array, self.length, [None], [a for a, _ in children])
        self._describe(self.schema, "+s", "", [s for _, s in children])

    @property
    def addresses(self) -> tuple[int, int]:
        """The pair to hand over."""
        return ctypes.addressof(self.array), ctypes.addressof(self.schema)

    def _column(self, name: str, sql: str, values: list[Any]) -> tuple[CArray, CSchema]:
        kind, plain = _values.kind_of(sql), list(values)
        at = 0
        try:
            for at, value in enumerate(values):
                if value is not None and type(value) is not kind.own:
                    plain[at] = kind.plain(value)
            return self._plain(name, kind, plain)
        except _UNFIT as cause:
            # Where the whole column does not fit, one of its values does not.
            if not isinstance(cause, _values.MisfitError):
                at = next((i for i, value in enumerate(plain) if not _fits(kind, value)), at)
            why = str(cause) if isinstance(cause, _values.MisfitError) else "it does not fit"
            raise RiverbedSchemaError(
                f"column {name!r} takes {sql}, and rows[{at}] has {values[at]!r:.80} ({type(values[at]).__name__})"
                + (f": {why}" if why else "")
            ) from cause

    def _plain(self, name: str, kind: _values.Kind, values: list[Any]) -> tuple[CArray, CSchema]:
        array, schema = CArray(), CSchema()
        valid = bytearray((len(values) + 7) // 8)
        nulls = 0
        for i, value in enumerate(values):
            if value is None:
                nulls += 1
            else:
                valid[i >> 3] |= 1 << (i & 7)
        children = [self._plain(*child) for child in kind.children(values)]
        buffers = [bytes(valid) if nulls else None, *kind.buffers(values)]
        self._fill(array, len(values), buffers, [a for a, _ in children], nulls)
        self._describe(schema, kind.format, name, [s for _, s in children], kind.meta)
        return array, schema

    def _fill(
        self, array: CArray, length: int, buffers: list[bytes | None], children: list[CArray], nulls: int = 0
    ) -> None:
        pointers = (ctypes.c_void_p * len(buffers))()
        for i, data in enumerate(buffers):
            if data is not None:
                memory = ctypes.create_string_buffer(data, max(len(data), 1))
                pointers[i] = ctypes.addressof(memory)
                self._keep.append(memory)
        array.length, array.null_count, array.n_buffers = length, nulls, len(buffers)
        array.buffers = ctypes.cast(pointers, ctypes.POINTER(ctypes.c_void_p))
        array.release = ctypes.cast(_native.library().rb_release_borrowed_array, ctypes.c_void_p).value
        self._keep += [pointers, children]
        if children:
            array.n_children, array.children = len(children), self._pointers(CArray, children)

    def _describe(self, schema: CSchema, form: str, name: str, children: list[CSchema], meta: str = "") -> None:
        schema.format, schema.name, schema.flags = form.encode(), name.encode(), 2
        if meta:
            texts = [struct.pack("=i", len(text)) + text for text in (b"riverbed.type", meta.encode())]
            memory = ctypes.create_string_buffer(struct.pack("=i", 1) + b"".join(texts))
            schema.metadata = ctypes.addressof(memory)
            self._keep.append(memory)
        schema.release = ctypes.cast(_native.library().rb_release_borrowed_schema, ctypes.c_void_p).value
        self._keep += [schema.format, schema.name, children]
        if children:
            schema.n_children, schema.children = len(children), self._pointers(CSchema, children)

    def _pointers(self, kind: Any, items: list[Any]) -> Any:
        pointers = (ctypes.POINTER(kind) * len(items))(*[ctypes.pointer(i) for i in items])
        self._keep.append(pointers)
        return ctypes.cast(pointers, ctypes.POINTER(ctypes.POINTER(kind)))


def _in_order(names: list[str], row: Mapping[str, Any] | Sequence[Any]) -> Iterable[Any]:
    if isinstance(row, Mapping):
        unknown = [key for key in row if key not in names]
        if unknown:
            raise RiverbedSchemaError(f"no column {unknown[0]!r}; the columns are {', '.join(names)}")
        return [row.get(name) for name in names]
    if isinstance(row, (str, bytes)) or len(row) != len(names):
        raise RiverbedSchemaError(f"a row has {len(names)} values, one for each of {', '.join(names)}")
    return row


# What packing a value that does not fit raises.
_UNFIT = (_values.MisfitError, struct.error, OverflowError, UnicodeError)


def _fits(kind: _values.Kind, value: Any) -> bool:
    try:
        kind.buffers([value])
    except _UNFIT:
        return False
    return True

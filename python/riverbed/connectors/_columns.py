"""Columns of frames that are pushed, as columns of the types of the stream: converted where nothing is lost.

The layouts of one SQL type (large texts, views, dictionaries of texts) are the library's to read; here types change.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from typing import Any

from riverbed import _arrow
from riverbed.errors import RiverbedSchemaError, RiverbedUsageError


class Takes:
    """The columns of a stream, and what is to be done with batches of a schema: asked once for each schema."""

    def __init__(self, columns: Sequence[tuple[str, str]]) -> None:
        self._types = dict(columns) | {"__weight": "BIGINT"}
        self._schema: Any = None  # the last one that was asked about
        self._odd: list[tuple[int, Any]] = []  # numbers of its columns that are converted, and what to

    def converted(self, table: Any) -> Any:
        """Return a table or record batch as one with columns of the types of the stream, where that loses nothing.

        What cannot be converted stays as it is: the library takes it, or refuses it with a hint.
        """
        if self._schema is None or not table.schema.equals(self._schema, True):
            self._odd = [(i, want) for i, f in enumerate(table.schema) if (want := self._wanted(f)) is not None]
            self._schema = table.schema
        if self._odd and not hasattr(table, "to_batches"):
            table = _arrow.need("pyarrow", "push()").Table.from_batches([table])
        for i, want in self._odd:
            if (made := self._convert(table.column(i), want)) is not None:
                table = table.set_column(i, want, made)
        return table

    def _wanted(self, field: Any) -> Any:
        """Return the field that a column has to become; None when it is left as it is."""
        want = _field(field.name, self._types[field.name]) if field.name in self._types else None
        if want is None or (field.name == "__weight" and not _is(field.type, "is_integer")):
            return None  # the library says what a weight is
        if _is(field.type, "is_null"):
            return want
        if _sql_type(want) == "UHUGEINT" or _sql_type(field) in ("UHUGEINT", "UUID", "JSON"):
            return None
        have = field.type
        if _same(have, want.type):
            return want if _sql_type(want) == "HUGEINT" != _sql_type(field) else None
        return want if _may(have, want.type) else None

    def _convert(self, column: Any, want: Any) -> Any:
        """Return a column as a field says; None where pyarrow has no such cast."""
        pa = _arrow.need("pyarrow", "push()")
        try:
            made = _cast(column, want.type)
            if not _loses(column, made):
                return made
        except pa.ArrowNotImplementedError:
            return None
        except pa.ArrowInvalid:
            pass
        low, high = 0, len(column)  # the first value that does not fit is in between
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if _misfits(column.slice(low, middle - low), want.type) else (middle, high)
        sql = self._types[want.name]
        name = _arrow.quoted(want.name)
        hint = (
            "leave such rows out, or cast the column, as in "
            f"push(session.sql('SELECT * REPLACE (CAST({name} AS {sql}) AS {name}) FROM frame'))"
        )
        raise RiverbedSchemaError(
            f"column {want.name!r} takes {sql}, and rows[{low}] has {column[low]!s:.80} ({column.type}): "
            f"it does not fit\nHint: {hint}",
            hint=hint,
        )


@functools.lru_cache(maxsize=1024)
def _field(name: str, sql: str) -> Any:
    """Return a column of a SQL type as a field of pyarrow; None for a type that is left to the library."""
    pa = _arrow.need("pyarrow", "push()")
    try:
        empty = _arrow.Rows([(name, sql)], [])
    except RiverbedUsageError:
        return None
    return pa.Schema._import_from_c(empty.addresses[1]).field(0)


def _sql_type(field: Any) -> str:
    """Return the SQL type that a field says beside its Arrow type."""
    return ((field.metadata or {}).get(b"riverbed.type") or b"").decode()


def _is(kind: Any, *kinds: str) -> bool:
    types = _arrow.need("pyarrow", "push()").types
    return any(getattr(types, name)(kind) for name in kinds if hasattr(types, name))


_TEXTS = ("is_string", "is_large_string", "is_string_view")
_BLOBS = ("is_binary", "is_large_binary", "is_binary_view", "is_fixed_size_binary")
_LISTS = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")


def _same(have: Any, want: Any) -> bool:
    """Whether the library reads a type as another."""
    if _is(have, "is_dictionary"):
        have = have.value_type
    if _is(have, "is_timestamp") and _is(want, "is_timestamp"):  # the zone is for those who show it
        return have.unit == want.unit and (have.tz is None) == (want.tz is None)
    return have == want or any(_is(have, *kinds) and _is(want, *kinds) for kinds in (_TEXTS, _BLOBS))


def _may(have: Any, want: Any, *, inside: bool = False) -> bool:
    """Whether values of a type may be those of another; inside others only where the cast itself says what is lost."""
    if _same(have, want) or _is(have, "is_null"):
        return True
    if _is(have, "is_dictionary"):
        return _may(have.value_type, want, inside=inside)
    if _is(have, *_LISTS) and _is(want, *_LISTS):
        return _may(have.value_type, want.value_type, inside=True)
    if _is(have, "is_struct") and _is(want, "is_struct"):
        fields = [(have.field(i), want.field(i)) for i in range(min(have.num_fields, want.num_fields))]
        return have.num_fields == want.num_fields and all(
            a.name == b.name and _may(a.type, b.type, inside=True) for a, b in fields
        )
    if _is(have, "is_map") and _is(want, "is_map"):
        return _may(have.key_type, want.key_type, inside=True) and _may(have.item_type, want.item_type, inside=True)
    if _is(want, "is_integer"):
        return _is(have, "is_integer", "is_boolean", "is_floating", "is_decimal")
    if _is(want, "is_floating"):
        wide = _is(have, "is_floating") and _narrows(have, want)
        return _is(have, "is_integer", "is_boolean", "is_floating") and not (inside and wide)
    if _is(want, "is_decimal"):
        return _is(have, "is_integer", "is_decimal")
    if _is(want, "is_timestamp"):
        return _is(have, "is_timestamp", "is_date")
    if _is(want, "is_date"):
        return _is(have, "is_date") or (_is(have, "is_timestamp") and have.tz is None and not inside)
    return _is(want, "is_time") and _is(have, "is_time")


def _narrows(have: Any, want: Any) -> bool:
    return bool(want.bit_width < have.bit_width)


def _cast(column: Any, want: Any) -> Any:
    """Cast with a check of every value that pyarrow checks."""
    pa = _arrow.need("pyarrow", "push()")
    if _is(column.type, "is_null"):
        return pa.nulls(len(column), want)
    if _is(column.type, "is_dictionary"):
        column = column.cast(column.type.value_type)
    if _is(column.type, "is_integer") and _is(want, "is_decimal"):
        column = column.cast(pa.decimal256(76, want.scale))  # pyarrow wants room for any integer, before it looks
    if _is(want, "is_nested"):  # a slice has the values of all rows, which pyarrow would cast, and stumble over
        with contextlib.suppress(pa.ArrowNotImplementedError):  # views cannot be taken, only cast
            column = column.take(pa.array(range(len(column)), pa.int64()))
    return column.cast(want)


def _loses(column: Any, made: Any) -> bool:
    """Whether a cast has lost what pyarrow does not look at: the time of day, and what no FLOAT reaches."""
    pc = _arrow.need("pyarrow.compute", "push()")
    if _is(made.type, "is_date") and _is(column.type, "is_timestamp"):
        return bool(pc.any(pc.not_equal(made.cast(column.type), column)).as_py())
    if _is(made.type, "is_floating") and _is(column.type, "is_floating") and _narrows(column.type, made.type):
        return bool(pc.any(pc.and_(pc.is_inf(made), pc.invert(pc.is_inf(column)))).as_py())
    return False


def _misfits(column: Any, want: Any) -> bool:
    pa = _arrow.need("pyarrow", "push()")
    try:
        return _loses(column, _cast(column, want))
    except pa.ArrowInvalid:
        return True

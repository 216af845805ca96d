"""What a Python value is as a value of a SQL type: nothing is lost in silence.

A value is taken where the SQL type can hold it (2.0 as a BIGINT, a date as a TIMESTAMP, scalars of NumPy); texts of
dates, times and numbers are read, and numbers rounded, as CAST does. Everything else is `MisfitError`.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import functools
import math
import re
import struct
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from riverbed.errors import RiverbedUsageError

EPOCH = dt.datetime(1970, 1, 1)
_EPOCH_DAY = dt.date(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)
_DAY = 86_400_000_000


class MisfitError(ValueError):
    """A value that a SQL type cannot hold; the text, if any, says why."""


@dataclasses.dataclass(frozen=True)
class Kind:
    """How a column of a SQL type is written.

    Attributes
    ----------
    format : str
        The Arrow format.
    own : type
        Values of exactly this type are plain already.
    plain : callable
        Makes a value plain, what `buffers` takes; None for a null of another package. Raises `MisfitError`.
    buffers : callable
        The Arrow buffers behind the validity bitmap, of plain values and None.
    children : callable
        Names, kinds and values of the child columns.
    meta : str
        The SQL type, where others share the format.
    """

    format: str
    own: type | None
    plain: Callable[[Any], Any]
    buffers: Callable[[list[Any]], list[bytes]]
    children: Callable[[list[Any]], list[tuple[str, Kind, list[Any]]]] = lambda values: []
    meta: str = ""


@functools.lru_cache(maxsize=1024)
def kind_of(sql: str) -> Kind:
    """Return how a column of a SQL type, as `Query.schema` names it, is written."""
    if sql in _NUMBERS:
        form, code, plain, own = _NUMBERS[sql]
        return Kind(form, own, plain, _packed(code))
    if sql in _PLAIN:
        return _PLAIN[sql]
    if sql in _MOMENTS:
        form, per, zoned = _MOMENTS[sql]
        return Kind(form, None, lambda value: _units(value, per, zoned=zoned), _packed("q"))
    if sql.endswith("[]"):
        return _list(kind_of(sql[:-2]))
    name, _, arguments = sql.removesuffix(")").partition("(")
    if name == "DECIMAL":
        width, scale = (int(part) for part in arguments.split(","))
        return Kind(f"d:{width},{scale}", None, lambda value: _decimal(value, width, scale), _wide)
    if name == "STRUCT":
        return _struct([_field(part) for part in _parts(arguments)])
    if name == "MAP":
        key, value = _parts(arguments)
        return _map(kind_of(key), kind_of(value))
    raise RiverbedUsageError(
        f"Python values cannot be turned into {sql}\nHint: hand over an Arrow table, such as pyarrow.table(...)"
    )


# --- moments --------------------------------------------------------------------------------------------------------


def to_micros(value: Any) -> int:
    """Turn a moment (datetime, date, ISO 8601 text, or microseconds) into microseconds since 1970, UTC."""
    try:
        return int(_units(value, 1000, zoned=True))
    except (MisfitError, TypeError) as cause:
        raise RiverbedUsageError(
            f"{value!r:.80} is no moment in time\n"
            "Hint: a moment is a datetime, a text such as '2026-01-31 12:00:00', or microseconds since 1970, UTC"
        ) from cause


def from_micros(value: int) -> dt.datetime | None:
    """Turn microseconds since 1970 into a moment in UTC; None for what lies outside Python's years."""
    try:
        return EPOCH.replace(tzinfo=dt.UTC) + dt.timedelta(microseconds=value)
    except OverflowError:
        return None


def _units(value: Any, per: int, *, zoned: bool) -> Any:
    """Return a moment in units of so many nanoseconds, rounded to whole milliseconds and seconds as CAST does."""
    nanos = _nanos(value, zoned=zoned)
    if nanos is None or per <= 1000:
        return None if nanos is None else nanos // per
    micros, per = nanos // 1000, per // 1000
    rounded = (abs(micros) + per // 2) // per  # half away from 1970
    return rounded if micros >= 0 else -rounded


def _nanos(value: Any, *, zoned: bool) -> int | None:
    if _name(value) == "numpy.datetime64":
        micros = value.astype("M8[us]")
        if micros != micros:  # NaT
            return None
        return int(micros.astype("i8")) * 1000 + int((value - micros).astype("m8[ns]").astype("i8"))
    value = _unboxed(value)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return value * 1000
    finer = 0
    if isinstance(value, str):
        try:
            moment = dt.datetime.fromisoformat(value.strip())
        except ValueError as cause:
            raise MisfitError(str(cause)) from cause
        more = re.search(r"[.,]\d{6}(\d{1,3})", value)
        finer = int(more[1].ljust(3, "0")) if more else 0
        if not zoned:  # CAST keeps the time on the clock of the text
            moment = moment.replace(tzinfo=None)
    elif isinstance(value, dt.datetime):
        moment, finer = value, getattr(value, "nanosecond", 0)
    elif isinstance(value, dt.date):
        moment = dt.datetime(value.year, value.month, value.day)
    else:
        raise MisfitError
    if moment.tzinfo is not None:
        moment = moment.astimezone(dt.UTC).replace(tzinfo=None)
    return int((moment - EPOCH) // _MICROSECOND) * 1000 + finer


def _days(value: Any) -> Any:
    value = _unboxed(value)
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = dt.date.fromisoformat(value.strip())
        except ValueError as cause:
            raise MisfitError(str(cause)) from cause
    elif isinstance(value, dt.datetime):
        if value.tzinfo is not None or value.time() != dt.time():
            raise MisfitError("it has a time of day")
        value = value.date()
    elif not isinstance(value, dt.date):
        raise MisfitError
    return (value - _EPOCH_DAY).days


def _time(value: Any) -> Any:
    value = _unboxed(value)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _DAY:
        return value  # microseconds: 24:00:00 is read as them, Python has no such time
    if isinstance(value, str):
        try:
            value = dt.time.fromisoformat(value.strip())
        except ValueError as cause:
            raise MisfitError(str(cause)) from cause
    if not isinstance(value, dt.time):
        raise MisfitError
    if value.tzinfo is not None:
        raise MisfitError("it has a time zone")
    return (dt.datetime.combine(_EPOCH_DAY, value) - EPOCH) // _MICROSECOND


def _interval(value: Any) -> Any:
    value = _unboxed(value)
    if value is None:
        return None
    if isinstance(value, Mapping) and set(value) <= {
        "months",
        "days",
        "nanoseconds",
    }:  # as intervals with months are read
        return tuple(_whole(value.get(part, 0)) for part in ("months", "days", "nanoseconds"))
    if not isinstance(value, dt.timedelta):
        raise MisfitError
    return 0, value.days, (value - dt.timedelta(days=value.days)) // _MICROSECOND * 1000


# --- numbers --------------------------------------------------------------------------------------------------------


def _whole(value: Any) -> Any:
    value = _unboxed(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, decimal.Decimal) and value.is_finite() and value.adjusted() < 40 and value == int(value):
        return int(value)
    if value is None:
        return None
    raise MisfitError


def _real(value: Any) -> Any:
    value = _unboxed(value)
    if value is None:
        return None
    if not isinstance(value, (int, float, decimal.Decimal)):
        raise MisfitError
    return float(value)


def _truth(value: Any) -> Any:
    value = _whole(value)
    if value not in (0, 1, None):
        raise MisfitError
    return value


# Rounds once, from the value as it is, and half away from zero as CAST does.
_ROUND = decimal.Context(prec=100, rounding=decimal.ROUND_HALF_UP, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)


def _decimal(value: Any, width: int, scale: int) -> Any:
    value = _unboxed(value)
    if value is None:
        return None
    if isinstance(value, float):
        # As CAST of a DOUBLE: times the power of ten, then rounded.
        if not math.isfinite(value):
            raise MisfitError("it is no finite number")
        scaled = value * float(10**scale)
        if abs(scaled) >= 1e39:
            raise MisfitError("it does not fit")
        number = math.trunc(scaled)
        number += int(math.copysign(1, scaled)) if abs(scaled - number) >= 0.5 else 0
    elif isinstance(value, (int, str, decimal.Decimal)):
        try:
            exact = decimal.Decimal(value)
        except decimal.InvalidOperation as cause:
            raise MisfitError from cause
        if not exact.is_finite():
            raise MisfitError("it is no finite number")
        if exact.adjusted() > width - scale:
            raise MisfitError("it does not fit")
        number = int(exact.quantize(decimal.Decimal((0, (1,), -scale)), context=_ROUND).scaleb(scale, _ROUND))
    else:
        raise MisfitError
    if abs(number) >= 10**width:
        raise MisfitError("it does not fit")
    return number


def _huge(low: int, high: int) -> Callable[[Any], Any]:
    def plain(value: Any) -> Any:
        number = _whole(value)
        if number is None or low <= number <= high:
            return number
        raise MisfitError("it does not fit")

    return plain


# --- texts, bytes ---------------------------------------------------------------------------------------------------


def _text(value: Any) -> Any:
    value = _unboxed(value)
    if value is not None and not isinstance(value, str):
        raise MisfitError
    return value


def _bytes(value: Any) -> Any:
    value = _unboxed(value)
    if value is not None and not isinstance(value, (bytes, bytearray, memoryview)):
        raise MisfitError
    return None if value is None else bytes(value)


def _uuid(value: Any) -> Any:
    value = _unboxed(value)
    if isinstance(value, str):
        try:
            value = uuid.UUID(value.strip())
        except ValueError as cause:
            raise MisfitError(str(cause)) from cause
    if value is None:
        return None
    if not isinstance(value, uuid.UUID):
        raise MisfitError
    return value.bytes


# --- lists, structs, maps -------------------------------------------------------------------------------------------


def _list(element: Kind) -> Kind:
    def plain(value: Any) -> Any:
        value = _unboxed(value)
        if value is None:
            return None
        if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
            raise MisfitError
        return [_inner(element, item) for item in value]

    def children(values: list[Any]) -> list[tuple[str, Kind, list[Any]]]:
        return [("item", element, [item for value in values if value is not None for item in value])]

    return Kind("+l", None, plain, lambda values: [_offsets(values)], children)


def _struct(fields: list[tuple[str, Kind]]) -> Kind:
    names = [name for name, _ in fields]

    def plain(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, Mapping):
            for name in value:
                if name not in names:
                    raise MisfitError(f"it has no field {name!r}")
            value = [value.get(name) for name in names]
        elif not isinstance(value, (tuple, list)):
            raise MisfitError
        if len(value) != len(fields):
            raise MisfitError(f"it has {len(fields)} fields")
        return [_inner(kind, item) for (_, kind), item in zip(fields, value, strict=True)]

    def children(values: list[Any]) -> list[tuple[str, Kind, list[Any]]]:
        return [
            (name, kind, [None if value is None else value[i] for value in values])
            for i, (name, kind) in enumerate(fields)
        ]

    return Kind("+s", None, plain, lambda values: [], children)


def _map(key: Kind, value: Kind) -> Kind:
    entry = _struct([("key", key), ("value", value)])

    def plain(given: Any) -> Any:
        if given is None:
            return None
        if not isinstance(given, Mapping):
            raise MisfitError
        entries = [entry.plain(pair) for pair in given.items()]
        keys = [pair[0] for pair in entries]
        if None in keys:
            raise MisfitError("a key is None")
        if any(k in keys[:i] for i, k in enumerate(keys)) and len(set(map(repr, keys))) < len(keys):
            raise MisfitError("two keys are equal")
        return entries

    def children(values: list[Any]) -> list[tuple[str, Kind, list[Any]]]:
        return [("entries", entry, [pair for value in values if value is not None for pair in value])]

    return Kind("+m", None, plain, lambda values: [_offsets(values)], children)


def _inner(kind: Kind, value: Any) -> Any:
    """Return a plain value within another, where no later look at the whole column finds what does not fit."""
    if value is None:
        return None
    try:
        made = kind.plain(value)
        if made is not None and not kind.format.startswith("+"):
            kind.buffers([made])
    except (MisfitError, struct.error, OverflowError, UnicodeError) as cause:
        raise MisfitError(
            str(cause) if isinstance(cause, MisfitError) and str(cause) else f"{value!r:.40} in it does not fit"
        ) from cause
    return made


def _parts(text: str) -> list[str]:
    """Split at the commas that are within no brackets and no quotes."""
    parts, depth, inside, start = [], 0, False, 0
    for i, character in enumerate(text):
        if character == '"':
            inside = not inside
        elif not inside:
            depth += (character == "(") - (character == ")")
            if character == "," and depth == 0:
                parts.append(text[start:i].strip())
                start = i + 1
    return [*parts, text[start:].strip()]


def _field(text: str) -> tuple[str, Kind]:
    """Return name and kind of a field of a STRUCT, `a INTEGER` or `"A b" INTEGER`."""
    quoted = re.match(r'"((?:[^"]|"")*)"\s+', text)
    if quoted:
        return quoted[1].replace('""', '"'), kind_of(text[quoted.end() :])
    name, _, sql = text.partition(" ")
    return name, kind_of(sql.strip())


# --- buffers --------------------------------------------------------------------------------------------------------


def _packed(code: str) -> Callable[[list[Any]], list[bytes]]:
    return lambda values: [struct.pack(f"={len(values)}{code}", *[0 if v is None else v for v in values])]


def _wide(values: list[Any]) -> list[bytes]:
    return [b"".join((0 if v is None else v & (1 << 128) - 1).to_bytes(16, "little") for v in values)]


def _bits(values: list[Any]) -> list[bytes]:
    out = bytearray((len(values) + 7) // 8)
    for i, value in enumerate(values):
        if value:
            out[i >> 3] |= 1 << (i & 7)
    return [bytes(out)]


def _var(values: list[bytes]) -> list[bytes]:
    return [_offsets(values), b"".join(values)]


def _offsets(values: list[Any]) -> bytes:
    offsets, at = [0], 0
    for value in values:
        at += 0 if value is None else len(value)
        offsets.append(at)
    return struct.pack(f"={len(offsets)}i", *offsets)


def _intervals(values: list[Any]) -> list[bytes]:
    return [b"".join(struct.pack("=iiq", *(value or (0, 0, 0))) for value in values)]


# --- values of other packages ---------------------------------------------------------------------------------------


def _name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__name__}"


def _unboxed(value: Any) -> Any:
    """Return the Python value in a scalar or an array of NumPy; None for the nulls of pandas."""
    module = type(value).__module__.partition(".")[0]
    if module == "numpy":
        name = type(value).__name__
        if name in ("datetime64", "timedelta64"):  # of nanoseconds, item() is a number
            return value.astype(f"{value.dtype.kind}8[us]").item()
        return value.tolist()
    if module == "pandas" and type(value).__name__ in ("NaTType", "NAType"):
        return None
    return value


_NUMBERS: dict[str, tuple[str, str, Callable[[Any], Any], type]] = {
    "TINYINT": ("c", "b", _whole, int),
    "SMALLINT": ("s", "h", _whole, int),
    "INTEGER": ("i", "i", _whole, int),
    "BIGINT": ("l", "q", _whole, int),
    "UTINYINT": ("C", "B", _whole, int),
    "USMALLINT": ("S", "H", _whole, int),
    "UINTEGER": ("I", "I", _whole, int),
    "UBIGINT": ("L", "Q", _whole, int),
    "FLOAT": ("f", "f", _real, float),
    "DOUBLE": ("g", "d", _real, float),
}

# The Arrow format, the nanoseconds of its unit, and whether a moment is one of the whole world.
_MOMENTS = {
    "TIMESTAMP_S": ("tss:", 1_000_000_000, False),
    "TIMESTAMP_MS": ("tsm:", 1_000_000, False),
    "TIMESTAMP": ("tsu:", 1000, False),
    "TIMESTAMP_NS": ("tsn:", 1, False),
    "TIMESTAMP WITH TIME ZONE": ("tsu:UTC", 1000, True),
}

_PLAIN = {
    "BOOLEAN": Kind("b", bool, _truth, _bits),
    "VARCHAR": Kind("u", str, _text, lambda values: _var([(v or "").encode() for v in values])),
    "JSON": Kind("u", str, _text, lambda values: _var([(v or "").encode() for v in values]), meta="JSON"),
    "BLOB": Kind("z", bytes, _bytes, lambda values: _var([v or b"" for v in values])),
    "DATE": Kind("tdD", None, _days, _packed("i")),
    "TIME": Kind("ttu", None, _time, _packed("q")),
    "INTERVAL": Kind("tin", None, _interval, _intervals),
    "UUID": Kind("w:16", None, _uuid, lambda values: [b"".join(v or bytes(16) for v in values)], meta="UUID"),
    "HUGEINT": Kind("d:38,0", None, _huge(-(2**127), 2**127 - 1), _wide, meta="HUGEINT"),
    "UHUGEINT": Kind("d:38,0", None, _huge(0, 2**128 - 1), _wide, meta="UHUGEINT"),
}

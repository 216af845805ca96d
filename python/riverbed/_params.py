"""The values of a statement's parameters, as the library takes them."""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from riverbed.errors import RiverbedUsageError


def as_values(params: Sequence[Any] | Mapping[str, Any] | None) -> dict[str, Any]:
    """Give each value its number or name, and write it as a text with its SQL type."""
    if params is None:
        return {}
    if isinstance(params, Mapping):
        if not all(isinstance(name, str) for name in params):
            raise RiverbedUsageError("the names of parameters are str")
        return {name: _value(value) for name, value in params.items()}
    if isinstance(params, (str, bytes)) or not isinstance(params, Sequence):
        raise RiverbedUsageError(
            f"params= takes a list or a mapping, not {type(params).__name__}\n"
            "Hint: one value is a list of one: params=[value]"
        )
    return {str(number): _value(value) for number, value in enumerate(params, 1)}


def _typed(kind: str, text: str) -> dict[str, Any]:
    return {"type": kind, "text": text}


def _value(value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return _typed("BOOLEAN", str(value))
    if isinstance(value, int):
        return _typed("", str(int(value)))
    if isinstance(value, float):
        return _typed("DOUBLE", repr(float(value)))
    if isinstance(value, str):
        return _typed("VARCHAR", str(value))
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _typed("BLOB", bytes(value).hex())
    if isinstance(value, decimal.Decimal):
        return _decimal(value)
    if isinstance(value, datetime.datetime):
        return _typed("TIMESTAMP" if value.tzinfo is None else "TIMESTAMPTZ", value.isoformat(" "))
    if isinstance(value, datetime.date):
        return _typed("DATE", value.isoformat())
    if isinstance(value, datetime.time):
        return _typed("TIME", value.isoformat())
    if isinstance(value, datetime.timedelta):
        micros = value.seconds * 1_000_000 + value.microseconds
        return _typed("INTERVAL", f"{value.days} days {micros} microseconds")
    if isinstance(value, uuid.UUID):
        return _typed("UUID", str(value))
    if isinstance(value, Mapping):
        return {"fields": [{"name": str(name), "value": _value(field)} for name, field in value.items()]}
    if isinstance(value, (list, tuple)):
        return {"list": [_value(item) for item in value]}
    if hasattr(value, "tolist"):  # numpy: a scalar or an array
        return _value(value.tolist())
    raise RiverbedUsageError(f"a parameter cannot be a {type(value).__name__}")


def _decimal(value: decimal.Decimal) -> dict[str, Any]:
    if not value.is_finite():
        return _typed("DOUBLE", str(value))
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    width = max(len(digits) + max(exponent, 0), scale + 1)
    if width > 38:
        return _typed("DOUBLE", str(value))
    return _typed(f"DECIMAL({width}, {scale})", f"{value:f}")

"""What all connectors are."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable
from typing import Any

from riverbed.connectors import _options

__all__ = ["Connector"]


class Connector:
    """A connector's name and its options.

    Parameters
    ----------
    connector : str
        The name, as in `CREATE STREAM … WITH (connector = 'name')`.
    watermark : str, optional
        An SQL expression over the columns: no earlier event time will come, `"ts - INTERVAL '5 seconds'"`.
    event_time : str, optional
        The column that the watermark is for; found in the expression when it names one column.
    **options
        As in `WITH (…)`. Booleans, numbers, lists, durations and paths are written as the library reads them;
        None leaves an option out.

    Examples
    --------
    >>> import riverbed as rb
    >>> rb.Connector("kafka", topic="trades", brokers=["a:9092", "b:9092"])
    Connector('kafka', topic='trades', brokers='a:9092,b:9092')
    """

    def __init__(
        self, connector: str, *, watermark: str | None = None, event_time: str | None = None, **options: Any
    ) -> None:
        _options.check(connector, type(self).__name__ if type(self) is not Connector else connector, options)
        self.connector = connector
        self.watermark = watermark
        self.event_time = event_time
        self.options = {name: as_text(value) for name, value in options.items() if value is not None}

    def spec(self) -> dict[str, Any]:
        """Return the connector as the library takes it."""
        return {"connector": self.connector, "options": self.options}

    def __repr__(self) -> str:
        shown = {k: "***" if _secret(k) else v for k, v in self.options.items()}
        first = [repr(self.connector)] if type(self) is Connector else []
        return f"{type(self).__name__}({', '.join(first + [f'{k}={v!r}' for k, v in shown.items()])})"


def as_text(value: Any) -> str:
    """Write an option's value as the library reads it.

    Examples
    --------
    >>> as_text(True), as_text(["a", "b"]), as_text(datetime.timedelta(seconds=5))
    ('true', 'a,b', '5000ms')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.timedelta):
        return f"{value // datetime.timedelta(milliseconds=1)}ms"
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if isinstance(value, Iterable):
        return ",".join(as_text(v) for v in value)
    return str(value)


def _secret(name: str) -> bool:
    return any(word in name for word in ("password", "secret", "token", "headers", "storage_options"))

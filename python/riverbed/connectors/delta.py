"""Delta Lake tables."""

from __future__ import annotations

import datetime
import os
from typing import Any

from riverbed.connectors.base import Connector

__all__ = ["Delta"]


class Delta(Connector):
    """A Delta Lake table: one version of it as a table, or its versions one after another as a stream.

    Parameters
    ----------
    path : str or path-like
        The folder that holds `_delta_log`.
    version : int, optional
        The version to read instead of the newest; a stream begins with it.
    timestamp : str or datetime, optional
        Read the version that was the newest at this time, in UTC unless it says otherwise.
    append_only : bool, optional
        Rows are never changed or deleted, so that the stream only adds rows.
    watermark, event_time : str, optional
        See `Connector`.
    **options
        Further options; `docs/connectors/delta.md` lists them.

    Examples
    --------
    >>> import riverbed as rb
    >>> rb.Delta("lake/trades", version=12)
    Delta(path='lake/trades', version='12')
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        version: int | None = None,
        timestamp: str | datetime.datetime | None = None,
        append_only: bool | None = None,
        watermark: str | None = None,
        event_time: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            "delta",
            watermark=watermark,
            event_time=event_time,
            path=path,
            version=version,
            timestamp=timestamp,
            append_only=append_only,
            **options,
        )

"""Files: Parquet, CSV, JSON lines, Arrow IPC."""

from __future__ import annotations

import os
from typing import Any

from riverbed.connectors.base import Connector

__all__ = ["ArrowIpc", "Csv", "Json", "Parquet"]


class _Files(Connector):
    _name = ""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        watermark: str | None = None,
        event_time: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(self._name, watermark=watermark, event_time=event_time, path=path, **options)


class Parquet(_Files):
    """Parquet files: a path or glob as source (a directory that grows, as a stream), a path or folder as sink.

    Parameters
    ----------
    path : str or path-like
        A file, a glob ("trades/**/*.parquet"), or for a sink a file or folder.
    watermark, event_time : str, optional
        See `Connector`.
    **options
        Further options; `docs/connectors/parquet.md` lists them.

    Examples
    --------
    >>> import riverbed as rb
    >>> rb.Parquet("trades/*.parquet")
    Parquet(path='trades/*.parquet')
    """

    _name = "parquet"


class Csv(_Files):
    """CSV files. Parameters as `Parquet`; `docs/connectors/csv.md` lists the further options.

    Examples
    --------
    >>> import riverbed as rb
    >>> rb.Csv("trades.csv", header=True)
    Csv(path='trades.csv', header='true')
    """

    _name = "csv"


class Json(_Files):
    """JSON lines. Parameters as `Parquet`; `docs/connectors/json.md` lists the further options.

    Examples
    --------
    >>> import riverbed as rb
    >>> rb.Json("trades.jsonl")
    Json(path='trades.jsonl')
    """

    _name = "json"


class ArrowIpc(_Files):
    """Arrow IPC files and streams. Parameters as `Parquet`; `docs/connectors/arrow.md` lists the further options.

    Examples
    --------
    >>> import riverbed as rb
    >>> rb.ArrowIpc("trades.arrow")
    ArrowIpc(path='trades.arrow')
    """

    _name = "arrow"

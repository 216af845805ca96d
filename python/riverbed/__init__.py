"""Riverbed: one SQL query, run once over files or incrementally over live streams, with equal results.

Examples
--------
>>> import riverbed as rb
>>> rb.sql("SELECT 20 + 22 AS answer").to_pylist()
[{'answer': 42}]
"""

from __future__ import annotations

from riverbed.batch import Batch
from riverbed.connectors import (
    ArrowIpc,
    Callable,
    Connector,
    Console,
    Csv,
    Delta,
    Flight,
    Generator,
    Hybrid,
    Iceberg,
    Json,
    Kafka,
    Lance,
    MemoryStream,
    Parquet,
    Postgres,
)
from riverbed.errors import (
    RiverbedCancelledError,
    RiverbedCheckpointError,
    RiverbedDataError,
    RiverbedError,
    RiverbedExactlyOnceError,
    RiverbedInternalError,
    RiverbedSchemaError,
    RiverbedSourceError,
    RiverbedStateError,
    RiverbedUnsupportedError,
    RiverbedUsageError,
    RiverbedWatermarkError,
)
from riverbed.pipeline import Pipeline, PipelineHandle
from riverbed.query import Query, Subscription
from riverbed.session import Session, Stream, Table, default_session, sql

__all__ = [
    "ArrowIpc",
    "Batch",
    "Callable",
    "Connector",
    "Console",
    "Csv",
    "Delta",
    "Flight",
    "Generator",
    "Hybrid",
    "Iceberg",
    "Json",
    "Kafka",
    "Lance",
    "MemoryStream",
    "Parquet",
    "Pipeline",
    "PipelineHandle",
    "Postgres",
    "Query",
    "RiverbedCancelledError",
    "RiverbedCheckpointError",
    "RiverbedDataError",
    "RiverbedError",
    "RiverbedExactlyOnceError",
    "RiverbedInternalError",
    "RiverbedSchemaError",
    "RiverbedSourceError",
    "RiverbedStateError",
    "RiverbedUnsupportedError",
    "RiverbedUsageError",
    "RiverbedWatermarkError",
    "Session",
    "Stream",
    "Subscription",
    "Table",
    "default_session",
    "sql",
    "version",
]


def version() -> str:
    """Version of the library.

    Examples
    --------
    >>> import riverbed as rb
    >>> rb.version().count(".")
    2
    """
    from riverbed import _native

    return str(_native.version()["version"])

"""Sources and sinks as values: a connector's name and its options, which the library checks.

One file a connector; each class only gives names and documentation to the options. Options that a class does not
name can be given as keywords too.
"""

from __future__ import annotations

from riverbed.connectors.base import Connector
from riverbed.connectors.delta import Delta
from riverbed.connectors.files import ArrowIpc, Csv, Json, Parquet
from riverbed.connectors.flight import Flight
from riverbed.connectors.generator import Generator
from riverbed.connectors.hybrid import Hybrid
from riverbed.connectors.iceberg import Iceberg
from riverbed.connectors.kafka import Kafka
from riverbed.connectors.lance import Lance
from riverbed.connectors.memory import MemoryStream
from riverbed.connectors.postgres import Postgres
from riverbed.connectors.sinks import Callable, Console

__all__ = [
    "ArrowIpc",
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
    "Postgres",
]

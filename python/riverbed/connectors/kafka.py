"""Kafka."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from riverbed.connectors.base import Connector

__all__ = ["Kafka"]


class Kafka(Connector):
    """A Kafka topic, as source or sink.

    Parameters
    ----------
    topic : str
        The topic.
    brokers : str or list of str, optional
        Bootstrap servers; the environment's KAFKA_BROKERS when left out.
    format : str
        How values are encoded: "json" (the default), "raw", "debezium"; a source also reads "avro" and "csv".
    start : str, optional
        Where a source begins: "earliest" (the default), "latest", or a timestamp.
    watermark, event_time : str, optional
        See `Connector`.
    upsert : bool
        The topic is a table by key: a record takes the place of the row of its key, and one without a value (tombstone)
        deletes it. A source needs `primary_key`, a sink the option `key`.
    primary_key : str or list of str, optional
        The columns of the key of such a topic; they are filled from the keys of records.
    **options
        Further options of the connector; `docs/connectors/kafka.md` lists them.

    Examples
    --------
    >>> import riverbed as rb
    >>> rb.Kafka(topic="trades", brokers="localhost:9092", watermark="ts - INTERVAL '5 seconds'")
    Kafka(topic='trades', brokers='localhost:9092', format='json')
    """

    def __init__(
        self,
        topic: str,
        *,
        brokers: str | Sequence[str] | None = None,
        format: str = "json",
        start: str | None = None,
        watermark: str | None = None,
        event_time: str | None = None,
        upsert: bool | None = None,
        primary_key: str | Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            "kafka",
            watermark=watermark,
            event_time=event_time,
            topic=topic,
            brokers=brokers,
            format=format,
            start=start,
            upsert=upsert,
            primary_key=primary_key,
            **options,
        )

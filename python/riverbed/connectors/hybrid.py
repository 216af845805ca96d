"""A history and what goes on behind it."""

from __future__ import annotations

import json
from typing import Any

from riverbed.connectors.base import Connector

__all__ = ["Hybrid"]


class Hybrid(Connector):
    """The history of a topic from files or a table, then the topic itself, spliced at an offset of each partition.

    Each record comes once. The history needs the columns of the place that a record had in the topic; a partition goes
    on live behind its last record there. What cannot be spliced without gap or overlap is refused.

    Parameters
    ----------
    history : Connector or str
        `rb.Parquet(...)`, `rb.Delta(...)`, another source that ends, or the name of a table of the session.
    live : Connector or str
        `rb.Kafka(...)`, or the name of a stream of the session.
    partition_column, offset_column : str, optional
        The columns of the history that say where a record was: `_partition` and `_offset` when left out.
    offsets : str, optional
        Where the live part begins, by partition ("0:120,1:80"), instead of behind the end of the history.
    watermark, event_time : str, optional
        See `Connector`.

    Examples
    --------
    >>> import riverbed as rb
    >>> rb.Hybrid(history=rb.Parquet("old/*.parquet"), live=rb.Kafka(topic="trades", brokers="localhost:9092"))
    Hybrid(history=Parquet(path='old/*.parquet'), live=Kafka(topic='trades', brokers='localhost:9092', format='json'))
    """

    def __init__(
        self,
        *,
        history: Connector | str,
        live: Connector | str,
        partition_column: str | None = None,
        offset_column: str | None = None,
        offsets: str | None = None,
        watermark: str | None = None,
        event_time: str | None = None,
        **options: Any,
    ) -> None:
        self._parts = f"history={history!r}, live={live!r}"
        super().__init__(
            "hybrid",
            watermark=watermark,
            event_time=event_time,
            history=_part(history),
            live=_part(live),
            partition_column=partition_column,
            offset_column=offset_column,
            offsets=offsets,
            **options,
        )

    def __repr__(self) -> str:  # the parts hide their own secrets
        rest = [f"{k}={v!r}" for k, v in self.options.items() if k not in ("history", "live")]
        return f"Hybrid({', '.join([self._parts, *rest])})"


def _part(source: Connector | str) -> str:
    return json.dumps(source.spec()) if isinstance(source, Connector) else source

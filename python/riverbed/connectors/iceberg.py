"""Iceberg tables."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import Any

from riverbed.connectors.base import Connector

__all__ = ["Iceberg"]


class Iceberg(Connector):
    """An Iceberg table: a snapshot of it as a table, its commits one after another as a stream, or as sink.

    Parameters
    ----------
    catalog : str
        Where tables are looked up: ``sqlite:///lake/catalog.db`` or ``postgresql://…`` (SQL), ``https://…`` (REST),
        ``glue``, or a folder that holds the tables themselves (Hadoop).
    table : str
        The table behind its namespace: ``analytics.trades_1m``.
    branch : str, optional
        The branch that is read or written; "main" when left out.
    snapshot : int, optional
        Source: read the snapshot of this id; a stream begins with it.
    tag : str, optional
        Source: read the snapshot that this tag names.
    as_of : str or datetime, optional
        Source: read what was the newest snapshot at this time, in UTC unless it says otherwise.
    append_only : bool, optional
        Source: rows are never changed or deleted, so that the stream only adds rows.
    key : str or list of str, optional
        Sink: the columns that tell the rows of the query apart. A row then replaces the one of its key.
    partition_by : str or list of str, optional
        Sink: how a table that is created is partitioned: ``"day(ts)"``, ``"bucket(16, symbol)"``, ``"symbol"``.
    create, evolve : bool, optional
        Sink: create the table when it is missing (true when left out); add columns that it does not have.
    warehouse : str, optional
        Where the catalog puts new tables.
    token, credential : str, optional
        How a REST catalog knows us; better a reference to an environment variable, ``"${LAKE_TOKEN}"``.
    watermark, event_time : str, optional
        See `Connector`.
    **options
        Further options; `docs/connectors/iceberg.md` lists them.

    Examples
    --------
    >>> import riverbed as rb
    >>> rb.Iceberg("sqlite:///lake/catalog.db", "analytics.trades_1m", branch="audit")
    Iceberg(catalog='sqlite:///lake/catalog.db', table='analytics.trades_1m', branch='audit')
    """

    def __init__(
        self,
        catalog: str,
        table: str,
        *,
        branch: str | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
        as_of: str | datetime.datetime | None = None,
        append_only: bool | None = None,
        key: str | Sequence[str] | None = None,
        partition_by: str | Sequence[str] | None = None,
        create: bool | None = None,
        evolve: bool | None = None,
        warehouse: str | None = None,
        token: str | None = None,
        credential: str | None = None,
        watermark: str | None = None,
        event_time: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            "iceberg",
            watermark=watermark,
            event_time=event_time,
            catalog=catalog,
            table=table,
            branch=branch,
            snapshot=snapshot,
            tag=tag,
            as_of=as_of,
            append_only=append_only,
            key=key,
            partition_by=partition_by,
            create=create,
            evolve=evolve,
            warehouse=warehouse,
            token=token,
            credential=credential,
            **options,
        )

    def __repr__(self) -> str:
        # The address of a database may have a password; the properties of a client may hold anything.
        shown = re.sub(r"(://[^:/@']*):[^@']*@", r"\1:***@", super().__repr__())
        return re.sub(r"\b(credential|catalog_properties)='[^']*'", r"\1='***'", shown)

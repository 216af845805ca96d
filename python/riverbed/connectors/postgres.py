"""PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from riverbed.connectors.base import Connector

__all__ = ["Postgres"]


class Postgres(Connector):
    """A table of PostgreSQL: as it stands, its changes as a stream, or as sink.

    Where the database is, and who we are, is taken from PGHOST, PGPORT, PGDATABASE, PGUSER, PGPASSWORD and the other
    variables of libpq where it is not given.

    Parameters
    ----------
    table : str
        The table: name, or schema.name.
    url : str, optional
        ``postgres://user@host:port/database``; or give `host`, `port`, `database` and `user`.
    password : str, optional
        Better a reference to an environment variable, ``"${SHOP_PASSWORD}"``.
    slot : str, optional
        Stream: the replication slot by which the server keeps what no checkpoint has; without it the stream
        cannot go on after a restart.
    publication : str, optional
        Stream: the publication that the table is in; "riverbed" when left out.
    create_publication : bool, optional
        Stream: create it for this table, or add the table to it.
    key : str or list of str, optional
        Sink: the columns that tell the rows of the query apart. A row then replaces the one of its key.
    create : bool, optional
        Sink: create the table when it is missing; true when left out.
    watermark, event_time : str, optional
        See `Connector`.
    **options
        Further options; `docs/connectors/postgres.md` lists them.

    Examples
    --------
    >>> import riverbed as rb
    >>> rb.Postgres("public.orders", database="shop", slot="riverbed_orders", password="${SHOP_PASSWORD}")
    Postgres(table='public.orders', database='shop', password='***', slot='riverbed_orders')
    """

    def __init__(
        self,
        table: str,
        *,
        url: str | None = None,
        host: str | None = None,
        port: int | None = None,
        database: str | None = None,
        user: str | None = None,
        password: str | None = None,
        slot: str | None = None,
        publication: str | None = None,
        create_publication: bool | None = None,
        key: str | Sequence[str] | None = None,
        create: bool | None = None,
        watermark: str | None = None,
        event_time: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            "postgres",
            watermark=watermark,
            event_time=event_time,
            table=table,
            url=url,
            host=host,
            port=port,
            database=database,
            user=user,
            password=password,
            slot=slot,
            publication=publication,
            create_publication=create_publication,
            key=key,
            create=create,
            **options,
        )

    def __repr__(self) -> str:
        # A url may have the password in either of two places.
        shown = re.sub(r"(://[^:/@']*):[^@']*@", r"\1:***@", super().__repr__())
        return re.sub(r"([?&]password=)[^&']*", r"\1***", shown)

"""Arrow Flight services."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from riverbed.connectors.base import Connector

__all__ = ["Flight"]


class Flight(Connector):
    """An Arrow Flight service: what it gives as a table or a stream, or where rows go. Needs pyarrow.

    As a sink it is at least once: a call that fails is made again with the same rows. Watermarks and epochs travel as
    app metadata, changes with the column `__weight`.

    Parameters
    ----------
    location : str
        "grpc://host:port", or "grpc+tls://host:port".
    path : str or list of str, optional
        What to read or write, by its path. One of `path`, `command` and, to read, `ticket`.
    command : str, optional
        What to read or write, as the service understands it.
    ticket : str, optional
        What to read, by a ticket.
    token : str, optional
        Bearer token; better a reference, "${FLIGHT_TOKEN}".
    user, password : str, optional
        For a service that exchanges them for a token.
    tls_ca : str or path-like, optional
        File with the certificates that we trust.
    watermark, event_time : str, optional
        See `Connector`. With `event_time` alone the watermarks are the service's.
    **options
        Further options; `docs/connectors/flight.md` lists them.

    Examples
    --------
    >>> import riverbed as rb
    >>> rb.Flight("grpc+tls://flight.example.org:443", path=["lake", "trades"], token="${FLIGHT_TOKEN}")
    Flight(location='grpc+tls://flight.example.org:443', path='lake,trades', token='***')
    """

    def __init__(
        self,
        location: str,
        *,
        path: str | Sequence[str] | None = None,
        command: str | None = None,
        ticket: str | None = None,
        token: str | None = None,
        user: str | None = None,
        password: str | None = None,
        tls_ca: Any = None,
        watermark: str | None = None,
        event_time: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            "flight",
            watermark=watermark,
            event_time=event_time,
            location=location,
            path=path,
            command=command,
            ticket=ticket,
            token=token,
            user=user,
            password=password,
            tls_ca=tls_ca,
            **options,
        )

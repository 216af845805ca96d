"""Made-up rows."""

from __future__ import annotations

from typing import Any

from riverbed.connectors.base import Connector

__all__ = ["Generator"]


class Generator(Connector):
    """Rows made by the library: the same seed gives the same rows.

    Parameters
    ----------
    kind : str
        What is generated, for example "nexmark" or "alerts".
    rows : int, optional
        How many rows; without it the stream does not end.
    rate : float, optional
        Rows a second; without it as fast as they are read.
    seed : int, optional
        Where chance begins.
    watermark, event_time : str, optional
        See `Connector`.
    **options
        Further options; `docs/connectors/generator.md` lists them.

    Examples
    --------
    >>> import riverbed as rb
    >>> rb.Generator("alerts", rows=1000, seed=7)
    Generator(kind='alerts', rows='1000', seed='7')
    """

    def __init__(
        self,
        kind: str,
        *,
        rows: int | None = None,
        rate: float | None = None,
        seed: int | None = None,
        watermark: str | None = None,
        event_time: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            "generator",
            watermark=watermark,
            event_time=event_time,
            kind=kind,
            rows=rows,
            rate=rate,
            seed=seed,
            **options,
        )

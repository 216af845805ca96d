"""Lance tables."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from riverbed.connectors.base import Connector

__all__ = ["Lance"]


class Lance(Connector):
    """A Lance table as a sink, exactly once. Needs pylance: `pip install riverbed[lance]`.

    Parameters
    ----------
    path : str or path-like
        The folder of the table, or its address in an object store.
    key : str or list of str, optional
        Columns that tell the rows of the query apart. With them the table is kept equal to the query: a row replaces
        the one of its key, and a row that goes is deleted. Without, rows are only added.
    create : bool, optional
        Create the table when it is missing, which it does unless told otherwise.
    **options
        Further options; `docs/connectors/lance.md` lists them.

    Examples
    --------
    >>> import riverbed as rb
    >>> rb.Lance("lake/totals.lance", key="symbol")
    Lance(path='lake/totals.lance', key='symbol')
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        key: str | Sequence[str] | None = None,
        create: bool | None = None,
        **options: Any,
    ) -> None:
        super().__init__("lance", path=path, key=key, create=create, **options)

"""Sinks that are no source."""

from __future__ import annotations

import builtins
from collections.abc import Callable as Function
from typing import TYPE_CHECKING, Any

from riverbed.connectors.base import Connector
from riverbed.errors import RiverbedUsageError

if TYPE_CHECKING:
    from riverbed.batch import Batch

__all__ = ["Callable", "Console"]


class Console(Connector):
    """Print the changes of every step.

    Examples
    --------
    >>> import riverbed as rb
    >>> rb.Console()
    Console()
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("console", **options)


class Callable(Connector):
    """Call a Python function with the changes of every step, as a `Batch`.

    At least once: after a crash steps repeat. What the function raises ends the pipeline.

    Parameters
    ----------
    function : callable
        Takes one `Batch`.

    Examples
    --------
    >>> import riverbed as rb
    >>> rb.Callable(print)
    Callable(print)
    """

    def __init__(self, function: Function[[Batch], object]) -> None:
        super().__init__("")
        if not builtins.callable(function):
            raise RiverbedUsageError(f"Callable takes a function, not {type(function).__name__}: {function!r:.80}")
        self.function = function

    def __repr__(self) -> str:
        return f"Callable({getattr(self.function, '__name__', self.function)})"

"""The error classes. A test compares them with the library's own table, so that neither side drifts."""

from __future__ import annotations

__all__ = [
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
]


class RiverbedError(Exception):
    """Base of all errors of Riverbed.

    Attributes
    ----------
    message : str
        What went wrong, in one sentence, without place and hint.
    hint : str or None
        What you can do about it.
    line, column : int or None
        The place in the SQL text; both count from 1.
    sql : str or None
        The statement.

    Examples
    --------
    >>> import riverbed as rb
    >>> try:
    ...     rb.sql("SELEC 1")
    ... except rb.RiverbedError as error:
    ...     print(type(error).__name__, error.line, error.column)
    RiverbedSchemaError 1 1
    """

    def __init__(
        self,
        text: str,
        *,
        message: str | None = None,
        hint: str | None = None,
        line: int | None = None,
        column: int | None = None,
        sql: str | None = None,
    ) -> None:
        super().__init__(text)
        self.message = message if message is not None else text
        self.hint = hint
        self.line = line
        self.column = column
        self.sql = sql


class RiverbedSchemaError(RiverbedError):
    """A name does not resolve, types do not unify, or the SQL is not understood. Raised before anything runs."""


class RiverbedSourceError(RiverbedError):
    """Input cannot be read: a missing or corrupt file, a broker that is down."""


class RiverbedStateError(RiverbedError):
    """State is damaged: a corrupt store, a missing manifest or object."""


class RiverbedWatermarkError(RiverbedError):
    """A watermark that was set explicitly went backwards."""


class RiverbedCheckpointError(RiverbedError):
    """A checkpoint could not be written."""


class RiverbedExactlyOnceError(RiverbedError):
    """A sink cannot do what exactly-once asks; nothing has started."""


class RiverbedDataError(RiverbedError):
    """A value cannot be computed: overflow, a cast that fails, a function of yours that raised."""


class RiverbedCancelledError(RiverbedError):
    """The run was asked to stop."""


class RiverbedUsageError(RiverbedError):
    """A call out of order, after close, in a forked child, or with an option that does not exist."""


class RiverbedUnsupportedError(RiverbedError):
    """The statement is understood, and refused in the mode that the message names."""


class RiverbedInternalError(RiverbedError):
    """A bug in Riverbed. The process lives on, the library refuses further work."""


#: class name → class, for every error that the library can raise.
CLASSES: dict[str, type[RiverbedError]] = {
    name: value
    for name, value in globals().items()
    if isinstance(value, type) and issubclass(value, RiverbedError) and value is not RiverbedError
}

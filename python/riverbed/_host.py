"""Connectors that live in Python: the library calls, an object of a connector's module answers.

The protocol stands in connectors/host. Nothing of a connector is imported before one is opened.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from riverbed import _arrow, errors

if TYPE_CHECKING:
    import pyarrow


# Where the classes of a connector are: the function `open` of the module makes one.
_MODULES = {"flight": "riverbed.connectors._flight", "lance": "riverbed.connectors._lance"}

_objects: dict[int, Any] = {}


class TransientError(errors.RiverbedSourceError):
    """What may be over when it is tried again."""


def failed(message: str, hint: str | None = None, kind: type[errors.RiverbedError] = errors.RiverbedSourceError) -> Any:
    """Make the error of a connector."""
    return kind(message + (f"\nHint: {hint}" if hint else ""), message=message, hint=hint)


@contextlib.contextmanager
def told(what: str, secrets: list[str], classes: Mapping[type[BaseException], str | None]) -> Iterator[None]:
    """Turn a package's errors into ours, without the values of secrets.

    Parameters
    ----------
    what : str
        What was being done, in words.
    secrets : list of str
        What no message may have in it.
    classes : mapping
        Of the package: class → hint, or None where trying again may help; the first that fits counts.
    """
    try:
        yield
    except errors.RiverbedError:
        raise
    except Exception as error:
        text = f"{what}: {_plain(str(error)) or type(error).__name__}"
        for secret in sorted(filter(None, secrets), key=len, reverse=True):
            text = text.replace(secret, "***")
        for cls, hint in classes.items():
            if isinstance(error, cls):
                # The cause may quote what must not be told.
                raise failed(text, hint, TransientError if hint is None else errors.RiverbedSourceError) from None
        raise failed(text) from None


def _plain(text: str) -> str:
    """Return the first sentence of a message, without what a package says of its own insides."""
    for begin in ("gRPC client debug context:", "Client context:", ". Detail:", ", /", "\n"):
        text = text.partition(begin)[0]
    return text.strip(" .,")[:500]


def call(request: int, size: int, array: int, schema: int, out: int, out_schema: int, answer: int) -> int:
    """Answer one call of the library. No exception leaves it."""
    from riverbed import _native

    try:
        asked = json.loads(ctypes.string_at(request, size))
        rows = None
        if _arrow.CArray.from_address(array).release:
            pa = _arrow.need("pyarrow", f"the connector {asked['connector']!r}")
            rows = pa.RecordBatch._import_from_c(array, schema)
        said, batch = _answer(asked, rows)
        if batch is not None:
            batch._export_to_c(out, out_schema)
    except BaseException as error:
        _say(_native, answer, _report(error))
        return 1
    _say(_native, answer, said)
    return 0


def _answer(asked: dict[str, Any], rows: pyarrow.RecordBatch | None) -> tuple[dict[str, Any], Any]:
    number, name = asked["object"], asked["call"]
    if name == "close":
        gone = _objects.pop(number, None)
        if gone is not None:
            gone.close()
        return {}, None
    if name == "cancel":
        there = _objects.get(number)
        if there is not None:
            there.cancel()
        return {}, None
    if number not in _objects:
        _open(number, asked, rows)
        return {}, None
    method: Callable[..., Any] = getattr(_objects[number], name)
    given = asked.get("with") or {}
    said = method(**given) if rows is None else method(rows, **given)
    return said if isinstance(said, tuple) else (said or {}, None)


def _open(number: int, asked: dict[str, Any], rows: pyarrow.RecordBatch | None) -> None:
    """Make an object. It may be cancelled all the while, so what takes long it does in its method connect.

    When it fails the library closes what there is.
    """
    opening = _objects[number] = _Opening()
    made = importlib.import_module(_MODULES[asked["connector"]]).open(asked["call"], asked.get("with") or {}, rows)
    _objects[number] = made
    if opening.cancelled:  # asked behind the line before: who cancels sees the one or the other
        made.cancel()
    if hasattr(made, "connect"):
        made.connect()


class _Opening:
    """Stands for an object until it is made."""

    cancelled = False

    def cancel(self) -> None:
        self.cancelled = True

    def close(self) -> None:
        """Nothing was made."""


def cancel_all() -> None:
    """Let every call that waits return: the process is about to end."""
    for made in list(_objects.values()):
        with contextlib.suppress(Exception):
            made.cancel()


def _report(error: BaseException) -> dict[str, Any]:
    if isinstance(error, errors.RiverbedError):
        transient = isinstance(error, TransientError)
        name = "RiverbedSourceError" if transient else type(error).__name__
        message = error.message.partition("\nHint: ")[0]
        return {"class": name, "message": message, "hint": error.hint or "", "transient": transient}
    return {"class": "RiverbedSourceError", "message": f"{type(error).__name__}: {error}"}


def _say(native: Any, answer: int, value: dict[str, Any]) -> None:
    """Write JSON into a rb_text, in memory that the library frees."""
    text = json.dumps(value).encode(errors="replace")
    memory = native.library().rb_alloc(len(text) + 1)
    ctypes.memmove(memory, text, len(text))
    told = native.Text.from_address(answer)
    told.data, told.len = memory, len(text)

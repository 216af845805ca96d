"""Python functions that the library calls: UDFs and sinks. They catch everything; no exception crosses C."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from riverbed import _arrow, _native
from riverbed.errors import RiverbedError

# The library knows one C function of each kind and tells by a number which Python function is meant. So a call that
# comes after its session has gone finds no entry, and never freed code.
_functions: dict[int, tuple[Callable[..., Any], Callbacks]] = {}
_numbers = itertools.count(1)


class Callbacks:
    """The functions of one session, and the last exception that one of them raised."""

    def __init__(self) -> None:
        self._contexts: list[int] = []
        self._raised: BaseException | None = None
        weakref.finalize(self, _forget, self._contexts)

    def udf(self, function: Callable[..., Any]) -> tuple[Any, int]:
        """Return (C function, context) for a vectorised function."""
        return _trampolines()[0], self._add(function)

    def sink(self, function: Callable[..., Any]) -> tuple[Any, int]:
        """Return (C function, context) for a function of a batch. `bind` or `forget` the context."""
        return _trampolines()[1], self._add(function)

    def bind(self, context: int, handle: _native.Handle) -> None:
        """Forget a sink's function with its pipeline, not only with the session: a session may make many."""
        weakref.finalize(handle, _forget_one, self._contexts, context)

    def forget(self, context: int) -> None:
        """Forget a function that no pipeline was made of."""
        _forget_one(self._contexts, context)

    def _add(self, function: Callable[..., Any]) -> int:
        context = next(_numbers)
        self._contexts.append(context)
        _functions[context] = (function, weakref.proxy(self))
        return context

    @property
    def used(self) -> bool:
        """Whether the library may call back into Python."""
        return bool(self._contexts)

    @contextlib.contextmanager
    def causes(self) -> Iterator[None]:
        """Give an error that a function of the user's brought about that function's exception as its cause."""
        try:
            yield
        except RiverbedError as error:
            cause, self._raised = self._raised, None
            # The call that failed may not be the one in which the function ran; the text says whether they belong.
            if cause is not None and error.__cause__ is None and _told(cause) in str(error):
                raise error from cause
            raise

    def raised(self, error: BaseException) -> None:
        """Remember what a function raised."""
        self._raised = error


def _forget_one(contexts: list[int], context: int) -> None:
    if _functions.pop(context, None) is not None:
        contexts.remove(context)


def _forget(contexts: list[int]) -> None:
    for context in contexts:
        _functions.pop(context, None)


_made: tuple[Any, Any] | None = None
_lock = threading.Lock()


def _trampolines() -> tuple[Any, Any]:
    global _made
    with _lock:
        if _made is None:
            _made = _native.UDF(_call_udf), _native.SINK(_call_sink)
    return _made


def _call_udf(context: int, array: int, schema: int, out: int, out_schema: int, message: int, capacity: int) -> int:
    try:
        pa = _arrow.need("pyarrow", "a Python function in SQL")
        function, _ = _functions[context]
        arguments = pa.RecordBatch._import_from_c(array, schema)
        result = function(*arguments.columns)
        if isinstance(result, pa.ChunkedArray):
            result = result.combine_chunks()
        if not isinstance(result, pa.Array):
            result = pa.array(result)
        result._export_to_c(out, out_schema)
    except BaseException as error:
        return _fail(context, error, message, capacity)
    return 0


def _call_sink(context: int, batch: int, message: int, capacity: int) -> int:
    handle = _native.Handle(batch)
    try:
        from riverbed.batch import Batch

        function, _ = _functions[context]
        function(Batch(handle))
    except BaseException as error:
        return _fail(context, error, message, capacity)
    return 0


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _fail(context: int, error: BaseException, message: int, capacity: int) -> int:
    with contextlib.suppress(KeyError, ReferenceError):
        _functions[context][1].raised(error)
    text = _told(error).encode(errors="replace")[: capacity - 1]
    ctypes.memmove(message, text + b"\0", len(text) + 1)
    return 1

"""The C ABI through ctypes: loading, handles, errors, and calls that Ctrl-C interrupts. No other module calls C.

Typed in _native.pyi, which is kept by hand; capi/riverbed.h has the rules.
"""

import atexit
import contextlib
import ctypes
import json
import os
import pathlib
import struct
import sys
import threading

from riverbed import errors

ABSENT = -(2**63)

_void, _chars, _i32, _i64, _u64 = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32, ctypes.c_int64, ctypes.c_uint64


class Text(ctypes.Structure):
    _fields_ = [("data", _void), ("len", _i64)]


class BatchInfo(ctypes.Structure):
    _fields_ = [(name, _i64) for name in ("rows", "columns", "step", "watermark", "barrier")]


UDF = ctypes.CFUNCTYPE(_i32, _u64, _void, _void, _void, _void, _void, _i64)
SINK = ctypes.CFUNCTYPE(_i32, _u64, _u64, _void, _i64)
HOST = ctypes.CFUNCTYPE(_i32, _void, _i64, _void, _void, _void, _void, _void)

_text, _handle, _int = ctypes.POINTER(Text), ctypes.POINTER(_u64), ctypes.POINTER(_i32)

# Every function with its arguments; all return a status and, but for those in _WITHOUT_ERROR, take a rb_text* last.
_SIGNATURES = {
    "rb_version": [_text],
    "rb_memory": [_text],
    "rb_close": [_u64],
    "rb_drop": [_u64],
    "rb_cancel": [_u64],
    "rb_import_stream": [_void, _handle],
    "rb_batch_describe": [_u64, ctypes.POINTER(BatchInfo)],
    "rb_batch_export": [_u64, _void, _void],
    "rb_result_schema": [_u64, _void],
    "rb_result_next": [_u64, _i64, _handle, _int],
    "rb_result_stream": [_u64, _void],
    "rb_session_open": [_chars, _i64, _handle],
    "rb_session_prepare": [_u64, _chars, _i64, _handle, _text],
    "rb_session_sql": [_u64, _chars, _i64, _chars, _i64, ctypes.POINTER(_u64), _chars, _i64, _handle],
    "rb_session_create": [_u64, _chars, _i64, _handle],
    "rb_session_register": [_u64, _chars, _i64, _u64],
    "rb_session_replay": [_u64, _chars, _i64, _text],
    "rb_session_udf": [_u64, _chars, _i64, UDF, _u64],
    "rb_statements": [_chars, _i64, _text],
    "rb_inspect": [_chars, _i64, _text],
    "rb_savepoint": [_chars, _i64],
    "rb_stream_push": [_u64, _chars, _i64, _void, _void, _handle],
    "rb_stream_lend": [_u64, _chars, _i64, _void, _u64, _handle],
    "rb_layout_open": [_void, _handle],
    "rb_push_wait": [_u64],
    "rb_stream_watermark": [_u64, _chars, _i64, _i64],
    "rb_stream_idle": [_u64, _chars, _i64],
    "rb_stream_end": [_u64],
    "rb_query_describe": [_u64, _text],
    "rb_query_explain": [_u64, _chars, _i64, _text],
    "rb_query_render": [_u64, _chars, _i64, _i64, _text],
    "rb_query_run": [_u64, _handle],
    "rb_query_subscribe": [_u64, _chars, _i64, _handle],
    "rb_query_sink": [_u64, _chars, _i64, SINK, _u64, _handle],
    "rb_query_manual": [_u64, _chars, _i64, _handle],
    "rb_subscription_next": [_u64, _i64, _void, _i64, ctypes.POINTER(_i64), _int],
    "rb_subscription_metrics": [_u64, _text],
    "rb_pipeline_check": [_u64],
    "rb_pipeline_start": [_u64, _chars, _i64],
    "rb_pipeline_stop": [_u64, _i32],
    "rb_pipeline_wait": [_u64, _i64, _int],
    "rb_pipeline_metrics": [_u64, _text],
    "rb_manual_push": [_u64, _chars, _i64, _chars, _i64, _void, _void],
    "rb_manual_watermark": [_u64, _chars, _i64, _i64],
    "rb_manual_fields": [_u64, _chars, _i64, _text],
    "rb_manual_split": [_u64, _chars, _i64, _chars, _i64, _i32],
    "rb_manual_advance": [_u64, _i64],
    "rb_manual_end": [_u64, _chars, _i64],
    "rb_manual_step": [_u64, _handle],
    "rb_manual_crash": [_u64, _i32],
    "rb_manual_relation": [_u64, _chars, _i64, _handle],
    "rb_host": [HOST],
    "rb_test_echo": [_u64, _handle],
    "rb_test_panic": [_i32],
    "rb_test_wait": [_u64, _i64],
}
_WITHOUT_ERROR = {"rb_version", "rb_memory", "rb_close", "rb_drop", "rb_cancel"}


# What the calls that wait for a batch answer beside it.
_NOTHING, _END = 1, 2


def _host(*arguments):
    """Answer a call to a connector that lives in Python."""
    try:
        from riverbed import _host as host

        return host.call(*arguments)
    except BaseException:  # without an answer it is the end of the process
        return 1


class _Library:
    """The loaded library. It is loaded at the first call, so that `import riverbed` costs nothing."""

    def __init__(self, path):
        self.pid = os.getpid()
        try:
            self.dll = ctypes.CDLL(str(path))
        except OSError as cause:
            raise errors.RiverbedInternalError(
                f"the native library cannot be loaded: {cause}\n"
                "Hint: reinstall riverbed; in a source tree `make dev` builds it"
            ) from cause
        for name, arguments in _SIGNATURES.items():
            function = getattr(self.dll, name)
            function.restype = _i32
            function.argtypes = arguments if name in _WITHOUT_ERROR else [*arguments, _text]
        self.dll.rb_free.argtypes, self.dll.rb_free.restype = [_void], None
        self.dll.rb_alloc.argtypes, self.dll.rb_alloc.restype = [_i64], _void
        self.dll.rb_gc.argtypes, self.dll.rb_gc.restype = [], None
        self.dll.rb_quiesce.argtypes, self.dll.rb_quiesce.restype = [_i64], None
        self.host = HOST(_host)  # as long as the library, which calls it
        self.dll.rb_host(self.host, ctypes.byref(Text()))
        atexit.register(_quiesce)


_library = None
_forked = False
_lock = threading.Lock()


def _mark_forked():
    global _forked, _lock
    _lock = threading.Lock()
    _forked = _library is not None


# Go's other threads do not exist in a forked child: a call there would wait for them for ever.
os.register_at_fork(after_in_child=_mark_forked)


def library():
    """Load the library, once; refuse in a forked child of a process that had it."""
    global _library
    if _forked:
        raise errors.RiverbedUsageError(
            "Riverbed was in use when this process was forked, and cannot be used in the child\n"
            'Hint: start the child with multiprocessing.get_context("spawn"), or use Riverbed first in the child'
        )
    if _library is None:
        with _lock:
            if _library is None:
                _library = _Library(pathlib.Path(__file__).with_name("libriverbed.so"))
    return _library.dll


def alive():
    """Whether calls reach the library: it is loaded, and this is no forked child."""
    return _library is not None and not _forked


def _quiesce():
    """Say goodbye: before the interpreter goes, no thread of the library may call it, or give it objects back."""
    if alive():
        if "riverbed._host" in sys.modules:
            sys.modules["riverbed._host"].cancel_all()
        library().rb_quiesce(2000)


def take_text(text):
    """Copy a rb_text into a str and free it."""
    if not text.data:
        return ""
    try:
        return ctypes.string_at(text.data, text.len).decode()
    finally:
        library().rb_free(text.data)


def make_error(report):
    """Make the exception that a JSON report of the library describes."""
    cls = errors.CLASSES.get(report.get("class", ""), errors.RiverbedInternalError)
    return cls(
        report.get("text") or "unknown error",
        message=report.get("message"),
        hint=report.get("hint"),
        line=report.get("line"),
        column=report.get("column"),
        sql=report.get("sql"),
    )


def call(name, *arguments):
    """Call a function of the ABI; raise what it reports. The GIL is released meanwhile."""
    error = Text()
    if getattr(library(), name)(*arguments, ctypes.byref(error)):
        raise make_error(json.loads(take_text(error) or "{}"))


def call_text(name, *arguments):
    """Call a function whose last argument is a text to fill."""
    out = Text()
    call(name, *arguments, ctypes.byref(out))
    return take_text(out)


def call_handle(name, *arguments):
    """Call a function whose last argument is a handle to fill; None for no handle."""
    out = _u64()
    call(name, *arguments, ctypes.byref(out))
    return Handle(out.value) if out.value else None


def chars(text):
    """Give text as the two arguments (pointer, length)."""
    if not isinstance(text, str):
        raise errors.RiverbedUsageError(f"a text is expected here, not {type(text).__name__}: {text!r:.80}")
    data = text.encode()
    return data, len(data)


def as_json(value):
    """Give a value as JSON, as the two arguments (pointer, length)."""
    return chars(json.dumps(value))


class _Helper:
    """A thread that runs one call after the other: to start one for each call costs more than most calls.

    Bare locks, since what threading makes of them costs as much as a short call.
    """

    def __init__(self):
        self._job, self._over = None, False
        self._given = threading.Lock()
        self._given.acquire()
        # A daemon: nobody waits for it at the end of the process.
        threading.Thread(target=self._work, name="riverbed-idle", daemon=True).start()

    def run(self, job):
        self._job = job
        self._given.release()

    def end(self):
        """Let the thread end, behind its call."""
        self._over = True
        with contextlib.suppress(RuntimeError):  # it has not looked at its call yet, and will
            self._given.release()

    def _work(self):
        thread = threading.current_thread()
        while not self._over:
            self._given.acquire()
            job, self._job = self._job, None
            if job is not None:
                thread.name = "riverbed-call"
                job()
            del job


_idle = []  # helpers without a call


def wait(cancel, function, *arguments):
    """Run a call that may wait, so that Ctrl-C ends it within a second.

    In the main thread, the only one that gets signals, the call runs in a helper thread while this one looks every
    50 ms. On an interrupt the handle `cancel` is cancelled and the call returns by itself.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*arguments)
    library()  # which refuses a forked child, where the helpers are gone
    answer = []
    # Not Thread.join: in Python 3.11 and 3.12 a join that is interrupted takes the thread for ended.
    done = threading.Lock()
    done.acquire()
    helper = None

    def work():
        try:
            answer.append((function(*arguments), None))
        except BaseException as error:
            answer.append((None, error))
        finally:
            threading.current_thread().name = "riverbed-idle"
            done.release()

    try:
        helper = _idle.pop() if _idle else _Helper()  # to start one waits too, and may be interrupted
        helper.run(work)
        while not done.acquire(timeout=0.05):
            pass
    except BaseException:
        if cancel is not None:
            cancel.cancel()
        done.acquire(timeout=1.0)
        if helper is not None:
            helper.end()
        raise
    _idle.append(helper)
    value, error = answer[0]
    if error is not None:
        try:
            raise error
        finally:
            del error, answer
    return value


class Handle:
    """Owns one handle of the library."""

    __slots__ = ("__weakref__", "number")

    def __init__(self, number):
        self.number = number

    @property
    def value(self):
        """The number, or an error after close."""
        if self.number is None:
            raise errors.RiverbedUsageError("it is closed\nHint: make a new one; nothing works after close()")
        return self.number

    def cancel(self):
        """Make calls that wait on it return."""
        if self.number is not None and alive():
            library().rb_cancel(self.number)

    def close(self):
        """Give it back, waiting for what still runs on it. Twice is fine."""
        number, self.number = self.number, None
        if number is not None and alive():
            library().rb_close(number)

    def __del__(self, alive=alive, library=library):
        # rb_drop does not wait: a collection may happen inside a callback of the very run that this would end.
        number = getattr(self, "number", None)
        if number is not None and alive():
            library().rb_drop(number)


def version():
    """Version of the library, of Go, and the table of errors."""
    out = Text()
    library().rb_version(ctypes.byref(out))
    return json.loads(take_text(out))


def memory():
    """Tell what the library has open and pinned; for leak tests."""
    out = Text()
    library().rb_memory(ctypes.byref(out))
    return json.loads(take_text(out))


def collect():
    """Run Go's garbage collector."""
    library().rb_gc()


def describe(batch):
    """Rows, columns, step, watermark and barrier of a batch handle."""
    info = BatchInfo()
    call("rb_batch_describe", batch.value, ctypes.byref(info))
    return info.rows, info.columns, info.step, info.watermark, info.barrier


# How long a call waits before it comes back to Python, which then sees to signals: Ctrl-C is heard that soon.
_PATIENCE_MS = 50


def next_batch(result):
    """Return the next batch handle of a result, or None after the last."""
    batch, state, error = _u64(), _i32(_NOTHING), Text()
    function, number = library().rb_result_next, result.value
    while state.value == _NOTHING:
        if function(number, _PATIENCE_MS, batch, state, error):
            raise make_error(json.loads(take_text(error) or "{}"))
    return Handle(batch.value) if batch.value else None


# How many changes a call takes at most; each is a rb_change.
ROOM = 16
_CHANGE = struct.Struct("=Q5q")


def next_changes(subscription, timeout_ms, room):
    """Wait for changes: those that are there, each a handle and what the batch says, and whether the run has ended."""
    changes, taken, state, error = ctypes.create_string_buffer(room * _CHANGE.size), _i64(), _i32(), Text()
    if library().rb_subscription_next(subscription.value, timeout_ms, changes, room, taken, state, error):
        raise make_error(json.loads(take_text(error) or "{}"))
    told = _CHANGE.iter_unpack(memoryview(changes)[: taken.value * _CHANGE.size])
    return [(Handle(number), tuple(info)) for number, *info in told], state.value == _END


def lend(stream, split, array, layout):
    """Push an array that is not copied; the handle of a push that has to wait, or None."""
    push, error = _u64(), Text()
    if library().rb_stream_lend(stream, split, len(split), array, layout, push, error):
        raise make_error(json.loads(take_text(error) or "{}"))
    return Handle(push.value) if push.value else None


def wait_pipeline(pipeline, timeout_ms):
    """Wait at most so long; whether the pipeline has ended."""
    ended = _i32()
    call("rb_pipeline_wait", pipeline.value, timeout_ms, ctypes.byref(ended))
    return bool(ended.value)


def prepare(session, sql):
    """Plan a text that waits for nothing; otherwise give the names in it that the session does not have."""
    query, names = _u64(), Text()
    call("rb_session_prepare", session.value, *chars(sql), ctypes.byref(query), ctypes.byref(names))
    return Handle(query.value) if query.value else json.loads(take_text(names))


def run_sql(session, sql, names, relations, params):
    """Run a statement; the query's handle, or None for a statement without rows."""
    array = (_u64 * max(len(relations), 1))(*[r.value for r in relations])
    return call_handle("rb_session_sql", session.value, *chars(sql), *as_json(names), array, *as_json(params))

"""What happens to the host process: panics, signals, forks, import cost. Each in a process of its own."""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable

import pytest

import riverbed

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(("how", "says"), [(0, "provoked by rb_test_panic"), (1, "nil pointer"), (2, "out of range")])
def test_a_panic_is_an_exception_and_poisons_the_library(run_python: Run, how: int, says: str) -> None:
    done = run_python(
        """
        import faulthandler, sys
        faulthandler.enable()
        import riverbed as rb
        from riverbed import _native
        try:
            _native.call("rb_test_panic", int(sys.argv[1]))
        except rb.RiverbedInternalError as error:
            print(error)
        try:
            _native.call("rb_test_panic", 0)
        except rb.RiverbedInternalError as error:
            print("again:", error)
        _native.memory()
        print("alive")
        """,
        str(how),
    )
    assert done.returncode == 0, done.stderr
    assert says in done.stdout
    assert "rb_test_panic" in done.stdout, "the head of the stack names the function"
    assert "again: Riverbed stopped after an internal error" in done.stdout
    assert done.stdout.endswith("alive\n")


def test_ctrl_c_cancels_a_waiting_call(run_python: Run) -> None:
    program = """
        import threading, pyarrow as pa
        import riverbed as rb
        from riverbed import _arrow, _native
        relation = _arrow.import_stream(pa.table({"a": [1]}))
        result = _native.call_handle("rb_test_echo", relation.value)
        said = []

        def work():
            print("ready", flush=True)
            try:
                _native.call("rb_test_wait", result.value, 3_600_000)
            except rb.RiverbedCancelledError:
                said.append("cancelled")

        try:
            _native.wait(result, work)
        except KeyboardInterrupt:
            said.append("interrupted")
        for thread in threading.enumerate():
            if thread.name == "riverbed-call":
                thread.join()
        print(sorted(said), rb.version())
        """
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGINT)
    # The call would wait for an hour. That the second which `wait` grants it suffices is not measured here: on a busy
    # machine a clock would tell of the machine. That the call returned, and because it was cancelled, is.
    assert child.stdout.read() == f"['cancelled', 'interrupted'] {riverbed.version()}\n"
    assert child.wait() == 0


def test_a_forked_child_gets_a_clear_error(run_python: Run) -> None:
    done = run_python(
        """
        import os, warnings, pyarrow as pa
        warnings.simplefilter("ignore")
        import riverbed as rb
        from riverbed import _arrow, _native
        relation = _arrow.import_stream(pa.table({"a": [1]}))
        pid = os.fork()
        if pid == 0:
            try:
                rb.version()
            except rb.RiverbedUsageError as error:
                print(error, flush=True)
            relation.close()
            del relation
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        relation.close()
        print("parent", rb.version())
        """
    )
    assert done.returncode == 0, done.stderr
    assert "forked" in done.stdout
    assert "spawn" in done.stdout
    assert "parent" in done.stdout


def test_a_child_forked_before_the_first_use_works(run_python: Run) -> None:
    done = run_python(
        """
        import os
        import riverbed as rb
        pid = os.fork()
        if pid == 0:
            os._exit(0 if rb.version() else 1)
        assert os.waitpid(pid, 0)[1] == 0
        print(rb.version())
        """
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_children_of_multiprocessing_work(method: str) -> None:
    child = multiprocessing.get_context(method).Process(target=riverbed.version)
    child.start()
    child.join()
    assert child.exitcode == 0


def test_import_loads_neither_the_library_nor_heavy_packages(run_python: Run) -> None:
    done = run_python(
        """
        import sys
        import riverbed, riverbed.testing, riverbed.cli
        from riverbed import _native
        print(sorted({"pyarrow", "numpy", "pandas", "polars", "duckdb"} & set(sys.modules)), _native._library)
        """
    )
    assert done.stdout == "[] None\n", done.stderr


def test_show_loads_neither_pyarrow_nor_numpy(run_python: Run) -> None:
    done = run_python(
        """
        import sys
        import riverbed as rb
        rb.sql("SELECT 42 AS answer").show()
        rb.sql("SELECT 42 AS answer")._repr_html_()
        rb.sql("SELECT 42 AS answer").to_pylist()
        print(sorted({"pyarrow", "numpy", "pandas", "polars"} & set(sys.modules)))
        """
    )
    assert "42" in done.stdout, done.stderr
    assert done.stdout.endswith("[]\n")


@pytest.mark.parametrize("missing", ["pyarrow", "polars", "pandas"])
def test_what_needs_a_package_says_which(run_python: Run, missing: str) -> None:
    done = run_python(
        """
        import sys
        missing = sys.argv[1]
        sys.modules[missing] = None  # as if it were not installed
        import riverbed as rb
        query = rb.sql("SELECT 42 AS answer")
        batch = next(query.batches())
        calls = {"pyarrow": [query.to_arrow, query.to_polars, query.to_pandas, batch.to_arrow, batch.to_polars],
                 "polars": [query.to_polars, batch.to_polars],
                 "pandas": [query.to_pandas]}
        for call in calls[missing]:
            try:
                print("no error", call())
            except rb.RiverbedUsageError as error:
                text = str(error)
                print(f"{call.__name__}() needs the package {missing}" in text, error.hint == f"pip install {missing}",
                      "Hint: pip install" in text)
        print(query.to_pylist())
        """,
        missing,
    )
    assert (done.returncode, done.stderr) == (0, "")
    *said, rows = done.stdout.splitlines()
    assert set(said) == {"True True True"}
    assert rows == "[{'answer': 42}]"


def test_a_run_in_the_background_does_not_disturb_the_exit(run_python: Run) -> None:
    done = run_python(
        """
        import riverbed as rb
        session = rb.Session()
        ticks = rb.MemoryStream()
        session.create_stream("ticks", source=ticks, schema={"a": "BIGINT"})
        session.register_udf(lambda a: a, name="same", return_type="BIGINT", deterministic=True)
        handle = session.sql("SELECT same(a) AS a FROM ticks EMIT IMMEDIATE").sink(lambda b: None).run(blocking=False)
        for i in range(100):
            ticks.push([(i,)])
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_nothing_is_given_back_to_an_interpreter_that_ends(run_python: Run) -> None:
    """A thread of the library that waits for the GIL when the interpreter ends would take the process with it.

    It waits for certain here: the hook runs last, behind the library's own, and keeps the GIL to the end.
    """
    done = run_python(
        """
        import atexit, sys, time

        def hold():
            sys.setswitchinterval(1000)
            library.rb_drop(changes._handle.number)  # closes in a thread of the library, which releases the rows
            end = time.monotonic() + 0.3
            while time.monotonic() < end:
                pass

        class Last:
            def __del__(self, sleep=time.sleep):
                sleep(0.1)  # gives the GIL away while the interpreter ends

        atexit.register(hold)
        import numpy as np, pyarrow as pa
        import riverbed as rb
        from riverbed import _native
        library = _native.library()
        session, rows, last = rb.Session(), rb.MemoryStream(), Last()
        session.create_stream("s", source=rows, schema={"a": "BIGINT"})
        changes = session.sql("SELECT a FROM s WHERE a >= 0").subscribe(queue_size=1)
        for i in range(20):
            rows.push(pa.table({"a": pa.array(np.arange(i, i + 1000))}))
        """
    )
    assert (done.returncode, done.stderr) == (0, "")

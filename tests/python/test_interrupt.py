"""Ctrl-C: whatever the main thread waits for ends, and the session goes on. pytest -s prints how long it takes."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from typing import IO

import pytest

# On a busy machine a clock tells of the machine: this only keeps a test that hangs from hanging for ever.
HANG_SECONDS = 300

PAIRS = "FROM range(10000000) a, range(10000000) b WHERE a.range <> b.range"
WORK = {
    "query": f'session.sql("SELECT count(*) AS n {PAIRS}").to_pylist()',
    "create table as": f'session.sql("CREATE TABLE big AS SELECT a.range + b.range AS n {PAIRS}")',
    "materialized view": 'session.sql("CREATE MATERIALIZED VIEW m AS SELECT count(*) FROM r, r y WHERE r.k < y.k")',
    "insert": f'session.sql("INSERT INTO t SELECT a.range {PAIRS}")',
    "insert below a view": 'session.sql("INSERT INTO t SELECT range FROM range(200000)")',
    "commit": 'session.sql("BEGIN; INSERT INTO t SELECT range FROM range(200000)"); session.sql("COMMIT")',
    "push": "rows.push([(i,) for i in range(10)]); rows.push([(i,) for i in range(10)])",
    "subscribe": 'next(iter(session.sql("SELECT a FROM s").subscribe()))',
    "pipeline": 'session.sql("SELECT a FROM s").sink(print).run()',
    "turn": 'session.sql("DELETE FROM t")',
}


@contextlib.contextmanager
def ready_child(program: str) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """Run a program in a child that says when it is ready; gives the child and what it prints from then on."""
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True)
    guard = threading.Timer(HANG_SECONDS, child.kill)
    guard.start()
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        yield child, child.stdout
    finally:
        guard.cancel()
        child.kill()


@pytest.mark.parametrize("work", WORK)
def test_ctrl_c(work: str) -> None:
    program = f"""
        import threading, riverbed as rb
        session = rb.Session()
        session.sql("CREATE TABLE r AS SELECT range AS k FROM range(200000)")
        session.sql("CREATE TABLE t (k BIGINT)")
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t x, t y WHERE x.k < y.k")
        session.sql("INSERT INTO t VALUES (1), (2)")
        rows = rb.MemoryStream(queue_rows=10)
        session.create_stream("s", source=rows, schema={{"a": "BIGINT"}})
        holding, let = threading.Event(), threading.Event()

        def hold(a):
            holding.set()
            let.wait()
            return a

        session.register_udf(hold, name="hold", return_type="BIGINT")

        def update():
            try:
                session.sql("UPDATE r SET k = hold(k) WHERE k = 0")
            except rb.RiverbedCancelledError:
                pass  # an interrupt cancels what runs in the session

        other = threading.Thread(target=update)
        if {work!r} == "turn":
            other.start()
            holding.wait()
        try:
            print("ready", flush=True)
            {WORK[work]}
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        let.set()
        for thread in threading.enumerate():
            if thread.name == "riverbed-call":
                thread.join()
        print(session.sql("SELECT n, (SELECT count(*) FROM t) AS t FROM v").to_pylist())
        session.sql("INSERT INTO t VALUES (3)")
        print(session.sql("SELECT n, (SELECT count(*) FROM t) AS t FROM v").to_pylist())
        """
    with ready_child(program) as (child, said):
        time.sleep(0.5)  # so that it is usually under way; an interrupt before that is one too
        sent = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert said.readline() == "interrupted\n"
        print(f"{work}: interrupted after {time.monotonic() - sent:.3f} s")
        assert said.read() == "[{'n': 1, 't': 2}]\n[{'n': 3, 't': 3}]\n"
        assert child.wait() == 0


def test_ctrl_c_while_a_text_is_planned() -> None:
    """Planning computes what depends on no row, and hears of no cancelling meanwhile: it runs in a helper thread."""
    program = """
        import os, riverbed as rb
        calls = (f"levenshtein(repeat('a', 60000), repeat('b', {60000 - i}))" for i in range(100))
        text = f"SELECT {', '.join(calls)}"
        print("ready", flush=True)
        try:
            rb.Session().sql(text).to_pylist()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            os._exit(0)
        """
    with ready_child(program) as (child, said):
        time.sleep(0.5)
        sent = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert said.readline() == "interrupted\n"
        print(f"planning: interrupted after {time.monotonic() - sent:.3f} s")
        assert child.wait() == 0


def test_signals_during_a_query_over_tables_in_memory() -> None:
    """Such a query is planned and started in the main thread itself; handlers of signals run all the same."""
    program = """
        import os, signal, threading, time, riverbed as rb
        session = rb.Session()
        session.sql("CREATE TABLE r AS SELECT range AS k FROM range(200000)")
        query = session.sql("SELECT count(*) AS n FROM r a, r b WHERE a.k <> b.k")
        assert query._prompt
        signal.signal(signal.SIGUSR1, lambda *_: print("handled", flush=True))
        print("ready", flush=True)
        try:
            query.to_pylist()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        print([t.name for t in threading.enumerate()], session.sql("SELECT count(*) AS n FROM r").to_pylist())
        """
    with ready_child(program) as (child, said):
        time.sleep(0.2)
        child.send_signal(signal.SIGUSR1)
        assert said.readline() == "handled\n"
        child.send_signal(signal.SIGINT)
        assert said.readline() == "interrupted\n"
        # The helper is of CREATE TABLE.
        assert said.read() == "['MainThread', 'riverbed-idle'] [{'n': 200000}]\n"
        assert child.wait() == 0

"""What Python functions in a query cost, and where the interpreter's lock becomes their ceiling.

    make bench CASE=gil

One column of integers is summed after a function of it: written in SQL, as a Python function over whole Arrow arrays
(pyarrow gives the lock back while it computes), and as one that loops over the values in Python (which keeps it). Each
with one worker and with two, in turn. What runs beside says how much of the lock is left: a thread of the same process
that only counts in Python.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import resource
import subprocess
import sys
import threading
import time
from typing import Any

import harness

RUN = pathlib.Path(__file__).resolve().parent.parent / "run.py"
QUERIES = {
    "SQL": "SELECT sum(x * 3 + 1) AS s FROM t",
    "arrow function": "SELECT sum(arrow_f(x)) AS s FROM t",
    "python loop": "SELECT sum(loop_f(x)) AS s FROM t",
}


def cpu() -> float:
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


def counted(run: Any) -> tuple[Any, float]:
    """Run beside a thread that counts; returns the answer and how often it counted in a second."""
    stop, count = threading.Event(), 0

    def beside() -> None:
        nonlocal count
        while not stop.is_set():
            for _ in range(1_000):
                pass
            count += 1_000

    thread = threading.Thread(target=beside)
    thread.start()
    began = time.perf_counter()
    answer = run()
    wall = time.perf_counter() - began
    stop.set()
    thread.join()
    return answer, count / wall


def measure(workers: int, rows: int, repeat: int) -> dict[str, dict[str, float]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    import riverbed as rb

    session = rb.Session({"parallelism": workers})
    session.create_table("t", pa.table({"x": pa.array(range(rows), pa.int64())}))
    session.register_udf(
        lambda a: pc.add(pc.multiply(a, 3), 1), name="arrow_f", return_type="BIGINT", arg_types="BIGINT"
    )
    session.register_udf(
        lambda a: [3 * v + 1 for v in a.to_pylist()], name="loop_f", return_type="BIGINT", arg_types="BIGINT"
    )
    want = 3 * rows * (rows - 1) // 2 + rows
    out: dict[str, dict[str, float]] = {}
    for name, sql in QUERIES.items():
        walls, cpus = [], []
        for _ in range(repeat):
            c, began = cpu(), time.perf_counter()
            got = session.sql(sql).to_pylist()[0]["s"]
            walls.append(time.perf_counter() - began)
            cpus.append(cpu() - c)
            if got != want:
                raise SystemExit(f"{name}: {got} and not {want}")
        _, beside = counted(lambda sql=sql: [session.sql(sql).to_pylist() for _ in range(3)])
        out[name] = {"wall": sorted(walls)[repeat // 2], "cpu": sorted(cpus)[repeat // 2], "beside": beside}
    _, free = counted(lambda: time.sleep(0.5))
    out["nothing"] = {"wall": 0, "cpu": 0, "beside": free}
    return out


def main(argv: list[str]) -> None:
    p = argparse.ArgumentParser(prog="bench gil", description=__doc__)
    p.add_argument("--rows", type=int, default=2_000_000)
    p.add_argument("--repeat", type=int, default=5)
    p.add_argument("--rounds", type=int, default=3, help="fresh processes for each number of workers, in turn")
    p.add_argument("--workers", type=int, default=0, help=argparse.SUPPRESS)
    a = p.parse_args(argv)
    if a.workers:
        print(json.dumps(measure(a.workers, a.rows, a.repeat)))
        return
    runs: dict[int, list[dict[str, dict[str, float]]]] = {1: [], 2: []}
    for round_ in range(a.rounds):
        for workers in (1, 2) if round_ % 2 == 0 else (2, 1):
            command = [sys.executable, str(RUN), "gil", "--workers", str(workers), "--rows", str(a.rows)]
            command += ["--repeat", str(a.repeat)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            runs[workers].append(json.loads(done.stdout))
    rows = []
    for name in QUERIES:
        m = {w: {k: harness.median([r[name] for r in runs[w]], k) for k in ("wall", "cpu", "beside")} for w in (1, 2)}
        free = harness.median([r["nothing"] for w in (1, 2) for r in runs[w]], "beside")
        rows.append(
            [
                name,
                a.rows / m[1]["wall"] / 1e6,
                a.rows / m[2]["wall"] / 1e6,
                m[1]["wall"] / m[2]["wall"],
                m[2]["cpu"] / a.rows * 1e9,
                m[1]["beside"] / free,
                m[2]["beside"] / free,
            ]
        )
    print(harness.machine())
    head = ["function", "1 worker, M rows/s", "2 workers", "2 / 1", "CPU ns a row", "counting beside 1", "beside 2"]
    print(harness.table(head, rows))
    print(harness.save("gil", runs))

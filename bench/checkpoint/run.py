"""What checkpoints cost: a grouped sum over many keys, with one a second and without, and how long a restart takes.

    make bench CASE=checkpoint
    python bench/run.py checkpoint --keys 10000000 --seconds 20

Rows of random keys fill the state first. Then rows are pushed as fast as they are taken; the keys come from a window of
as many keys as are to change in a second, which moves on every second. A run is a process; runs with and without
checkpoints take turns. Printed are events per second of wall and of CPU time and their ratio, the pauses of the steps,
the bytes of an epoch beside what changed in it, and the time of a restart.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

PUSH = 10_000
QUERY = "SELECT k, count(*) AS n, sum(v) AS total, max(v) AS most FROM s GROUP BY k EMIT EVERY '1 second'"


def child(a: argparse.Namespace) -> dict[str, Any]:
    """Run one pipeline and return its figures."""
    import numpy as np
    import pyarrow as pa

    import riverbed as rb

    config = {"parallelism": str(a.threads)}
    if a.url:
        config |= {"checkpoint_url": a.url, "checkpoint_interval_ms": str(a.interval)}
    random = np.random.default_rng(1)

    def rows(keys: Any) -> Any:
        return pa.record_batch({"k": keys, "v": keys % 1000})

    began = time.perf_counter()
    with rb.Session(config) as session:
        stream = rb.MemoryStream()
        session.create_stream("s", source=stream, schema={"k": "BIGINT", "v": "BIGINT"})
        pipeline = session.sql(QUERY).sink(lambda batch: None, pipeline_id="bench")
        with pipeline.run(blocking=False) as run:
            if a.restart:
                while run.metrics()["state_rows"] < a.keys and run.metrics()["state"] != "failed":
                    stream.push(rows(np.zeros(1, dtype=np.int64)))
                    time.sleep(0.01)
                return {"restart_s": time.perf_counter() - began, "state": run.metrics()["state"]}
            for at in range(0, a.keys, 100_000):
                stream.push(rows(np.arange(at, min(at + 100_000, a.keys), dtype=np.int64)))
            while run.metrics()["rows_in"] < a.keys or run.metrics()["queue_rows"]:
                time.sleep(0.05)
            if a.url:  # the epoch of the load is through, and one behind it
                epoch = run.metrics()["epoch"]
                stream.push(rows(np.zeros(1, dtype=np.int64)))
                while run.metrics()["epoch"] < epoch + 2:
                    stream.push(rows(np.zeros(1, dtype=np.int64)))
                    time.sleep(0.2)
            pauses, sizes, took, seen, pushed = [], [], [], run.metrics()["epoch"], 0
            wall, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
            while (now := time.perf_counter()) - wall < a.seconds:
                first = int(now - wall) * a.dirty % max(1, a.keys - a.dirty)
                for _ in range(10):
                    stream.push(rows(first + random.integers(0, a.dirty, PUSH)))
                    pushed += PUSH
                metrics = run.metrics()
                if metrics["epoch"] != seen:
                    seen = metrics["epoch"]
                    pauses.append(metrics["checkpoint_pause_us"] / 1000)
                    sizes.append(metrics["checkpoint_bytes"])
                    took.append(metrics["checkpoint_ms"])
            while run.metrics()["queue_rows"]:
                time.sleep(0.01)
            wall = time.perf_counter() - wall
            after = resource.getrusage(resource.RUSAGE_SELF)
            cpu = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
            state = run.metrics()["state_bytes"]
    return {
        "wall": pushed / wall,
        "cpu": pushed / cpu,
        "pauses_ms": pauses,
        "bytes": sizes,
        "took_ms": took,
        "state_bytes": state,
        "rss_mb": after.ru_maxrss / 1000,
    }


def process(a: argparse.Namespace, *more: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", "--keys", str(a.keys), "--dirty", str(a.dirty)]
    command += ["--seconds", str(a.seconds), "--threads", str(a.threads), "--interval", str(a.interval), *more]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    answer: dict[str, Any] = json.loads(out.splitlines()[-1])
    return answer


def main(argv: list[str]) -> None:
    p = argparse.ArgumentParser(prog="bench checkpoint", description=__doc__)
    p.add_argument("--keys", type=int, default=2_000_000, help="rows of state")
    p.add_argument("--dirty", type=int, default=100_000, help="keys that change in a second")
    p.add_argument("--seconds", type=float, default=10)
    p.add_argument("--interval", type=int, default=1000, help="milliseconds between checkpoints")
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    p.add_argument("--restart", action="store_true", help=argparse.SUPPRESS)
    p.add_argument("--url", default="", help=argparse.SUPPRESS)
    a = p.parse_args(argv)
    if a.child:
        print(json.dumps(child(a)))
        return
    plain, durable, restarts = [], [], []
    with tempfile.TemporaryDirectory(prefix="riverbed-bench-") as folder:
        for n in range(a.repeat):
            plain.append(process(a))
            url = str(pathlib.Path(folder) / str(n))
            durable.append(process(a, "--url", url))
            restarts.append(process(a, "--url", url, "--restart")["restart_s"])
    print(f"{a.keys} keys, {a.dirty} of them change in a second, a checkpoint every {a.interval} ms\n")
    print("| | M events/s | M events/CPU s | peak RSS MB |\n|---|---:|---:|---:|")
    figures = {}
    for name, runs in (("without checkpoints", plain), ("with checkpoints", durable)):
        figures[name] = [statistics.median(r[k] for r in runs) for k in ("wall", "cpu", "rss_mb")]
        wall, cpu, rss = figures[name]
        print(f"| {name} | {wall / 1e6:.2f} | {cpu / 1e6:.2f} | {rss:.0f} |")
    ratio = [b / f for b, f in zip(figures["with checkpoints"], figures["without checkpoints"], strict=True)]
    print(f"| ratio | {ratio[0]:.3f} | {ratio[1]:.3f} | {ratio[2]:.2f} |\n")
    pauses = sorted(x for r in durable for x in r["pauses_ms"])
    sizes = [x for r in durable for x in r["bytes"]]
    took = [x for r in durable for x in r["took_ms"]]
    if pauses:
        longest = f"longest of {len(pauses)} {pauses[-1]:.1f} ms"
        print(f"pause of the steps: median {statistics.median(pauses):.1f} ms, {longest}")
        print(f"an epoch: {statistics.median(sizes) / 1e6:.2f} MB, {statistics.median(took):.0f} ms to its end")
    print(f"state {durable[0]['state_bytes'] / 1e6:.0f} MB; a restart takes {statistics.median(restarts):.2f} s")


if __name__ == "__main__":
    main(sys.argv[1:])

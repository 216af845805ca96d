"""What checkpoints cost: 10 million keys of about 100 bytes, 100,000 of them changed and one checkpoint a second.

    make bench CASE=checkpoint                          as it is asked of us: some minutes, 3 GB
    make bench CASE=checkpoint OPTIONS='--small'        a tenth of the keys, for a machine that has other work
    make bench CASE=checkpoint/churn                    NEXMark q5 and q9, whose state changes wholly

A grouped sum. Rows of all keys fill the state. Then rows are pushed as fast as they are taken; their keys are drawn
from a window of an eighth of the keys that are to change in a second, spread over all of them, and the window moves
on eight times a second: so an epoch of a second has eight to nine eighths of them, wherever it begins. A run is a
process; runs without and with checkpoints take turns. Printed are events per second of wall and of CPU time with
their ratios, the pauses of the loop, what an epoch writes beside the rows that changed in it, all that was written to
the disk, which has the merging behind the steps in it, and the time and the memory of a restart from the last of the
checkpoints. A last short run changes a tenth of the keys.

churn pushes NEXMark events at a steady rate, so that epochs are alike; its figures are CPU seconds.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))  # of a child too

import harness

PUSH = 10_000
WINDOWS = 8  # a second
SPREAD = 7_368_787  # a prime: multiples of it go round all keys
QUERY = "SELECT k, count(*) AS n, sum(v) AS total, max(v) AS most FROM s GROUP BY k EMIT EVERY '1 second'"
CHURN = ("q5", "q9")


def cpu() -> float:
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


def written() -> int:
    """Count the bytes that this process has given to write() so far."""
    try:
        with open("/proc/self/io") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("wchar:"))
    except OSError:
        return 0


class Epochs:
    """Gathers what each checkpoint of a run took, polled by a thread of its own."""

    def __init__(self, run: Any) -> None:
        self.run, self.seen = run, run.metrics()["epoch"]
        self.pauses: list[float] = []
        self.sizes: list[int] = []
        self.took: list[int] = []
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def __enter__(self) -> Epochs:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.thread.join()

    def watch(self) -> None:
        while not self.done.wait(0.05):
            m = self.run.metrics()
            if m["epoch"] != self.seen:
                self.seen = m["epoch"]
                self.pauses.append(m["checkpoint_pause_us"] / 1000)
                self.sizes.append(m["checkpoint_bytes"])
                self.took.append(m["checkpoint_ms"])


def settings(a: argparse.Namespace) -> dict[str, str]:
    config = {"parallelism": str(a.threads)}
    if a.url:
        config |= {"checkpoint_url": a.url, "checkpoint_interval_ms": str(a.interval)}
    return config


def child(a: argparse.Namespace) -> dict[str, Any]:
    """Run one pipeline and return its figures."""
    import numpy as np
    import pyarrow as pa

    import riverbed as rb

    random = np.random.default_rng(1)

    def rows(numbers: Any) -> Any:
        keys = numbers * SPREAD % a.keys
        return pa.record_batch({"k": keys, "v": keys % 1000})

    began, used = time.perf_counter(), cpu()
    with rb.Session(settings(a)) as session:
        stream = rb.MemoryStream()
        session.create_stream("s", source=stream, schema={"k": "BIGINT", "v": "BIGINT"})
        pipeline = session.sql(QUERY).sink(lambda batch: None, pipeline_id="bench")
        with pipeline.run(blocking=False) as run:
            if a.restart:
                while run.metrics()["state_rows"] < a.keys and run.metrics()["state"] != "failed":
                    stream.push(rows(np.zeros(1, dtype=np.int64)))
                    time.sleep(0.01)
                took, m = time.perf_counter() - began, run.metrics()
                return {
                    "restart_s": took,
                    "cpu_s": cpu() - used,
                    "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                    "state_bytes": m["state_bytes"],
                    "state": m["state"],
                }
            for at in range(0, a.keys, 100_000):
                stream.push(pa.record_batch({"k": (k := np.arange(at, min(at + 100_000, a.keys))), "v": k % 1000}))
            while run.metrics()["rows_in"] < a.keys or run.metrics()["queue_rows"]:
                time.sleep(0.05)
            if a.url:  # the epochs of the load are through, and merged
                epoch, wrote = run.metrics()["epoch"], 0
                while run.metrics()["epoch"] < epoch + 2 or written() - wrote > 1 << 20:
                    wrote = written()
                    stream.push(rows(np.zeros(1, dtype=np.int64)))
                    time.sleep(2)
            pushed, wrote = 0, written()
            wall, used = time.perf_counter(), cpu()
            with Epochs(run) as epochs:
                while (now := time.perf_counter()) - wall < a.seconds:
                    window = a.dirty // WINDOWS
                    first = int((now - wall) * WINDOWS) * window % max(1, a.keys - window)
                    stream.push(rows(first + random.integers(0, window, PUSH)))
                    pushed += PUSH
                while run.metrics()["queue_rows"]:
                    time.sleep(0.01)
            wall, used, wrote = time.perf_counter() - wall, cpu() - used, written() - wrote
            metrics = run.metrics()
            state, keys = metrics["state_bytes"], metrics["state_rows"]
    return {
        "wall": pushed / wall,
        "cpu": pushed / used,
        "cores": used / wall,
        "written": wrote / wall,
        "pauses_ms": epochs.pauses,
        "bytes": epochs.sizes,
        "took_ms": epochs.took,
        "state_bytes": state,
        "row_bytes": state / max(1, keys),
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def churn(a: argparse.Namespace) -> dict[str, Any]:
    """Run one NEXMark question at a steady rate and return its figures."""
    from nexmark.run import Source, events, queries

    import riverbed as rb

    tables, sql = events(a.events), queries()[a.question]
    with rb.Session(settings(a)) as session:
        source = Source(session, sql, tables, PUSH)
        pipeline = session.sql(sql).sink(lambda batch: None, pipeline_id="bench")
        wrote, used = written(), cpu()
        with pipeline.run(blocking=False) as run, Epochs(run) as epochs:
            began, pushed = time.perf_counter(), 0
            for piece in source.pieces:
                source.push(piece)
                pushed += piece[2].num_rows
                time.sleep(max(0, began + pushed / a.rate - time.perf_counter()))
            while run.metrics()["queue_rows"]:
                time.sleep(0.01)
            state = run.metrics()["state_bytes"]
            used, wrote, took = cpu() - used, written() - wrote, time.perf_counter() - began
    return {
        "events": pushed,
        "cpu": used / pushed * 1e6,
        "pauses_ms": epochs.pauses,
        "bytes": epochs.sizes,
        "took_ms": epochs.took,
        "written": wrote / took,
        "state_bytes": state,
        "rate": pushed / took,
    }


def process(a: argparse.Namespace, *more: str, **other: Any) -> dict[str, Any]:
    """Run this file as a process of its own."""
    command = [sys.executable, __file__, "--child"]
    given = vars(a) | other
    for name in ("keys", "dirty", "seconds", "threads", "interval", "events", "rate"):
        command += [f"--{name}", str(given[name])]
    out = subprocess.run([*command, *more], check=True, stdout=subprocess.PIPE, text=True).stdout
    answer: dict[str, Any] = json.loads(out.splitlines()[-1])
    return answer


def quantile(values: list[float], q: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(q * len(ordered)) - 1)] if ordered else math.nan


def pauses(runs: list[dict[str, Any]]) -> str:
    of = [x for r in runs for x in r["pauses_ms"]]
    if not of:
        return "no checkpoint came"
    return (
        f"pause of the loop, {len(of)} checkpoints: p50 {quantile(of, 0.5):.1f}, p99 {quantile(of, 0.99):.1f}, "
        f"longest {max(of):.1f} ms"
    )


def middle(runs: list[dict[str, Any]], key: str) -> float:
    values = [x for r in runs for x in r[key]]
    return statistics.median(values) if values else math.nan


def steady(a: argparse.Namespace) -> None:
    plain: list[dict[str, Any]] = []
    durable: list[dict[str, Any]] = []
    restarts: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="riverbed-bench-", dir=a.dir or None) as folder:
        for n in range(a.repeat):
            plain.append(process(a))
            url = str(pathlib.Path(folder) / str(n))
            durable.append(process(a, "--url", url))
            restarts += [process(a, "--url", url, "--restart") for _ in range(1 if a.small else 2)]
            ratio = durable[-1]["wall"] / plain[-1]["wall"]
            print(f"  {n + 1} of {a.repeat}: ratio {ratio:.3f}, restart {restarts[-1]['restart_s']:.2f} s", flush=True)
        url = str(pathlib.Path(folder) / "tenth")
        tenth = process(a, "--url", url, dirty=a.dirty // 10, seconds=min(a.seconds, 10))
    print(
        f"\n{a.keys:,} keys of {plain[0]['row_bytes']:.0f} bytes, {a.dirty:,} of them change in a second, a checkpoint "
        f"every {a.interval} ms, {a.seconds:.0f} s, {a.threads} threads, medians of {a.repeat}; {harness.machine()}\n"
    )
    table: list[list[Any]] = []
    for name, runs in (("without checkpoints", plain), ("with checkpoints", durable)):
        of = [harness.median(runs, k) for k in ("wall", "cpu", "cores", "rss_mb")]
        table.append([name, of[0] / 1e6, of[1] / 1e6, of[2], of[3]])
    table.append(["ratio", *(with_ / without for without, with_ in zip(table[0][1:], table[1][1:], strict=True))])
    print(harness.table(["", "M events/s", "M events/CPU s", "CPUs", "peak RSS MB"], table))
    print(f"\nthroughput falls by {100 * (1 - table[2][1]):.1f} %, by CPU {100 * (1 - table[2][2]):.1f} %")
    print(pauses(durable))
    size, less = middle(durable, "bytes"), middle([tenth], "bytes")
    print(
        f"an epoch: {size / 1e6:.2f} MB for {a.dirty:,} rows, {size / a.dirty:.0f} bytes a row; "
        f"{less / 1e6:.2f} MB for {a.dirty // 10:,}; {middle(durable, 'took_ms'):.0f} ms to its end; written in all "
        f"{harness.median(durable, 'written') / 1e6:.1f} MB/s"
    )
    print(
        f"state {durable[0]['state_bytes'] / 1e6:.0f} MB; "
        f"a restart takes {harness.median(restarts, 'restart_s'):.2f} s, "
        f"{harness.median(restarts, 'cpu_s'):.2f} CPU s, peak RSS {harness.median(restarts, 'rss_mb'):.0f} MB"
    )
    raw = {"without": plain, "with": durable, "restarts": restarts, "tenth": [tenth]}
    print("raw answers: " + str(harness.save("checkpoint", raw)))


def churning(a: argparse.Namespace) -> None:
    rows, raw = [], {}
    with tempfile.TemporaryDirectory(prefix="riverbed-bench-", dir=a.dir or None) as folder:
        for q in CHURN:
            plain: list[dict[str, Any]] = []
            durable: list[dict[str, Any]] = []
            for n in range(a.repeat):
                plain.append(process(a, "--question", q))
                durable.append(process(a, "--question", q, "--url", f"{folder}/{q}-{n}"))
            raw[q] = {"without": plain, "with": durable}
            without, with_ = harness.median(plain, "cpu"), harness.median(durable, "cpu")
            of = [x for r in durable for x in r["pauses_ms"]]
            rows.append(
                [
                    q,
                    without,
                    with_,
                    with_ / without,
                    quantile(of, 0.5),
                    max(of, default=math.nan),
                    middle(durable, "bytes") / 1e6,
                    harness.median(durable, "written") / 1e6,
                    durable[0]["state_bytes"] / 1e6,
                ]
            )
    print(
        f"\nNEXMark, {a.events:,} events at {a.rate:,} a second, a checkpoint every {a.interval} ms, "
        f"{a.threads} threads, medians of {a.repeat}; {harness.machine()}\n"
    )
    head = ["query", "CPU s/M events", "with checkpoints", "ratio", "pause p50 ms", "longest", "MB an epoch"]
    print(harness.table([*head, "MB/s written", "state MB"], rows))
    print("raw answers: " + str(harness.save("checkpoint-churn", raw)))


def main(argv: list[str]) -> None:
    p = argparse.ArgumentParser(prog="bench checkpoint", description=__doc__)
    p.add_argument("part", nargs="?", choices=["churn"])
    p.add_argument("--small", action="store_true", help="1 million keys, 10 s, one run each")
    p.add_argument("--keys", type=int, help="rows of state")
    p.add_argument("--dirty", type=int, default=100_000, help="keys that change in a second")
    p.add_argument("--seconds", type=float)
    p.add_argument("--interval", type=int, default=1000, help="milliseconds between checkpoints")
    p.add_argument("--repeat", type=int)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--dir", default="", help="where the checkpoints go")
    p.add_argument("--events", type=int, default=2_000_000, help="of churn")
    p.add_argument("--rate", type=int, default=200_000, help="of churn, events a second")
    p.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    p.add_argument("--restart", action="store_true", help=argparse.SUPPRESS)
    p.add_argument("--url", default="", help=argparse.SUPPRESS)
    p.add_argument("--question", default="", help=argparse.SUPPRESS)
    a = p.parse_args(argv)
    a.keys = a.keys or (1_000_000 if a.small else 10_000_000)
    a.seconds = a.seconds or (10 if a.small else 30)
    a.repeat = a.repeat or (1 if a.small else 2)
    if a.child:
        print(json.dumps(churn(a) if a.question else child(a)))
    elif a.part == "churn":
        churning(a)
    else:
        steady(a)


if __name__ == "__main__":
    main(sys.argv[1:])

"""NEXMark from memory, incremental, beside the peers that can say the question.

    make bench CASE=nexmark              all questions, 2 million events
    make bench CASE=nexmark/q5           one

An event is a row of the streams that the question reads. Input is Arrow batches of 10,000 rows with all columns,
pushed in event order; output is read by a subscriber. CPU is all of the process, from the first push to the last
change. Every answer is compared with our own batch answer over the same rows, bit for bit. The peers of peers.py run in
turn with it. q15 and the like emit every change.
"""

from __future__ import annotations

import argparse
import collections
import json
import pathlib
import re
import resource
import subprocess
import sys
import threading
import time
from typing import Any

import harness

HERE = pathlib.Path(__file__).resolve().parent
STREAMS = {"person": 1, "auction": 3, "bid": 46}  # of 50 events
BATCH = 10_000


def queries() -> dict[str, str]:
    parts = re.split(r"(?m)^-- name: (\w+)\s*$", (HERE / "queries.sql").read_text())
    return {n: t.strip().rstrip(";") for n, t in zip(parts[1::2], parts[2::2], strict=True)}


def reads(sql: str) -> list[str]:
    return [s for s in STREAMS if re.search(rf"\b(from|join)\s+{s}\b", sql, re.IGNORECASE)]


def events(total: int) -> dict[str, Any]:
    """Give the three streams as Arrow tables, made once and kept as Parquet."""
    import pyarrow.parquet as pq

    import riverbed as rb

    out = {}
    for stream, share in STREAMS.items():
        path = harness.DATA / f"nexmark-{total}" / f"{stream}.parquet"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            session = rb.Session()
            session.create_table("t", source=rb.Generator(f"nexmark_{stream}", rows=total * share // 50, seed=1))
            pq.write_table(session.sql("SELECT * FROM t").to_arrow(), path)
        out[stream] = pq.read_table(path)
    return out


def cpu() -> float:
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


def side() -> Any:
    import pyarrow as pa

    return pa.table(
        {"key": pa.array(range(10_000), pa.int64()), "value": pa.array([f"value-{i}" for i in range(10_000)])}
    )


def types_of(rows: Any) -> dict[str, str]:
    import riverbed as rb

    session = rb.Session()
    return dict(session.sql("SELECT * FROM rows").schema)


def incremental(sql: str, tables: dict[str, Any], threads: int) -> tuple[dict[str, Any], list[Any]]:
    """Run a question over pushed batches; returns the figures and the changes."""
    import riverbed as rb

    session = rb.Session(config={"parallelism": threads})
    sources = {}
    for name in reads(sql):
        source = rb.MemoryStream(watermark="dateTime - INTERVAL '4 seconds'")
        session.create_stream(name, source=source, schema=types_of(tables[name]))
        sources[name] = source
    if re.search(r"\bside\b", sql):
        session.create_table("side", source=side())
    rows = sum(tables[n].num_rows for n in sources)
    # In event order: batches of every stream by the time of their first row.
    pieces = sorted(
        (
            (piece.column("dateTime")[0].value, name, piece)
            for name in sources
            for piece in tables[name].to_batches(max_chunksize=BATCH)
        ),
        key=lambda p: p[:2],
    )

    def push() -> None:
        for _, name, piece in pieces:
            sources[name].push(piece)
        for source in sources.values():
            source.end()

    c, t = cpu(), time.perf_counter()
    with session.sql(sql).subscribe() as changes:
        pusher = threading.Thread(target=push)
        pusher.start()
        got = list(changes)
        pusher.join()
        metrics = changes.metrics()
    wall, used = time.perf_counter() - t, cpu() - c
    return {
        "wall": wall,
        "cpu": used,
        "events": rows,
        "events_per_s": rows / wall,
        "cpu_per_million": used / rows * 1e6,
        "steps": metrics["steps"],
        "late": metrics["late_rows"],
        "changes": metrics["rows_out"],
    }, got


def accumulate(changes: list[Any]) -> collections.Counter[tuple[Any, ...]]:
    total: collections.Counter[tuple[Any, ...]] = collections.Counter()
    for batch in changes:
        t = batch.to_arrow()
        names = [n for n in t.schema.names if n != "__weight"]
        weights = t.column("__weight").to_pylist() if "__weight" in t.schema.names else [1] * t.num_rows
        for row, w in zip(zip(*(t.column(n).to_pylist() for n in names), strict=True), weights, strict=True):
            total[row] += w
    return collections.Counter({k: w for k, w in total.items() if w})


def batch(sql: str, tables: dict[str, Any], threads: int) -> collections.Counter[tuple[Any, ...]]:
    import riverbed as rb

    session = rb.Session(config={"parallelism": threads})
    for name in reads(sql):
        session.create_table(name, source=tables[name])
    if re.search(r"\bside\b", sql):
        session.create_table("side", source=side())
    t = session.sql(sql).to_arrow()
    return collections.Counter(zip(*(c.to_pylist() for c in t.columns), strict=True))


def peer(name: str, question: str, total: int) -> dict[str, Any]:
    """Run a question on a peer; empty when it cannot say it or is not installed."""
    done = subprocess.run(
        [sys.executable, str(HERE / "peers.py"), name, question, str(harness.DATA / f"nexmark-{total}")],
        capture_output=True,
        text=True,
        timeout=600,
    )
    answer: dict[str, Any] = json.loads(done.stdout) if done.returncode == 0 else {}
    return answer


PEERS = ("duckdb", "laminardb")


def main(argv: list[str]) -> None:
    p = argparse.ArgumentParser(prog="bench nexmark")
    p.add_argument("part", nargs="?")
    p.add_argument("--events", type=int, default=2_000_000)
    p.add_argument("--queries", default="")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--no-check", action="store_true")
    p.add_argument("--alone", action="store_true", help="without peers")
    a = p.parse_args(argv)
    texts = queries()
    chosen = [a.part] if a.part else [q for q in a.queries.split(",") if q] or list(texts)
    tables = events(a.events)
    print(
        f"NEXMark, {a.events:,} events, batches of {BATCH:,}, {a.threads} thread(s), medians of {a.repeat}; "
        f"{harness.machine()}\n",
        flush=True,
    )
    rows, raw = [], {}
    for q in chosen:
        try:
            runs, last = [], []
            others: dict[str, list[dict[str, Any]]] = {n: [] for n in PEERS}
            for _ in range(a.repeat):
                figures, last = incremental(texts[q], tables, a.threads)
                runs.append(figures)
                for n in PEERS:
                    if not a.alone and (got := peer(n, q, a.events)):
                        others[n].append(got)
            verdict = (
                "not compared"
                if a.no_check
                else "equal"
                if accumulate(last) == batch(texts[q], tables, a.threads)
                else "DIFFERS FROM BATCH"
            )
            raw[q] = {"riverbed": runs, **others}
            beside = [harness.median(o, "cpu") / runs[0]["events"] * 1e6 for o in others.values()]
            rows.append(
                [
                    q,
                    runs[0]["events"],
                    harness.median(runs, "events_per_s"),
                    harness.median(runs, "cpu_per_million"),
                    *beside,
                    runs[0]["changes"],
                    runs[0]["late"],
                    verdict,
                ]
            )
        except Exception as e:
            rows.append(
                [
                    q,
                    0,
                    float("nan"),
                    float("nan"),
                    float("nan"),
                    float("nan"),
                    0,
                    0,
                    f"{type(e).__name__}: {str(e).splitlines()[0][:80]}",
                ]
            )
        print(f"  {q}: {rows[-1][2]:,.0f} events/s, {rows[-1][-1]}", flush=True)
    print(
        "\n"
        + harness.table(
            [
                "query",
                "events",
                "events/s",
                "CPU s per million",
                *(f"{n}, CPU s per million" for n in PEERS),
                "changes",
                "late",
                "against batch",
            ],
            rows,
        )
    )
    print("raw answers: " + str(harness.save("nexmark", raw)))

"""NEXMark from memory, incremental, beside the peers that can say the question.

    make bench CASE=nexmark              all questions, 2 million events
    make bench CASE=nexmark/q5           one

An event is a row of the streams that the question reads. Input is Arrow batches with all columns, of 10,000 rows or
what --batch says, pushed in event order; output is read by a subscriber. CPU is all of the process, from the first push
to the last change. What the subscriber of every timed run has read is accumulated and compared with our own batch
answer over the same rows, bit for bit. The peers of peers.py run in turn with it. q15 and
the like emit every change.

--checkpoints 1000 makes ours a durable pipeline with a checkpoint every second and one at the end, whose sink is a
callable, and runs it in turn with the same pipeline without checkpoints.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

import equal
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


def peak_rss_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def side() -> Any:
    import pyarrow as pa

    return pa.table(
        {"key": pa.array(range(10_000), pa.int64()), "value": pa.array([f"value-{i}" for i in range(10_000)])}
    )


def types_of(rows: Any) -> dict[str, str]:
    import riverbed as rb

    session = rb.Session()
    return dict(session.sql("SELECT * FROM rows").schema)


class Source:
    """The streams that a question reads, and their rows in event order: batches by the time of their first row."""

    def __init__(self, session: Any, sql: str, tables: dict[str, Any], batch: int) -> None:
        import riverbed as rb

        self.streams = {}
        for name in reads(sql):
            self.streams[name] = rb.MemoryStream(watermark="dateTime - INTERVAL '4 seconds'")
            session.create_stream(name, source=self.streams[name], schema=types_of(tables[name]))
        if re.search(r"\bside\b", sql):
            session.create_table("side", source=side())
        self.rows = sum(tables[n].num_rows for n in self.streams)
        self.pieces = sorted(
            (
                (piece.column("dateTime")[0].value, name, piece)
                for name in self.streams
                for piece in tables[name].to_batches(max_chunksize=batch)
            ),
            key=lambda p: p[:2],
        )

    def push(self, piece: tuple[Any, str, Any]) -> None:
        self.streams[piece[1]].push(piece[2])

    def push_all(self) -> None:
        for piece in self.pieces:
            self.push(piece)
        for stream in self.streams.values():
            stream.end()


def incremental(
    sql: str, tables: dict[str, Any], threads: int, batch: int = BATCH, checkpoints: int | None = None
) -> tuple[dict[str, Any], list[Any]]:
    """Run a question over pushed batches; returns the figures and the changes.

    checkpoints are milliseconds between them, 0 for a pipeline without, None for a subscription.
    """
    import riverbed as rb

    with tempfile.TemporaryDirectory(prefix="riverbed-bench-") as folder:
        config = {"parallelism": threads}
        if checkpoints:
            config |= {"checkpoint_url": folder, "checkpoint_interval_ms": checkpoints}
        session = rb.Session(config=config)
        source = Source(session, sql, tables, batch)
        rows, query = source.rows, session.sql(sql)
        got: list[Any] = []
        c, t = cpu(), time.perf_counter()
        if checkpoints is None:
            with query.subscribe() as changes:
                pusher = threading.Thread(target=source.push_all)
                pusher.start()
                got = list(changes)
                pusher.join()
                metrics = changes.metrics()
        else:
            with query.sink(got.append, pipeline_id="bench").run(blocking=False) as run:
                source.push_all()
                run.wait()
                metrics = run.metrics()
        wall, used = time.perf_counter() - t, cpu() - c
        session.close()
    return {
        "wall": wall,
        "cpu": used,
        "events": rows,
        "events_per_s": rows / wall,
        "cpu_per_million": used / rows * 1e6,
        "steps": metrics["steps"],
        "late": metrics["late_rows"],
        "changes": metrics["rows_out"],
        "checkpoints": metrics["epoch"],
    }, got


def batch(sql: str, tables: dict[str, Any], threads: int) -> tuple[dict[str, Any], Any]:
    """Run a question once over the same rows; returns the figures and the answer."""
    import riverbed as rb

    session = rb.Session(config={"parallelism": threads})
    for name in reads(sql):
        session.create_table(name, source=tables[name])
    if re.search(r"\bside\b", sql):
        session.create_table("side", source=side())
    c, t = cpu(), time.perf_counter()
    answer = session.sql(sql).to_arrow()
    return {"wall": time.perf_counter() - t, "cpu": cpu() - c}, answer


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


def measure(
    q: str, sql: str, tables: dict[str, Any], a: argparse.Namespace
) -> tuple[list[dict[str, Any]], str, dict[str, list[dict[str, Any]]]]:
    """Run a question, ours and the peers' in turn; returns our figures, the verdict on the rows, and all figures."""
    runs: list[dict[str, Any]] = []
    once: list[dict[str, Any]] = []
    plain: list[dict[str, Any]] = []  # without checkpoints, where the others have them
    others: dict[str, list[dict[str, Any]]] = {n: [] for n in PEERS}
    faults = []
    for _ in range(a.repeat):
        if a.checkpoints:
            plain.append(incremental(sql, tables, a.threads, a.batch, 0)[0])
        figures, changes = incremental(sql, tables, a.threads, a.batch, a.checkpoints or None)
        runs.append(figures)
        figures, answer = batch(sql, tables, a.threads)
        once.append(figures)
        if not a.no_check and (fault := equal.changes_differ(changes, answer)):
            faults.append(fault)
        del changes, answer  # what was read is memory of the library; the next run is to begin without it
        for n in PEERS:
            if not a.alone and (got := peer(n, q, a.events)):
                others[n].append(got)
    verdict = "not compared" if a.no_check else f"DIFFERS FROM BATCH: {faults[0]}" if faults else "equal"
    without = {"without checkpoints": plain} if a.checkpoints else {}
    return runs, verdict, {"riverbed": runs, **without, "riverbed batch": once, **others}


def cost_of_checkpoints(runs: list[dict[str, Any]], raw: dict[str, list[dict[str, Any]]]) -> list[float]:
    """Give CPU with checkpoints over without, and how many a run took; nothing where there are none."""
    if "without checkpoints" not in raw:
        return []
    ratio = harness.median(runs, "cpu") / harness.median(raw["without checkpoints"], "cpu")
    return [ratio, harness.median(runs, "checkpoints")]


def main(argv: list[str]) -> None:
    p = argparse.ArgumentParser(prog="bench nexmark")
    p.add_argument("part", nargs="?")
    p.add_argument("--events", type=int, default=2_000_000)
    p.add_argument("--queries", default="")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--batch", type=int, default=BATCH, help="rows of a push")
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--no-check", action="store_true")
    p.add_argument("--checkpoints", type=int, default=0, help="milliseconds between checkpoints; 0: none")
    p.add_argument("--alone", action="store_true", help="without peers")
    a = p.parse_args(argv)
    texts = queries()
    chosen = [a.part] if a.part else [q for q in a.queries.split(",") if q] or list(texts)
    tables = events(a.events)
    rows, raw = [], {}
    for q in chosen:
        try:
            runs, verdict, raw[q] = measure(q, texts[q], tables, a)
        except Exception as e:
            why = f"{type(e).__name__}: {str(e).splitlines()[0][:80]}"
            rows.append([q, *[math.nan] * (4 + 3 * bool(a.checkpoints) + len(PEERS)), "", "", why])
        else:
            per_million = (harness.median(r, "cpu") / runs[0]["events"] * 1e6 for r in raw[q].values())
            rows.append(
                [
                    q,
                    runs[0]["events"],
                    harness.median(runs, "events_per_s"),
                    *per_million,
                    *cost_of_checkpoints(runs, raw[q]),
                    runs[0]["changes"],
                    runs[0]["late"],
                    verdict,
                ]
            )
        print(f"  {q}: {rows[-1][2]:,.0f} events/s, {rows[-1][-1]}", flush=True)
    names = ["riverbed", *(["without checkpoints"] if a.checkpoints else []), "riverbed batch", *PEERS]
    names += ["with / without", "checkpoints"] if a.checkpoints else []
    print(
        f"\nNEXMark, {a.events:,} events from memory, pushed by {a.batch:,}, {a.threads} threads, "
        + (f"a checkpoint every {a.checkpoints} ms, " if a.checkpoints else "")
        + f"medians of {a.repeat}, CPU seconds per million events; {harness.machine()}\n"
        + harness.table(["query", "events", "events/s", *names, "changes", "late", "against batch"], rows)
    )
    equal_ones = sum(row[-1] == "equal" for row in rows)
    print(f"\n{equal_ones} of {len(rows)} equal batch; peak RSS {peak_rss_mb():.0f} MB with all input and output held")
    print("raw answers: " + str(harness.save("nexmark", raw)))
    if not a.no_check and equal_ones < len(rows):
        raise SystemExit(1)

"""The main job of Riverbed: one SQL text, once over Parquet files and once over a live Kafka topic, the same rows.

`make demo` runs it on embedded defaults, `KAFKA_BROKERS=host:port make demo` on your broker, and
`python examples/demo.py --alerts 1000000` takes more of it.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import tempfile
import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from services import broker

import riverbed as rb

# The whole point: this text does not know whether `alerts` is a folder of files or a topic.
QUERY = """
SELECT filter,
       TUMBLE_START(ts, INTERVAL '10 minutes') AS window_start,
       count(*)                                AS alerts,
       count(*) FILTER (WHERE score > 0.9)     AS candidates,
       avg(mag)                                AS mean_mag,
       min(mag)                                AS brightest
FROM alerts
WHERE mag IS NOT NULL
GROUP BY filter, TUMBLE(ts, INTERVAL '10 minutes')
EMIT ON WATERMARK
"""
SCHEMA = {
    "alert_id": "BIGINT",
    "object_id": "VARCHAR",
    "filter": "VARCHAR",
    "mag": "DOUBLE",
    "score": "DOUBLE",
    "ts": "TIMESTAMP",
}
COLUMNS = ", ".join(SCHEMA)
WATERMARK = "ts - INTERVAL '1 minute'"

console = Console()


def show(title: str, rows: list[dict[str, object]], limit: int = 8) -> None:
    if not rows:
        console.print(f"{title}: no rows\n")
        return
    table = Table(title=title, title_justify="left")
    for name in rows[0]:
        table.add_column(name, justify="left" if name == "filter" else "right")
    for row in rows[:limit]:
        table.add_row(*(f"{v:.4f}" if isinstance(v, float) else str(v) for v in row.values()))
    if len(rows) > limit:
        table.add_row(*("…" for _ in rows[0]))
    console.print(table)
    console.print(f"[dim]{len(rows)} rows[/dim]\n")


def key(row: dict[str, object]) -> tuple[str, ...]:
    return str(row["filter"]), str(row["window_start"])


def latencies(session: rb.Session, brokers: str, topic: str, count: int) -> list[float]:
    """Seconds from handing one alert to Kafka until its result has come back through a running query."""
    source = rb.MemoryStream()
    session.create_stream("ping", source=source, schema={"n": "BIGINT"})
    with session.sql("SELECT n FROM ping").sink(rb.Kafka(topic, brokers=brokers)).run(blocking=False):
        source.push([(-1,)])
        session.create_stream("pong", source=rb.Kafka(topic, brokers=brokers), schema={"n": "BIGINT"})
        seen: list[float] = []
        with session.sql("SELECT n + 1 AS n FROM pong").subscribe() as changes:
            for i in range(-1, count):
                start = time.perf_counter()
                if i >= 0:
                    source.push([(i,)])
                waiting = True
                while waiting:
                    batch = changes.next(timeout=30)
                    if batch is None:
                        raise SystemExit("the live query showed nothing for 30 seconds")
                    waiting = not any(row["n"] == i + 1 for row in batch)
                if i >= 0:
                    seen.append(time.perf_counter() - start)
        return seen


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--alerts", type=int, default=500_000)
    parser.add_argument("--seed", type=int, default=7)
    a = parser.parse_args()
    session = rb.Session()
    columns = TextColumn("{task.description:<34}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with tempfile.TemporaryDirectory() as folder, broker() as brokers, Progress(*columns, console=console) as progress:
        topic = f"alerts-{os.getpid()}-{int(time.time())}"
        session.create_table("made", source=rb.Generator("sky_alerts", rows=a.alerts, seed=a.seed))

        step = progress.add_task("writing alerts as Parquet", total=a.alerts)
        session.sql(f"COPY (SELECT {COLUMNS} FROM made) TO '{folder}/alerts.parquet'")
        progress.update(step, completed=a.alerts)

        step = progress.add_task("batch: the query over Parquet", total=a.alerts)
        start = time.perf_counter()
        files = rb.Session()
        files.sql(f"CREATE VIEW alerts AS SELECT * FROM '{folder}/*.parquet'")
        batch = sorted(files.sql(QUERY).to_pylist(), key=key)
        batch_s = time.perf_counter() - start
        progress.update(step, completed=a.alerts)

        step = progress.add_task("producing the alerts to Kafka", total=a.alerts)
        pipeline = session.sql(f"SELECT {COLUMNS} FROM made").sink(rb.Kafka(topic, brokers=brokers))
        with pipeline.run(blocking=False) as producer:
            while not producer.wait(0.1):
                progress.update(step, completed=producer.metrics()["rows_out"])
        progress.update(step, completed=a.alerts)

        step = progress.add_task("incremental: the query over Kafka", total=a.alerts)
        live = rb.Session()
        live.create_stream("alerts", source=rb.Kafka(topic, brokers=brokers, watermark=WATERMARK), schema=SCHEMA)
        start = time.perf_counter()
        streamed: list[dict[str, object]] = []
        with live.sql(QUERY).subscribe(until="latest") as changes:
            for part in changes:
                streamed.extend(part)
                progress.update(step, completed=changes.metrics()["rows_in"])
            metrics = changes.metrics()
        stream_s = time.perf_counter() - start
        progress.update(step, completed=metrics["rows_in"])
        streamed.sort(key=key)

        step = progress.add_task("latency: one alert at a time", total=200)
        pings = latencies(session, brokers, topic + "-ping", 200)
        progress.update(step, completed=200)

    console.print(f"\n[bold]One text, two modes[/bold]{QUERY}")
    show("batch, over Parquet", batch)
    show("incremental, over Kafka, each window once it closed", streamed)
    equal = batch == streamed  # every value, every bit
    pings.sort()
    slowest = pings[math.ceil(0.99 * len(pings)) - 1]
    run = f"{metrics['steps']} steps, {metrics['late_rows']} late, {metrics['bad_rows']} bad"
    for name, figure, unit, note in (
        ("batch", f"{a.alerts / batch_s:,.0f}", "alerts/s", f"{batch_s:.2f} s"),
        ("incremental", f"{a.alerts / stream_s:,.0f}", "alerts/s", f"{stream_s:.2f} s, {run}"),
        (
            "latency",
            f"{1e3 * statistics.median(pings):.2f}",
            "ms",
            f"median; p99 {1e3 * slowest:.2f} ms, alert to result",
        ),
    ):
        console.print(f"{name:<12}{figure:>12} {unit:<8}  ({note})")
    same = "[green]the rows are equal, bit for bit[/green]"
    console.print(same if equal else "[red]THE ROWS DIFFER[/red]")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())

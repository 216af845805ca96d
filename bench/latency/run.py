"""How long from an event's arrival to the row that it gives, at 100,000 events a second.

    make bench CASE=latency                                    from memory, through push
    make bench CASE=latency/kafka                              through Apache Kafka, beside a bare consumer
    KAFKA_BROKERS=host:port make bench CASE=latency/kafka      the same through an existing broker

Every millisecond (--tick-ms) the events that are due are pushed as one batch; each carries the time at which it was
handed over, and the reader takes the time when the batch that holds its row is there. "filter" keeps every row;
"group" is a running count of 1,000 keys, whose row carries the newest time of its key. The first second is left out.
CPU is that of the whole process, reader and, from memory, load generator included, per second of the run.

A machine that is busy with something else shows its own waiting here: read these figures from one at rest.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import resource
import subprocess
import sys
import threading
import time
from typing import Any

import harness
from broker import broker
from latency.pace import pace

HERE = pathlib.Path(__file__).resolve().parent
QUERIES = {
    "filter": "SELECT id, symbol, price * 1.5 AS price, handed_ns FROM events WHERE price >= 0 EMIT IMMEDIATE",
    "group": "SELECT symbol, count(*) AS n, max(handed_ns) AS handed_ns FROM events GROUP BY symbol EMIT IMMEDIATE",
}
SCHEMA = {"id": "BIGINT", "symbol": "VARCHAR", "price": "DOUBLE", "handed_ns": "BIGINT"}


def cpu() -> float:
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


class Delays:
    """What was measured: delays in nanoseconds, and how to sum them up."""

    def __init__(self) -> None:
        self.parts: list[Any] = []
        self.began, self.cpu = time.perf_counter(), cpu()

    def add(self, handed_ns: Any, now_ns: int) -> None:
        self.parts.append(now_ns - handed_ns)

    def summary(self) -> dict[str, Any]:
        import numpy as np

        wall = time.perf_counter() - self.began
        delays = np.concatenate(self.parts) if self.parts else np.array([np.nan])
        p50, p99, p999 = (float(np.percentile(delays, q)) / 1e9 for q in (50, 99, 99.9))
        spent = cpu() - self.cpu
        return {"wall": wall, "cpu": spent / wall, "rows": len(delays), "p50": p50, "p99": p99, "p999": p999}


def from_memory(sql: str, a: argparse.Namespace) -> dict[str, Any]:
    import numpy as np
    import pyarrow as pa

    import riverbed as rb

    session = rb.Session(config={"parallelism": a.threads})
    source = rb.MemoryStream()
    session.create_stream("events", source=source, schema=SCHEMA)
    symbols = pa.array([f"sym{i:04}" for i in range(1_000)])
    ids = np.arange(int(a.rate * a.seconds) + a.rate)
    names = symbols.take(pa.array(ids % 1_000))
    prices = pa.array(ids * 7919 % 1000 / 37)

    def hand_over(first: int, count: int) -> None:
        handed = pa.array(np.full(count, time.perf_counter_ns()))
        columns = [pa.array(ids[first : first + count]), names.slice(first, count), prices.slice(first, count)]
        source.push(pa.record_batch([*columns, handed], names=list(SCHEMA)))

    def produce() -> None:
        pace(a.rate, a.seconds, a.tick_ms, hand_over)
        source.end()

    with session.sql(sql).subscribe() as changes:
        producer = threading.Thread(target=produce)
        began = time.perf_counter_ns()
        producer.start()
        delays = Delays()
        for batch in changes:
            now = time.perf_counter_ns()
            if now - began > 1e9:
                delays.add(shown(batch), now)
        producer.join()
    return delays.summary()


def shown(batch: Any) -> Any:
    """Return the times that the rows of a batch carry; of changes, those that came."""
    rows = batch.to_arrow()
    times = rows.column("handed_ns").to_numpy()
    return times[rows.column("__weight").to_numpy() > 0] if "__weight" in rows.schema.names else times


def through_kafka(sql: str, brokers: str, topic: str, a: argparse.Namespace) -> dict[str, Any]:
    import riverbed as rb

    session = rb.Session(config={"parallelism": a.threads})
    session.create_stream("events", source=rb.Kafka(topic, brokers=brokers, start="latest"), schema=SCHEMA)
    with session.sql(sql).subscribe() as changes:
        producer = produce(brokers, topic, a)
        delays, began = Delays(), None
        while producer.poll() is None:
            batch = changes.next(timeout=0.1)
            now = time.time_ns()
            if batch is None or not batch.num_rows:
                continue
            began = began or now
            if now - began > 1e9:
                delays.add(shown(batch), now)
    return delays.summary()


def bare(brokers: str, topic: str, a: argparse.Namespace) -> dict[str, Any]:
    """Consume and read the time out of each message; it decodes nothing else."""
    import numpy as np
    from confluent_kafka import Consumer, TopicPartition

    c = Consumer({"bootstrap.servers": brokers, "group.id": "bench", "enable.auto.commit": False})
    parts = c.list_topics(topic, timeout=30).topics[topic].partitions
    ends = {p: c.get_watermark_offsets(TopicPartition(topic, p))[1] for p in parts}
    c.assign([TopicPartition(topic, p, end) for p, end in ends.items()])
    producer = produce(brokers, topic, a)
    delays, began = Delays(), None
    while producer.poll() is None:
        first = c.poll(0.1)
        if first is None:
            continue
        messages = [first, *c.consume(10_000, 0)]
        # handed_ns is the last field, 19 digits.
        times = np.array([int(m.value()[-20:-1]) for m in messages if m.error() is None])
        now = time.time_ns()
        began = began or now
        if now - began > 1e9:
            delays.add(times, now)
    c.close()
    return delays.summary()


def produce(brokers: str, topic: str, a: argparse.Namespace) -> subprocess.Popen[bytes]:
    """Start the load generator in a process of its own; it waits a moment for the reader to be there."""
    command = [sys.executable, str(HERE / "producer.py"), brokers, topic, str(a.rate), str(a.seconds), str(a.tick_ms)]
    return subprocess.Popen(command)


def warm() -> None:
    """Load what reads the changes: the first run would stand still for it, half a second behind its begin."""
    import pyarrow as pa

    pa.array([0]).to_numpy()


def main(argv: list[str]) -> None:
    p = argparse.ArgumentParser(prog="bench latency")
    p.add_argument("part", nargs="?", help="kafka, or one of " + ", ".join(QUERIES))
    p.add_argument("--rate", type=int, default=100_000)
    p.add_argument("--seconds", type=float, default=6)
    p.add_argument("--tick-ms", type=float, default=1)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--alone", action="store_true", help="without the bare consumer")
    a = p.parse_args(argv)
    warm()
    got: dict[str, list[dict[str, Any]]] = {}
    if a.part == "kafka":
        with broker() as brokers:
            topic = f"latency-{os.getpid()}"
            make_topic(brokers, topic)
            bare(brokers, topic, a)  # a broker that has just started is slow
            for _ in range(a.repeat):
                for name, sql in QUERIES.items():
                    got.setdefault(f"kafka {name}", []).append(through_kafka(sql, brokers, topic, a))
                if not a.alone:
                    got.setdefault("kafka, bare consumer", []).append(bare(brokers, topic, a))
    else:
        for _ in range(a.repeat):
            for name in [a.part] if a.part else QUERIES:
                got.setdefault(f"memory {name}", []).append(from_memory(QUERIES[name], a))
    rows = [
        [
            name,
            sum(r["rows"] for r in runs) / len(runs),
            *(harness.median(runs, key) * 1e3 for key in ("p50", "p99", "p999")),
            harness.median(runs, "cpu"),
        ]
        for name, runs in got.items()
    ]
    print(f"latency, {a.rate:,} events/s for {a.seconds:g} s, medians of {a.repeat}; {harness.machine()}")
    print(harness.table(["", "rows", "p50 ms", "p99 ms", "p99.9 ms", "CPU s per s"], rows))
    print("raw answers: " + str(harness.save("latency", got)))


def make_topic(brokers: str, topic: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": brokers})
    for future in admin.create_topics([NewTopic(topic, 4, 1)]).values():
        future.result()

"""Kafka: JSON messages of about 200 bytes through a one-minute average, beside a bare consumer of the same topic.

    make bench CASE=kafka                              starts Apache Kafka from Maven's jars
    KAFKA_BROKERS=host:port make bench CASE=kafka      an existing broker

The bare loop is confluent-kafka's consume(), which only counts; it does not decode. The result is compared with batch
over the same rows.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time

import harness
from broker import broker

QUERY = """SELECT symbol, TUMBLE_START(ts, INTERVAL '1 minute') AS window_start, AVG(price) AS avg_price
           FROM trades GROUP BY symbol, TUMBLE(ts, INTERVAL '1 minute') EMIT ON WATERMARK"""
SCHEMA = {
    "symbol": "VARCHAR",
    "price": "DOUBLE",
    "ts": "TIMESTAMP",
    "id": "BIGINT",
    "venue": "VARCHAR",
    "note": "VARCHAR",
}


def cpu() -> float:
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


def bare(brokers: str, topic: str, count: int) -> dict[str, float]:
    from confluent_kafka import Consumer, TopicPartition

    c = Consumer(
        {
            "bootstrap.servers": brokers,
            "group.id": "bench",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.max.bytes": 32 << 20,
            "queued.min.messages": 500_000,
        }
    )
    parts = c.list_topics(topic, timeout=30).topics[topic].partitions
    before, start = cpu(), time.perf_counter()
    c.assign([TopicPartition(topic, p, 0) for p in parts])
    seen = 0
    while seen < count:
        got = len(c.consume(10_000, timeout=10))
        if not got:
            raise SystemExit(f"the topic holds {seen:,} messages, not {count:,}")
        seen += got
    answer = {"wall": time.perf_counter() - start, "cpu": cpu() - before}
    c.close()
    return answer


def main(argv: list[str]) -> None:
    import riverbed as rb

    p = argparse.ArgumentParser(prog="bench kafka")
    p.add_argument("--messages", type=int, default=1_000_000)
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--alone", action="store_true", help="without the bare consumer")
    a = p.parse_args(argv)
    make = f"""SELECT 'sym' || (range % 50) AS symbol, round(100 + (range * 7919 % 1000) / 37.0, 4) AS price,
                      TIMESTAMP '2026-01-01' + to_milliseconds(range * 3) AS ts, range AS id,
                      'venue-' || (range % 7) AS venue, repeat('x', 95) AS note FROM range({a.messages})"""
    with broker() as brokers, tempfile.TemporaryDirectory() as folder:
        topic = f"bench-{os.getpid()}"
        session = rb.Session()
        session.sql(f"COPY ({make}) TO '{folder}/trades.parquet'")
        t = time.perf_counter()
        session.sql(make).sink(rb.Kafka(topic, brokers=brokers)).run()
        print(f"produced {a.messages:,} messages in {time.perf_counter() - t:.1f} s")
        files = rb.Session()
        files.sql(f"CREATE VIEW trades AS SELECT * FROM '{folder}/trades.parquet'")
        want = sorted(map(tuple, (r.values() for r in files.sql(QUERY).to_pylist())))
        ours, theirs = [], []
        for _ in range(a.repeat):
            live = rb.Session()
            live.create_stream(
                "trades", source=rb.Kafka(topic, brokers=brokers, watermark="ts - INTERVAL '5 seconds'"), schema=SCHEMA
            )
            before, start = cpu(), time.perf_counter()
            with live.sql(QUERY).subscribe(until="latest") as changes:
                rows = [tuple(r.values()) for batch in changes for r in batch]
                m = changes.metrics()
            ours.append(
                {
                    "wall": time.perf_counter() - start,
                    "cpu": cpu() - before,
                    "late": m["late_rows"],
                    "bytes": sum(s["Bytes"] for s in m["sources"].values()),
                }
            )
            if sorted(rows) != want:
                print(
                    f"DIFFERS FROM BATCH: {len(rows)} rows, batch has {len(want)}, "
                    f"{m['late_rows']} late, {m['bad_rows']} bad"
                )
            if not a.alone:
                theirs.append(bare(brokers, topic, a.messages))
        print(f"\n{harness.machine()}; medians of {a.repeat}, interleaved")
        table = [
            [
                name,
                a.messages / harness.median(r, "wall"),
                harness.median(r, "cpu"),
                harness.median(r, "cpu") / a.messages * 1e6,
            ]
            for name, r in (("riverbed, the query", ours), ("bare consumer loop", theirs))
        ]
        print(harness.table(["", "messages/s", "CPU s", "CPU µs per message"], table))
        print(
            f"bytes per message {ours[0]['bytes'] / a.messages:.0f}; {len(want)} windows, "
            + ("equal to batch" if sorted(rows) == want else "NOT equal to batch")
        )
        print("raw answers: " + str(harness.save("kafka", {"riverbed": ours, "bare": theirs})))

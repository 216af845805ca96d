"""A folder of Parquet files becomes a topic: each row once, although the program ends in between and new files come.

    python examples/parquet_to_kafka.py

It makes orders of its own and brings an embedded broker; `KAFKA_BROKERS=host:port` takes yours.
"""

from __future__ import annotations

import os
import pathlib
import sys
import tempfile
import time

from services import broker

import riverbed as rb

# What is sent: one row an order, with its price in euros. The text would be the same over a topic.
QUERY = """
SELECT id, customer, quantity * cents / 100.0 AS total, ordered
FROM orders
WHERE quantity > 0
"""
A_FILE = 20_000  # orders


def write(folder: pathlib.Path, number: int) -> None:
    """Write the orders of one file. It gets its name when it is whole, since a stream reads a file as it finds it."""
    rb.Session().sql(f"""
        COPY (SELECT range AS id, range % 997 AS customer, (range % 5)::INTEGER AS quantity,
                     100 + range % 9000 AS cents,
                     TIMESTAMP '2026-01-01' + range * INTERVAL '1 second' AS ordered
              FROM range({number * A_FILE}, {(number + 1) * A_FILE}))
        TO '{folder}/{number:04}.parquet'""")


def session(folder: pathlib.Path, checkpoints: pathlib.Path) -> rb.Session:
    """Make what a program makes at its start: the checkpoints say where the one before it was."""
    made = rb.Session({"checkpoint_url": str(checkpoints), "checkpoint_interval_ms": 100})
    made.create_stream("orders", source=rb.Parquet(f"{folder}/*.parquet"))
    return made


def main() -> int:
    """Run the example."""
    with tempfile.TemporaryDirectory() as temporary, broker() as brokers:
        folder, checkpoints = pathlib.Path(temporary) / "orders", pathlib.Path(temporary) / "checkpoints"
        topic = rb.Kafka(f"orders-{os.getpid()}-{int(time.time())}", brokers=brokers)
        for number in range(3):
            write(folder, number)

        # The first program is stopped when it has written something: it need not have read everything.
        first = session(folder, checkpoints).sql(QUERY).sink(topic, pipeline_id="orders", exactly_once=True)
        with first.run(blocking=False) as running:
            while not running.metrics()["epoch"]:
                time.sleep(0.02)
        print(f"the first run ended behind epoch {running.metrics()['epoch']}, at {running.metrics()['rows_out']} rows")

        # Meanwhile more files come. The second program goes on where the first one was.
        write(folder, 3)
        second = session(folder, checkpoints).sql(QUERY).sink(topic, pipeline_id="orders", exactly_once=True)
        handle = second.run(until="latest", blocking=False)
        handle.wait()
        print(f"the second run ended behind epoch {handle.metrics()['epoch']}, having written the rest")

        # Who reads the topic sees each order once.
        reader = rb.Session()
        schema = {"id": "BIGINT", "total": "DOUBLE"}
        reader.create_stream("sent", source=topic, schema=schema)
        seen: list[int] = []
        with reader.sql("SELECT id FROM sent").subscribe(until="latest") as changes:
            for batch in changes:
                seen.extend(row["id"] for row in batch)
        expected = [number for number in range(4 * A_FILE) if number % 5]
        print(f"{len(seen)} orders in the topic, {len(set(seen))} different ones, {len(expected)} expected")
        same = sorted(seen) == expected
        print("each order is there once" if same else "THE ORDERS DIFFER")
        return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())

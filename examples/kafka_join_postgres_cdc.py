"""Payments from Kafka, joined to customers of PostgreSQL as they are at every moment: one moves, the totals follow.

    python examples/kafka_join_postgres_cdc.py

It brings an embedded broker and a PostgreSQL of its own; KAFKA_BROKERS and POSTGRES_URL take yours (which needs
`wal_level = logical`).
"""

from __future__ import annotations

import os
import sys
import tempfile
import time

from services import broker, database

import riverbed as rb

# The totals by country follow both sides: a payment adds to one, a customer who moves takes all of his payments along.
QUERY = """
SELECT c.country, count(*) AS payments, sum(p.cents)::BIGINT AS cents
FROM payments p JOIN customers c ON c.id = p.customer
GROUP BY c.country
"""
COUNTRIES = ("NO", "PT", "KE", "PE")


def main() -> int:
    """Run the example."""
    with tempfile.TemporaryDirectory() as folder, broker() as brokers, database() as db:
        name = f"{os.getpid()}_{int(time.time())}"  # of all that is made on services that may be yours
        customers, totals, slot = f"customers_{name}", f"totals_{name}", f"riverbed_{name}"
        countries = ", ".join(f"'{country}'" for country in COUNTRIES)
        db.sql(f"""
            CREATE TABLE {customers} (id INT PRIMARY KEY, country TEXT NOT NULL);
            INSERT INTO {customers}
                SELECT i, (ARRAY[{countries}])[1 + i % {len(COUNTRIES)}] FROM generate_series(0, 99) i;
            CREATE TABLE {totals} (country TEXT PRIMARY KEY, payments BIGINT, cents BIGINT)""")

        # The program that brings payments: a stream that is pushed into, and a topic behind it.
        payments = rb.Kafka(f"payments-{name}", brokers=brokers)
        bringing = rb.Session()
        brought = rb.MemoryStream()
        bringing.create_stream("brought", source=brought, schema={"customer": "INTEGER", "cents": "BIGINT"})
        sent = bringing.sql("SELECT * FROM brought").sink(payments)

        # The pipeline. Both sources are in its checkpoints, and each epoch's totals are one transaction of PostgreSQL.
        session = rb.Session({"checkpoint_url": folder, "checkpoint_interval_ms": 200})

        try:
            with sent.run(blocking=False):
                brought.push([(n % 100, 100 + n) for n in range(5000)])
                schema = {"customer": "INTEGER", "cents": "BIGINT"}
                session.create_stream("payments", source=payments, schema=schema)
                source = rb.Postgres(customers, url=db.url, slot=slot, publication=slot, create_publication=True)
                session.create_stream("customers", source=source)
                pipeline = session.sql(QUERY).sink(
                    rb.Postgres(totals, url=db.url, key="country"), pipeline_id="totals", exactly_once=True
                )

                def settled(expected_payments: int) -> bool:
                    """Wait until the totals are those that PostgreSQL would have worked out from all payments."""
                    wanted: dict[str, list[int]] = {}
                    home = dict(row.split("|") for row in db.sql(f"SELECT id, country FROM {customers}"))
                    for n in range(expected_payments):
                        total = wanted.setdefault(home[str(n % 100)], [0, 0])
                        total[0] += 1
                        total[1] += 100 + n
                    expected = sorted(f"{country}|{total[0]}|{total[1]}" for country, total in wanted.items())
                    for _ in range(600):
                        rows = sorted(db.sql(f"SELECT * FROM {totals}"))
                        if rows == expected:
                            for row in rows:
                                country, count, cents = row.split("|")
                                print(f"  {country}  {int(count):>6} payments  {int(cents) / 100:>12,.2f}")
                            return True
                        time.sleep(0.1)
                    print(f"THE TOTALS DIFFER: {rows}, and should be {expected}")
                    return False

                with pipeline.run(blocking=False):
                    print("5000 payments")
                    same = settled(5000)
                    print("ten customers move to Portugal, and take their payments along")
                    db.sql(f"UPDATE {customers} SET country = 'PT' WHERE id < 40 AND country = 'NO'")
                    same = settled(5000) and same
                    print("1000 more payments")
                    brought.push([(n % 100, 100 + n) for n in range(5000, 6000)])
                    same = settled(6000) and same
        finally:
            db.sql(f"""
                SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name LIKE '{slot}%';
                DROP PUBLICATION IF EXISTS {slot};
                DROP TABLE {customers}, {totals}""")
        print("the totals are those of the tables, after every change" if same else "THE TOTALS DIFFER")
        return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())

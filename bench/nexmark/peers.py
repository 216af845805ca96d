"""One NEXMark question on one peer, in a process of its own: python peers.py PEER QUESTION FOLDER.

duckdb      one shot over Arrow tables, one thread: no stream, but the floor, and the oracle of the rows
laminardb   LaminarDB, the nearest rival: in process, Arrow batches of 10,000 pushed, changes read from a
            subscription. Its CPU includes its own idle polling until two seconds without output; these two
            seconds are not in its wall time
"""

from __future__ import annotations

import json
import pathlib
import re
import resource
import sys
import time
from typing import Any

import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).resolve().parent
BATCH = 10_000
LAMINAR = {
    "q1": 'SELECT auction, bidder, price * 0.908 AS price, "dateTime" FROM bid',
    "q2": "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    "tumble": "SELECT auction, COUNT(*) AS n FROM bid "
    "GROUP BY auction, TUMBLE(\"dateTime\", INTERVAL '10' SECOND) EMIT ON WINDOW CLOSE",
}


def cpu() -> float:
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


def duckdb_sql(text: str) -> str:
    """Put the question in DuckDB's words: windows by time_bucket, no EMIT."""
    if "HOP" in text:
        raise SystemExit(3)
    text = re.sub(r"\s+EMIT .*$", "", text, flags=re.DOTALL)
    bucket = r"time_bucket(\2, \1::TIMESTAMP, TIMESTAMP '1970-01-01')"
    text = re.sub(r"TUMBLE(?:_START)?\((\w+), (INTERVAL '[^']+')\)", bucket, text)
    return re.sub(r"TUMBLE_END\((\w+), (INTERVAL '[^']+')\)", bucket + r" + \2", text)


def duckdb(text: str, tables: dict[str, Any]) -> tuple[float, float, int]:
    import duckdb as d
    import pyarrow as pa

    con = d.connect(config={"threads": 1})
    for name, rows in tables.items():
        con.register(name, rows)
    con.register(
        "side", pa.table({"key": pa.array(range(10_000), pa.int64()), "value": [f"value-{i}" for i in range(10_000)]})
    )
    c, t = cpu(), time.perf_counter()
    rows = con.sql(duckdb_sql(text)).to_arrow_table().num_rows
    return time.perf_counter() - t, cpu() - c, rows


def laminardb(question: str, tables: dict[str, Any]) -> tuple[float, float, int]:
    import laminardb as ldb

    if question not in LAMINAR:
        raise SystemExit(3)
    bid = tables["bid"].select(["auction", "bidder", "price", "dateTime"])
    parts = [bid.slice(i, BATCH).combine_chunks() for i in range(0, bid.num_rows, BATCH)]
    con = ldb.open(":memory:")
    con.execute(
        'CREATE SOURCE bid (auction BIGINT, bidder BIGINT, price BIGINT, "dateTime" TIMESTAMP, '
        'WATERMARK FOR "dateTime" AS "dateTime" - INTERVAL \'4\' SECOND)'
    )
    con.execute("CREATE STREAM q AS " + LAMINAR[question])
    con.start()
    changes, out = con.subscribe_stream("q"), 0
    c, t = cpu(), time.perf_counter()
    for part in parts:
        con.insert("bid", part)
    last = time.perf_counter()
    while time.perf_counter() - last < 2:
        try:
            got = changes.next_timeout(100)
        except Exception as e:
            if "imeout" not in str(e):
                raise
            continue
        if got is not None:
            out += (got.arrow() if hasattr(got, "arrow") else got).num_rows
            last = time.perf_counter()
    return max(last - t, 1e-3), cpu() - c, out


def main() -> None:
    peer, question, folder = sys.argv[1:]
    parts = re.split(r"(?m)^-- name: (\w+)\s*$", (HERE / "queries.sql").read_text())
    text = dict(zip(parts[1::2], parts[2::2], strict=True))[question].strip().rstrip(";")
    names = [s for s in ("person", "auction", "bid") if re.search(rf"\b(from|join)\s+{s}\b", text, re.IGNORECASE)]
    tables = {n: pq.read_table(f"{folder}/{n}.parquet") for n in names}
    wall, used, rows = duckdb(text, tables) if peer == "duckdb" else laminardb(question, tables)
    print(json.dumps({"wall": wall, "cpu": used, "rows": rows, "events": sum(t.num_rows for t in tables.values())}))


main()

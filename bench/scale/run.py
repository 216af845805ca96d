"""Cost grows with the work: each case at two sizes, tenfold, with the exponent; and throughput at 1 and 2 threads.

    make bench CASE=scale
    python bench/run.py scale --queries group,sort --alone

An exponent of 1 means ten times the CPU for ten times the rows; tables that no longer fit the caches cost a little
more. Batch questions run on each engine's own tables of 1 and 10 million rows and on TPC-H at SF 0.1 and 1 in Parquet;
NEXMark runs incrementally over 200,000 and 2,000,000 events. Throughput is rows of the larger input per second of wall
time. A second thread pays when the wall time halves and the CPU stays.
"""

from __future__ import annotations

import argparse
import importlib
import math
from typing import Any

import h2o
import harness
from tpch import run as tpch

BATCH = {
    "group": "SELECT id6, sum(v1) AS v1, sum(v3) AS v3 FROM x{} GROUP BY id6",
    "group_text": "SELECT id3, id4, count(*) AS n FROM x{} GROUP BY id3, id4",
    "join": "SELECT sum(a.v3) AS v, count(*) AS n "
    "FROM x{0} AS a JOIN (SELECT DISTINCT id6 FROM x{0} WHERE v2 < 8) AS b ON a.id6 = b.id6",
    "sort": "SELECT id6, v3 FROM x{} ORDER BY id6, v3",
    "top": "SELECT v3, id6 FROM x{} ORDER BY v3 DESC, id6 LIMIT 100",
}
TPCH = ("q1", "q9", "q18")
NEXMARK = ("q1", "q5", "q17", "q20")


def batch_jobs(a: argparse.Namespace, chosen: list[str]) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Return question -> its text at the two sizes, and the statements that make the tables."""
    jobs = {q: [text.format("_small"), text.format("_large")] for q, text in BATCH.items() if q in chosen}
    setup = {}
    if jobs:
        for size, rows in (("small", a.rows // 10), ("large", a.rows)):
            path = h2o.groupby_table(rows)["x"]
            setup[f"x_{size}"] = f"CREATE TABLE x_{size} AS SELECT id3, id4, id6, v1, v2, v3 FROM '{path}'"
    texts = tpch.queries()
    for q in TPCH:
        if f"tpch_{q}" in chosen:
            jobs[f"tpch_{q}"] = [at(texts[q], a.sf / 10), at(texts[q], a.sf)]
    return jobs, setup


def at(sql: str, sf: float) -> str:
    """Put the files of a scale factor in the place of the tables' names."""
    files = {t: str(tpch.data(sf) / f"{t}.parquet") for t in tpch.TABLES}
    views = ", ".join(f"{t} AS (SELECT * FROM '{f}')" for t, f in files.items())
    return f"WITH {views} {sql}"


def measure_batch(a: argparse.Namespace, chosen: list[str]) -> dict[str, Any]:
    jobs, setup = batch_jobs(a, chosen)
    if not jobs:
        return {}
    engines = [harness.Engine("riverbed", threads=t, name=f"riverbed {t}") for t in (1, 2)]
    if not a.alone:
        engines.append(harness.Engine("duckdb", threads=1, name="duckdb 1"))
    for e in engines:
        for statement in setup.values():
            e.prepare(op="run", sql=statement)
    sized = {
        f"{q} {size}": {e.name: {"op": "sql", "sql": text} for e in engines}
        for q, texts in jobs.items()
        for size, text in zip(("small", "large"), texts, strict=True)
    }
    got = harness.interleaved(engines, sized, repeat=a.repeat)
    for e in engines:
        e.close()
    return got


def measure_nexmark(a: argparse.Namespace, chosen: list[str]) -> dict[str, Any]:
    nexmark = importlib.import_module("nexmark.run")
    texts = nexmark.queries()
    got: dict[str, Any] = {}
    for q in NEXMARK:
        if f"nexmark_{q}" not in chosen:
            continue
        for size, count in (("small", a.events // 10), ("large", a.events)):
            tables = nexmark.events(count)
            runs = got.setdefault(f"nexmark_{q} {size}", {"riverbed 1": [], "riverbed 2": []})
            for _ in range(a.repeat):
                for threads in (1, 2):
                    runs[f"riverbed {threads}"].append(nexmark.incremental(texts[q], tables, threads)[0])
    return got


def exponent(small: float, large: float) -> float:
    return math.log10(large / small) if small > 0 and large > 0 else math.nan


def main(argv: list[str]) -> None:
    every = [*BATCH, *(f"tpch_{q}" for q in TPCH), *(f"nexmark_{q}" for q in NEXMARK)]
    p = argparse.ArgumentParser(prog="bench scale")
    p.add_argument("part", nargs="?", help="one of " + ", ".join(every))
    p.add_argument("--queries", default="")
    p.add_argument("--rows", type=int, default=10_000_000)
    p.add_argument("--sf", type=float, default=1)
    p.add_argument("--events", type=int, default=2_000_000)
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--alone", action="store_true", help="without DuckDB")
    a = p.parse_args(argv)
    chosen = [a.part] if a.part else [q for q in a.queries.split(",") if q] or every
    got = {**measure_batch(a, chosen), **measure_nexmark(a, chosen)}
    rows = []
    for q in chosen:
        small, large = got[f"{q} small"], got[f"{q} large"]
        answers = [r for side in (small, large) for runs in side.values() for r in runs]
        if fault := next((r["error"] for r in answers if "error" in r), ""):
            print(f"{q} failed: {fault}")
            continue
        work = a.events if q.startswith("nexmark") else a.sf * 6_000_000 if q.startswith("tpch") else a.rows
        cpu = [harness.median(side["riverbed 1"], "cpu") for side in (small, large)]
        duckdb = [harness.median(side.get("duckdb 1", []), "cpu") for side in (small, large)]
        wall = [harness.median(large[f"riverbed {t}"], "wall") for t in (1, 2)]
        both = harness.median(large["riverbed 2"], "cpu")
        rows.append(
            [q, *cpu, exponent(*cpu), exponent(*duckdb), *(work / w for w in wall), wall[0] / wall[1], both / cpu[1]]
        )
    head = ["", "small, CPU s", "large, CPU s", "exponent", "DuckDB's", "rows/s, 1 thread", "rows/s, 2 threads"]
    print(
        f"\nscale: {a.rows // 10:,} and {a.rows:,} rows, SF {a.sf / 10:g} and {a.sf:g}, "
        f"{a.events // 10:,} and {a.events:,} events; medians of {a.repeat}; {harness.machine()}\n"
        + harness.table([*head, "wall, 1 over 2", "CPU, 2 over 1"], rows)
    )
    print("raw answers: " + str(harness.save("scale", got)))

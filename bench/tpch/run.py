"""TPC-H from Parquet, all 22 queries, beside DuckDB, Polars and DataFusion in the same run.

    make bench CASE=tpch                       scale factor 1, 3 repetitions, 2 threads
    python bench/run.py tpch --sf 10 --queries 1,6 --engines riverbed,duckdb

The tables come from tpchgen-cli (PyPI). Each query's answer is compared with DuckDB's, row by row: text, integers
and DECIMAL exactly, DOUBLE to 1e-9 relative; in order.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import Any

import harness

TABLES = ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"]


def queries() -> dict[str, str]:
    """Read the 22 texts from the parser's fixtures."""
    text = (pathlib.Path(__file__).resolve().parents[2] / "core/sql/testdata/tpch.sql").read_text()
    parts = re.split(r"(?m)^-- (?:name: )?(q\d+)\s*$", text)
    return {name: body.strip().rstrip(";") for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def data(sf: float) -> pathlib.Path:
    folder = harness.DATA / f"tpch-sf{sf:g}"
    if not all((folder / f"{t}.parquet").exists() for t in TABLES):
        folder.mkdir(parents=True, exist_ok=True)
        tool = pathlib.Path(sys.executable).parent / "tpchgen-cli"
        subprocess.run([str(tool), "parquet", "-s", f"{sf:g}", "--output-dir", str(folder)], check=True)
    return folder


def same(got: Any, want: Any) -> str:
    """Compare two Arrow tables; empty when they agree."""
    if got.num_rows != want.num_rows:
        return f"{got.num_rows} rows, DuckDB has {want.num_rows}"
    for i in range(want.num_columns):
        for row, (a, b) in enumerate(zip(got.column(i).to_pylist(), want.column(i).to_pylist(), strict=True)):
            close = a == b
            if isinstance(b, float) and isinstance(a, (int, float)):
                close = abs(a - b) <= 1e-9 * max(abs(a), abs(b), 1e-300)
            if not close:
                return f"row {row}, column {want.column_names[i]}: {a!r}, DuckDB has {b!r}"
    return ""


def compare(engines: dict[str, harness.Engine], texts: dict[str, str]) -> dict[str, str]:
    import pyarrow.parquet as pq

    faults = {}
    with tempfile.TemporaryDirectory() as tmp:
        for name, sql in texts.items():
            files = {}
            for e in ("riverbed", "duckdb"):
                files[e] = f"{tmp}/{e}-{name}.parquet"
                answer = engines[e].ask(op="sql", sql=sql, save=files[e])
                if "error" in answer:
                    faults[name] = f"{e}: {answer['error']}"
            if name not in faults and (why := same(*(pq.read_table(files[e]) for e in ("riverbed", "duckdb")))):
                faults[name] = why
    return faults


def main(argv: list[str]) -> None:
    p = argparse.ArgumentParser(prog="bench tpch")
    p.add_argument("part", nargs="?", help="one query, such as q1")
    p.add_argument("--sf", type=float, default=1)
    p.add_argument("--queries", default="")
    p.add_argument("--engines", default="riverbed,duckdb,polars,datafusion")
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--check", action="store_true", help="only compare answers")
    a = p.parse_args(argv)
    texts = queries()
    chosen = [a.part] if a.part else [f"q{q.strip().lstrip('q')}" for q in a.queries.split(",") if q] or list(texts)
    texts = {q: texts[q] for q in chosen}
    folder = data(a.sf)
    engines = {n: harness.Engine(n, threads=a.threads) for n in a.engines.split(",")}
    for e in engines.values():
        for t in TABLES:
            if "error" in (answer := e.ask(op="table", name=t, path=str(folder / f"{t}.parquet"))):
                raise SystemExit(f"{e.name}: {answer['error']}")
    if "riverbed" in engines and "duckdb" in engines:
        faults = compare(engines, texts)
        for q, why in faults.items():
            print(f"{q}: {why}")
        print(f"{len(texts) - len(faults)} of {len(texts)} answers equal DuckDB's")
    if a.check:
        return
    jobs = {q: {"op": "sql", "sql": sql} for q, sql in texts.items()}
    got = harness.interleaved(list(engines.values()), jobs, repeat=a.repeat)
    print(
        f"\nTPC-H SF {a.sf:g}, Parquet, {a.threads} threads, {a.repeat} interleaved repetitions, medians; "
        f"{harness.machine()}"
    )
    print(", ".join(f"{e.name} {e.version}" for e in engines.values()))
    for key, unit in (("cpu", "CPU seconds"), ("wall", "wall seconds")):
        rows: list[list[Any]] = []
        ratios: dict[str, list[float]] = {n: [] for n in engines}
        for q in texts:
            m = {n: harness.median(got[q][n], key) for n in engines}
            row: list[Any] = [q, *m.values()]
            if "duckdb" in engines:
                for n in engines:
                    ratios[n].append(m[n] / m["duckdb"] if m["duckdb"] else float("nan"))
                row.append(ratios[next(iter(engines))][-1])
            rows.append(row)
        rows.append(["sum", *(sum(harness.median(got[q][n], key) for q in texts) for n in engines), ""])
        if "duckdb" in engines:
            rows.append(["geometric mean over DuckDB", *(harness.geomean(ratios[n]) for n in engines), ""])
        print(f"\n{unit}\n" + harness.table(["query", *engines, "riverbed/duckdb"][: len(rows[0])], rows))
    print(
        "\npeak RSS MB: " + ", ".join(f"{n} {max(x['rss_mb'] for q in texts for x in got[q][n]):.0f}" for n in engines)
    )
    print("raw answers: " + str(harness.save("tpch", got)))
    for e in engines.values():
        e.close()

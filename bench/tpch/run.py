"""TPC-H from Parquet, all 22 queries, beside DuckDB, Polars and DataFusion in the same run.

    make bench CASE=tpch                       scale factor 1, 3 repetitions, 2 threads
    python bench/run.py tpch --sf 10 --queries q1,q6 --engines riverbed,duckdb

The tables come from tpchgen-cli (PyPI). Each query's answer is compared with DuckDB's, row by row: text, integers
and DECIMAL exactly, DOUBLE to 1e-9 relative; in order.
"""

from __future__ import annotations

import pathlib
import subprocess
import sys

import batch
import harness

TABLES = ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"]


def queries() -> dict[str, str]:
    """Read the 22 texts from the parser's fixtures."""
    return batch.numbered((pathlib.Path(__file__).resolve().parents[2] / "core/sql/testdata/tpch.sql").read_text())


def data(sf: float) -> pathlib.Path:
    folder = harness.DATA / f"tpch-sf{sf:g}"
    if not all((folder / f"{t}.parquet").exists() for t in TABLES):
        folder.mkdir(parents=True, exist_ok=True)
        tool = pathlib.Path(sys.executable).parent / "tpchgen-cli"
        subprocess.run([str(tool), "parquet", "-s", f"{sf:g}", "--output-dir", str(folder)], check=True)
    return folder


def main(
    argv: list[str], *, name: str = "tpch", form: str = "file", engines: str = "riverbed,duckdb,polars,datafusion"
) -> None:
    p = batch.parser(name, engines=engines)
    p.add_argument("--sf", type=float, default=1)
    a = p.parse_args(argv)
    folder = data(a.sf)
    place = {"file": "Parquet", "arrow": "Arrow in memory"}[form]
    suite = batch.Suite(
        name,
        f"TPC-H SF {a.sf:g}, {place}",
        {t: folder / f"{t}.parquet" for t in TABLES},
        {q: batch.Question(sql, ordered=-1) for q, sql in queries().items()},
        form,
    )
    batch.run(suite, a)

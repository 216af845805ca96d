"""Sorting: one integer, a double, text, several keys, the whole row, and the first rows only.

    make bench CASE=sort                        10 million rows, each engine's own table in memory
    python bench/run.py sort --rows 1000000     a quick look

The sequence of the sorted columns is compared, and the rows as a set: rows with equal keys may come in any order.
"""

from __future__ import annotations

import pathlib

import batch
import h2o

# How many leading columns are sorted by; the others have ties.
SORTED = {"integer": 1, "double": 1, "text": 1, "several": 3, "payload": 2}


def main(argv: list[str]) -> None:
    p = batch.parser("sort", engines="riverbed,duckdb,polars")
    p.add_argument("--rows", type=int, default=10_000_000)
    p.add_argument("--form", choices=["own", "arrow", "file"], default="own")
    a = p.parse_args(argv)
    texts = batch.numbered((pathlib.Path(__file__).parent / "queries.sql").read_text())
    questions = {q: batch.Question(sql, ordered=SORTED.get(q, -1)) for q, sql in texts.items()}
    batch.run(batch.Suite("sort", f"sort, {a.rows:,} rows, {a.form}", h2o.groupby_table(a.rows), questions, a.form), a)

"""Joins: the five questions of the H2O.ai database benchmark, each engine over its own tables in memory.

    make bench CASE=join                        10 million rows; up to 6 GB a process
    python bench/run.py join --rows 1000000     a quick look

Every answer is the whole joined table, read as Arrow: about nine tenths of the rows, all columns.
"""

from __future__ import annotations

import pathlib

import batch
import h2o


def main(argv: list[str]) -> None:
    p = batch.parser("join", engines="riverbed,duckdb,polars")
    p.add_argument("--rows", type=int, default=10_000_000)
    p.add_argument("--form", choices=["own", "arrow", "file"], default="own")
    a = p.parse_args(argv)
    texts = batch.numbered((pathlib.Path(__file__).parent / "queries.sql").read_text())
    questions = {q: batch.Question(sql) for q, sql in texts.items()}
    batch.run(batch.Suite("join", f"join, {a.rows:,} rows, {a.form}", h2o.join_tables(a.rows), questions, a.form), a)

"""Web analytics: the 43 questions of ClickBench in our own words, over a table of page views that data.py makes.

    make bench CASE=clickbench                        2 million rows, Parquet
    python bench/run.py clickbench --rows 200000 --queries q23,q29

The table has the columns that the questions touch. Answers are compared with DuckDB's row by row, in order.
"""

from __future__ import annotations

import pathlib

import batch
from clickbench import data


def main(argv: list[str]) -> None:
    p = batch.parser("clickbench", engines="riverbed,duckdb,polars")
    p.add_argument("--rows", type=int, default=2_000_000)
    p.add_argument("--form", choices=["file", "own", "arrow"], default="file")
    a = p.parse_args(argv)
    table = data.hits(a.rows)
    chosen = data.frequent(table["hits"])
    texts = batch.numbered((pathlib.Path(__file__).parent / "queries.sql").read_text())
    values = {
        **{f"{{{name}}}": str(value) for name, value in chosen.items()},
        "{some}": str(a.rows // 1_000),
        "{page}": str(100),
        "{sums}": ", ".join(f"sum(resolution_width + {i}) AS s{i}" for i in range(90)),
    }
    for q in texts:
        for name, value in values.items():
            texts[q] = texts[q].replace(name, value)
    questions = {q: batch.Question(sql, ordered=-1) for q, sql in texts.items()}
    title = f"clickbench, {a.rows:,} rows, {'Parquet' if a.form == 'file' else a.form}"
    batch.run(batch.Suite("clickbench", title, table, questions, a.form), a)

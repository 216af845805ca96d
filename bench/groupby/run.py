"""Grouping: the ten questions of the H2O.ai database benchmark, each engine over its own table in memory.

    make bench CASE=groupby                        10 million rows
    python bench/run.py groupby --rows 1000000     a quick look

few_* and many_* sum a DOUBLE and a BIGINT by a key of 100 and of rows/100 values: ours is exact, and their ratio is its
price; they are no part of the means. Where Polars' SQL has no word for a question, it is asked in Polars' own API.
"""

from __future__ import annotations

import pathlib

import batch
import h2o
import harness

# Polars' SQL cannot say these, or only in a slower way.
POLARS = {
    "q8": "x.drop_nulls('v3').group_by('id6').agg(largest2_v3=pl.col('v3').top_k(2)).explode('largest2_v3')",
    "q9": "x.group_by('id2', 'id4').agg(r2=pl.corr('v1', 'v2') ** 2)",
}


def price(got: batch.Answers) -> str:
    """Say what an exact sum of doubles costs beside one of integers, and beside a peer's sum of doubles."""
    out = []
    for keys in ("few", "many"):
        if f"{keys}_double" in got and f"{keys}_integer" in got:
            ratios = [
                f"{e} {harness.median(got[f'{keys}_double'][e], 'cpu') / harness.median(runs, 'cpu'):.2f}"
                for e, runs in got[f"{keys}_integer"].items()
            ]
            out.append(f"{keys} groups, sum(DOUBLE) over sum(BIGINT), CPU: {', '.join(ratios)}")
    return "\n".join(out)


def main(argv: list[str]) -> None:
    p = batch.parser("groupby", engines="riverbed,duckdb,polars")
    p.add_argument("--rows", type=int, default=10_000_000)
    p.add_argument("--form", choices=["own", "arrow", "file"], default="own")
    a = p.parse_args(argv)
    texts = batch.numbered((pathlib.Path(__file__).parent / "queries.sql").read_text())
    questions = {
        q: batch.Question(sql, code={"polars": POLARS[q]} if q in POLARS else {}, extra="_" in q)
        for q, sql in texts.items()
    }
    title = f"groupby, {a.rows:,} rows, {a.form}"
    batch.run(batch.Suite("groupby", title, h2o.groupby_table(a.rows), questions, a.form, note=price), a)

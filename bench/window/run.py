"""Window functions: every kind of function and frame, in small partitions, large ones, and over all rows.

    make bench CASE=window                      10 million rows, each engine's own table in memory
    python bench/run.py window --rows 1000000   a quick look

Polars is asked in its own words where it has some: it has no frames of GROUPS, nor EXCLUDE.
"""

from __future__ import annotations

import pathlib
from typing import Any

import batch
import h2o

# What Polars says otherwise. Its order within a partition is asked for with order_by.
POLARS = {
    "row_number": "w.select('t', n=pl.int_range(1, pl.len() + 1).over('p', order_by='t'))",
    "rank": "w.select('t', n=pl.col('v').rank('min').over('g').cast(pl.Int64))",
    "neighbours": "w.select('t', a=pl.col('v').shift(1).over('p', order_by='t'),"
    " b=pl.col('d').shift(-2).over('p', order_by='t'))",
    "partition": "w.select('t', a=pl.col('d').sum().over('p'), b=pl.col('v').max().over('p'))",
    "running_rows": "w.select('t', n=pl.col('v').cum_sum().over('g', order_by='t'))",
    "moving_mean": "w.select('t', n=pl.col('d').rolling_mean(10, min_samples=1).over('p', order_by='t'))",
    "moving_extremes": "w.select("
    "'t', a=pl.col('d').rolling_min(101, min_samples=1, center=True).over('g', order_by='t'),"
    " b=pl.col('d').rolling_max(101, min_samples=1, center=True).over('g', order_by='t'))",
    "all_row_number": "w.select('t').sort('t', descending=True).with_columns(n=pl.int_range(1, pl.len() + 1))",
    "all_running": "w.sort('t').select('t', n=pl.col('d').cum_sum())",
    "deviation": "w.select('t', n=pl.col('d').rolling_std(21, min_samples=1).over('p', order_by='t'))",
    "qualify": "w.filter(pl.col('d') > 1.9 * pl.col('d').mean().over('p')).select('p', 't', 'd')",
}


def table(rows: int) -> dict[str, pathlib.Path]:
    """Table w: partitions p (of about 100 rows) and g (100 of them), a unique t, a time s, v with ties, and d."""

    def make() -> Any:
        import numpy as np
        import pyarrow as pa

        r = np.random.default_rng(408)
        return pa.table(
            {
                "p": r.integers(0, max(rows // 100, 1), rows, dtype=np.int64),
                "g": r.integers(0, 100, rows, dtype=np.int64),
                "t": r.permutation(np.arange(rows, dtype=np.int64)),
                "s": pa.array(1_700_000_000_000_000 + r.integers(0, 86_400_000_000, rows)).cast(pa.timestamp("us")),
                "v": r.integers(0, 1000, rows, dtype=np.int64),
                "d": np.round(r.uniform(0, 100, rows), 6),
            }
        )

    return h2o.kept(f"window-{rows}", {"w": make})


def main(argv: list[str]) -> None:
    p = batch.parser("window", engines="riverbed,duckdb,polars")
    p.add_argument("--rows", type=int, default=10_000_000)
    p.add_argument("--form", choices=["own", "arrow", "file"], default="own")
    a = p.parse_args(argv)
    texts = batch.numbered((pathlib.Path(__file__).parent / "queries.sql").read_text())
    questions = {q: batch.Question(sql, code={"polars": POLARS[q]} if q in POLARS else {}) for q, sql in texts.items()}
    batch.run(
        batch.Suite("window", f"window functions, {a.rows:,} rows, {a.form}", table(a.rows), questions, a.form), a
    )

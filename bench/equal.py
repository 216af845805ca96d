"""Whether two answers are the same rows, exactly, at the size of the benchmarks.

Rows are compared as multisets: what was read, with its weights, minus what is wanted must leave nothing. A DOUBLE is
compared by its bits: NaN equals NaN, and 0.0 is not -0.0. All is done by column, so millions of rows take seconds: an
answer that has the same rows in the same order is seen at once, every other is grouped by DuckDB.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any

WEIGHT = "__weight"


def changes_differ(changes: Sequence[Any], want: Any) -> str:
    """Compare accumulated changes (batches, with or without weights) with a table; empty when they are equal."""
    import pyarrow as pa

    batches = [pa.record_batch(c) for c in changes if len(c)]
    if not batches:
        return f"no change came, {want.num_rows} rows are wanted" if want.num_rows else ""
    # Step and watermark are in the metadata of each batch, so the schemas differ by it.
    got = pa.Table.from_batches([b.replace_schema_metadata(None) for b in batches])
    weights = None
    if WEIGHT in got.column_names:
        weights, got = got.column(WEIGHT), got.drop_columns([WEIGHT])
    if got.schema.names != want.schema.names or got.schema.types != want.schema.types:
        return f"columns are {got.schema.names} {got.schema.types}, wanted {want.schema.names} {want.schema.types}"
    got, want = by_bits(got), by_bits(want.replace_schema_metadata(None))
    if weights is None and got.equals(want):
        return ""
    return left_over(got, weights, want)


def by_bits(t: Any) -> Any:
    """Read floating-point columns as the integers of their bits, so that equality is that of bits."""
    import pyarrow as pa

    integers = {pa.float64(): pa.int64(), pa.float32(): pa.int32()}
    for i, field in enumerate(t.schema):
        if integer := integers.get(field.type):
            bits = pa.chunked_array([c.view(integer) for c in t.column(i).chunks], integer)
            t = t.set_column(i, field.name, bits)
    return t


def left_over(got: Any, weights: Any, want: Any) -> str:
    """Add up the weights of equal rows, those wanted as -1, and show what is not zero."""
    import duckdb

    names = [f"c{i}" for i in range(want.num_columns)]
    got = got.rename_columns(names)
    if weights is not None:
        got = got.append_column(WEIGHT, weights)
    con = duckdb.connect(config={"threads": 2})
    con.register("got", got)
    con.register("want", want.rename_columns(names))
    columns, weight = ", ".join(names), WEIGHT if weights is not None else "1"
    left = con.sql(
        f"""SELECT {columns}, sum(w) AS w
            FROM (SELECT {columns}, {weight} AS w FROM got UNION ALL SELECT {columns}, -1 FROM want)
            GROUP BY {columns} HAVING sum(w) <> 0"""
    ).to_arrow_table()
    if not left.num_rows:
        return ""
    shown = "; ".join(f"{r.pop('w'):+} {tuple(r.values())}" for r in left.slice(0, 3).to_pylist())
    return f"{left.num_rows} rows differ: {shown}"


def answers_differ(got: pathlib.Path, want: pathlib.Path, ordered: int) -> str:
    """Compare two answers of engines, as Arrow files; empty when they agree.

    Integers, DECIMAL, text and times exactly; DOUBLE to 1e-9 relative, since engines add in different orders, and below
    1e-15 as zero, which is what a difference of ones may leave. The first
    `ordered` columns must come in the same sequence (-1: all of them); the rows must be the same, in whatever order.
    """
    import polars as pl

    a, b = (pl.scan_ipc(f).collect() for f in (got, want))
    if a.shape != b.shape:
        return f"{a.height} rows of {a.width} columns, DuckDB has {b.height} of {b.width}"
    a = a.rename(dict(zip(a.columns, b.columns, strict=True)))
    for c in b.columns:
        common = common_type(a[c].dtype, b[c].dtype)
        a, b = (t.with_columns(pl.col(c).cast(common, strict=False)) for t in (a, b))
    for c in b.columns if ordered < 0 else b.columns[:ordered]:
        if fault := column_differs(a[c], b[c]):
            return fault
    if ordered < 0:
        return ""
    if sum_of_hashes(a) == sum_of_hashes(b):
        return ""
    # Some DOUBLE differs, if only by its last bit. One order for both: by the hash of what is exact, then by the rest.
    inexact = [c for c in b.columns if b[c].dtype.is_float()]
    exact = [c for c in b.columns if c not in inexact]
    key = pl.struct(exact).hash(1) if exact else pl.lit(0)
    order = [t.select(pl.arg_sort_by([key, *inexact])).to_series() for t in (a, b)]
    for c in b.columns:
        if fault := column_differs(a[c].gather(order[0]), b[c].gather(order[1])):
            return fault
    return ""


def sum_of_hashes(t: Any) -> list[int]:
    """Give two sums over all rows that do not depend on their order: equal sums are equal sets of rows, nearly surely.

    It is what compares ten million rows in a second, where no engine had to compute a DOUBLE.
    """
    import polars as pl

    rows = pl.struct(pl.all())
    return list(t.select(rows.hash(seed).sum().alias(str(seed)) for seed in (1, 2)).row(0))


def common_type(a: Any, b: Any) -> Any:
    """Give the type in which values of two engines are compared: exact where both are exact."""
    import polars as pl

    exact = [t.is_integer() or isinstance(t, pl.Decimal) for t in (a, b)]
    if a.is_integer() and b.is_integer():
        return pl.Int64 if pl.Int128 not in (a, b) and pl.UInt64 not in (a, b) else pl.Int128
    if all(exact):
        return pl.Decimal(38, max(t.scale for t in (a, b) if isinstance(t, pl.Decimal)))
    return pl.Float64 if a.is_numeric() and b.is_numeric() else b


def column_differs(a: Any, b: Any) -> str:
    """Compare two columns row by row."""
    if a.dtype.is_float():
        close = (a - b).abs() <= (1e-9 * b.abs()).clip(1e-15)
        same = close.fill_null(False) | (a.is_null() & b.is_null()) | (a.is_nan() & b.is_nan()) | (a == b)
    else:
        same = a.eq_missing(b)
    if same.fill_null(False).all():
        return ""
    row = int(same.fill_null(False).arg_min())
    return f"column {b.name}, row {row}: {a[row]!r}, DuckDB has {b[row]!r}"

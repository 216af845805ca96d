"""Arrow arrays that begin inside their buffers: offsets of values, of validity bits, of children."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import riverbed as rb


def made() -> dict[str, Any]:
    """Objects whose buffers hold more than they show."""
    structs = pa.array(
        [{"a": i, "b": None if i % 3 == 0 else f"s{i}", "l": list(range(i % 4))} if i % 5 else None for i in range(20)],
        pa.struct([("a", pa.int64()), ("b", pa.string()), ("l", pa.list_(pa.int32()))]),
    )
    ints = pa.array([None if i % 4 == 0 else i for i in range(70)], pa.int64())
    bools = pa.array([None if i % 7 == 0 else i % 2 == 0 for i in range(70)])
    lists = pa.array([None if i % 6 == 0 else [i, None, i + 1][: i % 4] for i in range(30)], pa.list_(pa.int64()))
    texts = pa.array([None if i % 5 == 0 else "x" * (i % 3) for i in range(40)])
    return {
        "struct": structs.slice(3, 9),
        "struct at the end": structs.slice(15),
        "struct sliced twice": structs.slice(2, 16).slice(3, 8),
        "no rows": structs.slice(5, 0),
        "integers": ints.slice(9, 50),
        "booleans": bools.slice(9, 50),
        "lists": lists.slice(5, 20),
        "texts": texts.slice(7, 30),
        "chunks": pa.chunked_array([ints.slice(3, 10), ints.slice(40, 1), ints.slice(50, 20)]),
    }


@pytest.mark.parametrize("name", made())
def test_a_sliced_array_keeps_its_rows(name: str) -> None:
    column = made()[name]
    t = pa.table({"n": pa.array(range(len(column)), pa.int64()), "c": column})  # noqa: F841 (SQL reads it by its name)
    with rb.Session() as session:
        assert session.sql("SELECT c FROM t ORDER BY n").to_arrow()["c"].to_pylist() == column.to_pylist()
        counted = session.sql("SELECT count(*) AS rows, count(c) AS present FROM t").to_pylist()
        assert counted == [{"rows": len(column), "present": len(column) - column.null_count}]
        again = session.sql("SELECT c FROM t WHERE n % 2 = 1 ORDER BY n").to_arrow()["c"].to_pylist()
        assert again == column.to_pylist()[1::2]


def test_a_sliced_table_keeps_its_rows() -> None:
    whole = pa.table({"i": made()["integers"], "b": made()["booleans"]})
    t = whole.slice(21, 20)
    with rb.Session() as session:
        got = session.sql("SELECT i, b FROM t").to_arrow()
    assert got.to_pylist() == t.to_pylist()
    assert pc.sum(got["i"]) == pc.sum(t["i"])

"""Tables in the shape of the H2O.ai database benchmark (G1_1e7_1e2_0_0, J1_1e7_NA_0_0), from a fixed seed.

The cases groupby, join and sort read them. Files are made once, in bench/data.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import harness

GROUPS = 100


def kept(folder: str, makers: Mapping[str, Callable[[], Any]]) -> dict[str, pathlib.Path]:
    """Give the files of a folder of bench/data, and make those that are missing."""
    import pyarrow.parquet as pq

    files = {}
    for name, make in makers.items():
        files[name] = harness.DATA / folder / f"{name}.parquet"
        if not files[name].exists():
            files[name].parent.mkdir(parents=True, exist_ok=True)
            half = files[name].with_suffix(".half")  # what was broken off is not taken for the table
            pq.write_table(make(), half, row_group_size=1 << 20)
            half.rename(files[name])
    return files


def groupby_table(rows: int) -> dict[str, pathlib.Path]:
    """Table x: three text keys, three integer keys (of 100, 100 and rows/100 values), two integers, one double."""

    def make() -> Any:
        import numpy as np
        import pyarrow as pa

        r = np.random.default_rng(108)

        def text(values: int, width: int) -> Any:
            levels = pa.array([f"id{i:0{width}d}" for i in range(1, values + 1)])
            return levels.take(pa.array(r.integers(0, values, rows, dtype=np.int32)))

        def whole(values: int) -> Any:
            return pa.array(r.integers(1, values + 1, rows, dtype=np.int64))

        many = max(rows // GROUPS, 1)
        return pa.table(
            {
                "id1": text(GROUPS, 3),
                "id2": text(GROUPS, 3),
                "id3": text(many, 10),
                "id4": whole(GROUPS),
                "id5": whole(GROUPS),
                "id6": whole(many),
                "v1": whole(5),
                "v2": whole(15),
                "v3": pa.array(np.round(r.uniform(0, 100, rows), 6)),
            }
        )

    return kept(f"h2o-{rows}", {"x": make})


def join_tables(rows: int) -> dict[str, pathlib.Path]:
    """Table jx and the three tables that it meets: small (rows / 10^6), medium (rows / 1000) and big (rows).

    A key is unique in the table that is joined; nine tenths of its values are in x too, and of x's in it.
    """
    import numpy as np
    import pyarrow as pa

    sizes = {"small": max(rows // 1_000_000, 10), "medium": max(rows // 1000, 100), "big": rows}

    def keys(which: str) -> Any:
        """Give a key's domain, shuffled: its first tenth is for x alone, its last for the other table alone."""
        n = sizes[which]
        return np.random.default_rng(n).permutation(np.arange(1, n + n // 10 + 1, dtype=np.int64))

    domain = {which: keys(which) for which in sizes}

    def text(a: Any) -> Any:
        import pyarrow.compute as pc

        return pc.binary_join_element_wise("id", pa.array(a).cast(pa.string()), "")

    def x() -> Any:
        r = np.random.default_rng(208)
        ids = [r.choice(domain[which][: sizes[which]], rows) for which in sizes]
        names = dict(zip(("id1", "id2", "id3"), ids, strict=True))
        texts = dict(zip(("id4", "id5", "id6"), map(text, ids), strict=True))
        return pa.table({**names, **texts, "v1": np.round(r.uniform(0, 100, rows), 6)})

    def other(which: str) -> Callable[[], Any]:
        order = list(sizes)

        def make() -> Any:
            r = np.random.default_rng(300 + order.index(which))
            n = sizes[which]
            columns: dict[str, Any] = {}
            for i, of in enumerate(order[: order.index(which) + 1], 1):
                columns[f"id{i}"] = r.permutation(domain[of][-n:]) if of == which else r.choice(domain[of], n)
            for i in range(1, len(columns) + 1):
                columns[f"id{i + 3}"] = text(columns[f"id{i}"])
            return pa.table({**columns, "v2": np.round(r.uniform(0, 100, n), 6)})

        return make

    return kept(f"h2o-{rows}", {"jx": x, **{which: other(which) for which in sizes}})

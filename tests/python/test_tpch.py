"""The 22 queries of TPC-H over small Parquet files, beside DuckDB: row by row and in order.

`make bench CASE=tpch` compares the answers at scale factor 1.
"""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator

import duckdb
import pytest

import riverbed as rb

from . import tpch
from .answers import differences

TEXT = (pathlib.Path(__file__).parents[2] / "core/sql/testdata/tpch.sql").read_text()
QUERIES = {
    name: body.strip().rstrip(";") for name, body in re.findall(r"(?ms)^-- name: (q\d+)\n(.*?)(?=^-- name|\Z)", TEXT)
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pathlib.Path]:
    return tpch.write(tmp_path_factory.mktemp("tpch"))


@pytest.fixture(scope="module")
def duck(files: dict[str, pathlib.Path]) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        for name, path in files.items():
            con.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{path}')")
        yield con


@pytest.fixture(scope="module", params=[1, 4])
def session(request: pytest.FixtureRequest, files: dict[str, pathlib.Path]) -> Iterator[rb.Session]:
    with rb.Session(config={"parallelism": request.param}) as s:
        for name, path in files.items():
            s.sql(f"CREATE VIEW {name} AS SELECT * FROM '{path}'")
        yield s


def test_all_queries_are_here() -> None:
    assert list(QUERIES) == [f"q{n}" for n in range(1, 23)]


@pytest.mark.parametrize("name", QUERIES)
def test_answers_are_those_of_duckdb(name: str, session: rb.Session, duck: duckdb.DuckDBPyConnection) -> None:
    ours, theirs = session.sql(QUERIES[name]).to_arrow(), duck.sql(QUERIES[name]).to_arrow_table()
    assert theirs.num_rows > 0, "an empty answer proves nothing"
    assert theirs.to_pylist() != [dict.fromkeys(theirs.column_names)], "neither does a lone NULL"
    assert not differences(ours.to_pydict(), theirs.to_pydict())

"""The questions of NEXMark as batch, beside DuckDB: all but those about windows, which DuckDB cannot say.

tests/go/nexmark_test.go compares every question's incremental answer with batch; here batch is compared with another.
"""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator

import duckdb
import pytest

import riverbed as rb

from .answers import differences

TEXT = (pathlib.Path(__file__).parents[2] / "bench/nexmark/queries.sql").read_text()
QUERIES = {
    name: body.strip().rstrip(";") for name, body in re.findall(r"(?ms)^-- name: (\w+)\n(.*?)(?=^-- name|\Z)", TEXT)
}
PORTABLE = [name for name, text in QUERIES.items() if "TUMBLE" not in text and "HOP" not in text]
TIED = {"q18": ["price"]}  # the last bid has one time, but several bids may have it: either price is right
ROWS = {"person": 400, "auction": 1200, "bid": 18400}


@pytest.fixture(scope="module")
def engines() -> Iterator[tuple[rb.Session, duckdb.DuckDBPyConnection]]:
    with rb.Session() as session, duckdb.connect() as duck:
        for name, rows in ROWS.items():
            session.sql(
                f"CREATE TABLE {name} WITH (connector = 'generator', kind = 'nexmark_{name}', rows = {rows}, seed = 1)"
            )
            duck.register(name, session.sql(f"SELECT * FROM {name}").to_arrow())
        side = "SELECT range AS key, 'value-' || range AS value FROM range(10000)"
        session.sql(f"CREATE VIEW side AS {side}")
        duck.execute(f"CREATE VIEW side AS {side}")
        yield session, duck


def test_only_windows_are_left_out() -> None:
    assert QUERIES.keys() - PORTABLE == {"q5", "q7", "q8", "tumble"}


@pytest.mark.parametrize("name", PORTABLE)
def test_answers_are_those_of_duckdb(name: str, engines: tuple[rb.Session, duckdb.DuckDBPyConnection]) -> None:
    session, duck = engines
    ours, theirs = session.sql(QUERIES[name]).to_arrow(), duck.sql(QUERIES[name]).to_arrow_table()
    assert theirs.num_rows > 0, "an empty answer proves nothing"
    ours, theirs = ours.drop_columns(TIED.get(name, [])), theirs.drop_columns(TIED.get(name, []))
    keys = [(column, "ascending") for column in theirs.column_names]  # no question has an order
    assert not differences(ours.sort_by(keys).to_pydict(), theirs.sort_by(keys).to_pydict())

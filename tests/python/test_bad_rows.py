"""An expression that fails on a row: the error names it, or `on_error = 'bad'` leaves it out."""

from pathlib import Path

import pytest

import riverbed as rb


@pytest.fixture
def prices(tmp_path: Path) -> str:
    path = tmp_path / "prices.csv"
    path.write_text("item,price\na,1\nb,two\nc,3\nd,four\n")
    return f"read_csv('{path}', all_varchar = true)"


def test_the_error_names_the_row(prices: str, tmp_path: Path) -> None:
    with pytest.raises(rb.RiverbedDataError) as caught:
        rb.Session().sql(f"SELECT sum(price::INTEGER) FROM {prices}").to_pylist()
    assert f"could not convert string 'two' to INTEGER, in row 2 of {tmp_path / 'prices.csv'}" in str(caught.value)
    assert "{'price': two}" in str(caught.value)
    assert (caught.value.line, caught.value.column) == (1, 17)


def test_bad_rows_are_left_out_and_told(prices: str, tmp_path: Path) -> None:
    session = rb.Session(config={"on_error": "bad"})
    query = session.sql(f"SELECT sum(price::INTEGER) AS total FROM {prices} WHERE item <> 'd'")
    assert query.to_pylist() == [{"total": 4}]
    assert query.bad_rows == 1  # a row that a condition drops is not bad
    assert session.sql("SELECT source, split, position, error, raw, row, query FROM __bad").to_pylist() == [
        {
            "source": "read_csv",
            "split": str(tmp_path / "prices.csv"),
            "position": "row 2",
            "error": "could not convert string 'two' to INTEGER (line 1, column 17)",
            "raw": None,
            "row": "{'item': b, 'price': two}",
            "query": f"SELECT sum(price::INTEGER) AS total FROM {prices} WHERE item <> 'd'",
        }
    ]
    session.sql("SET on_error = 'fail'")
    with pytest.raises(rb.RiverbedDataError):
        session.sql(f"SELECT price::INTEGER FROM {prices}").to_pylist()
    assert query.to_pylist() == [{"total": 4}]  # it was planned before


def test_a_subscription_has_the_same_bad_rows(prices: str) -> None:
    session = rb.Session(config={"on_error": "bad"})
    text = f"SELECT item, price::INTEGER AS p FROM {prices}"
    batch = session.sql(text).to_pylist()
    rows = [row for delta in session.sql(text).subscribe(until="latest") for row in delta.to_pylist()]
    assert [{"item": r["item"], "p": r["p"]} for r in rows] == batch == [{"item": "a", "p": 1}, {"item": "c", "p": 3}]
    told = session.sql("SELECT pipeline, position, row, error FROM __bad").to_pylist()
    runs = {
        name: [(b["position"], b["row"], b["error"]) for b in told if b["pipeline"] == name]
        for name in {b["pipeline"] for b in told}
    }
    assert len(told) == 4
    assert len(runs) == 2
    assert len({tuple(rows) for rows in runs.values()}) == 1


def test_only_two_words(tmp_path: Path) -> None:
    with pytest.raises(rb.RiverbedUsageError, match="on_error: expected 'fail' or 'bad'"):
        rb.Session(config={"on_error": "null"})

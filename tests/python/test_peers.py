"""The judge of the peers' suites tells right from wrong, and its report says so."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path

import pytest

import riverbed

sys.path.insert(0, str(Path(__file__).parent))

from peers import causes, exclusions, report
from peers.__main__ import run_file
from peers.causes import Item
from peers.judge import Answer, Outcome, judge

ONE, TWO = [["1", "a"]], [["2", "a"]]
REFUSED = Answer(error='RiverbedSchemaError: there is no function "f"')
DUCK_REFUSED = Answer(error="CatalogException: f")


@pytest.mark.parametrize(
    ("ours", "duck", "wants_error", "outcome"),
    [
        (Answer(ONE, right=True), Answer(ONE, right=True), False, Outcome.PASSED),
        (Answer(ONE), Answer(TWO, right=True), False, Outcome.WRONG),  # a planted wrong answer
        (Answer(ONE), Answer(TWO), False, Outcome.WRONG),  # DuckDB contradicts the record too, but says another thing
        (Answer(ONE), DUCK_REFUSED, False, Outcome.WRONG),
        (Answer(ONE), None, False, Outcome.WRONG),
        (Answer(ONE), Answer(ONE), False, Outcome.AS_DUCKDB),
        (REFUSED, DUCK_REFUSED, False, Outcome.BOTH_REFUSE),
        (REFUSED, Answer(ONE, right=True), False, Outcome.ERROR),
        (REFUSED, Answer(ONE), False, Outcome.ERROR),
        (Answer(error="TIMEOUT after 20 s"), DUCK_REFUSED, False, Outcome.TIMEOUT),
        (Answer(error="RiverbedInternalError: broken"), DUCK_REFUSED, False, Outcome.ERROR),
        (Answer(error="RiverbedInternalError: broken", right=True), Answer(error="x", right=True), True, Outcome.ERROR),
        (Answer(error="RiverbedSchemaError: no", right=True), Answer(ONE), True, Outcome.PASSED),
        (Answer(ONE), Answer(error="x", right=True), True, Outcome.NO_ERROR),
        (Answer(ONE), Answer(ONE), True, Outcome.AS_DUCKDB),
    ],
)
def test_the_judge(ours: Answer, duck: Answer | None, wants_error: bool, outcome: Outcome) -> None:
    assert judge(ours, duck, wants_error=wants_error, ordered=True, same=list.__eq__) is outcome


def test_the_order_of_rows_counts_where_the_record_says_it() -> None:
    ours, duck = Answer([*ONE, *TWO]), Answer([*TWO, *ONE])
    assert judge(ours, duck, wants_error=False, ordered=True, same=list.__eq__) is Outcome.ORDER
    assert judge(ours, duck, wants_error=False, ordered=False, same=list.__eq__) is Outcome.AS_DUCKDB
    twice = Answer([*ONE, *ONE, *TWO])
    assert judge(twice, Answer([*ONE, *TWO, *TWO]), wants_error=False, ordered=False, same=list.__eq__) is Outcome.WRONG


def test_failures_are_grouped_by_their_cause_and_wrong_answers_listed() -> None:
    def error(place: str, why: str, follows: str = "") -> Item:
        return Item(place, Outcome.ERROR, why, "SELECT 1", follows)

    items = [
        error("duckdb/a.test:1", 'RiverbedSchemaError: no column "x" in t (line 1, column 3)'),
        error("duckdb/b.test:9", 'RiverbedSchemaError: no column "y" in t (line 7, column 12)'),
        error("duckdb/a.test:4", 'RiverbedSchemaError: there is no function "f"'),
        error("duckdb/a.test:5", 'RiverbedSchemaError: there is no function "g"'),
        error("duckdb/a.test:6", "RiverbedSchemaError: there is no table t", 'RiverbedSchemaError: no column "z" in t'),
        Item("duckdb/a.test:7", Outcome.WRONG, "row 0: got ['1'] want ['2']", "SELECT planted"),
        Item("duckdb/a.test:8", Outcome.PASSED),
        Item("duckdb/a.test:9", Outcome.BOTH_REFUSE, "both"),
    ]
    found = [(c.name, c.count, c.first, c.files) for c in causes.causes(items)]
    assert found == [
        ('RiverbedSchemaError: no column "X" in t', 3, 2, 2),
        ('RiverbedSchemaError: there is no function "f"', 1, 1, 1),
        ('RiverbedSchemaError: there is no function "g"', 1, 1, 1),
        ("WRONG ANSWER", 1, 1, 1),
    ]
    suite = report.Suite("duckdb", items, 2, 2)
    assert suite.row() == "| duckdb | 90 | 14.3 | 7 | 1 | 0 | 6 | 1 | 0 | 0 |"
    assert "WRONG ANSWER duckdb/a.test:7: \"row 0: got ['1'] want ['2']\"" in report.details(suite)


def test_exclusions_have_reasons_and_take_no_record_that_passes(tmp_path: Path) -> None:
    patterns = exclusions.read()
    assert patterns
    file = tmp_path / "exclusions.txt"
    file.write_text("flink/*:late\n")
    with pytest.raises(ValueError, match="no reason"):
        exclusions.read(file)
    items = [Item("flink/a.json:late", o) for o in (Outcome.WRONG, Outcome.PASSED, Outcome.CRASH)]
    after = exclusions.exclude(items, {"flink/*:late": "why"})
    assert [i.outcome for i in after] == [Outcome.EXCLUDED, Outcome.PASSED, Outcome.CRASH]
    assert report.Suite("flink", after, 1, 1).too_many_excluded


# A folder of suites whose runner knows one format: a line is a query, then what it expects.
RUNNER = """
import types, duckdb
def duckdb_factory(): return lambda sql: duckdb.sql(sql).to_arrow_table()
def parse(text, dialect):
    for number, line in enumerate(text.splitlines(), 1):
        if line == "die": import os; os.abort()
        if line == "hang": import time; time.sleep(60)
        sql, _, expect = line.partition(" => ")
        yield types.SimpleNamespace(kind="query", sql=sql, expect=[expect], line=number, err=None, skip=False, sort="")
def rows_of(table, style): return [[str(v) for v in row.values()] for row in table.to_pylist()]
def same_row(a, b): return a == b
def compare(record, rows, table, dialect, sort, labels):
    return rows == [record.expect], f"got {rows} want {record.expect}"
"""


def suites(folder: Path, text: str) -> tuple[Path, Path]:
    (folder / "slt.py").write_text(RUNNER)
    file = folder / "duckdb" / "a.test"
    file.parent.mkdir()
    file.write_text(textwrap.dedent(text))
    return folder, file


@pytest.fixture(autouse=True)
def path(monkeypatch: pytest.MonkeyPatch) -> None:
    package = Path(riverbed.__file__).parent.parent
    monkeypatch.setenv("PYTHONPATH", f"{Path(__file__).parent}:{package}")


def test_a_file_runs_beside_duckdb(tmp_path: Path) -> None:
    folder, file = suites(tmp_path, "SELECT 1 + 1 => 2\nSELECT 1 + 1 => 3\nSELECT f_(1) => 1\n")
    items = run_file(folder, "duckdb", file)
    assert [i.outcome for i in items] == [Outcome.PASSED, Outcome.AS_DUCKDB, Outcome.BOTH_REFUSE], items
    assert [i.place for i in items] == ["duckdb/a.test:1", "duckdb/a.test:2", "duckdb/a.test:3"]
    assert [Item.from_json(json.loads(json.dumps(i.to_json()))) for i in items] == items


def test_a_crash_is_one_files_failure(tmp_path: Path) -> None:
    folder, file = suites(tmp_path, "SELECT 1 + 1 => 2\ndie\nSELECT 1 => 1\n")
    items = run_file(folder, "duckdb", file)
    assert [i.outcome for i in items] == [Outcome.PASSED, Outcome.CRASH]
    assert "after duckdb/a.test:1: ended with -6" in items[1].why


def test_a_hang_is_one_files_failure(tmp_path: Path) -> None:
    folder, file = suites(tmp_path, "SELECT 1 + 1 => 2\nhang\n")
    items = run_file(folder, "duckdb", file, seconds=10)
    assert [i.outcome for i in items] == [Outcome.PASSED, Outcome.CRASH]
    assert "hung" in items[1].why

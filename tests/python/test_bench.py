"""The comparisons of the benchmarks find what is wrong; a benchmark whose answers nobody compared shows nothing."""

import json
import pathlib
import sys

import pyarrow as pa
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench"))
import compare
import equal

WANT = pa.table({"k": ["a", "b", None], "v": [1.5, 0.0, float("nan")]})


def batch(keys, values, weights=None):
    columns = {"k": pa.array(keys, pa.string()), "v": pa.array(values, pa.float64())}
    return pa.record_batch(columns if weights is None else columns | {"__weight": pa.array(weights, pa.int64())})


@pytest.mark.parametrize(
    "changes",
    [
        [batch(["a", "b", None], [1.5, 0.0, float("nan")])],
        [batch([None, "b"], [float("nan"), 0.0]), batch([], []), batch(["a"], [1.5])],
        [
            batch(["a", "x", None], [1.5, 2.0, float("nan")], [2, 1, 1]),
            batch(["x", "a", "b"], [2.0, 1.5, 0.0], [-1, -1, 1]),
        ],
    ],
    ids=["as they are", "another order", "weights that add up"],
)
def test_changes_that_accumulate_to_the_answer(changes):
    assert equal.changes_differ(changes, WANT) == ""


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ([], "3 rows are wanted"),
        ([batch(["a", "b"], [1.5, 0.0])], "-1 (None"),
        ([batch(["a", "b", "b", None], [1.5, 0.0, 0.0, float("nan")])], "+1 ('b'"),
        ([batch(["a", "b", None], [1.5, -0.0, float("nan")])], "2 rows differ"),
        ([batch(["a", "b", None], [1.5000000000000002, 0.0, float("nan")])], "2 rows differ"),
        ([batch(["a", "b", None], [1.5, 0.0, float("nan")], [1, 1, 2])], "+1 (None"),
        ([pa.record_batch({"k": ["a"], "v": [1]})], "columns are"),
    ],
    ids=["nothing", "lost", "doubled", "minus zero", "last bit", "weight", "type"],
)
def test_changes_that_do_not(changes, shown):
    assert shown in equal.changes_differ(changes, WANT)


def answers(tmp_path, got, want, ordered):
    files = []
    for name, table in (("got", got), ("want", want)):
        files.append(tmp_path / f"{name}.arrow")
        with pa.OSFile(str(files[-1]), "wb") as f, pa.ipc.new_file(f, table.schema) as w:
            w.write_table(table)
    return equal.answers_differ(*files, ordered)


ROWS = pa.table({"k": [1, 1, 2], "t": ["x", "y", "z"], "v": [0.1, 0.2, None]})


@pytest.mark.parametrize(
    ("got", "ordered"),
    [
        (ROWS, -1),
        (ROWS.take([1, 0, 2]), 1),
        (ROWS.take([2, 1, 0]), 0),
        (ROWS.set_column(0, "other", pa.array([1, 1, 2], pa.int32())), -1),
        (ROWS.set_column(2, "v", pa.array([0.1 + 1e-12, 0.2, None])), 0),
    ],
    ids=["the same", "ties", "any order", "narrow integers and another name", "sums in another order"],
)
def test_answers_that_agree(tmp_path, got, ordered):
    assert answers(tmp_path, got, ROWS, ordered) == ""


@pytest.mark.parametrize(
    ("got", "ordered"),
    [
        (ROWS.take([1, 0, 2]), -1),
        (ROWS.take([2, 1, 0]), 1),
        (ROWS.slice(0, 2), 0),
        (ROWS.take([0, 0, 2]), 0),
        (ROWS.set_column(2, "v", pa.array([0.1 + 1e-8, 0.2, None])), 0),
        (ROWS.set_column(2, "v", pa.array([0.1, 0.2, 0.0])), 0),
        (ROWS.set_column(2, "v", pa.array([0.2, 0.1, None])), 1),
        (ROWS.set_column(1, "t", ["x", "y", "Z"]), 1),
    ],
    ids=["order", "order of the keys", "lost", "doubled", "a sum", "null", "values of other rows", "text"],
)
def test_answers_that_do_not(tmp_path, got, ordered):
    assert answers(tmp_path, got, ROWS, ordered) != ""


def test_two_results_side_by_side(tmp_path, capsys):
    files = []
    for name, cpu in (("old", 1.0), ("new", 1.5)):
        files.append(tmp_path / f"{name}.json")
        runs = [{"cpu": cpu, "wall": 2.0, "rows": 7}, {"cpu": cpu + 100, "wall": 2.0}, {"cpu": cpu - 0.5, "wall": 2.0}]
        result = {"q1": {"riverbed": runs, "duckdb": []}, "q2": {"riverbed": [{"error": "no"}]}}
        files[-1].write_text(json.dumps({"case": "tpch", "machine": name, "result": result}))
    assert compare.main([str(f) for f in files]) == 0
    shown = capsys.readouterr().out
    assert "| q1/riverbed |    cpu |     1 |   1.5 |     1.5 | slower |" in shown
    assert "geometric mean of new/old, wall: 1.000 of 1" in shown


def test_results_of_two_cases_are_not_compared(tmp_path):
    for case in ("tpch", "sort"):
        (tmp_path / case).write_text(json.dumps({"case": case, "machine": "", "result": {}}))
    with pytest.raises(SystemExit):
        compare.main([str(tmp_path / "tpch"), str(tmp_path / "sort")])

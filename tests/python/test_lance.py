"""Lance tables, read by pylance."""

from __future__ import annotations

import datetime
import json
import os
import pathlib
import queue
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from typing import Any

import lance
import pyarrow as pa
import pytest

import riverbed as rb
from riverbed.connectors import _lance
from riverbed.errors import RiverbedExactlyOnceError

pytestmark = pytest.mark.usefixtures("leaks_nothing")

SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string())])
WEIGHTED = SCHEMA.append(pa.field("__weight", pa.int64()))


def table(path: pathlib.Path) -> list[dict[str, Any]]:
    return lance.dataset(str(path)).to_table().to_pylist()


def words(session: rb.Session, *batches: list[tuple[int, str]], updating: bool = False) -> rb.MemoryStream:
    source = rb.MemoryStream(updating=updating) if updating else rb.MemoryStream()
    session.create_stream("words", source=source, schema={"k": "BIGINT", "s": "VARCHAR"})
    for batch in batches:
        source.push(batch)
    return source


# --- through SQL -----------------------------------------------------------------------------------------------------


def test_rows_are_added(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.lance"
    for _ in range(2):
        with rb.Session() as session:
            words(session, [(1, "a"), (2, None)]).end()
            session.sql("SELECT k, s FROM words").sink(rb.Lance(path)).run()
    assert table(path) == [{"k": 1, "s": "a"}, {"k": 2, "s": None}] * 2


def test_a_batch_query(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.lance"
    with rb.Session() as session:
        session.sql(f"CREATE SINK out WITH (connector = 'lance', path = '{path}')")
        session.sql("INSERT INTO out SELECT range AS k FROM range(100000)")
    assert lance.dataset(str(path)).count_rows() == 100_000


def test_a_table_is_kept_equal_by_key(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.lance"
    with rb.Session() as session:
        source = words(session, updating=True)
        query = session.sql("SELECT s, sum(k)::BIGINT AS k FROM words GROUP BY s EMIT IMMEDIATE")
        handle = query.sink(rb.Lance(path, key="s")).run(blocking=False)
        source.push([(1, "a"), (2, "b"), (7, None)])
        source.push([{"k": 3, "s": "a"}, {"k": 2, "s": "b", "__weight": -1}])
        source.end()
        handle.wait()
    got = {row["s"]: row["k"] for row in table(path)}
    assert got == {"a": 4, None: 7}
    assert lance.dataset(str(path)).count_rows() == 2


def test_changes_need_a_key_or_a_changelog(tmp_path: pathlib.Path) -> None:
    with rb.Session() as session:
        words(session, [(1, "a"), (2, "a")]).end()
        query = session.sql("SELECT s, count(*) AS n FROM words GROUP BY s EMIT IMMEDIATE")
        with pytest.raises(rb.RiverbedUnsupportedError, match="key = 'id'"):
            query.sink(rb.Lance(tmp_path / "a")).run()
        with pytest.raises(rb.RiverbedUnsupportedError, match=r"by the key n[\s\S]*these columns are unique: s"):
            query.sink(rb.Lance(tmp_path / "b", key="n")).run()
        query.sink(rb.Lance(tmp_path / "c", changelog=True)).run()
    assert sum(row["__weight"] for row in table(tmp_path / "c")) == 1


def test_all_types(tmp_path: pathlib.Path) -> None:
    sql = """SELECT true AS b, 1::TINYINT AS i8, 18446744073709551615::UBIGINT AS u64, -5::HUGEINT AS h,
        1.5::FLOAT AS f,
        1.25::DECIMAL(9, 2) AS d, 'é' AS s, 'a'::BLOB AS z, DATE '1969-12-31' AS dt, TIME '23:59:59.5' AS t,
        TIMESTAMP '2020-02-29 12:00:00.5' AS ts, TIMESTAMPTZ '2020-01-01 00:00:00+02' AS tz,
        '550e8400-e29b-41d4-a716-446655440000'::UUID AS u, [1, NULL] AS l, {'a': 'x'} AS st,
        MAP {'k': 1} AS m, NULL::VARCHAR AS n"""
    with rb.Session() as session:
        want, kinds = session.sql(sql).to_pylist(), session.sql(sql).schema
        session.sql(f"CREATE SINK out WITH (connector = 'lance', path = '{tmp_path / 't'}')")
        session.sql(f"INSERT INTO out {sql}")
        session.create_table("back", source=lance.dataset(str(tmp_path / "t")).to_table())
        assert session.sql("SELECT * FROM back").to_pylist() == want
        assert session.sql("SELECT * FROM back").schema == kinds
        session.sql(f"CREATE SINK no WITH (connector = 'lance', path = '{tmp_path / 'u'}')")
        with pytest.raises(rb.RiverbedSchemaError, match="holds no INTERVAL"):
            session.sql("INSERT INTO no SELECT INTERVAL '1 day' AS i")


def test_a_table_of_other_columns(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "t")
    lance.write_dataset(pa.table({"s": ["x"], "k": pa.array([0], pa.int64())}), path)
    with rb.Session() as session:
        words(session, [(1, "a")]).end()
        session.sql("SELECT k, s FROM words").sink(rb.Lance(path)).run()  # in the table's order
        assert table(tmp_path / "t") == [{"s": "x", "k": 0}, {"s": "a", "k": 1}]
        for sql, message in (
            ("SELECT k::INT AS k, s FROM words", "column 'k' of the table .* is int64, and the query gives int32"),
            ("SELECT k, s AS t FROM words", "has no column 't'"),
            ("SELECT k FROM words", "no column for 's'"),
        ):
            with pytest.raises(rb.RiverbedSchemaError, match=message):
                session.sql(sql).sink(rb.Lance(path)).run()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, 'needs the option "path"'),
        ({"path": ""}, "the path is empty"),
        ({"path": "/none", "create": "false"}, "there is no Lance table /none"),
        ({"path": "/none", "kee": "a"}, 'did you mean "key"'),
        ({"path": "/none", "key": "z"}, 'no column "z" to be of the key'),
    ],
)
def test_options_are_checked(options: dict[str, str], message: str) -> None:
    with rb.Session() as session:
        written = "".join(f", {k} = '{v}'" for k, v in options.items())
        script = f"CREATE SINK out WITH (connector = 'lance'{written}); INSERT INTO out SELECT 1 AS a"
        with pytest.raises(rb.RiverbedError, match=message):
            session.sql(script)


def test_without_pylance(run_python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = run_python("""
        import sys
        sys.modules["lance"] = None
        import riverbed as rb
        session = rb.Session()
        session.sql("CREATE SINK out WITH (connector = 'lance', path = '/none')")
        try:
            session.sql("INSERT INTO out SELECT 1 AS a")
        except rb.RiverbedUsageError as error:
            print(error)
    """)
    assert "pip install riverbed[lance]" in done.stdout, done.stderr


# --- exactly once ----------------------------------------------------------------------------------------------------

PIPELINE = """
    import os, signal, sys
    import riverbed as rb
    from riverbed.connectors import _lance

    folder, key, dies = sys.argv[1], sys.argv[2], sys.argv[3]

    def die(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    commit = _lance._Table.commit
    calls = 0

    def before_or_after(self, on, operation, said):
        global calls
        ours = any(k.startswith("riverbed.marker") for k in said)
        calls += ours
        if dies == "before" and ours and calls == 2:
            die()
        done = commit(self, on, operation, said)
        if dies == "after" and ours and calls == 2:
            die()
        return done

    _lance._Table.commit = before_or_after
    session = rb.Session({"checkpoint_url": folder + "/checkpoints", "checkpoint_interval_ms": 50})
    session.sql(f"CREATE STREAM lines (k BIGINT) WITH (connector = 'json', path = '{folder}/in')")
    sql, sink = "SELECT k FROM lines", rb.Lance(folder + "/t")
    if key:
        sql = "SELECT k % 100 AS g, count(*) AS n FROM lines GROUP BY 1 EMIT IMMEDIATE"
        sink = rb.Lance(folder + "/t", key="g")
    pipeline = session.sql(sql).sink(sink, exactly_once=True, pipeline_id="p")
    def add():
        n = len(os.listdir(folder + "/in"))
        with open(folder + "/.new", "w") as out:
            for i in range(100):
                out.write('{"k": %d}\\n' % (100 * n + i))
        os.rename(folder + "/.new", f"{folder}/in/{n:04d}.json")

    if not dies:
        add()
        pipeline.run(until="latest")
        sys.exit()
    handle = pipeline.run(blocking=False)
    while not handle.wait(0.05):
        add()
"""


@pytest.mark.parametrize("key", ["", "g"])
@pytest.mark.parametrize("dies", ["before", "after"])
def test_each_row_once_though_the_process_dies(tmp_path: pathlib.Path, key: str, dies: str) -> None:
    (tmp_path / "in").mkdir()

    def run(dies: str) -> subprocess.CompletedProcess[str]:
        program = [sys.executable, "-c", textwrap.dedent(PIPELINE), str(tmp_path), key, dies]
        return subprocess.run(program, capture_output=True, text=True)

    for _ in range(3):
        assert run(dies).returncode == -signal.SIGKILL
    done = run("")
    assert done.returncode == 0, done.stderr
    whole = 100 * len(os.listdir(tmp_path / "in"))
    rows = table(tmp_path / "t")
    if key:
        assert sorted((r["g"], r["n"]) for r in rows) == [(g, whole // 100) for g in range(100)]
    else:
        assert sorted(r["k"] for r in rows) == list(range(whole))


def sink(path: pathlib.Path, key: str = "", pipeline: str = "p") -> Any:
    schema = WEIGHTED if key else SCHEMA
    given = {
        "options": {"path": str(path), "create": True, "key": [key] if key else []},
        "pipeline": pipeline,
        "exactly_once": True,
    }
    return _lance.open("sink", given, pa.RecordBatch.from_pylist([], schema))


def staged(to: Any, epoch: int, *rows: tuple[Any, ...]) -> str:
    schema = WEIGHTED if len(rows[0]) == 3 else SCHEMA
    columns = [pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), schema, strict=True)]
    to.write(pa.RecordBatch.from_arrays(columns, schema=schema), json.dumps({"riverbed.step": str(epoch)}))
    return str(to.stage(epoch)["committable"])


def test_an_epoch_that_is_there_is_left(tmp_path: pathlib.Path) -> None:
    w = sink(tmp_path / "t")
    assert w.begin("r:0") == {"marker": "r:0"}
    one, two = staged(w, 1, (1, "a")), staged(w, 2, (2, "b"))
    assert table(tmp_path / "t") == []
    for _ in range(2):
        w.commit(1, "r:1", "r:0", one)
    with pytest.raises(RiverbedExactlyOnceError, match="do not belong together"):
        w.commit(3, "r:3", "r:2", two)
    w.commit(2, "r:2", "r:1", two)
    assert [r["k"] for r in table(tmp_path / "t")] == [1, 2]
    assert sink(tmp_path / "t").begin("x:0") == {"marker": "r:2"}


def test_who_was_taken_over_commits_nothing(tmp_path: pathlib.Path) -> None:
    old = sink(tmp_path / "t")
    old.begin("r:0")
    one = staged(old, 1, (1, "a"))
    new = sink(tmp_path / "t")
    assert new.begin("") == {"marker": "r:0"}
    new.commit(1, "r:1", "r:0", one)
    with pytest.raises(RiverbedExactlyOnceError, match="another process has taken this pipeline over"):
        old.commit(1, "r:1", "r:0", one)
    assert len(table(tmp_path / "t")) == 1


def test_a_commit_that_was_on_its_way_when_it_was_taken_over(tmp_path: pathlib.Path) -> None:
    """It looked before, and puts behind: the table itself refuses it."""
    old, new = sink(tmp_path / "t"), sink(tmp_path / "t")
    old.begin("r:0")
    one = staged(old, 1, (1, "a"))
    operation = old._operation

    def late(staged: Any, at: Any) -> Any:
        made = operation(staged, at)
        if new._ledger.marker != "r:1":
            new.begin("")
            new.commit(1, "r:1", "r:0", one)
        return made

    old._operation = late
    with pytest.raises(RiverbedExactlyOnceError, match="taken this pipeline over"):
        old.commit(1, "r:1", "r:0", one)
    assert len(table(tmp_path / "t")) == 1


def test_rows_are_written_while_an_epoch_is_committed(tmp_path: pathlib.Path) -> None:
    """What was looked at is what is committed upon, whatever the other thread sees of the table meanwhile."""
    old, new = sink(tmp_path / "t"), sink(tmp_path / "t")
    old.begin("r:0")
    one = staged(old, 1, (1, "a"))
    look = old._ledger._look

    def and_then(at: Any, mine: bool = False) -> None:
        look(at, mine)
        if not mine and not table(tmp_path / "t"):
            new.begin("")
            new.commit(1, "r:1", "r:0", one)
            staged(old, 2, (2, "b"))

    old._ledger._look = and_then
    with pytest.raises(RiverbedExactlyOnceError, match="taken this pipeline over"):
        old.commit(1, "r:1", "r:0", one)
    assert len(table(tmp_path / "t")) == 1


def test_two_threads_of_a_sink(tmp_path: pathlib.Path) -> None:
    w = sink(tmp_path / "t")
    w.begin("r:0")
    failed: list[BaseException] = []
    epochs: queue.Queue[tuple[int, str]] = queue.Queue()

    def commits() -> None:
        try:
            for _ in range(40):
                epoch, what = epochs.get()
                w.commit(epoch, f"r:{epoch}", f"r:{epoch - 1}", what)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=commits)
    thread.start()
    for epoch in range(1, 41):
        epochs.put((epoch, staged(w, epoch, (epoch, "a"))))
    thread.join()
    assert not failed
    assert sorted(r["k"] for r in table(tmp_path / "t")) == list(range(1, 41))


@pytest.mark.parametrize("landed", [True, False])
@pytest.mark.parametrize("key", ["", "k"])
def test_an_answer_that_is_lost(tmp_path: pathlib.Path, landed: bool, key: str) -> None:
    w = sink(tmp_path / "t", key)
    w.begin("r:0")
    row = (1, "a", 1) if key else (1, "a")
    one = staged(w, 1, row)
    commit = w._table.commit
    lost: list[Any] = []

    def loses(on: Any, operation: Any, said: dict[str, str]) -> Any:
        if lost or not any(k.startswith("riverbed.marker") for k in said):
            return commit(on, operation, said)
        lost.append(lance.Transaction(on.version, operation, transaction_properties=said))
        if landed:
            commit(on, operation, said)
        raise OSError("no answer")

    w._table.commit = loses
    with pytest.raises(rb.RiverbedSourceError, match="no answer"):
        w.commit(1, "r:1", "r:0", one)
    w.commit(1, "r:1", "r:0", one)
    assert len(table(tmp_path / "t")) == 1
    with pytest.raises(OSError, match="preempted"):  # what was lost on its way does not land later
        lance.LanceDataset.commit(str(tmp_path / "t"), lost[0], max_retries=0)
    assert len(table(tmp_path / "t")) == 1


def test_rows_of_others_stay(tmp_path: pathlib.Path) -> None:
    w, other = sink(tmp_path / "t"), sink(tmp_path / "t", pipeline="q")
    w.begin("r:0")
    other.begin("q:0")
    for epoch in range(1, 4):
        w.commit(epoch, f"r:{epoch}", f"r:{epoch - 1}", staged(w, epoch, (epoch, "p")))
        other.commit(epoch, f"q:{epoch}", f"q:{epoch - 1}", staged(other, epoch, (epoch, "q")))
        lance.write_dataset(pa.table({"k": [epoch], "s": ["x"]}, schema=SCHEMA), str(tmp_path / "t"), mode="append")
        lance.dataset(str(tmp_path / "t")).optimize.compact_files()
    assert sorted((r["s"], r["k"]) for r in table(tmp_path / "t")) == [(s, k) for s in "pqx" for k in (1, 2, 3)]


def test_versions_may_be_removed_once_the_marker_is_noted(tmp_path: pathlib.Path) -> None:
    w = sink(tmp_path / "t")
    w.begin("r:0")
    w.commit(1, "r:1", "r:0", staged(w, 1, (1, "a")))
    w.close()
    remove(tmp_path / "t")
    w = sink(tmp_path / "t")
    assert w.begin("") == {"marker": "r:1"}
    w.commit(2, "r:2", "r:1", staged(w, 2, (2, "b")))  # and is not closed: as if it were killed
    lance.write_dataset(pa.table({"k": [9], "s": ["x"]}, schema=SCHEMA), str(tmp_path / "t"), mode="append")
    remove(tmp_path / "t")
    with pytest.raises(RiverbedExactlyOnceError, match="was removed"):
        sink(tmp_path / "t").begin("")


def remove(path: pathlib.Path) -> None:
    lance.dataset(str(path)).cleanup_old_versions(older_than=datetime.timedelta(0))


def test_a_file_that_is_gone(tmp_path: pathlib.Path) -> None:
    w = sink(tmp_path / "t")
    w.begin("r:0")
    one = staged(w, 1, (1, "a"))
    for file in (tmp_path / "t" / "data").iterdir():
        file.unlink()
    again = sink(tmp_path / "t")
    again.begin("")
    with pytest.raises(RiverbedExactlyOnceError, match=r"the file .* is gone"):
        again.commit(1, "r:1", "r:0", one)


def test_the_last_change_of_a_key_counts(tmp_path: pathlib.Path) -> None:
    w = sink(tmp_path / "t", "k")
    w.begin("r:0")
    for rows in (
        [(1, "a", 1), (None, "n", 1)],
        [(1, "a", -1), (1, "b", 1), (2, "c", 1)],
        [(2, "d", 1), (2, "c", -1), (None, "n", -1)],
    ):
        columns = [pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), WEIGHTED, strict=True)]
        step = str(w._bytes)
        w._bytes += 1
        w.write(pa.RecordBatch.from_arrays(columns, schema=WEIGHTED), json.dumps({"riverbed.step": step}))
    w.commit(1, "r:1", "r:0", w.stage(1)["committable"])
    assert sorted((r["k"], r["s"]) for r in table(tmp_path / "t")) == [(1, "b"), (2, "d")]


def test_keys_of_several_columns(tmp_path: pathlib.Path) -> None:
    import itertools

    import pyarrow.compute as pc

    values = [None, 1, 2, 3]
    have = list(itertools.product(values, values, values))
    want = have[::3]
    columns = lambda rows: [pa.chunked_array([pa.array(c, pa.int64())]) for c in zip(*rows, strict=True)]  # noqa: E731
    codes = _lance._codes(pa, pc, columns(have), columns(want)).to_pylist()
    assert [row for row, code in zip(have, codes, strict=True) if code is not None] == want
    assert len({code for code in codes if code is not None}) == len(want)

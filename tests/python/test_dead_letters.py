"""Bad rows on their way: followed by a pipeline, exported, repaired and replayed; and what the commands tell."""

from __future__ import annotations

import base64
import datetime
import json
import pathlib

import pytest

import riverbed as rb
from riverbed.cli import inspect, main
from riverbed.cli.status import Status


def script(tmp: pathlib.Path) -> str:
    (tmp / "in").mkdir()
    (tmp / "in" / "a.jsonl").write_text('{"k": 1}\n{"k": "none"}\n{"k": 3}\n{"k": "no"}\n')
    (tmp / "q.sql").write_text(
        f"""CREATE STREAM s (k INT) WITH (connector = 'json', path = '{tmp}/in');
        CREATE SINK dead WITH (connector = 'json', path = '{tmp}/dead');
        CREATE SINK good WITH (connector = 'json', path = '{tmp}/good');
        INSERT INTO dead SELECT source, split, error, decode(raw) AS raw, number FROM __bad;
        INSERT INTO good SELECT k FROM s;"""
    )
    return str(tmp / "q.sql")


def lines(folder: pathlib.Path) -> list[dict[str, object]]:
    return [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]


def test_dead_letters(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, place = script(tmp_path), ["--checkpoint-dir", str(tmp_path / "ckpt")]
    assert main(["run", file, "--until", "latest", *place]) == 0
    told = capsys.readouterr().err
    assert "started: good" in told
    assert "started: dead" in told
    dead = lines(tmp_path / "dead")
    assert sorted(str(row["raw"]) for row in dead) == ['{"k": "no"}', '{"k": "none"}']
    assert {row["source"] for row in dead} == {"s"}

    export = tmp_path / "bad.jsonl"
    assert main(["replay", "--pipeline-id", "good", *place, "--export", str(export)]) == 0
    rows = [json.loads(line) for line in export.read_text().splitlines()]
    assert [row["number"] for row in rows] == [0, 1]
    repaired = tmp_path / "repaired.jsonl"
    repaired.write_text(json.dumps({"number": rows[1]["number"], "raw": '{"k": 4}'}) + "\n")
    capsys.readouterr()
    for replayed, already in ((1, 0), (0, 1)):
        command = ["replay", file, "--pipeline-id", "good", *place, "--repaired", str(repaired), "--json"]
        assert main(command) == 0
        assert json.loads(capsys.readouterr().out) == {"replayed": replayed, "already": already, "no_bytes": 0}
    back = [path for path in (tmp_path / "in").glob("good.replay.s-*.jsonl") if path.read_text()]
    assert [path.read_text() for path in back] == ['{"k": 4}\n']

    assert main(["inspect", "--pipeline-id", "good", *place]) == 0
    found = capsys.readouterr().out
    assert "it has ended" in found
    assert "replay" not in found


def test_bytes_that_are_no_text(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, place = script(tmp_path), ["--checkpoint-dir", str(tmp_path / "ckpt")]
    query = pathlib.Path(file)
    query.write_text(query.read_text().replace("decode(raw) AS raw", "hex(raw) AS raw"))
    (tmp_path / "in" / "a.jsonl").write_bytes(b'{"k": "no"}\n{"k": "\xff\xfe"}\n')
    assert main(["run", file, "--quiet", "--until", "latest", *place]) == 0
    export = tmp_path / "bad.jsonl"
    for settings in ([], ["--set", "on_error=bad"]):
        command = ["replay", "--pipeline-id", "good", *place, "--export", str(export), *settings]
        assert main(command) == 0
        rows = [json.loads(line) for line in export.read_text().splitlines()]
        assert [row["raw"] for row in rows] == ['{"k": "no"}', None]
        assert base64.b64decode(rows[1]["raw_base64"]) == b'{"k": "\xff\xfe"}'
    capsys.readouterr()
    assert main(["replay", file, "--pipeline-id", "good", *place, "--repaired", str(export), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"replayed": 2, "already": 0, "no_bytes": 0}
    back = b"".join(path.read_bytes() for path in (tmp_path / "in").glob("good.replay.s-*.jsonl"))
    assert back == b'{"k": "no"}\n{"k": "\xff\xfe"}\n'


def test_state_is_a_table(tmp_path: pathlib.Path) -> None:
    file, place = script(tmp_path), ["--checkpoint-dir", str(tmp_path / "ckpt")]
    assert main(["run", file, "--quiet", "--until", "latest", *place]) == 0
    session = rb.Session({"checkpoint_url": str(tmp_path / "ckpt")})
    assert "__bad" in session.sql("SELECT operator FROM state('good')").to_arrow()["operator"].to_pylist()
    assert len(session.sql("SELECT * FROM state('good', '__bad')").to_pylist()) == 2


def test_callables_have_names(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"k": 1}\n')
    session = rb.Session({"checkpoint_url": str(tmp_path / "ckpt")})
    session.sql(f"CREATE STREAM s (k INT) WITH (connector = 'json', path = '{tmp_path}')")
    seen: list[object] = []

    def one(batch: rb.Batch) -> None:
        seen.extend(batch)

    def two(batch: rb.Batch) -> None:
        seen.extend(batch)

    query = session.sql("SELECT k FROM s")
    first = query.sink(one).run(blocking=False)
    second = query.sink(two).run(blocking=False)
    assert first.metrics()["pipeline"] != second.metrics()["pipeline"]
    with pytest.raises(rb.RiverbedUsageError, match="runs in this process already"):
        query.sink(one).run(blocking=False)
    first.stop()
    second.stop()


def test_inspection_is_for_people() -> None:
    now = datetime.datetime(2026, 1, 1, 0, 1, tzinfo=datetime.UTC)
    splits = {f"{n:04}.json": {"position": f"{n}", "ended": n < 90} for n in range(100)}
    epoch = {"epoch": 3, "step": 9, "written": "2026-01-01T00:00:30.123456789Z", "bytes": 10, "new_bytes": 5}
    found = {
        "pipeline": "p",
        "folder": "f",
        "holder": {"pid": 1, "host": "h", "released": True},
        "epochs": [epoch],
        "sources": [{"name": "s", "state": {"watermark": 1767225600_000000, "late": 2}, "splits": splits}],
        "sinks": [],
        "tables": [],
    }
    told = "\n".join(inspect.lines(found, now))
    assert "nobody: it was stopped, and goes on from here" in told
    assert "watermark 2026-01-01 00:00:00.000+00:00, 30.1 s behind the epoch, 2 late" in told
    assert "100 splits: 90 read to their end, 10 being read" in told
    assert "29.9 s old" in told
    assert told.count("split 00") == 10


class Terminal:
    """Keeps what is written to it."""

    def __init__(self, live: bool) -> None:
        self.text, self.live = "", live

    def isatty(self) -> bool:
        return self.live

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        pass


def test_status_line() -> None:
    metrics = {"pipeline": "p", "rows_in": 1000, "lag_ms": 2500, "epoch": 4}
    screen = Terminal(live=True)
    status = Status(screen)  # type: ignore[arg-type]
    status.started(metrics)
    status.show([metrics], now=1.0)
    status.show([metrics | {"rows_in": 3000}], now=2.0)
    assert "started: p, from epoch 4" in screen.text
    assert "1 running, 3,000 rows in, 2,000 rows/s, 2.5 s behind, epoch 4" in screen.text
    pipe = Terminal(live=False)
    status = Status(pipe)  # type: ignore[arg-type]
    status.started(metrics)
    status.show([metrics], now=1.0)
    assert pipe.text == "started: p, from epoch 4\n"
    silent = Terminal(live=True)
    Status(silent, quiet=True).started(metrics)  # type: ignore[arg-type]
    assert silent.text == ""


def test_hybrid_is_made_of_two() -> None:
    source = rb.Hybrid(history=rb.Parquet("old"), live=rb.Kafka(topic="t", brokers="a:1", sasl_password="hush"))
    assert "hush" not in repr(source)
    assert json.loads(source.options["history"]) == {"connector": "parquet", "options": {"path": "old"}}

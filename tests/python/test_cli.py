"""The command line: what it prints, where errors go, what it returns."""

from __future__ import annotations

import contextlib
import json
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from riverbed.cli import COMMANDS, main


def test_sql_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "SELECT 42 AS answer"]) == 0
    assert "answer" in capsys.readouterr().out


def test_sql_json_prints_an_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "--json", "SELECT * FROM (VALUES (1, DATE '2024-01-01'), (2, NULL)) t(a, d) ORDER BY a"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [{"a": 1, "d": "2024-01-01"}, {"a": 2, "d": None}]


def test_sql_reads_a_file(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "q.sql").write_text("CREATE TABLE t AS SELECT 1 AS a; SELECT a + 1 AS b FROM t")
    assert main(["sql", "--json", f"@{tmp_path}/q.sql"]) == 0
    assert capsys.readouterr().out == '{"b": 2}\n'


def test_an_error_goes_to_stderr_as_python_says_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "SELECT * FROM nowhere"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("RiverbedSchemaError: ")
    assert "nowhere" in err


def test_a_missing_file_and_a_wrong_setting(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "no-such.sql"]) == 1
    assert "no-such.sql" in capsys.readouterr().err
    assert main(["sql", "--set", "paralelism=2", "SELECT 1"]) == 1
    assert "parallelism" in capsys.readouterr().err


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "SELECT 1 AS a"]) == 0
    assert "batch" in capsys.readouterr().out
    assert main(["explain", "--json", "--mode", "incremental", "SELECT 1 AS a"]) == 0
    assert json.loads(capsys.readouterr().out)["plan"]


def test_checkpoints_are_inspected_and_saved(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"k": 1, "v": 2}\n{"k": 1, "v": 3}\n')
    (tmp_path / "q.sql").write_text(
        f"""CREATE STREAM s (k INT, v INT) WITH (connector = 'json', path = '{tmp_path}/in/*.json');
        CREATE SINK totals WITH (connector = 'json', path = '{tmp_path}/out', changelog = true);
        INSERT INTO totals SELECT k, sum(v) AS total FROM s GROUP BY k;"""
    )
    place = ["--checkpoint-dir", str(tmp_path / "checkpoints")]
    assert main(["run", str(tmp_path / "q.sql"), "--until", "latest", *place]) == 0
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "started: totals"
    assert told[1].startswith("stopped: totals, 2 rows in, ")
    assert "epoch" in told[1]
    assert main(["inspect", "--pipeline-id", "totals", "--json", *place]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["pipeline"] == "totals"
    assert found["epochs"][-1]["epoch"] >= 1
    assert [table["stored_rows"] for table in found["tables"] if table["kind"] == "state"] == [1]
    assert main(["inspect", "--pipeline-id", "totals", *place]) == 0
    assert "committed" in capsys.readouterr().out
    assert main(["sql", "--json", *place, "SELECT stored_rows FROM state('totals') WHERE kind = 'state'"]) == 0
    assert capsys.readouterr().out == '{"stored_rows": 1}\n'
    assert main(["savepoint", "--pipeline-id", "totals", *place, str(tmp_path / "saved")]) == 0
    assert list((tmp_path / "saved").iterdir())
    capsys.readouterr()
    assert main(["inspect", "--pipeline-id", "nothing", *place]) == 1
    assert "there are no checkpoints" in capsys.readouterr().err
    # What ended has ended, and says so: nothing is written twice.
    before = sorted(path.name for path in (tmp_path / "out").rglob("*"))
    assert main(["run", str(tmp_path / "q.sql"), "--until", "latest", *place]) == 1
    assert "has ended for the pipeline" in capsys.readouterr().err
    assert sorted(path.name for path in (tmp_path / "out").rglob("*")) == before


def test_no_pipeline_starts_when_a_savepoint_does_not_fit_one(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"k": 1, "v": 2}\n')
    script = tmp_path / "p.sql"
    text = f"""CREATE STREAM s (k INT, v INT) WITH (connector = 'json', path = '{tmp_path}/in/*.json');
        CREATE SINK first WITH (connector = 'json', path = '{tmp_path}/first', changelog = true);
        INSERT INTO first SELECT k, sum(v) AS total FROM s GROUP BY k;
        CREATE TABLE names (k INT, name TEXT);
        INSERT INTO names VALUES (1, 'one');
        CREATE SINK second WITH (connector = 'json', path = '{tmp_path}/second', changelog = true);
        INSERT INTO second SELECT name, max(v) AS most FROM s JOIN names USING (k) GROUP BY name;
        """
    script.write_text(text)
    run = ["run", str(script), "--until", "latest", "--checkpoint-dir"]
    assert main([*run, str(tmp_path / "old")]) == 0
    assert capsys.readouterr().err.count("started: ") == 2
    for name in ("first", "second"):
        saved = str(tmp_path / "saved" / name)
        assert main(["savepoint", "--pipeline-id", name, "--checkpoint-dir", str(tmp_path / "old"), saved]) == 0
    script.write_text(text.replace("max(v)", "min(v)"))
    capsys.readouterr()
    assert main([*run, str(tmp_path / "new"), "--from-savepoint", str(tmp_path / "saved")]) == 1
    told = capsys.readouterr().err
    assert "started" not in told
    assert 'the checkpoints of the pipeline "second" are of another query' in told
    assert not (tmp_path / "new").exists()
    # The same of checkpoints of their own, as of a copied savepoint.
    leases = sorted((tmp_path / "old").rglob("lease-*"))
    assert main([*run, str(tmp_path / "old")]) == 1
    assert "started" not in capsys.readouterr().err
    assert sorted((tmp_path / "old").rglob("lease-*")) == leases


def test_functions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["functions", "upper"]) == 0
    assert "upper" in capsys.readouterr().out
    assert main(["functions", "no_such_function"]) == 1


def test_run_executes_a_script(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "p.sql"
    script.write_text("CREATE TABLE t (a INT);\nINSERT INTO t VALUES (1), (2);\nSELECT sum(a) AS s FROM t;\n")
    assert main(["run", "--json", str(script)]) == 0
    assert '{"s": 3}' in capsys.readouterr().out


def test_run_names_the_line_of_the_file(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "p.sql"
    script.write_text("CREATE TABLE t (a INT);\n\nSELECT b FROM t;\n")
    assert main(["run", str(script)]) == 1
    assert "line 3, column 8" in capsys.readouterr().err


@pytest.mark.parametrize("name", [c.__name__.rpartition(".")[2] for c in COMMANDS])
def test_help_shows_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main([name, "--help"])
    assert exit_.value.code == 0
    assert f"riverbed {name}" in capsys.readouterr().out.split("examples:")[1]


def test_without_a_command_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "COMMAND" in capsys.readouterr().out
    assert main(["--version"]) == 0


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_a_run_and_its_files_are_finished(
    tmp_path: pathlib.Path, sent: signal.Signals, code: int
) -> None:
    script = tmp_path / "p.sql"
    script.write_text(
        f"""
        CREATE STREAM s WITH (connector = 'generator', kind = 'sky_alerts', rate = 1000);
        CREATE SINK out WITH (connector = 'csv', path = '{tmp_path}/out.csv');
        INSERT INTO out SELECT 1 AS one FROM s;
        """
    )
    command = [
        sys.executable,
        "-m",
        "riverbed.cli",
        "run",
        "--json",
        str(script),
        "--set",
        f"state_dir={tmp_path}/state",
    ]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    guard = threading.Timer(300, child.kill)
    guard.start()
    try:
        assert child.stdout is not None
        while json.loads(child.stdout.readline())["rows_out"] == 0:
            pass
        child.send_signal(sent)
        last = json.loads(child.stdout.read().splitlines()[-1])
        assert child.wait() == code
    finally:
        guard.cancel()
        child.kill()
    assert len((tmp_path / "out.csv").read_text().splitlines()) == last["rows_out"] + 1
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["out.csv", "p.sql"]
    assert [path for path in tmp_path.glob("state/**/*") if path.is_file()] == []


@contextlib.contextmanager
def silent_service() -> Iterator[socket.socket]:
    """Listen like a service that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as service:
        service.settimeout(300)  # the child has failed: the test is not to hang for ever
        yield service


@contextlib.contextmanager
def child_of(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command in a process of its own, which is ended in any case."""
    command = [sys.executable, "-m", "riverbed.cli", *arguments]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    guard = threading.Timer(300, child.kill)
    guard.start()
    try:
        yield child
    finally:
        guard.cancel()
        child.kill()
        child.communicate()


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_a_run_that_is_starting(tmp_path: pathlib.Path, sent: signal.Signals, code: int) -> None:
    """The second pipeline has its lease and waits for its sink; the first runs, with windows that are to stay open."""
    script = tmp_path / "p.sql"
    place = ["--checkpoint-dir", str(tmp_path / "checkpoints")]
    with silent_service() as service:
        script.write_text(
            f"""CREATE STREAM s (WATERMARK FOR ts AS ts - INTERVAL '1 minute')
              WITH (connector = 'generator', kind = 'sky_alerts', rate = 1000);
            CREATE SINK first WITH (connector = 'json', path = '{tmp_path}/first');
            CREATE SINK dead WITH (connector = 'json', path = '{tmp_path}/dead');
            CREATE SINK second WITH (connector = 'postgres', table = 't',
                                     url = 'postgres://u:p@127.0.0.1:{service.getsockname()[1]}/d');
            INSERT INTO dead SELECT error FROM __bad;
            INSERT INTO first SELECT count(*) AS n FROM s GROUP BY TUMBLE(ts, INTERVAL '90 days') EMIT ON WATERMARK;
            INSERT INTO second SELECT 1 AS one FROM s;
            """
        )
        with child_of("run", str(script), *place) as child:
            service.accept()[0]  # it is held, and nobody answers
            child.send_signal(sent)
            out, err = child.communicate()
    assert child.returncode == code
    assert out == ""
    lines = err.splitlines()
    assert lines[:2] == ["started: first", "interrupted: the pipeline of line 9 had not started"], err
    assert lines[2].startswith("stopped: first, "), err
    assert ", 0 out," in lines[2]
    assert len(lines) == 3, err
    for name in ("first", "second"):  # no start has to wait for a lease
        newest = max((tmp_path / "checkpoints" / name).glob("lease-*.json"))
        assert json.loads(newest.read_text())["released"]


def test_a_signal_ends_a_run_that_waits_for_another(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "p.sql"
    script.write_text(
        f"""CREATE STREAM s WITH (connector = 'generator', kind = 'sky_alerts', rate = 1000);
        CREATE SINK out WITH (connector = 'json', path = '{tmp_path}/out');
        INSERT INTO out SELECT 1 AS one FROM s;
        """
    )
    run = ["run", str(script), "--checkpoint-dir", str(tmp_path / "checkpoints")]
    with child_of(*run) as first:
        assert first.stderr is not None
        assert first.stderr.readline() == "started: out\n"
        with child_of(*run) as second:
            while "libriverbed" not in pathlib.Path(f"/proc/{second.pid}/maps").read_text():
                time.sleep(0.05)
            time.sleep(0.5)  # so that it usually waits for the lease by now; an interrupt before that is one too
            second.send_signal(signal.SIGINT)
            assert second.communicate() == ("", "interrupted: the pipeline of line 3 had not started\n")
            assert second.returncode == 130
        first.send_signal(signal.SIGINT)
        first.communicate()
        assert first.returncode == 130

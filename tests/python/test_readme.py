"""What README.md shows runs as written."""

from __future__ import annotations

import datetime
import doctest
import os
import pathlib
import re
import shlex
import subprocess
from collections.abc import Iterator

import pytest
from pyiceberg.catalog.sql import SqlCatalog

import riverbed as rb
from riverbed.cli import main

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    found = re.findall(rf"^```{language}\n(.*?)^```$", README, re.M | re.S)
    assert found, f"README.md has no block of {language}"
    return found


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A working directory with trades/*.parquet and the examples."""
    (tmp_path / "trades").mkdir()
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    for name, rows in (("a", "('ACME', 10.0), ('INIT', 21.0)"), ("b", "('ACME', 11.0)")):
        rb.sql(f"COPY (SELECT * FROM (VALUES {rows}) t(symbol, price)) TO 'trades/{name}.parquet'")
    return tmp_path


@pytest.fixture
def broker() -> Iterator[str]:
    """An embedded broker whose topics have one partition, so that no idle one holds the watermark back."""
    binary = ROOT / "build" / "kfaked"
    subprocess.run(["go", "build", "-o", str(binary), "./tools/kfaked"], cwd=ROOT, check=True)
    process = subprocess.Popen(
        [str(binary), "-partitions", "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    yield process.stdout.readline().strip()
    process.communicate()


def test_the_sessions_give_what_they_show(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where nothing is, they make what they read
    test = doctest.DocTestParser().get_doctest("\n".join(blocks("pycon")), {}, "README.md", "README.md", 0)
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed == 0


START = datetime.datetime(2026, 1, 1, 12)


@pytest.fixture
def trades(folder: pathlib.Path, broker: str) -> str:
    """The broker, whose topic of trades has 90 s of them: one minute that closes, with a mean of 11."""
    rows = [("ACME", 10.0 + i % 3, START + datetime.timedelta(seconds=i)) for i in range(90)]
    with rb.Session() as session:
        source = rb.MemoryStream()
        session.create_stream("made", source=source, schema={"symbol": "TEXT", "price": "DOUBLE", "ts": "TIMESTAMP"})
        source.push(rows)
        source.end()
        session.sql("SELECT * FROM made").sink(rb.Kafka("trades", brokers=broker)).run()
    return broker


def program(broker: str, loop: str) -> str:
    """The Kafka example: only the address differs, and the loop, which has no end."""
    text = blocks("python")[0].replace("localhost:9092", broker)
    changed = text.replace("for batch in q.subscribe(): ...", loop)
    assert changed != text
    return changed


def test_the_kafka_example_shows_the_closed_window(trades: str) -> None:
    shown: list[dict[str, object]] = []

    class Enough(Exception):
        pass

    def see(batch: rb.Batch) -> None:
        shown.extend(batch)
        if shown:
            raise Enough

    with pytest.raises(Enough):
        exec(compile(program(trades, "for batch in q.subscribe(): see(batch)"), "README.md", "exec"), {"see": see})
    assert shown == [{"symbol": "ACME", "window_start": START, "avg_price": 11.0}]


def test_the_kafka_example_fills_an_iceberg_table(trades: str, folder: pathlib.Path) -> None:
    """The program of the README up to its loop, then its sink, in the background."""
    _, into_iceberg = blocks("python")
    held = {"rb": rb}
    exec(compile(program(trades, ""), "README.md", "exec"), held)
    running = eval(into_iceberg.strip().replace(".run()", ".run(blocking=False)"), held)
    table = SqlCatalog("default", uri=f"sqlite:///{folder}/lake/catalog.db").load_table("analytics.trades_1m")
    with running:
        while not (rows := table.refresh().scan().to_arrow().to_pylist()):
            assert not running.wait(0.05)
        running.stop()
        running.wait()
    assert rows == [{"symbol": "ACME", "window_start": START, "avg_price": 11.0}]


def test_the_commands_run(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    for line in "".join(blocks("sh")).splitlines():
        command, *arguments = shlex.split(line)
        assert command == "riverbed"
        assert main(arguments) == 0, line
    assert (folder / "windows.jsonl").stat().st_size > 0
    assert "ACME" in capsys.readouterr().out


@pytest.mark.parametrize("page", ["README.md", "AGENTS.md", "CONTRIBUTING.md", "docs"])
def test_links_lead_somewhere(page: str) -> None:
    files = [ROOT / page] if page.endswith(".md") else sorted((ROOT / page).rglob("*.md"))
    broken = []
    for path in files:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text()):
            if "://" not in target and not os.path.exists(path.parent / target):
                broken.append(f"{path.relative_to(ROOT)}: {target}")
    assert not broken

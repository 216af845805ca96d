"""The examples run to their end, on the services that they bring, and find what they say."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("parquet_to_kafka.py", "each order is there once"),
        ("kafka_join_postgres_cdc.py", "the totals are those of the tables, after every change"),
        ("astronomy_alert_filter.py", "the three outbursts are on top, and missions saw them too"),
    ],
)
def test_an_example_finds_what_it_says(name: str, says: str) -> None:
    environment = {key: value for key, value in os.environ.items() if key not in ("KAFKA_BROKERS", "POSTGRES_URL")}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert says in done.stdout


def test_what_the_broker_is_built_with_may_be_missing(tmp_path: pathlib.Path) -> None:
    for name in ("parquet_to_kafka.py", "services.py"):
        (tmp_path / "examples").mkdir(exist_ok=True)
        (tmp_path / "examples" / name).write_bytes((EXAMPLES / name).read_bytes())
    done = subprocess.run(
        [sys.executable, str(tmp_path / "examples" / "parquet_to_kafka.py")],
        capture_output=True,
        text=True,
        env={"PATH": "", "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("the embedded broker is built with Go, which is not here: ")

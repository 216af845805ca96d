"""The demo runs to its end, and says that the rows are equal."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

DEMO = pathlib.Path(__file__).resolve().parents[2] / "examples" / "demo.py"


def test_the_demo_shows_equal_rows() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "KAFKA_BROKERS"}
    environment["COLUMNS"] = "120"
    done = subprocess.run(
        [sys.executable, str(DEMO), "--alerts", "20000"], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the rows are equal, bit for bit" in done.stdout
    assert "0 late, 0 bad" in done.stdout

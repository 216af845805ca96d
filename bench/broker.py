"""A Kafka broker for the cases that need one: the environment's KAFKA_BROKERS, or Apache Kafka from Maven's jars."""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
from collections.abc import Iterator

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "tools" / "services" / "kafka.sh"


@contextlib.contextmanager
def broker() -> Iterator[str]:
    """Give host:port of a broker, and end what was started for it."""
    if given := os.environ.get("KAFKA_BROKERS"):
        yield given
        return
    started = subprocess.run(["bash", str(SCRIPT), "start"], check=True, stdout=subprocess.PIPE, text=True)
    try:
        yield started.stdout.split()[-1]
    finally:
        subprocess.run(["bash", str(SCRIPT), "stop"], check=False)

"""The two engines of a record, and calls that end in time."""

from __future__ import annotations

import importlib
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cases_adapter

Engine = Callable[[str], Any]


class Alarm(BaseException):
    """A call took too long; no Exception, so that no engine catches it."""


def _ring(*_: object) -> None:
    raise Alarm


def runner(suites: Path, name: str) -> Any:
    """Import a runner of the suites' folder."""
    if str(suites) not in sys.path:
        sys.path.insert(0, str(suites))
    return importlib.import_module(name)


def call(engine: Engine, sql: str, seconds: float) -> tuple[Any, str | None]:
    """Return what the engine returned, or its error."""
    return timed(lambda: engine(sql), seconds)


def timed(work: Callable[[], Any], seconds: float) -> tuple[Any, str | None]:
    signal.signal(signal.SIGALRM, _ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        return work(), None
    except (Alarm, KeyboardInterrupt):
        return None, f"TIMEOUT after {seconds:.0f} s"
    except Exception as e:
        return None, f"{type(e).__name__}: {e}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


class Materialized:
    """An engine whose every view is materialized and whose every query goes through a materialized view of its own."""

    def __init__(self) -> None:
        self._engine = cases_adapter.connect()
        self._views: set[str] = set()
        self._made = 0

    def __call__(self, sql: str) -> Any:
        text = sql.strip().rstrip(";")
        made = re.match(r"create\s+(or\s+replace\s+)?view\s+\"?(\w+)", text, re.I)
        if made:
            self._views.add(made[2].lower())
            return self._engine(re.sub(r"\bview\b", "MATERIALIZED VIEW", text, count=1, flags=re.I))
        text = re.sub(r"^\s*drop\s+view\b", "DROP MATERIALIZED VIEW", text, flags=re.I)
        whole = re.match(r"select\s+\*\s+from\s+\"?(\w+)\"?\s*$", text, re.I)
        if whole and whole[1].lower() in self._views:
            return self._engine(text)
        if not re.match(r"(select|with|values|\()", text, re.I):
            return self._engine(text)
        self._made += 1
        name = f"__view_{self._made}"
        self._engine(f"CREATE MATERIALIZED VIEW {name} AS {text}")
        try:
            return self._engine(f"SELECT * FROM {name}")
        finally:
            self._engine(f"DROP MATERIALIZED VIEW {name}")

    def close(self) -> None:
        self._engine.close()


class Recorder:
    """An engine that remembers the last table it returned."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.last: Any = None

    def __call__(self, sql: str) -> Any:
        self.last = self._engine(sql)
        return self.last

"""Shared by the Python tests."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from typing import Any

import pytest

from riverbed import _native


@pytest.fixture
def run_python() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a program in a process of its own."""

    def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program), *arguments], capture_output=True, text=True
        )

    return run


def alive() -> dict[str, Any]:
    """What the library holds, after both collectors ran and what closes in the background has closed."""
    now: dict[str, Any] = {}
    _native.wait(None, _native.memory)  # a helper thread counts as a goroutine from its first call on
    for _ in range(100):
        gc.collect()
        _native.collect()
        before, now = now, _native.memory()
        if before == now:
            return now
        time.sleep(0.02)
    return now


@pytest.fixture
def leaks_nothing() -> Any:
    """The library holds after the test what it held before."""
    before = alive()
    yield
    after = alive()
    keys = ("handles", "pinned_bytes", "pinned_buffers", "imports", "imported_bytes")
    assert {k: after[k] for k in keys} == {k: before[k] for k in keys}

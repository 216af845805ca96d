"""The examples in docstrings run as written."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import riverbed

MODULES = sorted(
    m.name
    for m in pkgutil.walk_packages(riverbed.__path__, "riverbed.")
    if not m.name.endswith(("__main__", "libriverbed", "libriverbed_iceberg"))
)


@pytest.mark.parametrize("name", ["riverbed", *MODULES])
def test_examples(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert failed == 0

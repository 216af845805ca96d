"""The repaired wheel in an environment that has neither Go nor a C compiler. `make wheel` runs it there.

Needs nothing but pytest: what is tested is that the wheel alone is enough.
"""

from __future__ import annotations

import importlib.metadata
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("RIVERBED_WHEEL_TEST" not in os.environ, reason="make wheel runs it"),
]


def test_neither_go_nor_a_compiler_is_here() -> None:
    assert [name for name in ("go", "gcc", "cc") if shutil.which(name)] == []


def test_it_is_the_installed_package() -> None:
    import riverbed

    assert "site-packages" in pathlib.Path(riverbed.__file__).parts
    assert importlib.metadata.version("riverbed") == riverbed.version()


def test_the_tag_is_of_every_python_and_of_this_platform() -> None:
    tags = [
        line.removeprefix("Tag: ")
        for line in (importlib.metadata.distribution("riverbed").read_text("WHEEL") or "").splitlines()
        if line.startswith("Tag: ")
    ]
    assert all(tag.startswith("py3-none-manylinux") for tag in tags), tags


def test_types_and_licence_are_packed() -> None:
    files = {str(f) for f in importlib.metadata.files("riverbed") or []}
    libraries = {"riverbed/libriverbed.so", "riverbed/libriverbed_iceberg.so"}
    assert {"riverbed/py.typed", "riverbed/_native.pyi", *libraries} <= files
    assert any(f.endswith("LICENSE") for f in files)
    assert any(f.endswith("THIRD-PARTY-LICENSES.txt") for f in files)


def test_a_query_runs_in_both_modes(capsys: pytest.CaptureFixture[str]) -> None:
    import riverbed as rb

    with rb.Session() as session:
        assert session.sql("SELECT 40 + 2 AS answer").to_pylist() == [{"answer": 42}]
        session.sql("SELECT 42 AS answer").show()
        assert "42" in capsys.readouterr().out
        words = rb.MemoryStream()
        session.create_stream("words", source=words, schema={"w": "TEXT"})
        words.push([("a",), ("b",), ("a",)])
        words.end()
        total: dict[str, int] = {}
        for batch in session.sql("SELECT w, count(*) AS n FROM words GROUP BY w EMIT IMMEDIATE").subscribe():
            for row in batch:
                total[row["w"]] = total.get(row["w"], 0) + row["n"] * row["__weight"]
        assert total == {"a": 2, "b": 1}


def test_the_command_is_installed() -> None:
    command = pathlib.Path(sys.executable).with_name("riverbed")
    done = subprocess.run([command, "sql", "--json", "SELECT 1 AS a"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, '{"a": 1}\n'), done.stderr

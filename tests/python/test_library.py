"""The shared libraries as files: what they export, their thread-local storage, what they need."""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess

import pytest

import riverbed
from riverbed import _native

LIBRARY = pathlib.Path(riverbed.__file__).with_name("libriverbed.so")
ICEBERG = LIBRARY.with_name("libriverbed_iceberg.so")  # `make iceberg` builds it

pytestmark = pytest.mark.skipif(shutil.which("readelf") is None, reason="binutils is not here")


def readelf(*flags: str, library: pathlib.Path = LIBRARY) -> str:
    return subprocess.run(["readelf", *flags, str(library)], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("library", [LIBRARY, ICEBERG], ids=lambda p: p.stem)
def test_thread_local_storage_stays_small_enough_to_load(library: pathlib.Path) -> None:
    """A Go c-shared library with more than about 800 bytes of it builds, and cannot be loaded."""
    lines = readelf("-lW", library=library).splitlines()
    sizes = [int(line.split()[5], 16) for line in lines if line.split()[:1] == ["TLS"]]
    assert sum(sizes) <= 64


@pytest.mark.parametrize("library", [LIBRARY, ICEBERG], ids=lambda p: p.stem)
def test_only_the_abi_is_exported(library: pathlib.Path) -> None:
    defined = [
        line.split()
        for line in readelf("--dyn-syms", "-W", library=library).splitlines()
        if re.match(r"\s+\d+:", line) and " UND " not in line
    ]
    names = {row[-1] for row in defined if len(row) == 8}
    assert names, "the library exports nothing"
    assert {n for n in names if not n.startswith("rb_")} == set()


def test_every_exported_function_has_a_signature() -> None:
    exported = set(re.findall(r" (rb_\w+)$", readelf("--dyn-syms", "-W"), re.M))
    plain = {"rb_free", "rb_alloc", "rb_gc", "rb_quiesce"}
    helpers = {n for n in exported if n.startswith(("rb_capsule_", "rb_release_borrowed_"))}
    assert exported - plain - helpers == set(_native._SIGNATURES)  # type: ignore[attr-defined]


@pytest.mark.parametrize("library", [LIBRARY, ICEBERG], ids=lambda p: p.stem)
def test_it_needs_the_c_library_alone(library: pathlib.Path) -> None:
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-dW", library=library)))
    beside = {n for n in needed if n.startswith("librocksdb")}  # of a build with the tag rocksdb
    assert all(LIBRARY.with_name(n).exists() for n in beside)
    assert {n.split(".so")[0] for n in needed - beside} <= {
        "libc",
        "libpthread",
        "libdl",
        "libresolv",
        "libm",
        "ld-linux-x86-64",
    }

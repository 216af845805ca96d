"""The shared library as a file: what it exports, its thread-local storage, what it needs."""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess

import pytest

import riverbed
from riverbed import _native

LIBRARY = pathlib.Path(riverbed.__file__).with_name("libriverbed.so")

pytestmark = pytest.mark.skipif(shutil.which("readelf") is None, reason="binutils is not here")


def readelf(*flags: str) -> str:
    return subprocess.run(["readelf", *flags, str(LIBRARY)], capture_output=True, text=True, check=True).stdout


def test_thread_local_storage_stays_small_enough_to_load() -> None:
    """A Go c-shared library with more than about 800 bytes of it builds, and cannot be loaded."""
    sizes = [int(line.split()[5], 16) for line in readelf("-lW").splitlines() if line.split()[:1] == ["TLS"]]
    assert sum(sizes) <= 64


def test_only_the_abi_is_exported() -> None:
    defined = [
        line.split()
        for line in readelf("--dyn-syms", "-W").splitlines()
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


def test_it_needs_the_c_library_alone() -> None:
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-dW")))
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

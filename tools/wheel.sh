#!/usr/bin/env bash
# make wheel: builds, repairs to a manylinux tag, checks sizes, and tests the result in a fresh environment whose PATH
# has neither Go nor a C compiler.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/lib.sh
max_wheel=45000000 max_base=72000000 # without the library of Iceberg metadata, which is loaded when it is asked for

rm -rf build/wheel dist
mkdir -p build/wheel dist
say "building"
pip -q --disable-pip-version-check wheel --no-deps --no-build-isolation -w build/wheel .
say "repairing"
auditwheel repair -w dist build/wheel/*.whl >build/wheel/repair.log 2>&1 || { cat build/wheel/repair.log; exit 1; }
wheel=$(ls dist/*.whl)

say "testing in a fresh environment"
rm -rf build/wheel/venv
"$(find_python)" -m venv build/wheel/venv
uv pip install -q --python build/wheel/venv/bin/python "$wheel" pytest
package=$(ls -d build/wheel/venv/lib/python*/site-packages/riverbed)
(cd build/wheel && env -i HOME="$PWD" PATH="$PWD/venv/bin:/nonexistent" RIVERBED_WHEEL_TEST=1 \
  venv/bin/python -m pytest -q -p no:cacheprovider --rootdir "$OLDPWD" "$OLDPWD/tests/python/test_wheel.py")

size=$(stat -c %s "$wheel") iceberg=$(stat -c %s "$package/libriverbed_iceberg.so")
find "$package" -name __pycache__ -prune -exec rm -r {} +
base=$(($(du -sb "$package" | cut -f1) - iceberg))
printf '%s: %d bytes, %d installed and %d of Iceberg metadata\n' "$wheel" "$size" "$base" "$iceberg"
[ "$size" -le $max_wheel ] || stop "the wheel is larger than $max_wheel bytes"
[ "$base" -le $max_base ] || stop "installed it is larger than $max_base bytes without the library of Iceberg metadata"

#!/usr/bin/env bash
# make peer-suites: runs the test data of similar systems, which lies in the given folder and is no part of the project.
# Each run_*.py there takes `--engine module:function`.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/lib.sh
suites=$1
compgen -G "$suites/run_*.py" >/dev/null || stop "there are no suites (run_*.py) in $suites" "they are not part of the project; say where they are: make peer-suites SUITES=folder"
for runner in "$suites"/run_*.py; do
  say "$(basename "$runner")"
  PYTHONPATH="tests/python" python "$runner" --engine cases_adapter:connect
done

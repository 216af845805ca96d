#!/usr/bin/env bash
# make peer-suites: test data of similar systems, which is read from beside the project and is no part of it.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/lib.sh
suites=../shared/cases/peer-suites
[ -d "$suites" ] || stop "the peers' suites are not here ($suites)" "they are test data of other projects and not part of this one"
for runner in "$suites"/run_*.py; do
  say "$(basename "$runner")"
  PYTHONPATH="tests/python" python "$runner" --engine cases_adapter:connect
done

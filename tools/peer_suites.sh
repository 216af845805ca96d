#!/usr/bin/env bash
# make peer-suites: runs the test data of similar systems, which lies in the given folder and is no part of the project.
# tests/python/peers judges every record; the suites without a goal are counted by their own runners.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/lib.sh
suites=$1 suite=${2:-} sample=${3:-1}
[ -f "$suites/slt.py" ] || stop "there are no suites (slt.py) in $suites" "they are not part of the project; say where they are: make peer-suites SUITES=folder"
export PYTHONPATH="tests/python${PYTHONPATH:+:$PYTHONPATH}"
status=0
python -m peers --suites "$suites" ${suite:+--suite "$suite"} --sample "$sample" || status=$?
[ -n "$suite" ] && exit "$status"
say "without a goal"
for run in "run_nexmark.py" "run_feldera.py --files runtime_aggtest/*" "run_feldera.py --files felderize/*"; do
  set -f; set -- $run; set +f
  script=$1; shift
  python "$suites/$script" --engine cases_adapter:connect "$@" | grep -E '^== (nexmark|feldera/)' | grep -v 'passed 0 failed 0' || status=1
done
exit "$status"

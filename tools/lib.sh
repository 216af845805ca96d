# Shared by the scripts of this folder; sourced at the root of the project.
GO_MIN=$(sed -n 's/^GO_MIN=//p' capi/build.env)
export PATH="$PWD/.venv/bin:${XDG_CACHE_HOME:-$HOME/.cache}/riverbed/bin:$PATH"

say() { printf '\033[2m· %s\033[0m\n' "$*" >&2; }
stop() { printf 'stopped: %s\n         %s\n' "$1" "${2:-}" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# find_python prints a Python of 3.11 or later.
find_python() {
  local p
  for p in python3.13 python3.12 python3.11 python3 python; do
    if have "$p" && "$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$p"
      return
    fi
  done
  return 1
}

# go_is_new_enough: is there a Go of at least GO_MIN on the PATH?
go_is_new_enough() {
  have go || return 1
  local version
  version=$(GOTOOLCHAIN=local go env GOVERSION 2>/dev/null | sed 's/^go//')
  [ "$(printf '%s\n%s\n' "$GO_MIN" "$version" | sort -V | head -1)" = "$GO_MIN" ]
}

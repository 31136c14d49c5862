#!/bin/sh
# Writes what is made of the C header and of the library's table of ops:
#   cairn-sys/src/bindings.rs   the declarations, by bindgen
#   cairn-sys/tests/layout.rs   that every struct lies in memory as capi/abi/layout.txt promises
#   cairn/src/graph/ops.rs      a method for every op that `cairn ops --json` tells of
#
#   make_bindings.sh CAIRN            writes the files; CAIRN: the command, build/release/bin/cairn
#   make_bindings.sh --check CAIRN    exits 1 if a file is not what the sources give now
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
check=
if [ "${1:-}" = --check ]; then
  check=yes
  shift
fi
cairn=${1:?the command cairn is wanted, as build/release/bin/cairn}
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

# bindgen's own words in one line; make_bindings.py sets them as one reads them.
bindgen --allowlist-function 'cairn_.*' --allowlist-type 'cairn_.*' --allowlist-var 'CAIRN_.*' \
  --default-enum-style consts --no-prepend-enum-name --no-doc-comments --no-layout-tests --no-include-path-detection \
  --size_t-is-usize --disable-header-comment --no-rustfmt-bindings "$root/capi/include/cairn/cairn.h" -- \
  -I "$root/capi/include" | python3 "$here/make_bindings.py" bindings >"$made/bindings.rs"
python3 "$here/make_bindings.py" layout <"$root/capi/abi/layout.txt" >"$made/layout.rs"
"$cairn" ops --json | python3 "$here/make_bindings.py" ops >"$made/ops.rs"

status=0
# place NAME PATH: writes or compares one of the files.
place() {
  if [ -z "$check" ]; then
    cat "$made/$1" >"$here/$2"
  elif ! cmp -s "$made/$1" "$here/$2"; then
    echo "bindings/rust/$2 is older than its sources: run bindings/rust/make_bindings.sh build/release/bin/cairn" >&2
    status=1
  fi
}
place bindings.rs cairn-sys/src/bindings.rs
place layout.rs cairn-sys/tests/layout.rs
place ops.rs cairn/src/graph/ops.rs
exit $status

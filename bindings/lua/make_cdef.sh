#!/bin/sh
# Writes cairn/cdef.lua: the C header, preprocessed into the plain declarations LuaJIT's parser reads.
#   make_cdef.sh          writes the file
#   make_cdef.sh --check  exits 1 if the file is not what the header gives now
set -eu
here=$(cd "$(dirname "$0")" && pwd)
include=$here/../../capi/include/cairn
made=$(mktemp)
trap 'rm -f "$made"' EXIT
{
  echo '-- Made from capi/include/cairn/cairn.h by make_cdef.sh. Do not edit.'
  echo 'return [['
  # System headers are left out: LuaJIT knows size_t and the fixed-width integers.
  sed '/^#include </d' "$include/cairn.h" | "${CC:-cc}" -E -P -DCAIRN_CDEF -I "$include" -x c - |
    sed -e 's/[[:space:]]\{1,\}/ /g' -e '/^ *$/d'
  echo ']]'
} >"$made"
if [ "${1:-}" = --check ]; then
  if cmp -s "$made" "$here/cairn/cdef.lua"; then exit 0; fi
  echo "bindings/lua/cairn/cdef.lua is older than cairn.h: run bindings/lua/make_cdef.sh" >&2
  exit 1
fi
cat "$made" >"$here/cairn/cdef.lua"

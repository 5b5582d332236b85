#!/bin/sh
# Fails when an object of an instruction-set file holds a symbol that the linker may hand to everyone, or (with --no-spills)
# when a 512-bit register of the INT8 kernel goes through the stack: it would run at half speed, and nobody would notice.
#   check_symbols.sh [--no-spills] OBJECT...
# A weak symbol (an inline function or a template outside an anonymous namespace) is kept once a program, from whichever
# object comes first: compiled for AVX-512, it would crash machines without.
set -eu

spills=ignore
if [ "$1" = --no-spills ]; then
  spills=forbid
  shift
fi

status=0
checked=0
for object in "$@"; do
  case "$object" in
    */x86_*) ;;
    *) continue ;;
  esac
  checked=$((checked + 1))
  weak=$(nm -C "$object" | grep -E ' [WwVvu] ' | grep -v ' asan\| DW.ref' || true)
  if [ -n "$weak" ]; then
    echo "$object: weak symbols compiled for one instruction set:"
    echo "$weak"
    status=1
  fi
  case "$spills $object" in
    "forbid "*/matmul_int8/*vnni*)
      code=$(objdump -d --no-show-raw-insn "$object")
      echo "$code" | grep -q vpdpbusd || { echo "$object: no vpdpbusd"; status=1; }
      if echo "$code" | grep -E 'zmm.*\(%rsp|\(%rsp.*zmm'; then
        echo "$object: accumulators are spilled to the stack"
        status=1
      fi
      ;;
  esac
done
[ "$checked" -gt 0 ] || { echo "no instruction-set object among the arguments"; exit 1; }
exit $status

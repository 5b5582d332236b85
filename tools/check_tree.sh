#!/usr/bin/env bash
# Holds what no compiler sees about the tree: every source is built once, headers say what they are for, files stay small,
# docs/architecture.md shows the folders there are, and each list (*.inc) agrees with the files beside it.
# Usage: tools/check_tree.sh [ROOT]     (default: this repository)
set -euo pipefail
cd "${1:-"$(dirname "${BASH_SOURCE[0]}")/.."}"

readonly MAX_LINES=800
# Files that may be longer: one a line, with the reason behind it.
readonly LONG_FILES='
'

# Folders with a list that has a line for what each file defines, MACRO(kName, ...): folder, list, and the files there that are no entries.
readonly LISTS='
src/quant/schemes       src/quant/schemes/schemes.inc      common coded_linear column_groups fp4_weight group_float input_major input_rounding int_weight
src/quant/foreign       src/quant/foreign/foreign.inc      foreign_format
src/quant/observers     src/quant/observers/observers.inc  observer activation_observer range_search
src/model/arch          src/model/arch/archs.inc           config_reader gemma_config llama_names rope_reader
src/inspect/engines     src/inspect/engines/engines.inc    declared_kind
src/eval/tasks          src/eval/tasks/tasks.inc
src/compress/modifiers  src/compress/modifiers.inc         awq_search cholesky fold_scales gptq_solver quantization_settings smooth_mappings smooth_scales transform_settings
'

failures=0
complain() {
  printf '%s: %s\n' "$1" "$2"
  failures=$((failures + 1))
}

# files PATTERN...: files of the tree of those names, those for the checks' own tests left out.
files() {
  local names=() pattern folders=() folder
  for pattern; do names+=(-o -name "$pattern"); done
  for folder in src include tests bench tools fuzz; do [[ -d $folder ]] && folders+=("$folder"); done
  find "${folders[@]}" -path tests/data -prune -o -type f \( "${names[@]:1}" \) -print | LC_ALL=C sort
}

# Every .cc that a CMakeLists.txt names, as a path from the root, once for each time that a target takes it.
named_sources() {
  local list
  files CMakeLists.txt | while read -r list; do
    awk -v folder="$(dirname "$list")" '
      { sub(/#.*/, "") }
      # Properties of a source are no second use of it.
      /set_(source_files_properties|property)[ \t]*\(/ { properties = 1 }
      !properties {
        gsub(/[()";]/, " ")
        for (i = 1; i <= NF; i++) if ($i ~ /[.]cc$/) print folder "/" $i
      }
      /\)/ { properties = 0 }
    ' "$list"
  done
}

check_sources() {
  local times file
  declare -A uses=()
  while read -r file; do
    uses[$file]=$((${uses[$file]:-0} + 1))
    [[ -f $file ]] || complain "$file" "named in $(dirname "$file")/CMakeLists.txt (or one above), but not there"
  done < <(named_sources)
  while read -r file; do
    times=${uses[$file]:-0}
    ((times == 1)) || complain "$file" "named $times times in the CMakeLists.txt files, expected once"
  done < <(files '*.cc')
}

check_headers() {
  local file
  while read -r file; do
    # The comment at the top: "// Word ... full stop", over one or more lines.
    awk '
      NR == 1 && !/^\/\/ [A-Za-z0-9`"]/ { exit }
      /^\/\// { text = text substr($0, 3); next }
      { exit }
      END { exit text !~ /[.]( |$)/ }
    ' "$file" || complain "$file:1" "a header opens with a sentence on its purpose: // Word ... ."
  done < <(files '*.h')
}

check_sizes() {
  local lines file
  while read -r file; do
    lines=$(wc -l <"$file")
    ((lines <= MAX_LINES)) || grep -q "^$file " <<<"$LONG_FILES" ||
      complain "$file" "$lines lines, at most $MAX_LINES (or a line with a reason in tools/check_tree.sh)"
  done < <(files '*.cc' '*.h' '*.inc' '*.sh')
}

check_architecture() {
  local document=docs/architecture.md name
  [[ -f $document ]] || { complain "$document" "missing"; return; }
  local shown
  shown=$(grep -oE '\b(src|tests|include|tools|docs|data|bench|cmake)/[A-Za-z0-9_./]*[A-Za-z0-9_]' "$document" | LC_ALL=C sort -u)
  while read -r name; do
    [[ -z $name || -e $name ]] || complain "$document" "shows $name, which is not there"
  done <<<"$shown"
  for name in src/*/; do
    grep -qx "${name%/}" <<<"$shown" || complain "$document" "does not show ${name%/}"
  done
}

# Each entry is a name that one file of the folder defines, and each file defines one, or a few of a kind.
check_lists() {
  local folder list others entries entry file count
  while read -r folder list others; do
    if [[ -z $folder ]] || ! compgen -G "$folder/*.cc" >/dev/null; then continue; fi
    [[ -f $list ]] || { complain "$list" "missing: the list of the files in $folder"; continue; }
    entries=$(sed -nE 's/^[A-Z][A-Z0-9_]*\( *([A-Za-z0-9_]+).*/\1/p' "$list")
    for entry in $entries; do
      count=$({ grep -lw "$entry" "$folder"/*.cc || true; } | wc -l)
      ((count == 1)) || complain "$list" "$entry is in $count files of the folder, expected 1"
      count=$(grep -cx "$entry" <<<"$entries")
      ((count == 1)) || complain "$list" "$entry is listed $count times"
    done
    for file in "$folder"/*.cc; do
      [[ " $others " != *" $(basename "$file" .cc) "* ]] || continue
      count=$({ grep -owf <(echo "$entries") "$file" || true; } | LC_ALL=C sort -u | wc -l)
      ((count > 0)) || complain "$file" "defines none of the names in $(basename "$list")"
    done
  done <<<"$LISTS"
}

# Nothing but the list names a scheme: what is one file and one line to add.
check_schemes_are_unnamed() {
  local entry file
  while read -r entry; do
    while read -r file; do
      [[ -z $file || $file == src/quant/schemes/* ]] || complain "$file" "names the scheme $entry; ask the list (AllSchemes, SelectScheme)"
    done < <(grep -rlw --include='*.cc' --include='*.h' --include='*.inc' "$entry" src bench tests/unit tests/parity tests/golden 2>/dev/null || true)
  done < <(sed -nE 's/^OCTAVO_SCHEME\(([A-Za-z0-9_]+)\).*/\1/p' src/quant/schemes/schemes.inc 2>/dev/null)
}

check_schemes_are_unnamed
check_sources
check_headers
check_sizes
check_architecture
check_lists
if ((failures > 0)); then
  printf 'check_tree: %d failures\n' "$failures"
  exit 1
fi
printf 'check_tree: %d sources and %d headers are in order\n' "$(files '*.cc' | wc -l)" "$(files '*.h' | wc -l)"

#!/usr/bin/env bash
# Holds the ladder of docs/architecture.md: reads every #include under src, include and bench, and fails on an edge that the ladder
# or the table of third-party libraries forbids, naming file:line, the edge and the rule.
# Usage: tools/check_layers.sh [ROOT]     (ROOT: a tree with src/ and include/; default: this repository)
set -euo pipefail
cd "${1:-"$(dirname "${BASH_SOURCE[0]}")/.."}"

# Lowest first; folders in one line are brothers and never include each other. All are under src, but for bench.
readonly LADDER='
base
tensor
io text kernels
quant
model
convert runtime
inspect
eval
compress
api server
bench
apps
'

# An include that is neither ours nor the standard library's: a pattern and the folders whose .cc files may have it.
# "h" behind a folder allows its headers too, "*" is every folder.
readonly OUTSIDE='
nlohmann/          base
yaml-cpp/          base
spdlog/            base
openssl/           base io
fmt/               *
pcre2[.]h          text quant
utf8proc[.]h       text
zlib[.]h           text
dnnl[._]           kernels bench
omp[.]h            kernels
immintrin[.]h      kernels+h tensor+h
Eigen/             compress
CLI/               apps
histedit[.]h       apps
'

# What the operating system offers (stdio.h: renameat2), beside the C++ standard library (whose headers have neither "." nor "/").
readonly SYSTEM='^(sys/|netinet/|arpa/|linux/|(dlfcn|fcntl|malloc|netdb|poll|pthread|sched|signal|stdio|termios|unistd)[.]h$)'

folders=()
for folder in src include bench; do [[ -d $folder ]] && folders+=("$folder"); done
((${#folders[@]})) || { echo "check_layers: no src/ or include/ in $PWD" >&2; exit 2; }

# file:line:text of each include, sorted so that the report is too.
grep -rnE --include='*.h' --include='*.cc' --include='*.inc' '^[[:space:]]*#[[:space:]]*include' "${folders[@]}" |
  LC_ALL=C sort -t: -k1,1 -k2,2n |
  awk -v ladder="$LADDER" -v outside="$OUTSIDE" -v system_headers="$SYSTEM" '
    function complain(edge, rule) {
      printf "%s: %s: %s\n", where, edge, rule
      failures++
    }

    # "kernels/matmul/x.h" included from folder "quant".
    function check_own(header,    target) {
      target = header
      sub(/\/.*/, "", target)
      if (target == "octavo") return   # the public headers stand on nothing: whoever implements them includes them
      if (from == "octavo") return complain("octavo -> " header, "a public header includes only public headers")
      if (!(target in rank) || target == header)
        return complain(from " -> \"" header "\"", "a quoted include is a path from src/, and begins with a folder of the ladder")
      if (from == target || rank[target] < rank[from]) return
      complain(from " -> " target, rank[from] == rank[target] ? "brothers never include each other" : \
               target " stands above " from " in the ladder")
    }

    function check_outside(header,    i, n, places, place) {
      if (header !~ /[.\/]/ || header ~ system_headers) return
      for (i = 1; i <= num_outside; i++) {
        if (header !~ "^" pattern[i]) continue
        n = split(allowed[i], places, " ")
        for (place = 1; place <= n; place++) {
          if (!is_header && (places[place] == "*" || places[place] == from || places[place] == from "+h")) return
          if (is_header && places[place] == from "+h") return
        }
        if (is_header && index(" " allowed[i] " ", "+h") == 0)
          return complain(from " -> <" header ">", "a header never includes a third-party header")
        gsub(/[+]h/, "", allowed[i])
        return complain(from " -> <" header ">", "only in: " allowed[i])
      }
      complain(from " -> <" header ">", "not in the table of tools/check_layers.sh")
    }

    BEGIN {
      levels = split(ladder, level, "\n")
      for (l = 1; l <= levels; l++) {
        n = split(level[l], names, " ")
        for (i = 1; i <= n; i++) rank[names[i]] = l
      }
      lines = split(outside, line, "\n")
      for (l = 1; l <= lines; l++) {
        if (line[l] == "") continue
        num_outside++
        pattern[num_outside] = allowed[num_outside] = line[l]
        sub(/ .*/, "", pattern[num_outside])
        sub(/^[^ ]+ +/, "", allowed[num_outside])
      }
    }

    {
      split($0, part, ":")
      file = part[1]
      where = part[1] ":" part[2]
      split(file, path, "/")
      from = path[1] == "include" ? "octavo" : path[1] == "bench" ? "bench" : path[2]
      is_header = file ~ /[.]h$/
      edges++
      if (path[1] == "src" && !(from in rank)) {
        complain(from, "this folder has no place in the ladder of tools/check_layers.sh")
      } else if (match($0, /"[^"]+"/)) {
        check_own(substr($0, RSTART + 1, RLENGTH - 2))
      } else if (match($0, /<[^>]+>/)) {
        check_outside(substr($0, RSTART + 1, RLENGTH - 2))
      } else {
        complain(from, "an include of neither \"...\" nor <...>")
      }
    }

    END {
      if (failures > 0) {
        printf "check_layers: %d forbidden\n", failures
        exit 1
      }
      printf "check_layers: %d includes keep the ladder\n", edges
    }
  '

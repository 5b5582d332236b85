#!/usr/bin/env bash
# expect_faults.sh CHECK TREE EXPECTED: the check refuses the tree, with exactly the words of the file EXPECTED.
set -euo pipefail

status=0
output=$("$1" "$2") || status=$?
diff <(echo "$output") "$3"
((status == 1)) || { echo "exit status $status, expected 1"; exit 1; }

#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Check the shape of the tree: layers.sh
#   1. every #include goes in the direction of the layers (the table below)
#   2. every header compiles alone
#   3. every source file carries its SPDX line
# Prints each offence as file:line: text, and fails when there is one.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# layer: the layers it may include. Kept equal to gc_layer() in CMakeLists.txt.
declare -A may=(
    [base]="base"
    [mem]="base mem"
    [ds]="base mem ds"
    [types]="base mem ds types"
    [db]="base mem ds types db"
    [resp]="base resp"
    [net]="base net"
    [config]="base config"
    [stats]="base stats"
    [persist]="base mem ds types db persist"
    [cmd]="base mem ds types db resp config stats persist cmd"
    [server]="base mem ds types db resp net config stats persist cmd server"
)

offences=0
offence() {
    echo "$1"
    offences=$((offences + 1))
}

# ---- 1. direction ----
# One quoted include of a file of `layer`; what = the text between the quotes.
check_include() {
    local file=$1 line=$2 what=$3 layer=$4 target
    target=${what%%/*}
    if [[ $what == *..* ]]; then
        offence "$file:$line: \"$what\" steps out of its folder"
    elif [[ $what != */* ]]; then
        [[ -e $(dirname "$file")/$what ]] ||
            offence "$file:$line: \"$what\" is not beside this file; include with the folder"
    elif [[ -z ${may[$target]:-} ]]; then
        offence "$file:$line: \"$what\" is in no known layer"
    elif [[ " ${may[$layer]} " != *" $target "* ]]; then
        offence "$file:$line: layer $layer must not include \"$what\""
    elif [[ $what == *_priv.h && $target != "$layer" ]]; then
        offence "$file:$line: \"$what\" is private to $target"
    fi
}

for top in src include; do
    for folder in "$top"/*/; do
        layer=$(basename "$folder")
        if [[ -z ${may[$layer]:-} ]]; then
            offence "$folder:1: no such layer in scripts/layers.sh"
            continue
        fi
        while IFS=: read -r file line text; do
            what=${text#*\"}
            check_include "$file" "$line" "${what%%\"*}" "$layer"
        done < <(grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "$folder" || true)
    done
done

# ---- 2. headers alone ----
compiler=${CC:-cc}
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
while IFS= read -r -d '' header; do
    if ! "$compiler" -std=gnu17 -D_GNU_SOURCE -DGC_VERSION='"0"' -Wall -Wextra \
        -Wno-unused-function -Wno-unused-parameter -Werror -Iinclude -Isrc -Itests \
        -iquote "$(dirname "$header")" -fsyntax-only -include "$header" -x c /dev/null 2>"$errors"; then
        offence "$header:1: does not compile alone"
        sed 's/^/    /;12q' "$errors"
    fi
done < <(find include src tests/support -name '*.h' -print0)

# ---- 3. licence lines ----
while IFS= read -r -d '' file; do
    head -n 3 "$file" | grep -q 'SPDX-License-Identifier: BSD-3-Clause' ||
        offence "$file:1: no SPDX line at the top"
done < <(find src include tests benchmarks scripts .ci \( -path tests/data -o -path tests/fuzz/corpus \
    -o -name __pycache__ \) -prune -o -type f \( -name '*.[ch]' -o -name '*.def' -o -name '*.sh' \
    -o -name '*.py' -o -name 'CMakeLists.txt' -o -path '.ci/run' \) -print0)

[[ $offences -eq 0 ]] || {
    echo "layers.sh: $offences offence(s)"
    exit 1
}

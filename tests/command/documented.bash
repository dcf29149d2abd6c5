# SPDX-License-Identifier: GPL-2.0-or-later
# Extracts and runs the commands that the documentation shows. Sourced after common.bash.

# documented FILE...: prints the commands of the ```sh blocks, each terminated by NUL. A quoted
# string that is opened at the end of a line continues up to the line that begins with the closing
# quote.
documented() {
    awk -v quote="'" '/^```sh$/ { inside = 1; next } /^```/ { inside = 0 } !inside { next }
        open { text = text "\n" $0 }
        open && substr($0, 1, 1) == open { printf "%s%c", text, 0; open = ""; next }
        open { next }
        $0 ~ "[ (][" quote "\"]$" { open = substr($0, length($0)); text = $0; next }
        { printf "%s%c", $0, 0 }' "$@"
}

# lacks_tool COMMAND: whether the command needs a tool that is not installed; prints its name.
lacks_tool() {
    local tool
    for tool in btrfs duckdb journalctl jq mkfs.erofs nbdkit parallel rsync sqfstar sqlite3 xxd; do
        if [[ " ${1//[$'\n|']/ }" == *" $tool "* ]] && ! have "$tool"; then
            echo "$tool"
            return 0
        fi
    done
    return 1
}

# works FOLDER COMMAND [NAME]: runs it in the folder; it must succeed. Its output is in $WORK/out
# and $WORK/err.
works() {
    if (cd "$1" && timeout 300 bash -c "set -o pipefail; $2" > "$WORK/out" 2> "$WORK/err" \
            < /dev/null); then
        pass
    else
        fail "${3:-$2}: $(head -n 3 "$WORK/err")"
    fi
}

# duckdb_of_node FOLDER: makes a program of that name in the folder from the DuckDB library of
# Node.js, if that is installed.
duckdb_of_node() {
    have duckdb || ! have node || ! node -e 'require("@duckdb/node-api")' 2> /dev/null ||
        ln -s "$ROOT/tests/support/duckdb.js" "$1/duckdb"
}

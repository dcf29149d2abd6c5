# SPDX-License-Identifier: GPL-2.0-or-later
# What the command tests share: where things are, and counting. Sourced.
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
BUILD=$(cd "$ROOT" && realpath -m "${BUILD:-build}")
PROGRAM=$BUILD/btrfs-walk
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
passed=0 failed=0 skipped=0

pass() { passed=$((passed + 1)); }
fail() { failed=$((failed + 1)); printf 'FAILED: %s\n' "$1"; }
skip() { skipped=$((skipped + 1)); printf 'skipped: %s\n' "$1"; }

# finish: the closing line, and the exit status.
finish() {
    printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
    [ "$failed" -eq 0 ]
    exit
}

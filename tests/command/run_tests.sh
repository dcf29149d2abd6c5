#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# scripts/run-tests: its last lines name the tests that failed, and what others were skipped for.
set -uo pipefail
. "$(dirname "$0")/common.bash"

cd "$WORK" || exit 1
# script NAME LINE...: makes a test script that prints these lines, and fails if one of them reports
# a failure.
script() {
    printf 'cat << END\n%s\nEND\n' "$(printf '%s\n' "${@:2}")" > "$1"
    case ${*: -1} in *' 0 failed, '*) ;; *) echo exit 1 >> "$1" ;; esac
}
script good.sh 'skipped: without zsh: one thing' 'skipped: without a build: another: thing' \
    'skipped: without zsh: more' '7 passed, 0 failed, 3 skipped'
script bad.sh 'FAILED: this and that' 'skipped: without a build: it' '3 passed, 2 failed, 1 skipped'
script none.sh 'nothing'
echo 'kill -KILL $$' > dead.sh

# run TEST...: runs the tests; the final summary is in $WORK/last.
run() {
    "$ROOT/scripts/run-tests" "$@" > "$WORK/out" 2>&1
    status=$?
    sed -n '/^skipped: [0-9]/,$p' "$WORK/out" | sort > "$WORK/last"
}
run good.sh
is "run-tests ends with status 0 if all tests pass" "$status" 0
is "what was skipped, and the sum" "$(cat last)" "$(printf '%s\n' \
    '7 passed, 0 failed, 3 skipped' 'skipped: 2 without zsh, 1 without a build')"
is "the sum is the last line" "$(tail -n 1 out)" '7 passed, 0 failed, 3 skipped'
run good.sh bad.sh none.sh dead.sh
is "run-tests ends with status 1 if a test fails" "$status" 1
is "each that failed has a line" "$(cat last)" "$(printf '%s\n' '10 passed, 4 failed, 4 skipped' \
    'FAILED: bad.sh: 2 of 5' 'FAILED: dead.sh: 1 of 1' 'FAILED: none.sh: 1 of 1' \
    'skipped: 2 without a build, 2 without zsh')"
holds "the messages of a failed test are printed" grep -qx 'FAILED: this and that' out

(echo '# Takes long.' && cat good.sh) > long.sh
JOBS=1 run good.sh long.sh
is "a script that takes long starts first" "$(sed -n 's/^ok: \([a-z.]*\) .*/\1/p' out)" \
    $'long.sh\ngood.sh'

echo exec sleep 100 > hangs.sh
SLOWNESS=0.0003 run hangs.sh
holds "a script that hangs is ended after an hour, here after a second" grep -q 'status 124' out

# A bare container has no locale.
cat > locale.sh << END
. "$ROOT/tests/command/common.bash"
is "a letter" "\$(printf %s \$'\\u202e' | od -An -tx1)" ' e2 80 ae'
finish
END
LC_ALL=C run locale.sh
is "letters of tests are UTF-8" "$(tail -n 1 out)" '1 passed, 0 failed, 0 skipped'

# Every `skip` in the tests names both the requirement and what is skipped.
wrong=$(grep -nE '\bskip ("[^"]*"|[a-z.0-9]+)( *[;})]|$)' "$ROOT"/tests/command/*.sh)
is "every skip says for want of what, and what is skipped" "$wrong" ""
finish

# SPDX-License-Identifier: GPL-2.0-or-later
# Stops the program at a chosen request, with the layer toys/gate (tests/plugin/gate.c): something
# can then happen in the middle of a run, on a machine of any speed. Sourced after common.bash.
#
#     gate device-1,kind=data,after=3
#     "$PROGRAM" tar "${gate[@]}" "$image" &
#     at_gate                     # waits until the program stops there
#     truncate -s 0 "$image"
#     open_gate                   # lets it continue, without further stops
#     wait $!
export BTRFS_WALK_XLATOR_PATH=$WORK/xlators
mkdir -p "$WORK/xlators/toys"
holds "the gate is built" "${COMPILER[@]}" -shared -fPIC -I"$ROOT/include" \
    -o "$WORK/xlators/toys/gate.so" "$ROOT/tests/plugin/gate.c"
mkfifo "$WORK/reached" "$WORK/gate"

# gate LAYER,OPTION...: sets the options of the program in `gate`.
gate() {
    [ -z "${gate_fd:-}" ] || exec {gate_fd}>&- {reached_fd}>&-
    exec {gate_fd}<> "$WORK/gate" {reached_fd}<> "$WORK/reached"
    gate=(--insert "toys/gate@$1,gate=$gate_fd,reached=$reached_fd")
}

# comes_to_gate: waits for the last job to stop there; false if it ends before.
comes_to_gate() {
    local job=$! byte=
    # On a busy machine, bash may take the byte and still say that its time is over.
    until read -r -N 1 -t 0.1 -u "$reached_fd" byte || [ -n "$byte" ]; do
        kill -0 "$job" 2> /dev/null || return 1
    done
}

# at_gate: the same; it must stop.
at_gate() { comes_to_gate || fail "the program ended before the gate"; }

# open_gate: lets all threads of the program continue.
open_gate() { printf "%0512d" 0 >&"$gate_fd"; }

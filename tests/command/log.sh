#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Images that were copied right after an fsync, on a mounted file system: with their logs replayed,
# they must show what a mount of the copy showed (scripts/log-cuts --record).
set -uo pipefail
. "$(dirname "$0")/common.bash"

holds "images equal what a mount shows" "$ROOT/scripts/log-cuts" --check "$ROOT/fixtures/log-cuts" --program "$PROGRAM"

# Without its log, such an image shows something else; so the comparison sees logs.
name=$(ls "$ROOT/fixtures/log-cuts"/*.img.zst | head -n 1)
zstd -q -d --sparse --long=31 "$name" -o "$WORK/image"
"$PROGRAM" --log=ignore --json --type f,d,l "$WORK/image" > "$WORK/committed"
"$PROGRAM" --json --type f,d,l "$WORK/image" > "$WORK/replayed"
holds "a log changes something" bash -c "! cmp -s '$WORK/committed' '$WORK/replayed'"

zstd -q -d --sparse --long=31 "$ROOT/fixtures/log-tree/dev1.img.zst" -o "$WORK/letters"
expect "what the log changes" 0 - log -o change,path,before "$WORK/letters"
for line in 'removed	/docs/letters/01.txt	-' 'added	/volume/docs/letters/logged-19	-' \
    'renamed	/docs/letters/renamed-after-commit	/docs/letters/02.txt'; do
    holds "it says: $line" out_has "^$line\$"
done
expect "--log=ignore does not matter to it" 0 - log --log=ignore -o change,path,before "$WORK/letters"
holds "the same changes" out_has '^removed	/docs/letters/01.txt	-$'
expect "ranges of data" 0 - log -o change,offset,length "$WORK/image"
finish

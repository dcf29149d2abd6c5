#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Small images that cause as much work as possible (tests/worst/): every command must end with one
# of its own exit statuses, use at most 256 MiB of memory, and end within a time limit that is only
# there to catch hangs. For commands whose memory does not grow with the number of files the limit
# is lower. With WORST=1 the images are 12 MiB large, which takes minutes; otherwise they are a
# ninth of that.
# Takes long.
set -uo pipefail
. "$(dirname "$0")/common.bash"

grep -q __asan_init "$PROGRAM" && { skip "a build without sanitizers" "limits of memory"; finish; }
make -C "$ROOT" -s BUILD="$BUILD" "$BUILD/tests/worst-images" > "$WORK/log" 2>&1 || { fail \
    "the images: $(tail -n 3 "$WORK/log")"; finish; }
mkdir "$WORK/images"
holds "the images are made" "$BUILD/tests/worst-images" "$WORK/images" "${WORST:-9}"
mv "$WORK/images/directories" "$WORK"

cat > "$WORK/run.py" << 'END'
# run.py PROGRAM IMAGES PART: prints "ok" or what was wrong, for each run.
import os, subprocess, sys

PROGRAM, IMAGES, PART = sys.argv[1:]
SECONDS, MEBIBYTES = 300 * int(os.environ.get('SLOWNESS', 1)), 256
COMMANDS = [
    'walk', 'walk -o size,mtime,path', 'walk --json', 'ls -lR', 'ls -R -i',
    'sum --algorithm xxh64', 'tar', 'tar --format mtree', 'bodyfile',
    'extract -C ' + IMAGES + '/extracted', 'info', 'devices', 'usage', 'subvolumes --tree',
    'qgroups', 'log', 'super', 'chunks', 'map IMAGE 30408704',
    'tree-stats', 'dump', 'graph', 'check', 'stat IMAGE /00000000', 'xattr IMAGE /file',
    'extents IMAGE /00000000', 'du', 'compression',
    'roots --trees', 'deleted --scan', 'versions --scan IMAGE /file',
    'space --shared', 'owner --extent IMAGE 0+1G', 'owner --all-trees IMAGE 0+1G', 'diff IMAGE 5 5',
    'diff IMAGE 256 257', 'picture --by owner', 'report',
]
# Left out, since their output alone takes too long for a quick test.
LEFT_OUT = {('snapshots', 'extract'), ('snapshots', 'dump'), ('snapshots', 'tar'),
            ('snapshots', 'ls'), ('compressed', 'extract'), ('deep-wide', 'extract'),
            ('deep-wide', 'tar')}


# 166,000 names, or nine times as many, take 13 MiB, where a list of them all would take 33 or 170.
TIGHT = {('snapshots', command): 20 if int(PART) > 1 else 64 for command in ('du', 'compression')}


def run(name, command):
    image = os.path.join(IMAGES, name, 'dev1.img')
    words = command.replace('IMAGE', image).split()
    if image not in words:
        words.append(image)
    with open(os.path.join(IMAGES, 'err'), 'w+b') as messages:
        child = subprocess.Popen(['timeout', '-s', 'KILL', str(SECONDS), PROGRAM] + words,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=messages)
        _, status, usage = os.wait4(child.pid, 0)
        messages.seek(0)
        first = messages.readline().decode(errors='replace').strip()
    status, mebibytes = os.waitstatus_to_exitcode(status), usage.ru_maxrss >> 10
    if status < 0 or status > 16:
        return f'status {status} {first}'
    most = TIGHT.get((name, command), MEBIBYTES)
    return f'{mebibytes} MiB' if mebibytes > most else 'ok'


for name in sorted(os.listdir(IMAGES)):
    for command in COMMANDS if os.path.isdir(os.path.join(IMAGES, name)) else []:
        if (name, command.split()[0]) in LEFT_OUT:
            continue
        result = run(name, command)
        print('ok' if result == 'ok' else f'{name}: {command}: {result}')
        if command.startswith('extract'):
            subprocess.run(['rm', '-rf', IMAGES + '/extracted'])
END
while IFS= read -r line; do
    if [ "$line" = ok ]; then pass; else fail "$line"; fi
done < <(timeout 1800 python3 "$WORK/run.py" "$PROGRAM" "$WORK/images" "${WORST:-9}")
[ "$passed" -ge 200 ] || fail "only $passed commands were run"

# 37,448 directories with long names. If a walk kept them all, it would take 16 MiB, and an export
# 24, or 23 if it kept the names of directories without entries. At least 13 are measured: those of
# the Python that starts the program.
takes() { # MEBIBYTES ARGUMENT...: the program must not use more memory
    python3 - "$1" "$PROGRAM" "${@:2}" "$WORK/directories/dev1.img" << 'END'
import resource, subprocess, sys
subprocess.run(sys.argv[2:], stdout=subprocess.DEVNULL, check=True)
kilobytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(kilobytes >> 10, 'MiB')
sys.exit(kilobytes > int(sys.argv[1]) << 10)
END
}
holds "a walk of many directories" takes 14 walk --threads 1
for format in pax mtree; do
    holds "$format of many directories" takes 20 tar --threads 1 --format "$format"
done
holds "many directories with eight threads" takes 32 tar --threads 8 --format mtree
holds "extracting many directories" takes 20 extract --threads 1 -C "$WORK/out"
is "all directories are extracted" "$(find "$WORK/out" -type d | wc -l)" 37449
rm -rf "$WORK/out"

# Files that are left out are named, and all others are written.
expect "a path that is too long" 1 \
    'its subdirectories are omitted: their paths are longer than 64 KiB' \
    "$WORK/images/deep-long/dev1.img"
is "as far as paths go" "$(wc -l < "$WORK/out")" 256
expect "a rescue calls nothing damaged because of such a path" 1 \
    'dev1.img: files were omitted; see the problems$' rescue --no-data \
    "$WORK/images/deep-long/dev1.img"
expect "directories that are twice in others" 1 'it has a second entry' \
    "$WORK/images/crossed/dev1.img"
is "directories with two parents are listed once" "$(wc -l < "$WORK/out")" 60
expect "subvolumes that are in several" 0 - "$WORK/images/crossed-subvolumes/dev1.img"
is "subvolumes with several parents are listed once" "$(wc -l < "$WORK/out")" 80
finish

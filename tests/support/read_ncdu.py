# SPDX-License-Identifier: GPL-2.0-or-later
# Reads an export of ncdu from stdin. Prints the depth and the name of each entry and, last, the
# sums that ncdu shows: of entries that are no hard links, and of hard links, each inode once. All
# hard links of an inode must have the same size.
import json
import sys

version, minor, about, top = json.loads(sys.stdin.buffer.read().decode('latin-1'))
assert (version, minor, about['progname']) == (1, 2, 'btrfs-walk'), about
single, links = 0, {}
waiting = [(top, 0)]
while waiting:
    entry, depth = waiting.pop()
    own = entry[0] if isinstance(entry, list) else entry
    name = own['name'].encode('latin-1').decode('utf-8', 'backslashreplace')
    print(depth, name.replace('\n', '\\n'))
    if own.get('hlnkc'):
        assert links.setdefault(own['ino'], own['dsize']) == own['dsize'], own
    else:
        single += own.get('dsize', 0)
    if isinstance(entry, list):
        waiting += [(inner, depth + 1) for inner in reversed(entry[1:])]
print(single, sum(links.values()))

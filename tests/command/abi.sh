#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The binary interface of the shared library: its SONAME, the symbols that it exports, and the
# functions and types of the public headers, compared with those that were committed.
set -uo pipefail
. "$(dirname "$0")/common.bash"

library=$BUILD/libbtrfs-walk.so.2
if ! have readelf nm; then skip "readelf and nm" "the interface"; finish; fi
is "SONAME" "$(readelf -d "$library" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')" libbtrfs-walk.so.2
headers=("$ROOT"/include/btrfs-walk/*.h "$BUILD"/include/btrfs-walk/*.h)
"$ROOT/scripts/make-symbols" --list "${headers[@]}" |
    LC_ALL=C sort > "$WORK/declared"
nm -D --defined-only "$library" | sed -n 's/.* [A-TV-Z] \([a-z_0-9]*\)@@BTRFS_WALK_2$/\1/p' |
    LC_ALL=C sort > "$WORK/exported"
holds "there are symbols" [ "$(wc -l < "$WORK/exported")" -gt 50 ]
diff "$WORK/declared" "$WORK/exported" > "$WORK/diff"
is "what is declared is exported, and nothing else: $(head -n 4 "$WORK/diff")" $? 0

# A structure of the interface can grow, or docs/library.md names it as one that never changes.
cat > "$WORK/structures.py" << 'END'
import glob, os, re, sys
headers = {os.path.basename(path): re.sub(r"/\*.*?\*/", "", open(path).read(), flags=re.S)
           for path in glob.glob(sys.argv[1] + "/include/btrfs-walk/*.h")}
everything = "".join(headers.values())
fixed = set(re.findall(r"\bbw_\w+", re.search(r"never change:\n\n(.*?)\n\n",
                                              open(sys.argv[1] + "/docs/library.md").read(),
                                              re.S)[1]))
structures = {}
for header, text in headers.items():
    if header != "graph.h":
        structures.update(re.findall(r"^struct (bw_\w+) \{\n(.*?)^\};", text, re.S | re.M))
for name, members in sorted(structures.items()):
    made_by_callers = re.search(rf"(?<!const )struct {name} (\*\w+[,)]|\w+\s*[(,;])", everything)
    if name.startswith("bw_error") or name in fixed or not made_by_callers:
        continue
    if not re.search(r"\bstruct_size;|\breserved\[", members):
        print(name)
print(*(name for name in sorted(fixed) if name not in structures), sep="\n", end="")
END
is "structures that cannot grow" "$(python3 "$WORK/structures.py" "$ROOT" || echo failed)" ""

if ! have abidw; then
    skip abidw "types and functions"
elif ! grep -q X86-64 < <(readelf -h "$library") ||
    ! grep -q '\.debug_info' < <(readelf -S "$library"); then
    skip "debug information for x86-64" "types and functions"
elif grep -q clang < <(readelf -p .comment "$library") || grep -q __asan < <(nm -D "$library"); then
    skip "a build with gcc and without sanitizers" "types and functions"
else
    holds "the interface is that of tests/data/interface; after an addition run 'make abi'" \
        "$ROOT/scripts/abi" "$library"
    # The description must be true, and another layout must be noticed.
    assertion='_Static_assert(offsetof(struct \1, \3) == \2, "");'
    sed -nE "s/^struct (\w+) \+([0-9]+) (\w+): .*/$assertion/p" \
        "$ROOT/tests/data/interface" > "$WORK/offsets"
    holds "structures are described" [ "$(wc -l < "$WORK/offsets")" -gt 900 ]
    holds "as the compiler sees them" "${COMPILER[@]}" -fsyntax-only -I "$ROOT/include" \
        -I "$BUILD/include" -x c -include stddef.h -include btrfs-walk/btrfs-walk.h "$WORK/offsets"
    sed 's/^\(struct bw_inode +\)16 /\148 /' "$ROOT/tests/data/interface" > "$WORK/other"
    holds "another layout is noticed" sh -c '! "$@"' - "$ROOT/scripts/abi" "$library" "$WORK/other"
fi
finish

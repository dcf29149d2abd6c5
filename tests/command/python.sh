#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The binding for Python: its unit tests, the examples in its documentation, and the recipes of
# docs/python.md, each with a Python that has the packages it imports.
# Takes long.
set -uo pipefail
. "$(dirname "$0")/common.bash"

mapfile -t pythons < <(type -ap python3)

# find_python MODULE...: prints a Python that has these modules.
find_python() {
    local python
    for python in "${pythons[@]}"; do
        "$python" -c 'import importlib, sys
for name in sys.argv[1:]: importlib.import_module(name)' "$@" 2> /dev/null &&
            echo "$python" && return
    done
    return 1
}
if ! python=$(find_python cffi setuptools wheel) || ! "$python" -c 'import os, sysconfig, sys
sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))'; then
    skip "cffi, setuptools, wheel and the headers of Python" "the binding for Python"
    finish
fi
# Headers and libraries of another machine are not those of its Python.
machine() { od -An -tx1 -j18 -N2 "$1"; }
if [ "$(machine "$PROGRAM")" != "$(machine "$BASH")" ]; then
    skip "a build for this machine" "the binding for Python"
    finish
fi
make=(make -C "$ROOT" -s BUILD="$BUILD" PYTHON="$python" PYTHON_CFLAGS="-O0 -g0")
sanitized=$(nm "$BUILD/libbtrfs-walk.a" 2> /dev/null | grep -c __asan_init)
[ "$sanitized" -eq 0 ] || make+=(SANITIZE=address,undefined CC="${COMPILER[*]}")
"${make[@]}" python > "$WORK/log" 2>&1 || { cat "$WORK/log"; fail "make python"; finish; }
pass
export PYTHONPATH=$BUILD/python/lib PROGRAM IMAGES=$BUILD/fixtures FIXTURES=$ROOT/fixtures
export CONTAINERS=$WORK
zstd -q -d "$ROOT/tests/data/containers/l2.img.zst" -o "$WORK/luks.img"
zstd -q -d --sparse "$ROOT/tests/data/containers/host.img.zst" -o "$WORK/host.img"
"$ROOT/scripts/unpack-fixtures" "$IMAGES" plain subvolumes people laptop big-directory data-shapes \
    compressed bad-data lost-leaf-first differences gone log-tree || exit 1

# unit PYTHON FILE: the tests of a file; a line for each that fails.
unit() {
    "$1" "$ROOT/python/tests/$2" > "$WORK/unit" 2>&1
    [ $? -eq 0 ] && grep -q '^OK' "$WORK/unit" && pass || { cat "$WORK/unit"; fail "$2"; }
}
# With sanitizers, only what could use memory wrongly.
if [ "$sanitized" -ne 0 ]; then
    export LD_PRELOAD ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc
    LD_PRELOAD=$("${make[@]}" python-preload)
    unit "$python" test_lifetime.py
    finish
fi
unit "$python" test_lifetime.py
holds "the types are those of the headers and records" \
    grep -q '^class FindingInfo(Record):$' "$PYTHONPATH/btrfswalk/records.pyi"
holds "the types of the binding have documentation" "$python" -c 'from btrfswalk import structures
assert "bytes of the file" in structures.Extent.__doc__ + structures.Inode.__doc__'
unit "$python" test_btrfswalk.py
unit "$(find_python cffi fsspec || echo "$python")" test_adapters.py
# A module for the stable ABI works with every Python that has cffi.
for other in "${pythons[@]}"; do
    ! "$other" -c 'import cffi' 2> /dev/null ||
        holds "$other imports the binding" "$other" -c 'import btrfswalk'
done
if have mypy; then
    mypy=(mypy --strict --enable-incomplete-feature=Unpack --cache-dir "$BUILD/python/mypy")
    holds "mypy finds no error in the package" "${mypy[@]}" "$PYTHONPATH/btrfswalk"
    # What a checker accepts and what it knows, and the line of a mistake that it finds.
    cat > "$WORK/user.py" << 'END'
import btrfswalk

with btrfswalk.FileSystem("x", "y", generation=3, log="ignore") as fs:
    size: "int | None" = next(fs.walk("/", name=["*.c"], nested="skip", fields="size")).info.size
    devid: int = fs.devices()[0].devid
    code: "str | None" = next(fs.check(data=True, threads=2)).code
    fs.walk(nmae="*.c")
    fs.check(data="yes")
    fs.superblock.lable
END
    MYPYPATH=$PYTHONPATH "${mypy[@]}" "$WORK/user.py" > "$WORK/types"
    is "mypy finds the three mistakes" \
        "$(sed -n 's/.*user.py:\([0-9]*\): error.*/\1/p' "$WORK/types" |
        sort -u | paste -sd' ')" "7 8 9"
else
    skip mypy "the types of the package"
fi

# The examples, in a folder with the images that they name.
cd "$WORK" || exit 1
ln -s "$IMAGES/plain/dev1.img" image.img
ln -s "$IMAGES/subvolumes/dev1.img" disk.img
mkdir bin && ln -s "$PROGRAM" bin/btrfs-walk
export PATH=$WORK/bin:$PATH
for module in __init__ structures records; do
    holds "examples in the documentation of $module work" \
        "$python" -c "import doctest, importlib, sys
result = doctest.testmod(importlib.import_module(('btrfswalk.' + sys.argv[1]).replace(
    '.__init__', '')))
sys.exit(result.failed or not result.attempted)" "$module"
done
csplit -s -z -f recipe -b %d.py <(awk '/^```python$/ { inside = 1; print "#"; next }
    /^```/ { inside = 0 } inside' "$ROOT/docs/python.md") '/^#$/' '{*}'
recipes=0
for recipe in recipe*.py; do
    recipes=$((recipes + 1))
    mapfile -t modules < <(sed -nE 's/^(import|from) ([a-zA-Z]+).*/\2/p' "$recipe" | sort -u |
        grep -v btrfswalk)
    if ! found=$(find_python cffi "${modules[@]}"); then
        skip "${modules[*]} of Python" "a recipe of docs/python.md"
    elif grep -q '^def test_' "$recipe"; then
        holds "$recipe of docs/python.md passes its tests" \
            "$found" -m pytest -q -p no:cacheprovider "$recipe"
    else
        # Only an installed package is known to fsspec.
        holds "$recipe of docs/python.md with ${modules[*]} works" "$found" -c 'import sys
if "fsspec" in sys.modules or "fsspec" in open(sys.argv[1]).read():
    import btrfswalk.fsspec, fsspec
    fsspec.register_implementation("btrfs", btrfswalk.fsspec.BtrfsFileSystem)
exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"))' "$recipe"
    fi
done
is "docs/python.md has six recipes" "$recipes" 6
finish

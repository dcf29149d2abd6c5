#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The pages of the report command in a browser: on narrow and wide windows, light and dark, and on
# paper. Nothing may be wider than its window or page, and everything is printed. The pictures stay
# in the folder report-pages of the build, to be looked at.
set -uo pipefail
. "$(dirname "$0")/common.bash"

chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
# browser OPTIONS... URL
browser() {
    timeout 120 "$chromium" --headless=new --no-sandbox --disable-gpu --hide-scrollbars \
        --allow-file-access-from-files --user-data-dir="$WORK/profile" "$@" 2> "$WORK/log"
}
if [ -z "$chromium" ] || ! browser --dump-dom about:blank > "$WORK/dom" ||
    ! command -v pdftotext pdftoppm > "$WORK/tools"; then
    skip "chromium and poppler-utils" "the pages of reports"
    finish
fi

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" laptop raid6-6 lost-leaf-inodes \
    snapshots-with-quotas empty || exit 1
fixtures=$BUILD/fixtures
pages=$BUILD/report-pages
mkdir -p "$pages"
# The name of an image is long, and has no place to be broken.
mkdir "$WORK/$(printf 'folder%.0s' {1..30})"
long=$(echo "$WORK"/folder*)/lost.img
ln -s "$(realpath "$fixtures/lost-leaf-inodes/dev1.img")" "$long"
# report NAME STATUS REGEX ARGUMENTS...
report() { expect "a report: $1" "$2" "$3" report -f "$pages/$1.html" "${@:4}"; }
report laptop 0 - "$fixtures/laptop/dev1.img"
report devices 0 - --check none "$fixtures"/raid6-6/dev?.img
report missing 0 'is missing' --check none "$fixtures"/raid6-6/dev[1346].img
report damaged 1 damage "$long"
report snapshots 0 - --check none "$fixtures/snapshots-with-quotas/dev1.img"
report empty 0 - --check none "$fixtures/empty/dev1.img"

# All pages, in frames of several widths. Scrolling inside of a page is for tables and treemaps.
widths='390 768 1600'
{
    printf '<!DOCTYPE html><body>\n'
    for page in "$pages"/*.html; do
        for width in $widths; do
            printf '<iframe src="file://%s" width="%s" height="800"></iframe>\n' \
                "$(realpath "$page")" "$width"
        done
    done
    cat << 'END'
<script>
window.onload = () => {
    const found = [];
    for (const frame of document.querySelectorAll("iframe")) {
        const page = frame.contentDocument, width = page.documentElement.clientWidth;
        const name = frame.src.split("/").pop() + " " + frame.width + ": ";
        found.push(name + "loaded " + page.querySelectorAll("section").length);
        if (page.documentElement.scrollWidth > width)
            found.push(name + "wide page");
        for (const each of page.querySelectorAll("body *"))
            if (!each.closest(".wide svg, .wide table, pre, .tabs>input") &&
                (each.getBoundingClientRect().right > width + 1 ||
                 each.getBoundingClientRect().left < -1))
                found.push(name + "wide " + each.tagName + " " + each.textContent.slice(0, 40));
    }
    document.body.textContent = found.join("\n");
};
</script>
END
} > "$WORK/frames.html"
browser --virtual-time-budget=20000 --dump-dom "file://$WORK/frames.html" > "$WORK/dom"
is "all pages have sections at all widths" "$(grep -cE 'html [0-9]+: loaded [4-9]' "$WORK/dom")" \
    "$(($(printf '%s\n' "$pages"/*.html | wc -l) * $(wc -w <<< "$widths")))"
is "nothing is wider than its window" "$(grep -E ': wide' "$WORK/dom")" ""

# Pictures.
shot() { # shot PAGE NAME WIDTH OPTIONS...
    browser "${@:4}" --window-size="$3",2400 --screenshot="$pages/$1-$2.png" \
        "file://$(realpath "$pages/$1.html")" > "$WORK/out"
    holds "a picture: $1, $2" [ -s "$pages/$1-$2.png" ]
}
shot laptop light 1600
shot laptop dark 1600 --blink-settings=preferredColorScheme=0
shot damaged narrow 390
cmp -s "$pages/laptop-light.png" "$pages/laptop-dark.png"
is "light and dark pictures differ" $? 1

# Paper: all headings, columns, maps and details, and no word beyond the margin.
printed() { # printed PAGE
    browser --no-pdf-header-footer --print-to-pdf="$pages/$1.pdf" \
        "file://$(realpath "$pages/$1.html")" > "$WORK/out"
    pdftotext -layout "$pages/$1.pdf" "$WORK/paper"
    tr -s ' \n\f' '\n' < "$WORK/paper" | sort -u > "$WORK/words"
    grep -oE '<(h1|h2|h3|th|summary)[^>]*>[^<]*' "$pages/$1.html" | sed 's/^[^>]*>//' |
        tr ' ' '\n' | sort -u > "$WORK/wanted"
    holds "$1 has headings" grep -qx Devices "$WORK/wanted"
    is "the headings of $1 are printed" "$(comm -13 "$WORK/words" "$WORK/wanted")" ""
    pdftotext -bbox "$pages/$1.pdf" "$WORK/boxes"
    is "no word of $1 is cut" "$(awk -F '"' '/<page/ { width = $2 } /<word/ &&
        ($2 < 20 || $6 > width - 20)' "$WORK/boxes")" ""
}
printed laptop
while read -r size; do
    holds "the last column is printed: $size" grep -qxF "$size" "$WORK/words"
done < <(sed -n '/id="subvolumes"/,/<\/section>/s/.*>\([0-9.]*[KM]*i*B\)<\/td><\/tr>/\1/p' \
    "$pages/laptop.html")
is "all maps are" "$(grep -c '^ *device 1, 512.00MiB' "$WORK/paper")" 4
holds "the details are" grep -qF 'Metadata ratio:' "$WORK/paper"
printed damaged
printed devices
finish

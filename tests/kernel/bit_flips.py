#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""bit_flips - flips single bits of checksummed blocks; `check --data` must find each of them

usage: tests/kernel/bit_flips.py [--count N] [--seed S] [--round N] [--program PROGRAM] [IMAGE...]

The images are the devices of a healthy file system, by default a fixture; they are copied first. In
each round, bits are flipped in several tree blocks and data sectors, in one copy each or in their
parity, but never in two places of the same full stripe. `check --data --all --json` must name the
device, the offset and the copy of every one, and for data the path of a file; and nothing else.
If a flip hits metadata that no other copy can repair, it is the only one of its round.
"""
import random
import re
import sys

import kernel


class Images(kernel.Program):
    def __init__(self, program, images):
        super().__init__(program, images)
        self.paths = {row["devid"]: row["device"] for row in self.rows("devices")
                      if "device" in row}
        self.node, self.sector, self.checksum = map(
            self.super_number, ("nodesize", "sectorsize", "csum_size"))

    def super_number(self, name):
        return int(next(line.split()[1] for line in self.text("super").splitlines()
                        if line.startswith(name)))

    def blocks(self):
        """(logical, length, whether it is metadata) of everything that has a checksum."""
        found = {int(l.split()[1]) for l in self.text("dump").splitlines()
                 if l.startswith(("leaf ", "node ")) and " level " in l
                 or l.startswith("leaf ") and " items " in l}
        result = [(logical, self.node, True) for logical in sorted(found)]
        for item in self.rows("dump", "--tree", "csum"):
            if item["key"]["type"] == "EXTENT_CSUM" and not item["level"]:
                start, length = item["item"]["start"], item["item"]["length"]
                result += [(at, self.sector, False)
                           for at in range(start, start + length, self.sector)]
        return result

    def copies(self, logical, length):
        return kernel.json_rows(self.ask("map", "--json", f"{logical}+{length}"))

    def flip(self, flips):
        """Flips bits, or flips them back."""
        for one in flips:
            with open(self.paths[one["devid"]], "r+b") as file:
                file.seek(one["offset"])
                byte = file.read(1)
                file.seek(one["offset"])
                file.write(bytes([byte[0] ^ 1 << one["bit"]]))


def is_about(finding, flipped, node):
    """Whether a finding is about a flip. If no tree can be read without the block, the message
    alone says where it is."""
    place = re.search(r"mirror \d+ on device (\d+) at (\d+)",
                      finding["message"]) if finding["code"] == "not-opened" else None
    if place:
        devid, offset = map(int, place.groups())
        return devid == flipped["devid"] and offset <= flipped["offset"] < offset + node
    start = finding.get("offset", -1)
    end = start + max(finding.get("length", 0), 1)
    return finding.get("devid") == flipped["devid"] and start <= flipped["offset"] < end


def complaints(flips, findings, node):
    """Flips that were not found, and findings that no flip explains."""
    for flip in flips:
        found = [finding for finding in findings if is_about(finding, flip, node)]
        if not found:
            yield f"not found: {flip}"
        elif not flip["metadata"] and not flip["parity"] and \
                not any(finding.get("paths") for finding in found):
            yield f"no path: {flip}: {found[0]}"
    for finding in findings:
        if finding["severity"] == "error" and \
                not any(is_about(finding, flip, node) for flip in flips):
            yield f"unexplained: {finding}"


def choose_flips(r, images, blocks, count):
    """Chooses the flips of one round such that no two can affect each other."""
    metadata = [block for block in blocks if block[2]]
    flips, rows = [], set()
    for _ in range(count):
        logical, length, is_metadata = r.choice(
            metadata if r.random() < 0.5 or len(blocks) == len(metadata) else blocks)
        found = images.copies(logical, length)
        at = r.randrange(length)
        if is_metadata and images.checksum <= at < 32:
            continue  # behind a short checksum, the rest of its field is not covered
        usable = [x for x in found if x["logical"] <= logical + at < x["logical"] + x["length"]]
        chosen = r.choice(usable)
        row = logical // (8 << 20)  # larger than a full stripe of any profile: one flip in each
        is_alone = is_metadata and len(usable) == 1
        if row in rows or (is_alone and flips):
            continue
        rows.add(row)
        flips.append({"logical": logical, "metadata": is_metadata,
                      "parity": chosen["kind"] != "copy", "devid": chosen["devid"],
                      "offset": chosen["offset"] + logical + at - chosen["logical"],
                      "bit": r.randrange(8)})
        if is_alone:
            break
    return flips


def compare(options, paths, directory):
    r = random.Random(options.seed)
    images = Images(options.program, kernel.copy_images(paths, directory))
    blocks = images.blocks()
    done = 0
    while done < options.count:
        flips = choose_flips(r, images, blocks, min(options.round, options.count - done))
        images.flip(flips)
        result = images.ask("check", "--data", "--all", "--json")
        findings = [row for row in kernel.json_rows(result) if "code" in row]
        yield from complaints(flips, findings, images.node)
        if result.returncode & ~12:
            yield f"status {result.returncode}: {flips}: {result.stderr[-300:]}"
        images.flip(flips)
        done += len(flips)
    print(f"{done} flips")


def main():
    parser = kernel.parser(__doc__, 100, 25)
    parser.add_argument("--round", type=int, default=20)
    parser.add_argument("image", nargs="*")
    options = parser.parse_args()
    images = options.image or kernel.fixture("raid1-2")
    return kernel.compare_each(options, {images[0]: images}, compare)


if __name__ == "__main__":
    sys.exit(main())

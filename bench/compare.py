#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""compare - two programs side by side, in less than three minutes

usage: bench/compare.py [--program PROGRAM] [--images DIR] [--seconds N] BEFORE [ROW...]

Runs the commands below with PROGRAM (default: build/btrfs-walk) and with BEFORE, another
btrfs-walk, in turn, for N seconds each (default: 2), on an image that is made once: `mixed` of
scripts/make-bench-images. That takes root. Each row has the fastest run of both by the clock, the
ratio of the fastest runs, that of the least processor time, and that of the peak memory: above 1,
BEFORE was better. A row whose processor time is worse by more than 3 % is measured again, three
times as long. The last lines name those that stay worse, and those with another output.
"""
import argparse
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIMIT = 1.03
NOISE = 0.0005 # seconds: of what takes milliseconds, three in a hundred are none
# How many runs there are at least: of the times, only the best one counts.
LEAST = 3

# By name: words before the image, words after it.
ROWS = {
    "walk": (["walk"], []),
    "walk, one thread": (["walk", "-j", "1"], []),
    "walk -o": (["walk", "-o", "path,size,mtime"], []),
    "walk --json": (["walk", "--json"], []),
    "walk, filtered": (["walk", "--name", "*7.txt", "--size", "+100c"], []),
    "ls -R": (["ls", "-R"], []),
    "ls -lR": (["ls", "-lR"], []),
    "stat": (["stat"], ["/", "/origin", "/origin/section-000/group-000"]),
    "check": (["check", "-q"], []),
    "check --data": (["check", "-q", "--data"], []),
    "sum": (["sum"], ["/origin"]),
    "tar": (["tar"], ["/origin"]),
    "extract": (["extract", "-q", "-C", "TARGET"], ["/origin/section-000", "/origin/plain"]),
    "du": (["du", "--raw"], []),
    "compression": (["compression", "--raw"], []),
    "space": (["space", "--json"], []),
    "usage": (["usage"], []),
    "subvolumes": (["subvolumes", "--json"], []),
    "diff": (["diff"], ["snapshot-0", "origin"]),
    "dump": (["dump", "--tree", "256"], []),
    "dump --json": (["dump", "--json", "--tree", "extent"], []),
    "tree-stats": (["tree-stats"], []),
    "owner": (["owner", "--json"], ["30408704", "1104150528", "1200000000"]),
    "roots": (["roots"], []),
    "deleted": (["deleted"], []),
    "info": (["info"], []),
    "probe-stats": (["walk", "--probe-stats=xlator", "--probe-output", "/dev/null"], []),
}


class Side:
    """One of the programs: the best values of its runs of one command."""

    def __init__(self, program, words):
        self.words = [program, *words]
        self.seconds = self.processor = self.memory = float("inf")
        self.answer = None

    def ask(self):
        """The exit status and a hash of the output."""
        with subprocess.Popen(self.words, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as process:
            digest = hashlib.file_digest(process.stdout, "sha256").hexdigest()
        self.answer = process.returncode, digest

    def measure(self):
        start = time.monotonic()
        process = subprocess.Popen(self.words, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
        self.seconds = min(self.seconds, time.monotonic() - start)
        self.processor = min(self.processor, usage.ru_utime + usage.ru_stime)
        self.memory = min(self.memory, usage.ru_maxrss)


class Row:
    def __init__(self, options, name, image, target):
        words, after = ROWS[name]
        words = [target if word == "TARGET" else word for word in words] + [image, *after]
        self.name, self.target = name, target
        self.sides = Side(options.before, words), Side(options.program, words)

    def each(self, what):
        for side in self.sides:
            shutil.rmtree(self.target, ignore_errors=True)
            what(side)

    def measure(self, seconds):
        end, runs = time.monotonic() + seconds, 0
        while runs < LEAST or time.monotonic() < end:
            self.each(Side.measure)
            runs += 1

    def ratio(self, value):
        before, after = (getattr(side, value) for side in self.sides)
        return after / before if before and after else 1.0

    def is_worse(self):
        before, after = self.sides
        return after.processor - before.processor > NOISE and self.ratio("processor") > LIMIT

    def text(self):
        before, after = self.sides
        words = [f"{before.seconds:.4f} s", f"{after.seconds:.4f} s"]
        words += [f"{self.ratio(value):.3f}" for value in ("seconds", "processor", "memory")]
        return f"| {self.name:<16} | " + " | ".join(f"{word:>10}" for word in words) + " |"


def find_image(folder):
    image = os.path.join(folder, "mixed.img")
    if not os.path.exists(image):
        subprocess.run([os.path.join(TOP, "scripts", "make-bench-images"), folder, "mixed"],
                       check=True, stdout=sys.stderr)
    return image


def parse():
    build = os.path.join(TOP, os.environ.get("BUILD", "build"))
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(build, "btrfs-walk"))
    parser.add_argument("--images", default=os.environ.get("BENCH_IMAGES",
                                                           os.path.join(build, "bench-images")))
    parser.add_argument("--seconds", type=float, default=2, help="for each row")
    parser.add_argument("before", metavar="BEFORE")
    parser.add_argument("row", nargs="*", metavar="ROW", help=", ".join(ROWS))
    options = parser.parse_args()
    for name in options.row:
        if name not in ROWS:
            parser.error(f"no row is named '{name}'")
    for program in (options.program, options.before):
        if not os.access(program, os.X_OK):
            parser.error(f"no program: {program}")
    return options


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    options = parse()
    image = find_image(options.images)
    heads = ["before", "after", "time", "processor", "memory"]
    print(f"| {'after : before':<16} | " + " | ".join(f"{head:>10}" for head in heads) + " |")
    print("|---|" + "--:|" * len(heads))
    worse, others = [], []
    with tempfile.TemporaryDirectory(prefix="bench.", dir=options.images) as work:
        for name in options.row or ROWS:
            row = Row(options, name, image, os.path.join(work, "target"))
            row.each(Side.ask)
            row.measure(options.seconds)
            if row.is_worse():
                row.measure(3 * options.seconds)
            print(row.text(), flush=True)
            worse += [name] * row.is_worse()
            others += [name] * (row.sides[0].answer != row.sides[1].answer)
    print(f"worse by more than 3 %: {', '.join(worse) or 'none'}")
    print(f"another output: {', '.join(others) or 'none'}")


if __name__ == "__main__":
    main()

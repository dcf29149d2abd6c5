#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The ```console blocks of documentation: a line that begins with "$ " is a command, the lines up
to the next one are its output, and a line "..." stands for any lines.

    tests/support/console_blocks.py check FOLDER PAGE...    run them there; print what differs
    tests/support/console_blocks.py update FOLDER PAGE...   write the output into the pages
    tests/support/console_blocks.py count FOLDER PAGE...    how many commands there are

Commands run on a terminal, as for a reader. One that ends with "| head -N" keeps N lines."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

COLUMNS = 100


def output_of(command, folder):
    """What a command shows on a terminal, without colours."""
    keep = re.search(r" \| head -(\d+)$", command)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    environment = dict(os.environ, TERM="dumb", NO_COLOR="1", TZ="UTC0")
    child = subprocess.Popen(["bash", "-c", command[:keep.start()] if keep else command],
                             stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, cwd=folder,
                             env=environment, start_new_session=True)
    os.close(theirs)
    text = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        text += piece
    child.wait()
    os.close(ours)
    # a slow command shows its progress, which ends where another line begins in its place
    lines = [re.sub(r".*\r", "", line).replace("\x1b[K", "").rstrip()
             for line in text.decode().replace("\r\n", "\n").split("\n")]
    if not lines[-1]:
        lines.pop()
    return lines[:int(keep[1])] + ["..."] if keep and len(lines) > int(keep[1]) else lines


def matches(expected, actual):
    pattern = "".join("(?:.*\n)*" if line == "..." else re.escape(line) + "\n"
                      for line in expected)
    return re.fullmatch(pattern, "".join(line + "\n" for line in actual)) is not None


def pieces(text):
    """The lines of a page as (command, lines): the command is None outside of console blocks."""
    command, lines, inside = None, [], False
    for line in text.splitlines():
        begins = inside and line.startswith("$ ")
        if begins or (inside and line == "```"):
            yield command, lines
            command, lines = (line[2:], []) if begins else (None, [line])
            inside = begins
            continue
        if line == "```console":
            inside = True
        lines.append(line)
    yield command, lines


def main(mode, folder, *pages):
    count = 0
    for page in pages:
        written = []
        for command, lines in pieces(open(page).read()):
            if command is not None:
                count += 1
                written.append("$ " + command)
                if mode == "update" and "..." not in lines[:-1]:
                    kept = len(lines) - 1 if lines[-1:] == ["..."] else None
                    lines = output_of(command, folder)[:kept] + (["..."] if kept else [])
                elif mode == "check":
                    actual = output_of(command, folder)
                    if not matches(lines, actual):
                        print(f"{os.path.basename(page)}: $ {command}: prints:", *actual[:30],
                              sep="\n    ")
            written += lines
        if mode == "update":
            open(page, "w").write("\n".join(written) + "\n")
    if mode == "count":
        print(count)


main(*sys.argv[1:])

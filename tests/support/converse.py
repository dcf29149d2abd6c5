#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs a command on a terminal and talks to it.

    tests/support/converse.py SECONDS COMMAND... < DIALOGUE

Each line of the dialogue is one of these:
    > TEXT     typed as soon as the command edits a line
    ) TEXT     typed as soon as it no longer does
    ! TEXT     typed at once
    $ COMMAND  run by sh(1), with the number of the process in $CHILD
    < REGEX    must appear after everything that matched before
TEXT has the escapes of Python. The end of the dialogue waits for the end of the command. Prints
everything that appeared. Exits with the status of the command, or with 97 after a line that was not
answered in time.
"""
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time


def edits_no_line(terminal):
    return termios.tcgetattr(terminal)[3] & termios.ICANON


def main():
    limit = float(sys.argv[1])
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "dumb"
        os.execvp(sys.argv[2], sys.argv[2:])
    seen, done = b"", 0

    def read_more(end):
        nonlocal seen
        ready, _, _ = select.select([terminal], [], [], max(0, end - time.monotonic()))
        if not ready:
            return None
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # the command has ended
            piece = b""
        seen += piece
        return bool(piece)

    def give_up(line):
        sys.stdout.buffer.write(seen + b"\nunanswered: " + line.encode() + b"\n")
        os.kill(child, signal.SIGKILL)
        sys.exit(97)

    for line in sys.stdin.read().splitlines():
        end = time.monotonic() + limit
        if line[0] == "$":
            subprocess.run(["sh", "-c", line[2:]], env={**os.environ, "CHILD": str(child)})
            continue
        if line[0] in ">!)":
            # a program that does not edit lines never leaves the canonical mode
            patience = time.monotonic() + 2
            while line[0] == ">" and time.monotonic() < patience and edits_no_line(terminal):
                time.sleep(0.005)
            while line[0] == ")" and not edits_no_line(terminal):
                time.sleep(0.005)
            os.write(terminal, line[2:].encode().decode("unicode_escape").encode("latin-1"))
            continue
        while not (match := re.compile(line[2:].encode()).search(seen, done)):
            if not read_more(end):
                give_up(line)
        done = match.end()
    end = time.monotonic() + limit
    while (more := read_more(end)):
        pass
    if more is None:
        give_up("the end")
    sys.stdout.buffer.write(seen)
    sys.stdout.flush()
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) % 256)


main()

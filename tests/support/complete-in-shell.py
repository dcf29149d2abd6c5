#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Types command lines into a real shell on a terminal, presses tab, and then return.

    tests/support/complete-in-shell.py SHELL FOLDER LINES

SHELL is bash, zsh or fish. FOLDER holds a program btrfs-walk, to which each line leads, and which
says "done" when it has written down its arguments. LINES is a file with one line to type each; a
tab is where the key is pressed.
"""
import os
import pty
import select
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SETUP = {
    "bash": (["--noprofile", "--norc", "-i"],
             f"set +o history; bind 'set bell-style none'; . {ROOT}/completions/btrfs-walk.bash"),
    "zsh": (["-f", "-i"], f"unsetopt beep; fpath=({ROOT}/completions $fpath); "
            "autoload -U compinit; compinit -u -D"),
    "fish": (["--no-config", "-i", "-C", f"source {ROOT}/completions/btrfs-walk.fish"], ":"),
}


def wait_for(terminal, word):
    """Reads until the word has come; nothing of it is in what is typed."""
    seen = b""
    while word not in seen:
        if not select.select([terminal], [], [], 20)[0]:
            sys.exit(f"no {word} after: {seen.decode(errors='replace')}")
        seen += os.read(terminal, 65536)
        if b"\x1b[c" in seen:  # fish asks what terminal it is
            os.write(terminal, b"\x1b[?1;2c")
            seen = seen.replace(b"\x1b[c", b"")


def main(shell, folder, lines):
    options, setup = SETUP[shell]
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        home = dict(HOME=folder, PATH=f"{folder}:{os.environ['PATH']}", TERM="dumb", PS1="> ",
                    LC_ALL="C.UTF-8")
        os.execvpe(shell, [shell, *options], home)
    os.write(terminal, f"{setup}; echo re''ady\n".encode())
    wait_for(terminal, b"ready")
    for line in open(lines, "rb").read().splitlines():
        os.write(terminal, line + b"\n")
        wait_for(terminal, b"done")
    os.write(terminal, b"exit\n")
    os.waitpid(child, 0)


main(*sys.argv[1:])

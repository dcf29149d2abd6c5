#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs a command with stderr on a terminal, and prints what can be seen there.

    tests/support/on-terminal.py whole COMMAND...   what is left on the terminal in the end
    tests/support/on-terminal.py both COMMAND...    the same, with stdout on it, too
    tests/support/on-terminal.py REGEX COMMAND...   a line of progress that matches (the last one,
                                                    if none does); then the command is killed
    tests/support/on-terminal.py answer:TEXT COMMAND...  the same, with stdin on it: types TEXT two
                                                    seconds after the first prompt for a passphrase,
                                                    and at once after the others
    tests/support/on-terminal.py interrupt COMMAND...  whether the terminal shows what is typed,
                                                    after SIGINT has ended the command at its
                                                    first output
    tests/support/on-terminal.py interrupt-all COMMAND...  the same with SIGINT for all its
                                                    processes, as by Ctrl-C
    tests/support/on-terminal.py quit COMMAND...    the same with SIGQUIT
    tests/support/on-terminal.py quit-all COMMAND...  the same with SIGQUIT for all its processes,
                                                    as by Ctrl-\\
    tests/support/on-terminal.py ends COMMAND...    the same of a command that ends by itself
    tests/support/on-terminal.py signal COMMAND...  no terminal: the first line after SIGUSR1
    tests/support/on-terminal.py signal:REGEX COMMAND...  one of these lines that matches, likewise
"""
import os
import re
import signal
import subprocess
import sys
import termios
import time

ERASE = b"\r\x1b[K"


def pieces(descriptor):
    """What comes, as it comes."""
    while True:
        try:
            piece = os.read(descriptor, 65536)
        except OSError:  # the other end of the terminal is closed
            return
        if not piece:
            return
        yield piece


def line_like(terminal, regex):
    """A line of progress is written behind ERASE, and complete in one piece."""
    line = "none"
    for piece in pieces(terminal):
        for part in piece.decode().split(ERASE.decode())[1:]:
            line = part or line
            if re.fullmatch(regex, line):
                return line
    return line


def awaits(child, number):
    """Whether the program blocks a signal, to take it when it likes. An emulator blocks all of them
    now and then, for a moment."""
    for line in open(f"/proc/{child.pid}/status"):
        if line.startswith("SigBlk:"):
            blocked = int(line.split()[1], 16)
            return blocked >> (number - 1) & 1 and not blocked >> (signal.SIGSEGV - 1) & 1
    return False


def answer_like(child, terminal, regex):
    """Asks again and again."""
    while child.poll() is None:
        child.send_signal(signal.SIGUSR1)
        line = next(pieces(terminal), b"none").decode().rstrip("\n")
        if re.fullmatch(regex, line):
            break
    return line


def main(mode, *command):
    terminal, other = os.pipe() if mode.startswith("signal") else os.openpty()
    answers = mode.startswith("answer:")
    ends = mode in ("interrupt", "interrupt-all", "quit", "quit-all", "ends")
    child = subprocess.Popen(command, stderr=other, stdin=other if answers or ends else None,
                             stdout=other if mode == "both" else subprocess.DEVNULL,
                             start_new_session=mode.endswith("-all"))
    if ends:
        next(pieces(terminal))
        number = signal.SIGQUIT if mode.startswith("quit") else signal.SIGINT
        if mode.endswith("-all"):
            os.killpg(child.pid, number)
        elif mode != "ends":
            child.send_signal(number)
        status = child.wait()
        shows = termios.tcgetattr(other)[3] & termios.ECHO
        print("status %d, input is %s" % (status, "shown" if shows else "hidden"))
        return
    os.close(other)
    if answers or mode in ("whole", "both"):
        seen = b""
        for piece in pieces(terminal):
            seen += piece
            if answers and b"Passphrase of" in piece:
                time.sleep(0 if seen.count(b"Passphrase of") > 1 else 2)
                os.write(terminal, mode[7:].encode() + b"\n")
        seen = seen.replace(b"\r\n", b"\n")
        print(re.sub(rb"[^\n]*\r\x1b\[K", b"", seen).decode(), end="")
        sys.exit(child.wait())
    if mode.startswith("signal"):
        while not awaits(child, signal.SIGUSR1):
            pass
        print(answer_like(child, terminal, mode[7:] or ".*"))
    else:
        print(line_like(terminal, mode))
    child.kill()
    child.wait()


main(*sys.argv[1:])

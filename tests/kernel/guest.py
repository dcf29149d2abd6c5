#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""guest - runs a shell script in a Linux kernel of its own, which is an ordinary process

usage: tests/kernel/guest.py [--write] [--seconds N] SCRIPT [IMAGE...]

A damaged file system can crash or stop the kernel that mounts it. Here this is User Mode Linux (the
package user-mode-linux of Debian), which takes nothing else with it. It needs no root. The script
sees the files of this machine, but cannot change them; its folder /mnt is empty, and can be written
to. Its images are $1, $2, ...; they stay as they are, unless --write is given. The output of the
script is printed. The exit status is the script's; 124: it took too long; 125: the kernel stopped.
"""
import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile

KERNEL = "linux.uml"
TOO_LONG, STOPPED = 124, 125
ROOM = 64 << 20  # for the output
LETTERS = "abcdefghijklmnop"

# The first process of the guest. The output of the script goes to the last disk, since the console
# changes it.
FIRST = """#!/bin/sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mount -t devtmpfs dev /dev 2> /dev/null # unless the kernel has done it
mount -t proc proc /proc && mount -t sysfs sys /sys && mount -t tmpfs tmp /mnt && cd /mnt &&
    bash {script} {disks} > out 2>&1 < /dev/null
status=$?
umount -a -t btrfs 2> /dev/null
cat out > {answer} && sync && echo "ended $status" > /dev/console
echo o > /proc/sysrq-trigger
sleep 60
"""


def is_there():
    """Whether guests can run on this machine."""
    return bool(shutil.which(KERNEL))


def wait_for(process, seconds):
    """What a process with a session of its own prints, and whether it had to be ended."""
    try:
        return process.communicate(timeout=seconds)[0].decode(errors="replace"), False
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0].decode(errors="replace"), True


def run_guest(script, images, seconds=60, write=False):
    """Runs the text of a script. Returns its exit status and its output, as bytes."""
    with tempfile.TemporaryDirectory(prefix="guest.", dir="/var/tmp") as folder:
        os.chmod(folder, 0o755)

        def file(name, text=""):
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as made:
                made.write(text)
            os.chmod(path, 0o755)
            return path
        answer = file("answer")
        os.truncate(answer, ROOM)
        disks = [os.path.abspath(image) if write else
                 f"{folder}/changes{number},{os.path.abspath(image)}"
                 for number, image in enumerate(images)] + [answer]
        names = [f"/dev/ubd{letter}" for letter, _ in zip(LETTERS, disks)]
        first = file("first", FIRST.format(script=file("script", script),
                                           disks=" ".join(names[:-1]), answer=names[-1]))
        words = [f"ubd{letter}={disk}" for letter, disk in zip(LETTERS, disks)]
        process = subprocess.Popen(
            [KERNEL, "mem=384M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro",
             f"init={first}", *words, "con=null", "con0=null,fd:1", "quiet", "loglevel=0"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, "TMPDIR": folder}, start_new_session=True)
        console, was_ended = wait_for(process, seconds)
        with open(answer, "rb") as output:
            text = output.read().rstrip(b"\0")
    ends = [line for line in console.split("\n") if line.startswith("ended ")]
    if ends:
        return int(ends[-1].split()[1]), text
    return (TOO_LONG if was_ended else STOPPED), text or console.encode()


def main():
    """Runs the script that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("script", type=argparse.FileType())
    parser.add_argument("image", nargs="*")
    wanted = parser.parse_args()
    if not is_there():
        print(f"guest: {KERNEL} is not installed", file=sys.stderr)
        return 2
    status, output = run_guest(wanted.script.read(), wanted.image, wanted.seconds, wanted.write)
    sys.stdout.buffer.write(output)
    return status


if __name__ == "__main__":
    sys.exit(main())

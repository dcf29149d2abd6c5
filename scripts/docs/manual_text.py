# SPDX-License-Identifier: GPL-2.0-or-later
"""The words of the manual that are in no table of the program."""

SUMMARY = "Reads unmounted btrfs file systems."

SYNOPSIS = """\
.SH SYNOPSIS
.SY btrfs\\-walk
.RI [ COMMAND ]
.RI [ OPTIONS ]
.IR IMAGE ...
.YS
.SY btrfs\\-walk
.I COMMAND
.B \\-\\-help
.YS
"""

DESCRIPTION = """\
btrfs-walk reads btrfs file systems that are not mounted, straight from image files and block
devices. It lists the files, gets them out, checks them, and shows what the file system consists
of. It needs no root and no kernel support, writes to no image, and confines itself before it opens
one. It goes on where something is damaged: what cannot be read is said on stderr, and shown by the
exit status.

Without a COMMAND, walk is meant. An IMAGE is an image file, a block device, or the address of a
server; several of them are the devices of one file system, in any order. A PATH begins at the
top-level subvolume (id 5). Options and operands may come in any order; "--" ends the options.
"""

MORE_OPTIONS = """\
.SS Options of all commands
Options of images, older states, layers and probes, \\-\\-quiet and \\-\\-verbose
are those of all commands; see
.BR btrfs\\-walk (1).
"""

COLUMNS = "What -o can name, and the members of --json:"

# Name, of which command ("": all; "image": those that read an image), text.
ENVIRONMENT = (
    ("BTRFS_WALK_XLATOR_PATH", "",
     "Directories, separated by colons, in which layers in shared objects are looked for before "
     "that of the installation."),
    ("BTRFS_WALK_PROBE", "image",
     "Probes to print, as --probe selects them, for a program that is started by another one."),
    ("PATH", "image", "Where qemu-nbd and nbdkit are looked for; see --helpers. Relative "
     "directories are passed over."),
    ("TMPDIR", "image", "Where the socket of such a helper is made, in a directory of its own; "
     "else it is /tmp."),
)

FILES = (
    ("LIBDIR/btrfs-walk/xlator/CATEGORY/NAME.so",
     "Layers that are not built in. LIBDIR is that of the installation, as in /usr/local/lib."),
    ("DATADIR/btrfs-walk/bpftrace/", "Scripts for bpftrace, and the header that they need."),
)

DIAGNOSTICS = (
    "Results go to stdout, and messages to stderr. A message begins with 'btrfs-walk: ', and then "
    "with 'note: ', 'warning: ' or 'damage: ' unless it ends the command. A message about damage "
    "names what is damaged, where it lies, and what is wrong with it. Control characters in names "
    "are escaped.",
    "If a command takes more than a second and stderr is a terminal, a line there shows how far it "
    "is: bytes done and to be done, what is being done, bytes a second, and the time left. --quiet "
    "shows none. On SIGUSR1 a command writes one such line to stderr, wherever that goes; with "
    "--statedump it writes a statedump instead.",
    "Damage changes the exit status unless something good was found in its place. --quiet leaves "
    "out all messages but the last of a command that fails; --verbose adds notes about bad copies "
    "that were replaced by good ones.",
)

FINDINGS = (
    "The findings themselves are the output. Each has a code, which does not change between "
    "versions. These are the passes in their order, with their codes and how severe they are:")

EXAMPLES = """\
  btrfs-walk disk.img  the path of every regular file
  btrfs-walk ls -l disk.img /etc  a directory
  btrfs-walk extract -C DEST disk.img /users/joe  a folder, with all that is in it
  btrfs-walk info a.img b.img  what the file system of two devices is
  btrfs-walk check disk.img  whether it is whole
"""

XLATORS = """\
.SH NAME
btrfs\\-walk\\-xlators \\- the layers that btrfs\\-walk reads through
.SH DESCRIPTION
.BR btrfs\\-walk (1)
reads an image through a graph of layers, which are called translators
or xlators.
A read enters the graph at the top.
Each layer answers it, or passes it on to the layers below it, its subvolumes.
The layers at the bottom read the images.
Logical addresses are those of the file system; device addresses are
offsets on one device.
A graph in which they do not fit together is refused.
.PP
The type of an option's value is given after the description of the option.
A size is a number of bytes, with K, M, G, T, P or E for powers of 1024.
A time is a number with its unit: ns, us, ms, s, m or h.
An output is a file that is appended to, or \\- for stderr.
.SH LAYERS
"""

PROBES = """\
.SH NAME
btrfs\\-walk\\-probes \\- the points at which btrfs\\-walk can be watched
.SH DESCRIPTION
A probe is a named point of the read path.
Each probe has a record, which says what happened there.
The options \\-\\-probe, \\-\\-probe\\-stats and the like of
.BR btrfs\\-walk (1)
print, filter, count and record them, without root.
Tracers find them in the running program as USDT sites of the provider
btrfswalk;
block\\-read\\-done is called block__read__done there.
.PP
A site has six arguments.
arg0 is the address of the record, a structure of btrfs\\-walk/probe_records.h.
arg1 and arg2 are its keys, which are named below.
arg3 is 0 or a negative error number, arg4 is the time in nanoseconds, and
arg5 is
the number of the call in which it happened.
perf counts arguments from 1.
Each site has a semaphore, and no record is made until a tracer has raised it.
A member that a probe cannot fill is 0.
A lazy member is 0, too, unless \\-\\-probe\\-filter names it or
\\-\\-probe\\-stats counts it.
.PP
Probes and records have the three attributes of DTrace: the stability of
the name, the
stability of its meaning, and what it depends on.
"""

PROBES_EXAMPLES = """\
btrfs-walk --probe 'block-*,!block-verify' image.img
bpftrace -c 'btrfs-walk image.img' -e \\
    'usdt:/usr/local/bin/btrfs-walk:btrfswalk:block__read__done { @ = hist(arg4); }'
"""

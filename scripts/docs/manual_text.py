# SPDX-License-Identifier: GPL-2.0-or-later
"""The texts of the manual that do not come from tables of the program."""

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
devices. It lists files, copies them out, verifies the file system, and shows the structures on
disk. It needs no root and no kernel support, never writes to an image, and confines itself before
it opens one. If something is damaged, it reads the rest. It reports unreadable parts on stderr and
in the exit status.

Without a COMMAND, btrfs-walk runs walk. An IMAGE is an image file, a block device, or the address
of a server; several images are the devices of one file system, in any order. A PATH begins at the
top-level subvolume (id 5). Options and operands may have any order; "--" ends the options.
"""

MORE_OPTIONS = """\
.SS Options of all commands
.BR btrfs\\-walk (1)
describes the options for images, older generations, layers, probes and
messages, which all commands have; 'btrfs\\-walk help options' prints them on
one page.
"""

COLUMNS = "The columns for -o, and the members of --json:"

# Name, command ("": all; "image": all that read an image), text.
ENVIRONMENT = (
    ("BTRFS_WALK_XLATOR_PATH", "",
     "Directories with layers in shared objects, separated by colons. They are searched before "
     "the directory of the installation."),
    ("BTRFS_WALK_PROBE", "image",
     "Probes to print, as for --probe, if another program starts btrfs-walk."),
    ("PATH", "image", "Directories with qemu-nbd and nbdkit; see --helpers. Relative directories "
     "are ignored."),
    ("TMPDIR", "image", "Directory for the sockets of such helpers, each in a new directory "
     "(default: /tmp)."),
)

FILES = (
    ("LIBDIR/btrfs-walk/xlator/CATEGORY/NAME.so",
     "Layers that are not built in. LIBDIR is the library directory of the installation."),
    ("DATADIR/btrfs-walk/bpftrace/", "Scripts for bpftrace, and the header that they need."),
)

DIAGNOSTICS = (
    "Results go to stdout, and messages to stderr. A message begins with 'btrfs-walk: ', followed "
    "by 'note: ', 'warning: ' or 'damage: ' unless it ends the command. A message about damage "
    "contains the damaged object, its location, and the error. Control characters in names are "
    "escaped.",
    "If a command takes more than a second and stderr is a terminal, a line shows the progress: "
    "the current step, the bytes done and in total, bytes per second, and the remaining time. "
    "--quiet disables it. On SIGUSR1, a command writes one such line to any stderr, or with "
    "--statedump a statedump.",
    "Damage affects the exit status unless a good mirror replaced it. --quiet omits all messages "
    "except the error that ends a command; --verbose also reports bad mirrors that were replaced.",
)

FINDINGS = (
    "The output consists of findings. Each has a code, which never changes its meaning. These are "
    "the passes in their order, with their codes and severities:")

EXAMPLES = """\
  btrfs-walk disk.img  the path of every regular file
  btrfs-walk ls -l disk.img /etc  a directory
  btrfs-walk extract -C DEST disk.img /users/joe  a folder with its contents
  btrfs-walk info a.img b.img  an overview of a file system on two devices
  btrfs-walk check disk.img  all errors of a file system
"""

XLATORS = """\
.SH NAME
btrfs\\-walk\\-xlators \\- the layers through which btrfs\\-walk reads
.SH DESCRIPTION
.BR btrfs\\-walk (1)
reads an image through a graph of layers, which are called translators
or xlators.
A read enters the graph at the top.
Each layer completes it, or passes it to the layers below it, its subvolumes.
The layers at the bottom read the images.
Logical addresses are addresses of the file system; device addresses are
offsets on one device.
A graph whose address spaces do not match is refused.
.PP
The description of an option is followed by the type of its value.
A size is a number of bytes, with K, M, G, T, P or E for powers of 1024.
A time is a number with its unit: ns, us, ms, s, m or h.
An output is a file to append to, or \\- for stderr.
.SH LAYERS
"""

PROBES = """\
.SH NAME
btrfs\\-walk\\-probes \\- the points at which btrfs\\-walk can be watched
.SH DESCRIPTION
A probe is a named point of the read path.
Each probe has a record, which describes the event.
The options \\-\\-probe, \\-\\-probe\\-stats and others of
.BR btrfs\\-walk (1)
print, filter, count and record the events, without root.
Tracers find the probes as USDT sites of the provider btrfswalk;
there, block\\-read\\-done is called block__read__done.
.PP
A site has six arguments.
arg0 is the address of the record, a structure of btrfs\\-walk/records.h.
arg1 and arg2 are its keys, which are listed below.
arg3 is 0 or a negative error number, arg4 is the time in nanoseconds, and
arg5 is the number of the call in which it happened.
perf counts arguments from 1.
Each site has a semaphore; no record is created until a tracer has raised it.
If a probe does not fill a member, the member is 0.
A lazy member is 0, too, unless \\-\\-probe\\-filter names it or
\\-\\-probe\\-stats counts it.
.PP
Probes and records have the three attributes of DTrace: the stability of
the name, the stability of its meaning, and its dependencies.
"""

PROBES_EXAMPLES = """\
btrfs-walk --probe 'block-*,!block-verify' image.img
bpftrace -c 'btrfs-walk image.img' -e \\
    'usdt:/usr/local/bin/btrfs-walk:btrfswalk:block__read__done { @ = hist(arg4); }'
"""

# SPDX-License-Identifier: GPL-2.0-or-later
"""The manual pages, in the macros of man(7)."""
import re
import textwrap

from docs.words import default_of, prose, wrap

XLATORS_7 = """\
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

PROBES_7 = """\
.SH NAME
btrfs\\-walk\\-probes \\- the points at which btrfs\\-walk can be watched
.SH DESCRIPTION
A probe is a named point of the read path.
Each probe has a record, which says what happened there.
The options \\-\\-probe, \\-\\-probe\\-stats and the like of
.BR btrfs\\-walk (1)
print, filter, count and record them, without root.
Tracers find them in the running program as USDT sites of the provider btrfswalk;
block\\-read\\-done is called block__read__done there.
.PP
A site has six arguments.
arg0 is the address of the record, a structure of btrfs\\-walk/probe_records.h.
arg1 and arg2 are its keys, which are named below.
arg3 is 0 or a negative error number, arg4 is the time in nanoseconds, and arg5 is
the number of the call in which it happened.
perf counts arguments from 1.
Each site has a semaphore, and no record is made until a tracer has raised it.
A member that a probe cannot fill is 0.
A lazy member is 0, too, unless \\-\\-probe\\-filter names it or \\-\\-probe\\-stats counts it.
.PP
Probes and records have the three attributes of DTrace: the stability of the name, the
stability of its meaning, and what it depends on.
"""

PROBES_EXAMPLES = """\
btrfs-walk --probe 'block-*,!block-verify' image.img
bpftrace -e 'usdt:/usr/local/bin/btrfs-walk:btrfswalk:block__read__done { @ = hist(arg4); }' \\
    -c 'btrfs-walk image.img'
"""

ROFF = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti",
        '"': "\\(dq"}


def roff(text):
    """Escapes what roff would take for something else, or would print as another character."""
    text = "".join(ROFF.get(byte, byte) for byte in text)
    return re.sub(r"^\.", r"\\&.", text, flags=re.M)


def roff_title(tables, name, section):
    return (".\\\" Made by scripts/make-docs.\n"
            f'.TH {roff(name.upper())} {section} "" "btrfs\\-walk {roff(tables["version"])}"\n')


def roff_paragraphs(text):
    return roff(text.strip("\n")).replace("\n\n", "\n.PP\n") + "\n"


def roff_see_also(*pages):
    return ".SH SEE ALSO\n" + ",\n".join(f".BR {roff(page)} ({number})"
                                         for page, number in pages) + "\n"


def roff_layer(layer):
    text = f".SS {roff(layer['type'])}\n\\fI{roff(wrap(layer['description'], 72))}\\fR\n"
    for kind, part in prose(layer["page"]):
        if kind == "example":
            text += f".PP\n.RS 4\n.nf\n{roff(textwrap.dedent(part))}\n.fi\n.RE\n"
        else:
            text += f".PP\n{roff(wrap(part, 72))}\n"
    text += f".PP\n{roff(wrap(layer['place'], 72))}\n.PP\n"
    text += "Options:\n" if layer["options"] else "It has no options.\n"
    for option in layer["options"]:
        facts = option["type"] + (": " if option["range"] else "") + option["range"] + "; "
        facts += ("" if option["default"] is None else "default ") + default_of(option)
        text += f".TP\n.B {roff(option['name'])}\n{roff(wrap(option['description'], 72))}\n"
        text += f".br\n{roff(wrap(facts, 72))}\n"
    return text


def roff_options(options):
    text = ""
    for option in options:
        letter, argument = option["letter"], option["argument"] or ""
        text += ".TP\n" + (f"\\fB\\-{letter}\\fR, " if letter else "")
        text += f"\\fB\\-\\-{roff(option['name'])}\\fR"
        text += ("" if argument.startswith("[") or not argument else " ")
        text += (f"\\fI{roff(argument)}\\fR" if argument else "") + "\n"
        text += roff(option["description"]) + "\n"
    return text


def usage(command, default):
    name = f"[{command['name']}]" if command is default else command["name"]
    return f"{name} [OPTIONS] {command['operands']}"


def program_page(tables):
    commands = tables["commands"]
    summary = commands[0]["summary"].rstrip(".")
    text = roff_title(tables, "btrfs-walk", 1)
    text += ".SH NAME\nbtrfs\\-walk \\- " + roff(summary[0].lower() + summary[1:]) + "\n"
    text += ".SH SYNOPSIS\n" + ".br\n".join(f".B btrfs\\-walk\n{roff(usage(c, commands[0]))}\n"
                                            for c in commands)
    text += ".SH COMMANDS\n"
    for command in commands:
        text += f".SS {command['name']}\n{roff(command['summary'])}\n"
        if command["details"].strip():
            text += ".PP\n" + roff_paragraphs(command["details"])
        text += roff_options([option for option in command["options"] if "name" in option])
        if command["filters"]:
            text += ".PP\nIt has the filters as well; see FILTERS.\n"
    text += ".SH FILTERS\n" + roff_options(tables["filter_options"])
    text += ".SH OPTIONS OF COMMANDS THAT READ AN IMAGE\n" + roff_options(tables["image_options"])
    text += ".SH OPTIONS OF ALL COMMANDS\n" + roff_options(tables["common_options"])
    text += ".SH EXIT STATUS\n" + "".join(f".TP\n.B {status}\n{roff(meaning)}\n" for status, meaning
                                          in enumerate(tables["exit_statuses"]))
    text += ".SH EXAMPLES\n.nf\n" + "\n".join(roff(textwrap.dedent(c["examples"]))
                                              for c in commands) + ".fi\n"
    return text + roff_see_also(("btrfs-walk-xlators", 7), ("btrfs-walk-probes", 7))


def xlators_page(tables):
    return (roff_title(tables, "btrfs-walk-xlators", 7) + XLATORS_7
            + "".join(map(roff_layer, tables["layers"])) + roff_see_also(("btrfs-walk", 1)))


def probes_page(tables):
    text = roff_title(tables, "btrfs-walk-probes", 7) + PROBES_7 + ".SH PROBES\n"
    for probe in tables["probes"]:
        text += f".TP\n.B {roff(probe['name'])}\n{roff(wrap(probe['documentation'], 72))}\n.br\n"
        text += f"record {probe['record']}, keys {' and '.join(probe['arguments'][1:3])}; "
        text += probe["stability"] + ("; always recorded" if probe["coarse"] else "") + "\n"
    text += ".SH RECORDS\n"
    for record in tables["records"]:
        text += f".SS {record['name']}\n{roff(wrap(record['documentation'], 72))}; version "
        text += f"{record['version']}, {record['stability']}\n"
        for member in record["members"]:
            lazy = ", lazy" if member["lazy"] else ""
            text += f".TP\n.B {member['name']}\n{roff(wrap(member['documentation'], 72))} "
            text += f"({member['format']}{lazy})\n"
    text += f".SH EXAMPLES\n.nf\n{roff(PROBES_EXAMPLES)}.fi\n"
    return text + roff_see_also(("btrfs-walk", 1), ("btrfs-walk-xlators", 7))


def make(tables):
    """The text of each page, by its name."""
    return {"btrfs-walk.1": program_page(tables), "btrfs-walk-xlators.7": xlators_page(tables),
            "btrfs-walk-probes.7": probes_page(tables)}

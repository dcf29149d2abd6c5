# SPDX-License-Identifier: GPL-2.0-or-later
"""The records as a header for C, and the provider as DTrace would declare it."""
from string import Template

from docs.words import wrap

C_TYPES = {"u64": "uint64_t ", "i64": "int64_t ", "text": "const char *",
           "bytes": "struct bw_bytes ", "stripes": "struct bw_stripes ",
           "names": "struct bw_names ", "record": "struct bw_records ",
           "records": "struct bw_records ", "key": "struct bw_key ",
           "json": "struct bw_json_value "}

RECORDS_H = Template("""\
/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * $purpose
 *
 * Made by scripts/make-docs. Change src/record/records.def.
 */
#ifndef $guard
#define $guard

#include "btrfs-walk/record.h"

/* clang-format off */

#ifdef __cplusplus
extern "C" {
#endif
$structures
#ifdef __cplusplus
}
#endif
#endif
""")
PROBE_RECORDS = """\
The records of probes as structures. Consumers get them in struct bw_probe_event, and arg0 of a
 * USDT site points to one. A member is zero if the probe does not fill it, or if it is lazy and no
 * consumer has selected it. docs/library.md describes how records may change."""
ROW_RECORDS = """\
The records of commands as structures: each row (btrfs-walk/record.h) is written from one.
 * docs/library.md describes how records may change."""


def comment(text, indent, short):
    """A comment in front of a line, or after it if there is room."""
    if short and len(indent + short) + len(text) + 10 <= 100:
        return f"{indent}{short} /**< {text} */\n"
    return (indent + "/** " + wrap(text, 93 - len(indent), indent + " *  ") + " */\n"
            + (indent + short + "\n" if short else ""))


def c_name(name):
    """The name of a member in the structure."""
    return name + "_" if name == "inline" else name


def structure(record):
    text = "\n" + comment(f"Version {record['version']}, {record['stability']}: "
                          f"{record['documentation']}.", "", "")
    text += f"struct bw_{record['name']} {{\n"
    for member in record["members"]:
        text += comment(member["documentation"], "    ",
                        f"{C_TYPES[member['type']]}{c_name(member['name'])};")
    return text + "};\n"


def records_headers(tables):
    """The text of each header, by its name: what probes deliver, and all others."""
    fired = {probe["record"] for probe in tables["probes"]}
    return {name + ".h": RECORDS_H.substitute(
                purpose=purpose, guard=f"BTRFS_WALK_{name.upper()}_H",
                structures="".join(structure(record) for record in tables["records"]
                                   if (record["name"] in fired) == of_probes
                                   and not record["on_disk"]))
            for name, purpose, of_probes in (("probe_records", PROBE_RECORDS, True),
                                             ("row_records", ROW_RECORDS, False))}


D_HEAD = """\
/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The provider btrfswalk in the language of DTrace. This is documentation: nothing is built from
 * this file. The records are structures of btrfs-walk/probe_records.h (blockinfo_t is struct
 * bw_blockinfo). An argument is 0 if the probe has no translation for it.
 *
 * Made by scripts/make-docs. Change src/probe/probes.def and src/record/records.def.
 */

"""
D_TYPES = {"u64": "uint64_t ", "i64": "int64_t ", "text": "char *"}
# How much DTrace lets one trust in each part of a triplet, from least to most.
STABILITIES = ["Internal", "Private", "Obsolete", "External", "Unstable", "Evolving", "Stable",
               "Standard", "Unknown", "CPU", "Platform", "Group", "ISA", "Common"]


def provider(tables):
    text = D_HEAD
    members = {(record["name"], member["name"]): member
               for record in tables["records"] for member in record["members"]}
    for record in tables["records"]:
        if any(probe["record"] == record["name"] for probe in tables["probes"]):
            name = record["name"]
            text += f"typedef struct bw_{name} {name}_t; /* {record['documentation']} */\n"
    text += "\nprovider btrfswalk {"
    for probe in tables["probes"]:
        arguments = ", ".join(f"{D_TYPES[members[probe['record'], name]['type']]}{name}"
                            for name in probe["arguments"][1:])
        text += f"\n    /* {probe['name']}: {probe['documentation']} */\n"
        text += f"    probe {probe['usdt']}({probe['record']}_t *record,\n{' ' * 8}{arguments});\n"
    text += "};\n\n"
    # One triplet for all probes: the least of them.
    least = "/".join(min(parts, key=STABILITIES.index)
                     for parts in zip(*(p["stability"].split("/") for p in tables["probes"])))
    for part in ("provider", "module", "function", "name", "args"):
        hidden = part in ("module", "function")
        text += f"#pragma D attributes {'Private/Private/Unknown' if hidden else least} "
        text += f"provider btrfswalk {part}\n"
    return text

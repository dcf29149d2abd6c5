# SPDX-License-Identifier: GPL-2.0-or-later
"""The provider as DTrace would declare it."""

D_HEAD = """\
/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The provider btrfswalk in the language of DTrace. This is documentation: nothing is built from
 * this file. The records are structures of btrfs-walk/records.h (blockinfo_t is struct
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

# SPDX-License-Identifier: GPL-2.0-or-later
"""The manual pages, in the macros of man(7): one for the program, one for each command, and those
of layers and probes. What is not in the tables of the program is in manual_text.py."""
import re

from docs import manual_text
from docs.words import default_of, prose, wrap

ROFF = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti",
        '"': "\\(dq"}
WIDTH = 78  # of the source: mandoc warns of lines above 80


def no_requests(text):
    return re.sub(r"^\.", r"\\&.", text, flags=re.M)


def roff(text):
    """Escapes what roff would take for something else, or would print as another character."""
    return no_requests("".join(ROFF.get(byte, byte) for byte in text))


def filled(text):
    return no_requests(wrap(roff(text), WIDTH)) + "\n"


def literal(text):
    """Lines as they are."""
    lines = text.strip("\n").split("\n")
    margin = min(len(line) - len(line.lstrip(" ")) for line in lines if line.strip())
    body = "\n".join(line[margin:] for line in lines)
    return f".PP\n.RS 2\n.nf\n{roff(body)}\n.fi\n.RE\n"


def paragraphs(text):
    """The paragraphs of --help: those with indented lines are printed as they are."""
    result = ""
    for part in re.split(r"\n\n+", text.strip("\n")):
        is_literal = any(line.startswith(" ") for line in part.split("\n"))
        result += literal(part) if is_literal else ".PP\n" + filled(part)
    return result


def section(name, body):
    """A section; its first paragraph needs no .PP."""
    return f".SH {name}\n" + re.sub(r"\A\.PP\n", "", body) if body else ""


def definitions(rows):
    """Words in bold, each with its explanation, which is roff."""
    return "".join(f".TP\n.B {roff(word)}\n{body}" for word, body in rows)


def title(tables, name, number):
    return (".\\\" Made by scripts/make-docs.\n"
            f".TH {roff(name.upper())} {number} {tables['date']} "
            f'"btrfs\\-walk {roff(tables["version"])}" "btrfs\\-walk"\n')


def see_also(*pages):
    return ".SH SEE ALSO\n" + ",\n".join(f".BR {roff(page)} ({number})"
                                         for page, number in pages) + "\n"


def name_section(name, summary):
    summary = summary.rstrip(".")
    return ".SH NAME\n" + filled(f"{name} - {summary[0].lower() + summary[1:]}")


# Commands

def option_text(option):
    letter, argument = option["letter"], option["argument"] or ""
    text = ".TP\n" + (f"\\fB\\-{letter}\\fR, " if letter else "")
    text += f"\\fB\\-\\-{roff(option['name'])}\\fR"
    text += "" if argument.startswith("[") or not argument else " "
    text += (f"\\fI{roff(argument)}\\fR" if argument else "") + "\n"
    return text + filled(option["description"])


def options_text(options):
    """Options below their headings; those that have none come first."""
    groups = {}
    for option in options:
        groups.setdefault(option["heading"] or "", []).append(option)
    return "".join((f".SS {roff(heading)}\n" if heading else "")
                   + "".join(map(option_text, groups[heading]))
                   for heading in sorted(groups, key=bool))


def synopsis(command):
    return (f".SY btrfs\\-walk\\ {roff(command['name'])}\n"
            f".RI [ OPTIONS ]\n{roff(command['operands'])}\n.YS\n")


def statuses(rows):
    return section("EXIT STATUS", definitions((str(row["status"]), filled(row["meaning"]))
                                              for row in rows))


def environment(command):
    return section("ENVIRONMENT", definitions(
        (name, filled(text)) for name, needs, text in manual_text.ENVIRONMENT
        if needs in ("", command["name"]) or (needs == "image" and not command["needs_no_image"])))


def files():
    return section("FILES", definitions((name, filled(text)) for name, text in manual_text.FILES))


def findings(passes):
    """What check can say, in place of a list of messages."""
    text = ".PP\n" + filled(manual_text.FINDINGS)
    for one in passes:
        text += f".SS {roff('Pass ' + one['name'])}\n{filled(one['description'])}"
        text += definitions((code["word"], filled(f"{code['description']} ({code['severity']})"))
                            for code in one["codes"])
    return text


def diagnostics(tables, command):
    text = "".join(".PP\n" + filled(part) for part in manual_text.DIAGNOSTICS)
    return section("DIAGNOSTICS",
                   text + (findings(tables["check"]) if command["name"] == "check" else ""))


def examples(text):
    """The lines of --help: a command, and behind two blanks what it does."""
    result = ""
    for line in text.strip("\n").split("\n"):
        parts = re.split(r"  +", line.strip(), maxsplit=1)
        if len(parts) == 2 and not line.startswith("   "):
            result += f".TP\n.B {roff(parts[0])}\n{filled(parts[1])}"
        else:
            result += f".PP\n.B {roff(line.strip())}\n"
    return section("EXAMPLES", result)


def columns(tables, command):
    record = next((one for one in tables["records"] if one["name"] == command["record"]), None)
    return section("COLUMNS", ".PP\n" + filled(manual_text.COLUMNS) + definitions(
        (member["name"], filled(member["documentation"]))
        for member in record["members"])) if record else ""


def command_page(tables, command):
    name, here = f"btrfs-walk-{command['name']}", command["topic"]
    others = [one["name"] for one in tables["commands"]
              if one["topic"] == here and one is not command]
    more = "" if command["needs_no_image"] else manual_text.MORE_OPTIONS
    text = title(tables, name, 1) + name_section(name, command["summary"])
    text += section("SYNOPSIS", synopsis(command))
    text += section("DESCRIPTION", ".PP\n" + filled(command["summary"])
                    + paragraphs(command["details"]))
    own = options_text(command["all_options"])
    if command["needs_no_image"]:
        own += options_text([dict(one, heading=None) for one in tables["common_options"]])
    text += section("OPTIONS", own + more) + columns(tables, command)
    text += statuses(command["exit_statuses"] or tables["exit_statuses"]) + environment(command)
    text += files() + diagnostics(tables, command) + examples(command["examples"])
    return text + see_also(("btrfs-walk", 1), *((f"btrfs-walk-{one}", 1) for one in others),
                           ("btrfs-walk-xlators", 7), ("btrfs-walk-probes", 7))


def command_list(commands):
    text = ""
    for topic in dict.fromkeys(command["topic"] for command in commands):
        text += f".SS {roff(topic)}\n"
        text += "".join(f".TP\n.BR btrfs\\-walk\\-{roff(command['name'])} (1)\n"
                        + filled(command["summary"]) for command in commands
                        if command["topic"] == topic)
    return text


def program_page(tables):
    commands = tables["commands"]
    every = {"name": None, "needs_no_image": False}
    text = title(tables, "btrfs-walk", 1)
    text += name_section("btrfs-walk", manual_text.SUMMARY) + manual_text.SYNOPSIS
    text += section("DESCRIPTION", paragraphs(manual_text.DESCRIPTION))
    text += section("COMMANDS", command_list(commands))
    text += section("OPTIONS", options_text(
        tables["image_options"] + tables["answer_options"] + tables["common_options"]))
    text += statuses(tables["exit_statuses"]) + environment(every) + files()
    text += diagnostics(tables, every) + examples(manual_text.EXAMPLES)
    return text + see_also(("btrfs-walk-xlators", 7), ("btrfs-walk-probes", 7), ("btrfs", 5),
                           ("btrfs-check", 8))


# Layers and probes

def layer(one):
    text = f".SS {roff(one['type'])}\n.I {roff(one['description'])}\n"
    for kind, part in prose(one["page"]):
        text += literal(part) if kind == "example" else ".PP\n" + filled(part)
    text += ".PP\n" + filled(one["place"]) + ".PP\n"
    text += "Options:\n" if one["options"] else "It has no options.\n"
    for option in one["options"]:
        facts = option["type"] + (": " if option["range"] else "") + option["range"] + "; "
        facts += ("" if option["default"] is None else "default ") + default_of(option)
        text += f".TP\n.B {roff(option['name'])}\n{filled(option['description'])}"
        text += f".br\n{filled(facts)}"
    return text


def xlators_page(tables):
    return (title(tables, "btrfs-walk-xlators", 7) + manual_text.XLATORS
            + "".join(map(layer, tables["layers"]))
            + see_also(("btrfs-walk", 1), ("btrfs-walk-graph", 1), ("btrfs-walk-xlators", 1)))


def probe(one):
    facts = f"record {one['record']}, keys {' and '.join(one['arguments'][1:3])}; "
    facts += one["stability"] + ("; always recorded" if one["coarse"] else "")
    return one["name"], f"{filled(one['documentation'])}.br\n{filled(facts)}"


def record(one):
    facts = f"{one['documentation']}; version {one['version']}, {one['stability']}"
    return f".SS {one['name']}\n{filled(facts)}" + definitions(
        (member["name"], filled(f"{member['documentation']} ({member['format']}"
                                f"{', lazy' if member['lazy'] else ''})"))
        for member in one["members"])


def probes_page(tables):
    return (title(tables, "btrfs-walk-probes", 7) + manual_text.PROBES
            + section("PROBES", definitions(map(probe, tables["probes"])))
            + section("RECORDS", "".join(map(record, tables["records"])))
            + section("EXAMPLES", literal(manual_text.PROBES_EXAMPLES))
            + see_also(("btrfs-walk", 1), ("btrfs-walk-xlators", 7)))


def make(tables):
    """The text of each page, by its name."""
    return {"btrfs-walk.1": program_page(tables), "btrfs-walk-xlators.7": xlators_page(tables),
            "btrfs-walk-probes.7": probes_page(tables),
            **{f"btrfs-walk-{command['name']}.1": command_page(tables, command)
               for command in tables["commands"]}}

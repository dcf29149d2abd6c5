# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages in Markdown: docs/options.md, docs/xlators and the tables of docs/probes/README.md."""
import re
from pathlib import Path

from docs.words import default_of, file_of, prose, wrap

MARK = "<!-- Made by scripts/make-docs. Change the text in the source of the layer. -->"


OPTIONS = """\
# Common options

All commands that open an image have these options; those under "Columns and JSON" belong to the
commands that print records. `btrfs-walk help options` prints this list. [Listing files](listing.md)
and [Disks](disks.md) explain many of them. Commands that list rows, such as `du`, `diff` and
`subvolumes`, also have `--sort COLUMN` (`-COLUMN`: the largest first) and `--top N`.

<!-- Made by scripts/make-docs. -->
"""


def escaped(text):
    """Escapes words so that Markdown shows them as they are."""
    def escape(match):
        word = re.sub(r"([\\`*_~<>\[\]|&])", r"\\\1", match[0])
        # What would begin a list, a heading or a ruler at the beginning of a line.
        if re.fullmatch(r"[-+=#]+", word):
            return "\\" + word
        return re.sub(r"^(\d+)([.)])$", r"\1\\\2", word)
    return re.sub(r"\S+", escape, text)


def row(*cells):
    return "| " + " | ".join(cells) + " |\n"


def layer_page(layer):
    text = f"# {layer['type']}: {escaped(layer['description'])}\n"
    for kind, part in prose(layer["page"]):
        text += "\n" + (part if kind == "example" else escaped(wrap(part, 100))) + "\n"
    text += "\n" + escaped(wrap(layer["place"], 100)) + "\n"
    if layer["options"]:
        text += "\n## Options\n\n" + row("option", "type", "default", "allowed", "description")
        text += row(*["---"] * 5)
    else:
        text += "\nIt has no options.\n"
    for option in layer["options"]:
        text += row(f"`{option['name']}`", option["type"], escaped(default_of(option)),
                    escaped(option["range"] or "any"), escaped(option["description"]))
    return text + f"\n[All layers](README.md)\n\n{MARK}\n"


def options_page(tables):
    """The options that commands share: a table for each heading."""
    text = OPTIONS
    heading = None
    for option in [*tables["image_options"], *tables["answer_options"], *tables["common_options"]]:
        if option["heading"] != heading:
            heading = option["heading"]
            text += f"\n## {heading}\n\n" + row("option", "meaning") + row("---", "---")
        argument = option["argument"] or ""
        name = f"--{option['name']}" + ("" if argument[:1] in ("", "[") else " ") + argument
        letter = f"`-{option['letter']}`, " if option["letter"] else ""
        text += row(f"{letter}`{name}`".replace("|", "\\|"), escaped(option["description"]))
    return text


def layer_list(layers):
    return "".join(f"- [{layer['type']}]({file_of(layer)}): "
                   + escaped(wrap(layer["description"], 98, "  ")) + "\n" for layer in layers)


def probe_tables(tables):
    text = "\n## Probes\n\n"
    text += row("probe", "USDT", "record", "arg1", "arg2", "always recorded", "stability", "when")
    text += row(*["---"] * 8)
    for probe in tables["probes"]:
        text += row(f"`{probe['name']}`", f"`{probe['usdt']}`",
                    f"[{probe['record']}](#{probe['record']})", *probe["arguments"][1:3],
                    "yes" if probe["coarse"] else "", probe["stability"],
                    escaped(probe["documentation"]))
    text += "\n## Records\n"
    return text + "".join(record_table(tables, record) for record in tables["records"])


def record_table(tables, record):
    probes = [probe for probe in tables["probes"] if probe["record"] == record["name"]]
    heads = ["member", "type", "shown as", "lazy", "stability", "not with", "meaning"]
    if not probes:
        heads.remove("not with")
    text = f"\n### {record['name']}\n\n{escaped(record['documentation'])}; version "
    text += f"{record['version']}, {record['stability']}.\n\n"
    text += row(*heads) + row(*["---"] * len(heads))
    for member in record["members"]:
        missing = [p["name"] for p in probes if member["name"] not in p["translated"]]
        text += row(f"`{member['name']}`", member["type"], member["format"],
                    "yes" if member["lazy"] else "", member["stability"],
                    *([", ".join(missing)] if probes else []), escaped(member["documentation"]))
    return text


def item_members(members, prefix="", case=""):
    """The rows of a structure; those of the structures in it follow the member that they are."""
    text = ""
    for member in members:
        if "one_of" in member:
            for one in member["one_of"]:
                text += item_members(one["members"], prefix, one["description"])
            continue
        name, words = prefix + member["name"], escaped(member["description"])
        if member.get("values"):
            words += ": " + ", ".join(f"`{value}`" for value in member["values"])
        text += row(f"`{name}`", member["type"], escaped(case), words)
        if "of" in member:
            inner = name + ("[]." if member["type"] == "array" else ".")
            text += item_members(member["of"]["members"], inner, case)
    return text


def item_types(items):
    text = ""
    for item in items:
        text += f"\n## {item['type']}\n\nType {item['number']}: {escaped(item['description'])}.\n"
        rows = item_members(item["members"])
        if rows:
            text += "\n" + row("member", "type", "only in", "meaning") + row(*["---"] * 4) + rows
    return text


def check_tables(passes):
    text = ""
    for one in passes:
        when = {"quick": "", "full": "not with --quick", "data": "only with --data"}[one["when"]]
        about = one["description"][0].upper() + one["description"][1:]
        about += f" ({when})." if when else "."
        text += f"\n### {one['name']}\n\n{escaped(wrap(about, 98))}\n"
        if one["codes"]:
            text += "\n" + row("code", "severity", "meaning") + row(*["---"] * 3)
        for code in one["codes"]:
            text += row(f"`{code['word']}`", code["severity"], escaped(code["description"]))
    return text


def kernel_messages(messages):
    text = ""
    for one in messages:
        text += f"\n## {one['word']}\n\n{wrap(one['explanation'] + ' ' + one['advice'], 98)}\n\n"
        for pattern in one["patterns"]:
            line = re.sub(r"\{(\w*)\}", lambda name: name[1].upper() or "...", pattern)
            text += f"    {line}\n"
    return text


def notes_of_script(path):
    """The comment at the head of a script, which is Markdown, without the marks of comments."""
    lines = []
    for line in path.read_text().split("\n")[1:]:
        if "SPDX-License" in line:
            continue
        if line == " */" or not re.match(r"#| \*|/\*", line):
            break
        if not line.startswith("/*"):
            lines.append(re.sub(r"^( \*|#) ?", "", line))
    return "\n".join(lines) + "\n"


def scripts(folder):
    names = [f"bpftrace/{name}.bt" for name in ("block-latency", "retries", "layer-latency",
                                               "pathsnoop", "codec-throughput")]
    return "".join(f"\n### {Path(name).name}\n\n[scripts/{name}](../../scripts/{name})\n\n"
                   + notes_of_script(folder / name)
                   for name in names + ["perf-probes", "gdb-probes"])


def command_table(commands):
    text, topic = row("command", "purpose") + row("---", "---"), None
    for command in commands:
        if command["topic"] != topic:
            topic = command["topic"]
            text += row(f"**{topic}**", "")
        text += row(f"`{command['name']}`", escaped(command["summary"]))
    return text


def status_rows(statuses):
    return row("status", "meaning") + row("---", "---") + "".join(
        row(str(one["status"]), escaped(one["meaning"])) for one in statuses)


def status_table(tables):
    """The exit statuses of most commands, then those of each command that has others."""
    text = row("command", "status", "meaning") + row("---", "---", "---")
    for name, statuses in [("most", tables["exit_statuses"])] + [
            (f"`{one['name']}`", one["exit_statuses"]) for one in tables["commands"]]:
        for status in statuses:
            text += row(name, str(status["status"]), escaped(status["meaning"]))
            name = ""
    return text


def examples(folder, first):
    """The first example, and all others with headings."""
    text, begin = "", folder / first
    for path in sorted(folder.glob("*.c")) + sorted(folder.glob("*.py")):
        if path == begin:
            continue
        language = path.suffix[1:].replace("py", "python")
        source = path.read_text().partition("\n")[2]  # without the licence
        text += f"\n### examples/{path.name}\n\n```{language}\n{source}```\n"
    return "\n```c\n" + begin.read_text().partition("\n")[2] + "```\n", text

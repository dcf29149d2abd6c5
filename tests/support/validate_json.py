# SPDX-License-Identifier: GPL-2.0-or-later
"""validate_json.py SCHEMA RECORD < ROWS: compares rows of JSON, one a line or an array, with a
record of docs/schema.json; a first row of the record "header" is one of headerinfo. Prints what is
wrong, and fails; also without rows. It knows the words that scripts/docs/schema.py uses, and
refuses others.

validate_json.py SCHEMA FOLDER: the same for files in the folder, which may have no rows, or only
the first ones. The first line of each file has the arguments of the program, from which the record
follows."""
import json
import pathlib
import re
import sys

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int,
         "number": (int, float)}
WORDS = {"type", "properties", "required", "additionalProperties", "items", "anyOf", "pattern",
         "minimum", "description", "$ref"}


def is_a(value, name):
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def check_object(value, schema, schemas, place):
    known = schema.get("properties", {})
    for name in schema.get("required", []):
        if name not in value:
            yield f"{place}: no {name}"
    for name, member in value.items():
        if name in known:
            yield from check(member, known[name], schemas, f"{place}.{name}")
        elif schema.get("additionalProperties") is False:
            yield f"{place}.{name} is not in the schema"


def check(value, schema, schemas, place):
    """Yields what is wrong."""
    if set(schema) - WORDS:
        yield f"{place}: the schema has unknown words"
    if "$ref" in schema:
        yield from check(value, schemas[schema["$ref"].split("/")[-1]], schemas, place)
    choices = schema.get("anyOf", [])
    if choices and all(list(check(value, one, schemas, place)) for one in choices):
        yield f"{place} is {value!r}, and none of what it may be"
    if "type" in schema and not is_a(value, schema["type"]):
        yield f"{place} is {value!r}, and no {schema['type']}"
    elif isinstance(value, dict):
        yield from check_object(value, schema, schemas, place)
    elif isinstance(value, list):
        for i, one in enumerate(value):
            yield from check(one, schema.get("items", {}), schemas, f"{place}[{i}]")
    elif "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{place} is {value!r}"
    elif value < schema.get("minimum", value):
        yield f"{place} is {value!r}"


# The records that options of a command, or its operands, select instead of that of the command.
OTHERS = {
    ("space", "--shared"): "sharedinfo",
    ("space", "--free-if"): "freeinfo",
    ("space", "--free"): "freestepinfo",
    ("du", "--by"): "filesuminfo",
    ("du", "--shared-with"): "sharedfileinfo",
    ("tree-stats", "--items"): "itemsinfo",
    ("qgroups", "--status"): "quotainfo",
    ("roots", "--trees"): "statetreeinfo",
    ("rescue", "--list"): "rescuefileinfo",
    ("rescue", "--dmesg"): "kernelmessageinfo",
    ("free", "--sizes"): "freesizeinfo",
    ("map", "--used"): "usedinfo",
    ("devices", "--list"): "lostfileinfo",
    ("devices", "--without"): "devicelossinfo",
}


def check_row(row, record, schemas, is_first, place):
    record = "headerinfo" if is_first and row.get("record") == "header" else record
    return check(row, schemas[record], schemas, f"{place}{record}")


def record_of(arguments, rows, commands):
    """The record that the program wrote; None if it is not in the schema."""
    if arguments[0] == "blackbox":
        return None
    command = arguments[0] if arguments[0] in commands else "walk"
    if command == "dump" and rows and "command" in rows[0]:
        return "commandinfo"
    for (name, option), record in OTHERS.items():
        if command == name and option in arguments:
            return record
    return commands[command]["$ref"].split("/")[-1]


def check_file(path, document):
    """Yields what is wrong. The rows of an array are lines, too."""
    first, _, rest = path.read_bytes().partition(b"\n")
    lines = [first.decode(errors="replace")] + rest.decode().replace("\0", "\n").split("\n")
    arguments = lines[0].split()
    texts = [line.removesuffix(",").removesuffix("]").removeprefix("[") for line in lines[1:]]
    rows = [json.loads(text) for text in texts if text]
    record = record_of(arguments, rows, document["commands"])
    for i, row in enumerate(rows if record else []):
        yield from check_row(row, record, document["$defs"], i == 0, f"{lines[0]}: row {i}: ")


def check_rows(text, record, schemas):
    rows = json.loads(text) if text.startswith("[\n") else list(map(json.loads, text.splitlines()))
    if not rows:
        yield "no rows"
    for i, row in enumerate(rows):
        yield from check_row(row, record, schemas, i == 0, f"row {i}: ")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        document = json.load(file)
    folder = pathlib.Path(sys.argv[2])
    if folder.is_dir():
        wrong = [fault for path in sorted(folder.iterdir()) for fault in check_file(path, document)]
    else:
        wrong = list(check_rows(sys.stdin.read(), sys.argv[2], document["$defs"]))
    print(*wrong[:20], sep="\n")
    sys.exit(1 if wrong else 0)


main()

# SPDX-License-Identifier: GPL-2.0-or-later
"""validate_json.py SCHEMA RECORD < ROWS: compares rows of JSON, one a line or an array, with a
record of docs/schema.json; a first row of the record "header" is one of headerinfo. Prints what is
wrong, and fails; also without rows. It knows the words that scripts/docs/schema.py uses, and
refuses others."""
import json
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


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        schemas = json.load(file)["$defs"]
    text = sys.stdin.read()
    rows = json.loads(text) if text.startswith("[\n") else list(map(json.loads, text.splitlines()))
    wrong = [] if rows else ["no rows"]
    for i, row in enumerate(rows):
        is_header = i == 0 and row.get("record") == "header"
        record = "headerinfo" if is_header else sys.argv[2]
        wrong += check(row, schemas[record], schemas, f"{record} {i}")
    print(*wrong[:20], sep="\n")
    sys.exit(1 if wrong else 0)


main()

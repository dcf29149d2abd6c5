# SPDX-License-Identifier: GPL-2.0-or-later
"""The JSON Schema of all records."""
import json

UUID = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
TIME = "^-?[0-9]{4,}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"

# Names: UTF-8, or the bytes in base64.
NAME = {"anyOf": [{"type": "string"},
                  {"type": "object", "properties": {"bytes": {"type": "string"}},
                   "required": ["bytes"], "additionalProperties": False}]}
FORMATS = {
    "bool": {"type": "boolean"},
    "flags": {"type": "array", "items": {"type": "string"}},
    "word": {"type": "string"},
    "time": {"anyOf": [{"type": "integer"}, {"type": "number"},
                       {"type": "string", "pattern": TIME}]},
    "uuid": {"type": "string", "pattern": UUID},
    "list": {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]}},
}
TYPES = {
    "u64": {"type": "integer", "minimum": 0},
    "i64": {"type": "integer"},
    "text": {"type": "string"},
    "bytes": {"type": "string"},
    "stripes": {"type": "array", "items": {
        "type": "object", "required": ["devid", "offset"], "additionalProperties": False,
        "properties": {"devid": {"type": "integer"}, "offset": {"type": "integer"}}}},
    "names": {"type": "array", "items": NAME},
    "key": {"type": "object", "required": ["objectid", "type", "offset"],
            "additionalProperties": False,
            "properties": {"objectid": {"type": "integer"}, "type": {"type": "string"},
                           "offset": {"type": "integer"}}},
    "json": {"type": "object"},
}


def value(member, records):
    """The schema of a member's value. Structures on disk that are no records are any objects."""
    if member["type"] in ("record", "records"):
        name = member.get("of")
        one = {"$ref": f"#/$defs/{name}"} if name in records else {"type": "object"}
        return one if member["type"] == "record" else {"type": "array", "items": one}
    if member["type"] == "bytes" and member["format"] != "uuid":
        return TYPES["bytes"]
    return FORMATS.get(member["format"]) or TYPES[member["type"]]


def record(described, records):
    properties = {}
    for member in described["members"]:
        properties[member["name"]] = {"description": member["documentation"],
                                      **value(member, records)}
        if member["type"] in ("text", "bytes") and member["format"] == "name":
            properties.setdefault(member["name"] + "_bytes", {
                "description": f"{member['name']} in base64, if it is not UTF-8",
                "type": "string"})
    return {"description": described["documentation"], "type": "object",
            "properties": properties, "additionalProperties": False}


def make(tables):
    """The text of docs/schema.json. Members may be absent, so none is required."""
    records = {described["name"] for described in tables["records"]}
    commands = {command["name"]: {"$ref": f"#/$defs/{command['record']}"}
                for command in tables["commands"] if command["record"]}
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "JSON of btrfs-walk",
        "description": "Each object that a command writes with --json is one of $defs. "
                       "#/commands has the record of each command, which options such as "
                       "--trees change.",
        "version": tables["schema"],
        "commands": commands,
        "$defs": {described["name"]: record(described, records) for described in tables["records"]},
    }
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"

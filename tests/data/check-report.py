# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a report of `btrfs-walk check` is what those who read it expect.

    check-report.py JUNIT SARIF

Of JUnit, the figures have to agree with the cases; of SARIF 2.1.0, the members that are there have
to be as it demands. Prints the codes that failed in JUnit, each with its number, then "|", then
those of the errors in SARIF."""
import collections
import json
import sys
import xml.etree.ElementTree


def junit(text):
    failed = []
    for suite in xml.etree.ElementTree.fromstring(text):
        cases = suite.findall("testcase")
        figures = {"tests": len(cases),
                   **{name + suffix: sum(c.find(name) is not None for c in cases)
                                           for name, suffix in (("failure", "s"), ("error", "s"),
                                                                ("skipped", ""))}}
        for name, figure in figures.items():
            assert int(suite.get(name)) == figure, (suite.get("name"), name)
        failed += [case.get("name") for case in cases if case.find("failure") is not None
                   or case.find("error") is not None]
    return failed


def only(value, required, optional=()):
    assert isinstance(value, dict), value
    assert set(required) <= set(value) <= {*required, *optional}, value
    return value


def message(value):
    assert isinstance(only(value, ["text"])["text"], str)


def location(value):
    only(value, ["physicalLocation"], ["logicalLocations"])
    place = only(value["physicalLocation"], ["artifactLocation"], ["region"])
    artifact = only(place["artifactLocation"], ["uri"], ["uriBaseId"])
    assert artifact["uri"].isascii() and " " not in artifact["uri"]
    assert artifact.get("uriBaseId", "FILESYSTEM") == "FILESYSTEM"
    for number in only(place.get("region", {}), [], ["byteOffset", "byteLength"]).values():
        assert isinstance(number, int) and number >= 0
    for logical in value.get("logicalLocations", []):
        only(logical, ["fullyQualifiedName", "kind"])


def sarif(text):
    log = only(json.loads(text), ["$schema", "version", "runs"])
    assert log["version"] == "2.1.0"
    [run] = log["runs"]
    only(run, ["tool", "originalUriBaseIds", "results", "invocations", "properties"])
    driver = only(only(run["tool"], ["driver"])["driver"], ["name", "version", "rules"])
    rules = [only(rule, ["id", "shortDescription", "defaultConfiguration", "properties"])["id"]
             for rule in driver["rules"]]
    assert len(set(rules)) == len(rules) > 10
    for rule in driver["rules"]:
        message(rule["shortDescription"])
        assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note")
    for result in run["results"]:
        only(result, ["ruleId", "ruleIndex", "level", "message", "locations", "properties"])
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        message(result["message"])
        assert result["locations"]
        for one in result["locations"]:
            location(one)
    [invocation] = run["invocations"]
    only(invocation, ["executionSuccessful", "exitCode"])
    assert isinstance(invocation["executionSuccessful"], bool)
    return [result["ruleId"] for result in run["results"] if result["level"] == "error"]


def codes(read, name):
    with open(name, encoding="utf-8") as file:
        return [f"{code}:{number}"
                for code, number in sorted(collections.Counter(read(file.read())).items())]


print(*codes(junit, sys.argv[1]), "|", *codes(sarif, sys.argv[2]))

# SPDX-License-Identifier: GPL-2.0-or-later
"""What all writers need: lines of words, and the facts of a layer."""
import re
import textwrap


def wrap(text, width, indent=""):
    """The words of a text in lines of at most `width` columns; all but the first are indented."""
    return "\n".join(textwrap.wrap(text, width, subsequent_indent=indent,
                                   break_long_words=False, break_on_hyphens=False))


def prose(page):
    """The parts of a layer's page: ("paragraph", words) or ("example", lines)."""
    for part in re.split(r"\n\n+", page or ""):
        lines = part.strip("\n").split("\n")
        while lines:
            example = lines[0].startswith("    ")
            count = next((i for i, line in enumerate(lines)
                          if line.startswith("    ") != example), len(lines))
            yield ("example" if example else "paragraph"), "\n".join(lines[:count])
            lines = lines[count:]


def file_of(layer):
    return layer["type"].replace("/", "-") + ".md"


def default_of(option):
    value = option["default"]
    return "must be given" if value is None else value or "empty"

# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds possible changes of a line of C, without parsing it. Ignores comments and strings, and
mutants that do not compile or compile to the same code."""
import re

SWAPS = {
    "<": ["<=", ">="], "<=": ["<", ">"], ">": [">=", "<="], ">=": [">", "<"], "==": ["!="],
    "!=": ["=="],
    "&&": ["||"], "||": ["&&"], "+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "%": ["/"],
    "&": ["|"], "|": ["&"],
    "<<": [">>"], ">>": ["<<"], "+=": ["-="], "-=": ["+="], "|=": ["&="], "++": ["--"],
    "--": ["++"],
}
# Operators have spaces around them in this style, those of one operand have none.
BINARY = re.compile(r"(?<= )(<<|>>|<=|>=|==|!=|&&|\|\||\+=|-=|\|=|[<>+\-*/%&|])(?= )")
UNARY = re.compile(r"\+\+|--")
NUMBER = re.compile(r"(?<![\w.\"'%])(0x[0-9a-fA-F]+|\d+)(?![\w.])")
CONDITION = re.compile(r"\b(if|while) \((.*)\)( \{)?$")
STATEMENT = re.compile(r"^\s+(?!return\b|goto\b|case\b|else\b|struct\b|const\b|static\b|BW_AUTO)"
                       r"[\w>.\-\[\]*&()!]+"
                       r"(\(.*\)| [+\-|&]?= .*|\+\+|--);$")
SKIPPED = re.compile(r"^\s*(#|\*|/\*|//|\}|\{)|_Static_assert|static_assert|__attribute__|"
                     r"bw_error_no_memory|NOLINT")


def needs_sanitizer(kind, line, after):
    """Whether only a memory leak or a lack of memory could show the change: CI runs all tests with
    sanitizers."""
    frees = re.search(r"\b\w*(free|close|destroy)\w*\(", line if kind == "statement" else after)
    return bool(frees and kind in ("statement", "condition")
                or ("if (" in line and "no_memory()" in after))


def means_the_same(line, changed):
    """Whether a change has no effect: a larger allocation, another choice of two equal numbers, or
    another number of which only the sign counts."""
    lesser = r"(\b[\w>.\-]+) ([<>])=? ([\w>.\-]+) \? (\1 : \3|\3 : \1);"
    was, now = re.search(lesser, line), re.search(lesser, changed)
    more = re.search(r"(?<=alloc\()(1(?=, )|.*\+ (\(size_t\))?1(?=[,)]))", line)
    sign = re.search(r"\? -1 : 1;$", line)
    return more and changed == line[:more.end() - 1] + "2" + line[more.end():] or \
        sign and re.search(r"\? -[12] : [12];$", changed) or \
        was and now and was[2] == now[2]


def blank(line):
    """The line with everything in quotes and comments as blanks, so that offsets stay the same."""
    line = re.sub(r"/\*.*?(\*/|$)", lambda match: " " * len(match.group()), line)
    return re.sub(r"\"(\\.|[^\"\\])*\"|'(\\.|[^'\\])*'", lambda match: "_" * len(match.group()),
                  line)


def replace(line, start, end, text):
    return line[:start] + text + line[end:]


def numbers(line, plain):
    for match in NUMBER.finditer(plain):
        value = int(match.group(), 8 if re.match(r"0\d", match.group()) else 0)
        yield "constant", replace(line, *match.span(), str(value + 1))
        if value:
            yield "constant", replace(line, *match.span(), str(value - 1))


def operators(line, plain):
    for match in BINARY.finditer(plain):
        name = "bound" if match.group() in ("<", "<=", ">", ">=") else "operator"
        for other in SWAPS[match.group()]:
            yield name, replace(line, *match.span(), other)
    for match in UNARY.finditer(plain):
        yield "operator", replace(line, *match.span(), SWAPS[match.group()][0])
    for match in re.finditer(r"!(?=[\w(*])", plain):
        yield "condition", replace(line, *match.span(), "")


def conditions(line, plain):
    match = CONDITION.search(plain)
    if match:
        start, end = match.span(2)
        yield "condition", replace(line, start, end, f"!({line[start:end]})")
        if match.group(1) == "if":
            yield "condition", replace(line, start, end, "0")
            yield "condition", replace(line, start, end, "1")
    for word, other in (("true", "false"), ("false", "true")):
        for found in re.finditer(rf"\b{word}\b", plain):
            yield "constant", replace(line, *found.span(), other)


def statements(line, plain, before):
    if STATEMENT.match(plain) and re.search(r"[;{}]$|\)$|^\s*else$|:$", before.rstrip()):
        indent = line[:len(line) - len(line.lstrip())]
        yield "statement", f"{indent};"
    if re.match(r"^\s+(break|continue);$", plain):
        yield "statement", re.sub(r"break|continue", "", line)


def of_line(line, before):
    """Yields (kind, changed line) for a line; `before` is the line before it."""
    if SKIPPED.search(line):
        return
    plain = blank(line)
    for kind, changed in of_shape(line, plain, before):
        if not means_the_same(line, changed):
            yield kind, changed


def of_shape(line, plain, before):
    yield from numbers(line, plain)
    yield from operators(line, plain)
    yield from conditions(line, plain)
    yield from statements(line, plain, blank(before))

# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads the public headers of the library for cffi: their declarations, and what their comments
say. The preprocessor of the C compiler resolves includes, macros and types of this machine."""
import re
import subprocess

HEADER = "btrfs-walk/btrfs-walk.h"
SYSTEM = """\
typedef int... time_t;
struct timespec { time_t tv_sec; long tv_nsec; ...; };
struct stat;
"""
# In a body: comments, and declarations up to their end.
PIECE = re.compile(
    r"/\*\*(<?)\s*(.*?)\s*\*/|/\*.*?\*/"
    r"|((?:[^;,/{}()]|\((?:[^()]|\([^()]*\))*\)|\{[^{}]*\}|/(?!\*))+)([;,]?)", re.S)


class Headers:
    """The text of the public headers."""

    def __init__(self, compiler, flags, folder):
        command = [*compiler, "-E", *flags, f"-I{folder}", "-include", HEADER, "-x", "c",
                   "/dev/null"]
        self.text = own_lines(run(command[:-3] + ["-C"] + command[-3:]))
        self.macros = re.findall(r"^#define (BW_\w+) (.+)$",
                                 run(command[:-3] + ["-dM"] + command[-3:]), re.M)

    def cdef(self):
        """The declarations as ffi.cdef() accepts them: without bodies, attributes and comments."""
        text = re.sub(r"/\*.*?\*/", " ", self.text, flags=re.S)
        text = re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)", "", text)
        text = re.sub(r"static inline ([^{;]*)\{.*?^\}", r"\1;", text, flags=re.S | re.M)
        text = re.sub(r"typedef char \w+\[sizeof.*?;", "", text, flags=re.S)
        # cffi writes wrong C for a pointer to an array of constants.
        text = re.sub(r"const \w+ \(\*\w+\)\[\w+\];", "...;", text)
        return "\n".join([SYSTEM, text, *self.constants(), *self.callbacks(text)])

    def constants(self):
        """Declarations of the macros that are numbers or strings; the compiler has the values."""
        for name, value in self.macros:
            if value.startswith('"'):
                yield f"static char *const {name};"
            elif "{" not in value:
                yield f"#define {name} ..."

    @staticmethod
    def callbacks(text):
        """For each type of function that results are passed to, a function that Python defines."""
        for result, name, arguments in re.findall(
                r"typedef\s+(struct bw_error \*)\s*(bw_\w+)\((void \*context,.*?)\);", text, re.S):
            yield f'extern "Python" {result}python_{name[3:]}({arguments});'

    def documentation(self):
        """Of each structure and enumeration: its comment, and of each member the comment and the
        enumeration that the comment mentions, because many members with values of an enumeration
        have an integer type; at last, whether its values are bits."""
        found = {}
        for comment, kind, name, body in re.findall(
                r"(?:/\*\*((?:(?!\*/).)*?)\*/\s*)?^(struct|enum) (bw_\w+) \{\n(.*?)^\};", self.text,
                re.S | re.M):
            found[f"{kind} {name}"] = (plain(comment), dict(members(kind, body)),
                                        "<<" in body)
        return found


    def conditions(self):
        """The names of the conditions of bw_selection_add(), as its comment lists them; with '_'
        for '-', as keywords need it."""
        comment = re.search(r"/\*\*((?:(?!\*/).)*)\*/\s*struct bw_error \*bw_selection_add\(",
                            self.text, re.S)[1]
        names = re.findall(r'"([\w-]+)"', comment)
        return list(dict.fromkeys(name.replace("-", "_") for name in names))


def members(kind, body):
    """The members of a structure or enumeration with their comments. A comment is in front of a
    declaration, or after it; then it belongs to all names that the declaration has."""
    before, names, ended = "", [], True
    for after, comment, declaration, end in PIECE.findall(body):
        if comment and after:
            yield from ((name, described(comment)) for name in names)
            names = []
        elif comment:
            before = comment
        elif declaration.strip():
            names = [] if ended else names
            names.append(name_of(declaration.strip()))
            yield names[-1], described(before)
            ended = kind == "enum" or end == ";"
            before = "" if ended else before


def name_of(declaration):
    """The name that a declaration or an enumerator declares; "" for anonymous unions."""
    found = (re.search(r"\(\*(\w+)\)", declaration)
             or re.search(r"(\w+)\s*(?:\[[^]]*\])*\s*(?:=.*)?$", declaration, re.S))
    return found[1] if found else ""


def described(comment):
    text = plain(comment)
    named = re.search(r"\benum (bw_\w+)", text)
    return text, named[1] if named else None


def plain(comment):
    """The text of a comment, on one line."""
    return re.sub(r"\s*\n\s*\*?\s*", " ", comment).strip(" *")


def own_lines(text):
    """The lines that come from the headers of the library, which may be in several folders."""
    kept, own = [], False
    for line in text.splitlines():
        marker = re.match(r'# \d+ "(.*?)"', line)
        if marker:
            own = re.search(r"/btrfs-walk/\w+\.h$", marker[1])
        elif own and not line.startswith("#"):
            kept.append(line)
    return "\n".join(kept) + "\n"


def run(command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.decode()

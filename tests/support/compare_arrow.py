# SPDX-License-Identifier: GPL-2.0-or-later
# compare_arrow.py PROGRAM [READER...]: for each line of stdin, the arguments of a command with tabs
# between them, compares the cells of --arrow with the values of --json. READER: a program that
# writes the rows of the stream as lines of JSON, with exact numbers, in place of read_arrow.py.
# Prints a line for each difference, and last the numbers of commands and rows.
import concurrent.futures
import json
import subprocess
import sys

import read_arrow


def output(*arguments):
    return subprocess.run(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, timeout=60, check=False)


def compare(line):
    """The line, how its output differs, and the number of rows."""
    arguments = line.rstrip('\n').split('\t')
    try:
        expected = output(sys.argv[1], *arguments, '--json')
        found = output(sys.argv[1], *arguments, '--arrow')
        if found.returncode != expected.returncode:
            return line, f'exit status {found.returncode} instead of {expected.returncode}', 0
        if expected.returncode > 1 and not expected.stdout:
            return line, '', 0 # it cannot be opened
        lines = expected.stdout.splitlines()
        difference = read_arrow.differences(found.stdout, lines)[0]
        if not difference and sys.argv[2:]:
            rows = subprocess.run(sys.argv[2:], input=found.stdout, stdout=subprocess.PIPE,
                                  timeout=60, check=True).stdout
            rows = [json.loads(row) for row in rows.splitlines()]
            difference = read_arrow.compare_rows(rows, lines)
        return line, difference, len(lines)
    except Exception as error: # it is the result of this comparison
        return line, repr(error)[-300:], 0


def main():
    commands = rows = 0
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        for line, difference, count in threads.map(compare, sys.stdin):
            commands, rows = commands + 1, rows + count
            if difference:
                print(line.rstrip('\n').replace('\t', ' '), difference, sep=': ')
    print(commands, 'commands,', rows, 'rows')


main()

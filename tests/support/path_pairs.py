#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Gives the paths that each command prints to each command that accepts paths.

path_pairs.py PROGRAM IMAGE SUMS [OPTION]...

All commands get the options (--subvol, --nested, --generation). SUMS are the hashes of all files,
with paths from the top-level subvolume, as `sha256sum -z` prints them. A line of the output is
"pass WHAT" or "fail WHAT: WHY". Lists with the same paths are given to a consumer once.
"""
import base64
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile

program, image, sums_file, *options = sys.argv[1:]
work = tempfile.TemporaryDirectory()


def run(*words, stdin=b''):
    done = subprocess.run([program, *words], input=stdin, capture_output=True, timeout=120)
    return done.stdout, done.stderr, done.returncode


def report(what, problem):
    print(f'fail {what}: {problem}' if problem else f'pass {what}')


def records(text):
    return [json.loads(line) for line in text.splitlines()]


def path_of(record):
    """The path of a JSON object: as bytes in base64 if it is no UTF-8."""
    name = 'path' if 'path' in record or 'path_bytes' in record else 'subvolume_path'
    if name + '_bytes' in record:
        return base64.b64decode(record[name + '_bytes'])
    return record[name].encode()


def as_json(text):
    return [path_of(record) for record in records(text)]


def as_nul(text):
    return text.split(b'\0')[:-1]


def as_sums(text):
    return [line[66:] for line in as_nul(text)]


def as_bodyfile(text):
    def unescape(path):
        return re.sub(rb'\\([0-7]{3})', lambda code: bytes([int(code[1], 8)]), path)
    return [unescape(line.split(b'|')[1].split(b' -> ')[0]) for line in text.splitlines()]


def as_tar(text):
    names = tarfile.open(fileobj=io.BytesIO(text), encoding='utf-8').getnames()
    return list(dict.fromkeys(os.fsencode(name) for name in names))


def as_mtree(text):
    def unescape(path):
        return re.sub(rb'\\([0-7]{3})', lambda code: bytes([int(code[1], 8)]), path)
    lines = [line for line in text.splitlines() if line.startswith(b'.')]
    return [unescape(line.split(b' ')[0]) for line in lines]


def as_headings(text):
    """Directories that `ls -R` names; names with a newline are no lines."""
    return [line[:-1] for line in text.splitlines() if re.fullmatch(rb'/[\w/.-]*:', line)]


def as_getfattr(text):
    return [line[8:] for line in text.splitlines()
            if line.startswith(b'# file: ') and b'\\' not in line]


def scope():
    """What of the file system the options leave: the front of its paths, the subvolumes in it that
    are not entered, and the ids of those that are."""
    subvolumes = records(run('subvolumes', '--json', image)[0])
    named = options[options.index('--subvol') + 1] if '--subvol' in options else None
    if not named:
        return b'', []
    front = [path_of(one) for one in subvolumes
             if path_of(one) == b'/' + named.encode() or str(one['subvolume']) == named][0]
    nested = [path_of(one) for one in subvolumes if path_of(one).startswith(front + b'/')]
    return front, [] if '--nested=yes' in options else nested


def expected_sums():
    front, nested = scope()
    found = {}
    for line in as_nul(open(sums_file, 'rb').read()):
        path = line[66:]
        if path.startswith(front + b'/') and not any(path.startswith(one + b'/') for one in nested):
            found[path[len(front):]] = line[:64].decode()
    return found


sums = expected_sums()
everything = as_nul(run('walk', '-0', '--type', 'f,d,l,c,b,p,s', *options, image)[0])


def absolute(path):
    """Paths may lack the first '/', and archives name the top '.'."""
    return b'/' + re.sub(rb'^(\./|\.$|/)*', b'', path).rstrip(b'/')


def produce():
    """The lists of all producers, by what made them."""
    no_nested = [word for word in options if not word.startswith('--nested')]
    one = sorted(sums)[len(sums) // 2]
    commands = {
        'walk -0': (as_nul, 'walk', '-0'),
        'walk --json': (as_json, 'walk', '--json'),
        'walk -0 -o path': (as_nul, 'walk', '-0', '-o', 'path'),
        'ls -R --json': (as_json, 'ls', '-R', '--json'),
        'ls -R': (as_headings, 'ls', '-R'),
        'sum -0': (as_sums, 'sum', '-0'),
        'sum -0 --relative': (as_sums, 'sum', '-0', '--relative'),
        'du --json': (as_json, 'du', '--json'),
        'bodyfile': (as_bodyfile, 'bodyfile'),
        'xattr -R': (as_getfattr, 'xattr', '-R'),
        'xattr -R --json': (as_json, 'xattr', '-R', '--json'),
        'tar': (as_tar, 'tar', '-q'),
        'tar --relative': (as_tar, 'tar', '-q', '--relative'),
        'tar --format mtree': (as_mtree, 'tar', '-q', '--format', 'mtree'),
    }
    lists = {}
    for name, (decode, command, *words) in commands.items():
        paths = [os.fsencode('/')] if command == 'xattr' else []
        out, err, status = run(command, *words, *options, image, *paths)
        lists[name] = decode(out)
        report(name, err.decode(errors='replace')[:200] if status or err else '')
    for name, command, *words in [('stat --json', 'stat', '--json'),
                                  ('extents --json', 'extents', '--json'),
                                  ('ls -d --json', 'ls', '-d', '--json'),
                                  ('versions --json', 'versions', '--no-scan', '--json')]:
        out, err, status = run(command, *words, *no_nested, image, os.fsdecode(one))
        lists[name] = as_json(out)
        report(name, '' if one in lists[name] else f'{err!r}: {one!r} is not in {out[:200]!r}')
    addresses = [str(extent['logical']) + '+1' for record in records(
        run('extents', '--json', *no_nested, '--files-from', '-', '--from0', image,
            stdin=b'\0'.join(sums))[0])
        for extent in record['extents'] if 'logical' in extent]
    if addresses:
        lists['owner --json'] = [path_of(record) for record in records(
            run('owner', '--json', *no_nested, image, *addresses)[0]) if 'path' in record]
    return lists


def compare(got, wanted):
    lacking, more = sorted(set(wanted) - set(got)), sorted(set(got) - set(wanted))
    return f'lacks {lacking[:3]!r}, has {more[:3]!r}' if lacking or more else ''


def consume_sum(files, out):
    return compare(as_nul(out), [f'{sums[path]}  '.encode() + path for _, path in files])


def consume_tar(files, out):
    members = tarfile.open(fileobj=io.BytesIO(out)).getmembers()
    return compare([absolute(os.fsencode(one.name)) for one in members if not one.isdir()],
                   [path for _, path in files])


def consume_compression(files, out):
    count = records(out)[0]['files']
    return '' if count == len(files) else f'{count} files, not {len(files)}'


def consume_json(files, out):
    return compare(map(absolute, as_json(out)), [path for _, path in files])


def consume_cat(files, out):
    wanted = b''.join(run('cat', *options_of('cat'), image, os.fsdecode(path))[0]
                      for _, path in files[:8])
    return '' if out.startswith(wanted) else 'other contents'


def consume_bodyfile(files, out):
    return compare(as_bodyfile(out), [path for _, path in files])


def options_of(command):
    """Commands that do not walk have no --nested."""
    walks = command in ('ls', 'xattr', 'du', 'compression', 'sum', 'tar', 'extract', 'bodyfile')
    return [word for word in options if walks or not word.startswith('--nested')]


consumers = {
    'sum': (consume_sum, 'sum', '-0'),
    'tar': (consume_tar, 'tar', '-q'),
    'compression': (consume_compression, 'compression', '--json'),
    'stat': (consume_json, 'stat', '--json'),
    'ls': (consume_json, 'ls', '-d', '--json'),
    'extents': (consume_json, 'extents', '--json'),
    'du': (consume_json, 'du', '--json'),
    'bodyfile': (consume_bodyfile, 'bodyfile'),
    'cat': (consume_cat, 'cat'),
    'xattr': (lambda files, out: '', 'xattr'),
}


def extracted(files):
    """What is below the folder after `extract` has had the list."""
    folder = tempfile.mkdtemp(dir=work.name)
    _, err, status = run('extract', '-C', folder, '-q', *options_of('extract'), '--files-from', '-',
                         '--from0', image, stdin=b'\0'.join(given for given, _ in files))
    found = [os.path.join(top, name)[len(folder):] for top, _, names in os.walk(folder)
             for name in names]
    return (err or f'status {status}') if err or status else \
        compare(map(os.fsencode, found), [path for _, path in files])


def versions_of(path):
    out, err, status = run('versions', '--no-scan', '--no-data', '-o', 'path',
                           *options_of('versions'), image, os.fsdecode(path))
    return '' if not status and not err and out else f'{path!r}: {err!r}'


def consume(paths):
    """Problems of all consumers with a list, by their names."""
    files = [(path, absolute(path)) for path in paths if absolute(path) in sums]
    strange = sorted({absolute(path) for path in paths} - set(everything))
    problems = {'walk': f'does not print {strange[:3]!r}' if strange else ''}
    if files:
        for name, (judge, command, *words) in consumers.items():
            stdin = b'\0'.join(given for given, _ in files)
            out, err, status = run(command, *words, *options_of(command), '--files-from', '-',
                                   '--from0', image, stdin=stdin)
            problems[name] = repr(err[:300]) if err or status else judge(files, out)
        problems['extract'] = extracted(files)
        problems['versions'] = versions_of(files[-1][0])
    return problems


def main():
    known = {}
    for producer, paths in produce().items():
        key = b'\0'.join(sorted(set(paths)))
        if key not in known:
            known[key] = consume(sorted(set(paths)))
        for consumer, problem in known[key].items():
            report(f'{producer} | {consumer}', problem)


main()

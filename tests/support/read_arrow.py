# SPDX-License-Identifier: GPL-2.0-or-later
# read_arrow.py FILE.arrow FILE.json: reads an Arrow IPC stream, checks its structure (alignment,
# bounds, padding, counts), and compares its rows with the JSON lines of the same command. Prints
# the numbers of rows and batches.
import base64
import json
import struct
import sys

SCHEMA, DICTIONARY_BATCH, RECORD_BATCH = 1, 2, 3
INT, BINARY, UTF8, BOOL, TIMESTAMP = 2, 4, 5, 6, 10


class Table:
    """A table of a flatbuffer."""

    def __init__(self, flat, at):
        self.flat, self.at = flat, at
        assert at % 4 == 0
        self.vtable = at - struct.unpack_from('<i', flat, at)[0]
        self.size, self.length = struct.unpack_from('<HH', flat, self.vtable)
        assert self.vtable >= 0 and at + self.length <= len(flat)

    def place(self, number):
        if 4 + 2 * number >= self.size:
            return None
        offset = struct.unpack_from('<H', self.flat, self.vtable + 4 + 2 * number)[0]
        assert offset < self.length
        return self.at + offset if offset else None

    def value(self, number, form, default=0):
        place = self.place(number)
        if place is None:
            return default
        assert place % struct.calcsize(form) == 0, 'not aligned'
        return struct.unpack_from('<' + form, self.flat, place)[0]

    def target(self, number):
        place = self.place(number)
        return place and place + struct.unpack_from('<I', self.flat, place)[0]

    def table(self, number):
        return Table(self.flat, self.target(number))

    def text(self, number):
        at = self.target(number)
        length = struct.unpack_from('<I', self.flat, at)[0]
        assert self.flat[at + 4 + length] == 0
        return bytes(self.flat[at + 4:at + 4 + length]).decode()

    def tables(self, number):
        at = self.target(number)
        count = struct.unpack_from('<I', self.flat, at)[0]
        places = range(at + 4, at + 4 + 4 * count, 4)
        return [Table(self.flat, place + struct.unpack_from('<I', self.flat, place)[0])
                for place in places]

    def pairs(self, number):
        at = self.target(number)
        count = struct.unpack_from('<I', self.flat, at)[0]
        assert (at + 4) % 8 == 0
        return [struct.unpack_from('<qq', self.flat, at + 4 + 16 * i) for i in range(count)]


def messages(data):
    """The messages of a stream, each with its body."""
    at = 0
    while True:
        mark, length = struct.unpack_from('<Ii', data, at)
        assert mark == 0xffffffff and at % 8 == 0
        if length == 0:
            assert at + 8 == len(data), 'bytes after the end'
            return
        assert length % 8 == 0
        flat = data[at + 8:at + 8 + length]
        message = Table(flat, struct.unpack_from('<I', flat)[0])
        assert message.value(0, 'h') == 4, 'version of the metadata'
        body = message.value(3, 'q')
        at += 8 + length
        assert at + body <= len(data)
        yield message, data[at:at + body]
        at += body


def read_type(field):
    kind, table = field.value(2, 'B'), field.table(3)
    if kind == INT:
        assert table.value(0, 'i') == 64
        return kind, 'q' if table.value(1, 'B') else 'Q'
    if kind == TIMESTAMP:
        assert table.value(0, 'h') == 3 and table.text(1) == 'UTC'
    return kind, 'q'


def read_encoding(field):
    """The id of the dictionary of a field; None if it has none."""
    if field.place(4) is None:
        return None
    encoding = field.table(4)
    assert encoding.table(1).value(0, 'i') == 32 and encoding.table(1).value(1, 'B')
    assert field.value(2, 'B') == UTF8
    return encoding.value(0, 'q')


def read_values(columns, batch, body):
    """The values of columns, each of which is (type, form)."""
    count, buffers = batch.value(0, 'q'), cut(body, batch.pairs(2))
    found = []
    for (kind, form), (length, nulls) in zip(columns, batch.pairs(1)):
        assert length == count
        found.append(read_column(kind, form, count, nulls, buffers))
    assert next(buffers, None) is None
    return count, found


def read_column(kind, form, count, nulls, buffers):
    valid = next(buffers)
    assert bool(valid) == bool(nulls)
    known = [not nulls or valid[i // 8] >> i % 8 & 1 for i in range(count)]
    assert known.count(0) == nulls
    if kind in (UTF8, BINARY):
        ends, data = next(buffers), next(buffers)
        ends = struct.unpack('<%di' % (count + 1), ends)
        assert ends[0] == 0 and ends[-1] == len(data) and list(ends) == sorted(ends)
        values = [bytes(data[ends[i]:ends[i + 1]]) for i in range(count)]
        values = [value.decode() for value in values] if kind == UTF8 else values
    elif kind == BOOL:
        bits = next(buffers)
        values = [bool(bits[i // 8] >> i % 8 & 1) for i in range(count)]
    else:
        values = struct.unpack('<%d%s' % (count, form), next(buffers))
    return [value if there else None for value, there in zip(values, known)]


def cut(body, places):
    end = 0
    for offset, length in places:
        assert offset == (end + 7) // 8 * 8
        end = offset + length
        yield body[offset:end]
    assert len(body) == (end + 7) // 8 * 8


def rows(data, batches):
    stream = messages(data)
    message, body = next(stream)
    assert message.value(1, 'B') == SCHEMA and not body
    schema = message.table(2)
    fields = [(field.text(0), read_encoding(field), read_type(field))
              for field in schema.tables(1)]
    assert {pair.text(0) for pair in schema.tables(2)} == {'btrfs-walk.version',
                                                           'btrfs-walk.record'}
    assert len({name for name, _, _ in fields}) == len(fields)
    types = [kind if words is None else (INT, 'i') for _, words, kind in fields]
    dictionaries = {}
    for message, body in stream:
        if message.value(1, 'B') == DICTIONARY_BATCH:
            batch = message.table(2)
            assert batch.value(2, 'B') == 0, 'a delta'
            _, (words,) = read_values([(UTF8, 'q')], batch.table(1), body)
            assert len(set(words)) == len(words) and None not in words
            dictionaries[batch.value(0, 'q')] = words
            continue
        assert message.value(1, 'B') == RECORD_BATCH
        batches.append(message)
        count, columns = read_values(types, message.table(2), body)
        for i, (_, words, _) in enumerate(fields):
            if words is not None:
                columns[i] = [None if one is None else dictionaries[words][one]
                              for one in columns[i]]
        for i in range(count):
            yield {field[0]: column[i] for field, column in zip(fields, columns)
                   if column[i] is not None}


def is_same(arrow, value):
    """Whether a cell has the value that is in JSON. Words with | or , between them are an array of
    JSON, "none" or nothing an empty one; bytes are base64; and what is compound is JSON."""
    if isinstance(arrow, bytes):
        return base64.b64encode(arrow).decode() == value
    if isinstance(value, (dict, list)) and arrow[:1] in ('[', '{'):
        return json.loads(arrow) == value
    if isinstance(value, list):
        return arrow in ('|'.join(map(str, value)) or 'none', ','.join(map(str, value)))
    return arrow == value and isinstance(arrow, type(value))


def compare_rows(found, lines):
    """How rows of Arrow differ from lines of JSON; "" if they do not."""
    expected = [json.loads(line) for line in lines]
    if len(found) != len(expected):
        return f'{len(found)} rows instead of {len(expected)}'
    for one, other in zip(found, expected):
        for name in sorted(set(one) | set(other)):
            if name not in one or name not in other or not is_same(one[name], other[name]):
                return f'{name}: {one.get(name)!r} instead of {other.get(name)!r}'
    return ''


def differences(arrow, lines):
    """The same for a stream; also the numbers of its rows and batches."""
    batches = []
    found = list(rows(arrow, batches))
    return compare_rows(found, lines), f'{len(found)} {len(batches)}'


def main():
    with open(sys.argv[1], 'rb') as arrow, open(sys.argv[2], 'rb') as lines:
        difference, counts = differences(arrow.read(), lines)
    print(counts)
    sys.exit(difference or None)


if __name__ == '__main__':
    main()

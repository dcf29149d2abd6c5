# SPDX-License-Identifier: GPL-2.0-or-later
"""wrap - puts an image into a container: python3 wrap.py KIND IMAGE TARGET... [NAME=VALUE...]

Without arguments it reads them from lines, separated by tabs, and answers each line by "done".

Holes of the image stay holes of the container as far as its format allows that.
"""
import os
import struct
import subprocess
import sys

BLOCK = 4096


def used_blocks(image, zeros=False):
    """Offset and bytes of the blocks that are not zeros, or not in holes."""
    with open(image, "rb") as file:
        end = os.path.getsize(image)
        at = 0
        while at < end:
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA) // BLOCK * BLOCK
            except OSError:
                return
            data = os.pread(file.fileno(), BLOCK, at)
            if zeros or data.strip(b"\0"):
                yield at, data
            at += BLOCK


class Target:
    """A sparse file that is written at offsets."""

    def __init__(self, path, size):
        self.file = open(path, "r+b" if os.path.exists(path) else "w+b")
        self.file.truncate(max(size, os.path.getsize(path)))

    def write(self, offset, data):
        if data.strip(b"\0"):
            os.pwrite(self.file.fileno(), data, offset)


# LUKS: the header by cryptsetup, the data by this script.

class Nettle:
    """A cipher of libnettle: what OpenSSL lacks, and apart from libgcrypt, which is tested."""

    def __init__(self, name, key):
        import ctypes.util
        self.library = ctypes.CDLL(ctypes.util.find_library("nettle"))
        self.make = ctypes.create_string_buffer
        kind = "set_encrypt_key" if name == "camellia" else "set_key"
        prepare = self.function(f"{name}{len(key) * 8}_{kind}")
        sized = f"{name}{128 if len(key) == 16 else 256}" if name == "camellia" else name
        self.crypt = self.function(f"{sized}_{'crypt' if name == 'camellia' else 'encrypt'}")
        self.size, self.schedule = ctypes.c_size_t, self.make(8192)
        prepare(self.schedule, key)

    def function(self, name):
        return getattr(self.library, "nettle_" + name)

    def blocks(self, data):
        """Each block by itself."""
        out = self.make(len(data))
        self.crypt(self.schedule, self.size(len(data)), out, data)
        return out.raw

    def cbc(self, data, vector):
        out, vector = self.make(len(data)), self.make(vector, 16)
        self.function("cbc_encrypt")(self.schedule, self.crypt, self.size(16), vector,
                                     self.size(len(data)), out, data)
        return out.raw


class NettleXts:
    def __init__(self, name, key):
        self.data = Nettle(name, key[:len(key) // 2])
        self.tweak = Nettle(name, key[len(key) // 2:])

    def xts(self, data, vector):
        tweak, tweaks = int.from_bytes(self.tweak.blocks(vector), "little"), []
        for _ in range(len(data) // 16):
            tweaks.append(tweak.to_bytes(16, "little"))
            tweak <<= 1
            tweak ^= (1 << 128 | 0x87) if tweak >> 128 else 0
        tweaks = b"".join(tweaks)
        return add(self.data.blocks(add(data, tweaks)), tweaks)


def nettle_encryptor(cipher, key):
    """As sector_encryptor(), for serpent, twofish and camellia."""
    import hashlib
    name = cipher.split("-")[0]
    engine = (NettleXts if "xts" in cipher else Nettle)(name, key)
    essiv = Nettle(name, hashlib.sha256(key).digest())

    def by_number(data, sector):
        number = struct.pack("<QQ", sector, 0)
        if "xts" in cipher:
            return engine.xts(data, number)
        return engine.cbc(data, essiv.blocks(number) if "essiv" in cipher else number)
    return by_number


def sector_encryptor(cipher, key):
    if not cipher.startswith("aes"):
        return nettle_encryptor(cipher, key)
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    def encrypt(data, mode):
        context = Cipher(algorithms.AES(key), mode).encryptor()
        return context.update(data)

    def essiv(number):
        digest = hashes.Hash(hashes.SHA256())
        digest.update(key)
        context = Cipher(algorithms.AES(digest.finalize()), modes.ECB()).encryptor()
        return context.update(number)

    def by_number(data, sector):
        number = struct.pack("<QQ", sector & 0xffffffff if cipher.endswith("plain") else sector, 0)
        if "xts" in cipher:
            return encrypt(data, modes.XTS(number))
        return encrypt(data, modes.CBC(essiv(number) if "essiv" in cipher else number))
    return by_number


def split_key(key, stripes):
    """Spreads a key over stripes, as LUKS1 does."""
    import hashlib
    state, pieces = bytes(len(key)), []
    for _ in range(stripes - 1):
        pieces.append(os.urandom(len(key)))
        state = bytes(a ^ b for a, b in zip(state, pieces[-1]))
        state = b"".join(hashlib.sha256(struct.pack(">I", at // 32) + state[at:at + 32]).digest()
                         [:len(state) - at] for at in range(0, len(state), 32))
    return b"".join(pieces) + bytes(a ^ b for a, b in zip(state, key))


def relabel_luks1(file, cipher, key, passphrase):
    """The first keyslot is encrypted with the cipher of the data."""
    import hashlib
    name, mode = cipher.split("-", 1)
    file.seek(8)
    file.write(name.encode().ljust(32, b"\0") + mode.encode().ljust(32, b"\0"))
    file.seek(212)
    rounds, salt, start, stripes = struct.unpack(">I32sII", file.read(44))
    encrypt = sector_encryptor(
        cipher, hashlib.pbkdf2_hmac("sha256", passphrase.encode(), salt, rounds, len(key)))
    material = split_key(key, stripes)
    material = material.ljust(-(-len(material) // 512) * 512, b"\0")
    file.seek(start * 512)
    for number in range(len(material) // 512):
        file.write(encrypt(material[number * 512:number * 512 + 512], number))


def relabel_luks2(file, old, new):
    """Keyslots remain as they are: they have their own cipher."""
    import hashlib
    for offset in 0, 16384:
        file.seek(offset)
        block = bytearray(file.read(16384))
        text = block[4096:].replace(f'"encryption":"{old}","sector_size"'.encode(),
                                    f'"encryption":"{new}","sector_size"'.encode())
        block[4096:] = text.rstrip(b"\0").ljust(12288, b"\0")
        block[448:512] = bytes(64)
        block[448:480] = hashlib.sha256(block).digest()
        file.seek(offset)
        file.write(block)


def luks(image, target, *, type="luks2", cipher="aes-xts-plain64", key="512", sector="512",
         passphrase="secret", header=None, pbkdf="pbkdf2", memory=None, slots="1"):
    if os.path.exists(target):
        os.unlink(target)
    size = os.path.getsize(image)
    where = header or target
    Target(where, 32 << 20)
    made = "aes" + cipher[cipher.index("-"):]  # cryptsetup cannot use the others by itself
    words = ["-q", "--type", type, "-c", made, "-s", key, "--key-file", "-"]
    if type == "luks2":
        words += ["--sector-size", sector, "--pbkdf", pbkdf]
        words += ["--pbkdf-force-iterations", "1000" if pbkdf == "pbkdf2" else "4"]
        words += ["--pbkdf-memory", memory] if memory else []
    else:
        words += ["--pbkdf-force-iterations", "1000"]
    run = lambda words, **options: subprocess.run(["cryptsetup", *words], check=True,
                                                  stdout=subprocess.PIPE, **options)
    if header:
        Target(target, size)
        words += ["--header", header]
    run(["luksFormat", *words, target], input=passphrase.encode())
    for slot in range(1, int(slots)):
        with open(where + ".old", "w") as old, open(where + ".new", "w") as new:
            old.write(passphrase)
            new.write(f"{passphrase}{slot}")
        run(["luksAddKey", "-q", "--pbkdf-force-iterations", "1000",
             *(["--pbkdf", "pbkdf2"] if type == "luks2" else []),
             "--key-file", where + ".old", where, where + ".new"])
    keyfile = where + ".key"
    run(["luksDump", "-q", "--dump-volume-key", "--volume-key-file", keyfile, "--key-file", "-",
         where], input=passphrase.encode())
    with open(keyfile, "rb") as file:
        volume_key = file.read()
    os.unlink(keyfile)
    encrypt = sector_encryptor(cipher, volume_key)
    text = run(["luksDump", where]).stdout.decode()
    if type == "luks1":
        offset = int(text.split("Payload offset:")[1].split()[0]) * 512
    else:
        offset = int(text.split("offset: ")[1].split()[0])
    if made != cipher:
        with open(where, "r+b") as file:
            if type == "luks1":
                relabel_luks1(file, cipher, volume_key, passphrase)
            else:
                relabel_luks2(file, made, cipher)
    offset = 0 if header else offset
    out = Target(target, offset + size + -size % BLOCK)
    step = int(sector) if type == "luks2" else 512
    for at, data in used_blocks(image, True):  # encrypted zeros are not zeros
        data = data.ljust(BLOCK, b"\0")
        pieces = [encrypt(data[i:i + step], (at + i) // 512) for i in range(0, BLOCK, step)]
        out.write(offset + at, b"".join(pieces))


# MD: superblocks and data by this script; mdadm --examine reads the superblocks.

MD_LEVELS = {"linear": -1}
MD_CHUNK_LEVELS = (0, 4, 5, 6, 10)


def md_checksum(block, at):
    block[at:at + 4] = bytes(4)
    total = sum(struct.unpack_from(f"<{len(block) // 4}I", block))
    if len(block) % 4:
        total += struct.unpack_from("<H", block, len(block) - 2)[0]
    struct.pack_into("<I", block, at, (total & 0xffffffff) + (total >> 32))


def md_superblock(version, level, layout, chunk, count, role, size, used, data_offset, events,
                  ident=b"0123456789abcdef", state=6):
    """The offset and bytes of a superblock on a device of `size` bytes; all in bytes."""
    if version == "0.90":
        words = bytearray(4096)
        offset = size // 65536 * 65536 - 65536
        struct.pack_into("<4I", words, 0, 0xa92b4efc, 0, 90, 0)
        words[20:24], words[52:64] = ident[:4], ident[4:]
        struct.pack_into("<iI", words, 28, level, used // 1024)
        struct.pack_into("<III", words, 36, count, count, 0)
        struct.pack_into("<5I", words, 136 - 4, 1, count, count, 0, 0)
        struct.pack_into("<II", words, 156, events, 0)
        struct.pack_into("<II", words, 256, layout, chunk)
        for number in range(count):
            struct.pack_into("<5I", words, 512 + 128 * number, number, 8, number, number, 6)
        struct.pack_into("<5I", words, 3968, role, 8, role, role, state)
        md_checksum(words, 152)
        return offset, bytes(words)
    offset = {"1.0": (size - 8192) // 4096 * 4096, "1.1": 0, "1.2": 4096}[version]
    block = bytearray(256 + 2 * 128)
    features = 1 << 12 if level == 0 else 0
    struct.pack_into("<IIII16s32sQiIQIIiI", block, 0, 0xa92b4efc, 1, features, 0, ident,
                     b"host:0", 1, level, layout, used // 512, chunk // 512, count, 0, 0)
    struct.pack_into("<QQQQI", block, 128, data_offset // 512, (size - data_offset) // 512,
                     offset // 512, 0, role)
    struct.pack_into("<QQQII", block, 192, 1, events, 2 ** 64 - 1, 0, 128)
    for number in range(128):
        struct.pack_into("<H", block, 256 + 2 * number, number if number < count else 0xffff)
    md_checksum(block, 216)
    return offset, bytes(block)


def raid5_place(layout, count, row, data):
    parity = {"la": count - 1 - row % count, "ls": count - 1 - row % count,
              "ra": row % count, "rs": row % count, "p0": 0, "pn": count - 1}[layout]
    if layout in ("ls", "rs"):
        return (parity + 1 + data) % count, parity
    return data + (data >= parity), parity


def raid6_place(layout, count, row, data):
    """The device of a data piece, those of P and Q, and whether Q counts devices."""
    if layout.endswith("6"):
        device, parity = raid5_place(layout[:-1], count - 1, row, data)
        return device, parity, count - 1, False
    if layout == "nc":
        parity = count - 1 - row % count
        return (parity + 1 + data) % count, parity, (parity - 1) % count, True
    parity = {"la": count - 1 - row % count, "ls": count - 1 - row % count, "ra": row % count,
              "rs": row % count, "zr": row % count, "nr": count - 1 - (row + 1) % count,
              "p0": 0, "pn": count - 2}[layout]
    other = (parity + 1) % count
    if layout in ("ls", "rs"):
        device = (parity + 2 + data) % count
    elif other == 0:
        device = data + 1
    else:
        device = data + (2 if data >= parity else 0)
    return device, parity, other, layout in ("zr", "nr")


TWICE = bytes((value << 1 ^ (0x1d if value & 128 else 0)) & 255 for value in range(256))


def add(one, other):
    length = max(len(one), len(other))
    return (int.from_bytes(one, "little") ^ int.from_bytes(other, "little")).to_bytes(length,
                                                                                   "little")


class Array:
    """Devices of an array that is filled with the contents of an image."""
    LAYOUTS = {"la": 0, "ra": 1, "ls": 2, "rs": 3, "p0": 4, "pn": 5, "zr": 8, "nr": 9, "nc": 10,
               "la6": 16, "ra6": 17, "ls6": 18, "rs6": 19, "p06": 20}

    def __init__(self, image, level, layout, chunk, count, sizes):
        self.image, self.level, self.chunk, self.count = image, level, chunk, count
        self.layout, self.sizes = layout, sizes
        self.parity = {4: 1, 5: 1, 6: 2}.get(level, 0)

    def number(self):
        if self.level in (5, 6):
            return self.LAYOUTS[self.layout]
        return int(self.layout or "0", 0)

    def pieces(self):
        """What is written: device, offset, bytes."""
        if self.parity:
            yield from self.rows()
            return
        for at, data in used_blocks(self.image):
            for begin in range(0, len(data), 4096):
                for device, offset in self.places(at + begin):
                    yield device, offset, data[begin:begin + 4096]

    def places(self, at):
        if self.level == 1:
            return [(device, at) for device in range(self.count)]
        if self.level == -1:
            device = 0
            while at >= self.sizes[device]:
                at -= self.sizes[device]
                device += 1
            return [(device, at)]
        return [self.striped(at)] if self.level == 0 else self.mirrored(at)

    def striped(self, at):
        begin, done = 0, 0
        for end in sorted(set(self.sizes)):
            members = [number for number, size in enumerate(self.sizes) if size >= end]
            length = (end - begin) * len(members)
            if at < done + length:
                break
            begin, done = end, done + length
        inside, chunk = at - done, self.chunk
        counted = (at if int(self.layout) == 1 else inside) // chunk
        row = inside // (chunk * len(members))
        return members[counted % len(members)], begin + row * chunk + inside % chunk

    def mirrored(self, at):
        layout, count, chunk = self.number(), self.count, self.chunk
        near, far, offset, sets = layout & 255, layout >> 8 & 255, layout >> 16 & 1, layout >> 17
        size = {0: count, 1: count // far, 2: near * far}[sets]
        chunks = self.sizes[0] // chunk // far * count // near
        used = -(-chunks * near * far // count)
        stride = chunk if offset else used // far * chunk
        stripe, device = divmod(at // chunk * near, count)
        sector = at % chunk + stripe * (far if offset else 1) * chunk
        found = []
        for _ in range(near):
            place, where = device, sector
            found.append((place, where))
            for _ in range(far - 1):
                group = place // size
                last = (count // size - 1) * size
                place += near
                if count % size and place > last:
                    place = last + (place - last) % (size + count % size)
                else:
                    place = place % size + size * group
                where += stride
                found.append((place, where))
            device += 1
            if device == count:
                device, sector = 0, sector + chunk
        return found

    def rows(self):
        data_count, chunk = self.count - self.parity, self.chunk
        row_bytes = data_count * chunk
        rows = {}
        for at, data in used_blocks(self.image):
            pieces = rows.setdefault(at // row_bytes, {})
            piece = pieces.setdefault(at % row_bytes // chunk, bytearray(chunk))
            piece[at % chunk:at % chunk + len(data)] = data
        for row in sorted(rows):
            yield from self.row(row, rows.pop(row))

    def row(self, row, pieces):
        devices = {}
        for data in range(self.count - self.parity):
            if self.level == 6:
                device, p, q, by_device = raid6_place(self.layout, self.count, row, data)
            else:
                layout = "pn" if self.level == 4 else self.layout
                device, p = raid5_place(layout, self.count, row, data)
                q, by_device = None, False
            devices[device] = bytes(pieces.get(data, bytes(self.chunk)))
        total = bytes(self.chunk)
        for data in devices.values():
            total = add(total, data)
        yield p, row * self.chunk, total
        if self.level == 6:
            first = 0 if by_device else q + 1
            order = [(first + i) % self.count for i in range(self.count)]
            if not by_device:
                order = [device for device in order if device in devices]
            second = bytes(self.chunk)
            for device in reversed(order):
                second = add(second.translate(TWICE), devices.get(device, bytes(self.chunk)))
            yield q, row * self.chunk, second
        for device, data in devices.items():
            yield device, row * self.chunk, data


def md(image, *targets, level="1", layout="", chunk="65536", version="1.2", events="7",
       uneven="0", id="0123456789abcdef"):
    level, chunk, count = MD_LEVELS.get(level) or int(level), int(chunk), len(targets)
    size = os.path.getsize(image)
    begin = 0 if version in ("0.90", "1.0") else 1 << 20
    copies = count if level == 1 else 1
    if level == 10:
        number = int(layout, 0)
        copies = (number & 255) * (number >> 8 & 255)
    data_count = count - {4: 1, 5: 1, 6: 2}.get(level, 0)
    each = -(-size * copies // data_count)
    each = (each // chunk + 8) * chunk if chunk and level in MD_CHUNK_LEVELS else each
    each = (each // max(chunk, 4096) + 2) * max(chunk, 4096) if level == -1 else each
    each = -(-each // 4096) * 4096
    sizes = [each + int(uneven) * chunk * number for number in range(count)]
    array = Array(image, level, layout or ("ls" if level in (5, 6) else ""), chunk, count, sizes)
    outs = []
    for role, target in enumerate(targets):
        if os.path.exists(target):
            os.unlink(target)
        length = begin + sizes[role] + (131072 if version == "0.90" else 12288 if begin == 0 else 0)
        used = sizes[role] if level in (1, 4, 5, 6, 10) else 0
        if version == "0.90" or (version == "1.0" and level < 1):
            length = length // 65536 * 65536
        out = Target(target, length)
        if level < 1 and version == "0.90":
            array.sizes[role] = length - 65536
        elif level < 1:
            array.sizes[role] = ((length - 8192) // 4096 * 4096 if version == "1.0"
                                 else length - begin)
        if level == 0 or (level == -1 and chunk):
            array.sizes[role] -= array.sizes[role] % chunk
        offset, block = md_superblock(
            version, level, array.number(), chunk if level in MD_CHUNK_LEVELS else chunk if
            level == -1 else 0, count, role, length if version in ("0.90", "1.0") else length,
            used, begin, int(events), id.encode())
        if version == "1.0":
            block = bytearray(block)
            struct.pack_into("<Q", block, 136, offset // 512)
            md_checksum(block, 216)
        out.write(offset, bytes(block))
        outs.append(out)
    for device, offset, data in array.pieces():
        outs[device].write(begin + offset, data)


# LVM: labels and metadata by this script; pvck and vgs read them.

EXTENT, FIRST = 1 << 20, 1 << 20


def lvm_checksum(data):
    import zlib
    return ~zlib.crc32(data, ~0xf597a6cf & 0xffffffff) & 0xffffffff


def lvm_id(number):
    text = f"{number:032d}".replace("0", "a")
    parts = [6, 4, 4, 4, 4, 4, 6]
    return "-".join(text[sum(parts[:i]):sum(parts[:i + 1])] for i in range(len(parts)))


class Group:
    """A volume group on a number of physical volumes, described as it is filled."""

    def __init__(self, count):
        self.count, self.used, self.volumes = count, [0] * count, []

    def take(self, physical, extents):
        self.used[physical] += extents
        return physical, self.used[physical] - extents

    def add(self, name, segments, visible=True):
        """Segments: type, number of extents, members of the text, where its bytes are."""
        lines, at = [], 0
        for number, (kind, extents, members) in enumerate(segments, 1):
            lines.append(f"segment{number} {{\nstart_extent = {at}\nextent_count = {extents}\n"
                         f"type = \"{kind}\"\n{members}\n}}\n")
            at += extents
        status = '"READ", "WRITE"' + (', "VISIBLE"' if visible else "")
        self.volumes.append(f"{name} {{\nid = \"{lvm_id(100 + len(self.volumes))}\"\nstatus = "
                            f"[{status}]\nflags = []\nsegment_count = {len(segments)}\n"
                            + "".join(lines) + "}\n")

    def linear(self, name, runs, visible=True):
        self.add(name, [("striped", extents, f'stripe_count = 1\nstripes = ["pv{where[0]}", '
                         f"{where[1]}]") for where, extents in runs], visible)

    def text(self, sizes):
        physicals = "".join(
            f'pv{number} {{\nid = "{lvm_id(1 + number)}"\ndevice = "/dev/sd{chr(97 + number)}"\n'
            f'status = ["ALLOCATABLE"]\nflags = []\ndev_size = {size // 512}\npe_start = '
            f"{FIRST // 512}\npe_count = {(size - FIRST) // EXTENT}\n}}\n"
            for number, size in enumerate(sizes))
        return (f'vg0 {{\nid = "{lvm_id(99)}"\nseqno = 4\nformat = "lvm2"\nstatus = ["RESIZEABLE"'
                f', "READ", "WRITE"]\nflags = []\nextent_size = {EXTENT // 512}\nmax_lv = 0\n'
                f"max_pv = 0\nmetadata_copies = 0\nphysical_volumes {{\n{physicals}}}\n"
                "logical_volumes {\n"
                + "".join(self.volumes) + '}\n}\n# written by a test\ncontents = "Text Format '
                'Volume Group"\nversion = 1\ndescription = ""\ncreation_host = "test"\n'
                "creation_time = 1\n").encode() + b"\0"


def lvm_label(number, size, text):
    """The label and the metadata area of a physical volume; the text wraps around in its ring."""
    start, length = 4096, FIRST - 4096
    header = lvm_id(1 + number).replace("-", "").encode() + struct.pack(
        "<Q4Q4Q", size, FIRST, 0, 0, 0, start, length, 0, 0)
    body = struct.pack("<I8s", 32, b"LVM2 001") + header
    body += bytes(512 - 20 - len(body))
    label = b"LABELONE" + struct.pack("<QI", 1, lvm_checksum(body)) + body
    offset = length - len(text) // 2
    area = b" LVM2 x[5A%r0N*>" + struct.pack("<IQQQQII", 1, start, length, offset, len(text),
                                            lvm_checksum(text), 0)
    area += bytes(512 - 4 - len(area))
    yield 512, label
    yield start, struct.pack("<I", lvm_checksum(area)) + area
    yield start + offset, text[:length - offset]
    yield start + 512, text[length - offset:]


def lvm_runs(group, extents):
    """A linear volume in short runs on all devices."""
    runs, left, step = [], extents, 0
    while left:
        length = min(left, 1 + step * 5 % 7)
        runs.append((group.take(step * 2 % group.count, length), length))
        left, step = left - length, step + 1
    group.linear("root", runs)

    def places(at):
        for (physical, begin), length in runs:
            if at < length * EXTENT:
                return [(physical, begin * EXTENT + at)]
            at -= length * EXTENT
        return []
    return places


def lvm_members(kind, areas, extents, stripe):
    """The text of a segment."""
    count, sectors = len(areas), stripe // 512
    pairs = ", ".join(f'"pv{area[0]}", {area[1]}' for area in areas)
    images = [f'"root_rimage_{number}"' for number in range(count)]
    metas = [f'"root_rmeta_{number}"' for number in range(count)]
    striped = f"stripe_count = {count}\nstripe_size = {sectors}\n"
    return {
        "striped": f"{striped}stripes = [{pairs}]",
        "raid0": f"{striped}raid0_lvs = [{', '.join(images)}]",
        "mirror": f"mirror_count = {count}\nextents_moved = {extents}\nmirrors = ["
                  + ", ".join(f"{image}, 0" for image in images) + "]",
        "raid1": f"device_count = {count}\nregion_size = 4096\nraids = ["
                 + ", ".join(f"{meta}, {image}" for meta, image in zip(metas, images)) + "]",
        "cache": "chunk_size = 128"}[kind]


def lvm_areas(group, kind, extents, stripe):
    """A volume with an area on each device."""
    mirrors = kind in ("raid1", "mirror")
    length = extents if mirrors else extents // group.count
    areas = [group.take(number, length) for number in range(group.count)]
    for number, area in enumerate(areas):
        if kind != "striped":
            group.linear(f"root_rimage_{number}", [(area, length)], False)
        if kind == "raid1":
            group.linear(f"root_rmeta_{number}", [(group.take(number, 1), 1)], False)
    group.add("root", [(kind, extents, lvm_members(kind, areas, extents, stripe))])

    def places(at):
        if mirrors:
            return [(number, area[1] * EXTENT + at) for number, area in enumerate(areas)]
        number = at // stripe
        physical, begin = areas[number % group.count]
        return [(physical, begin * EXTENT + number // group.count * stripe + at % stripe)]
    return places


CHUNK = 65536


def thin_metadata(size, chunks, target):
    """Metadata of a pool by thin_restore. The chunks are in it in reverse order; volume 7 has every
    second one, its snapshot 8 all of them."""
    place = {chunk: len(chunks) - 1 - number for number, chunk in enumerate(chunks)}
    lines = [f'<superblock uuid="" time="1" transaction="2" data_block_size="{CHUNK // 512}" '
             f'nr_data_blocks="{size // CHUNK + 9}">']
    for device, step in (7, 2), (8, 1):
        mine = chunks[::step]
        lines.append(f'<device dev_id="{device}" mapped_blocks="{len(mine)}" transaction="1" '
                     'creation_time="0" snap_time="1">')
        lines += [f'<single_mapping origin_block="{chunk}" data_block="{place[chunk]}" time="0"/>'
                  for chunk in mine]
        lines.append("</device>")
    with open(target + ".xml", "w") as file:
        file.write("\n".join(lines) + "</superblock>\n")
    with open(target, "wb") as file:
        file.truncate(EXTENT)
    subprocess.run(["thin_restore", "-i", target + ".xml", "-o", target], check=True,
                   stdout=subprocess.DEVNULL)
    return place


def lvm_thin(image, *targets):
    """The pool's data and metadata are linear volumes in short runs."""
    size = os.path.getsize(image)
    chunks = sorted({at // CHUNK for at, _ in used_blocks(image)})
    place = thin_metadata(size, chunks, targets[0] + ".meta")
    group = Group(len(targets))
    data = [(group.take(number % group.count, 1), 1)
            for number in range(-(-len(chunks) * CHUNK // EXTENT))]
    meta = group.take(group.count - 1, 1)
    group.linear("pool_tmeta", [(meta, 1)], False)
    group.linear("pool_tdata", data, False)
    group.add("pool", [("thin-pool", len(data), f'metadata = "pool_tmeta"\npool = "pool_tdata"\n'
                        f"transaction_id = 2\nchunk_size = {CHUNK // 512}")])
    for name, device in ("half", 7), ("root", 8):
        group.add(name, [("thin", -(-size // EXTENT), 'thin_pool = "pool"\ntransaction_id = 1\n'
                          f"device_id = {device}")])
    sizes = [FIRST + (used + 3) * EXTENT for used in group.used]
    outs = lvm_targets(group, targets, sizes)
    with open(targets[0] + ".meta", "rb") as file:
        outs[meta[0]].write(FIRST + meta[1] * EXTENT, file.read())
    for at, block in used_blocks(image):
        inside = place[at // CHUNK] * CHUNK + at % CHUNK
        physical, begin = data[inside // EXTENT][0]
        outs[physical].write(FIRST + begin * EXTENT + inside % EXTENT, block)


def lvm_targets(group, targets, sizes):
    """The physical volumes, with their metadata."""
    text = group.text(sizes)
    outs = []
    for number, target in enumerate(targets):
        if os.path.exists(target):
            os.unlink(target)
        outs.append(Target(target, sizes[number]))
        for offset, data in lvm_label(number, sizes[number], text):
            outs[-1].write(offset, data)
    return outs


def lvm(image, *targets, kind="linear", swap="yes", stripe="65536"):
    count, stripe = len(targets), int(stripe)
    extents = -(-os.path.getsize(image) // EXTENT)
    extents += -extents % count
    group = Group(count)
    if swap == "yes":
        group.linear("swap", [(group.take(0, 2), 2)])
    places = (lvm_runs(group, extents) if kind == "linear"
              else lvm_areas(group, kind, extents, stripe))
    sizes = [FIRST + (used + 3) * EXTENT for used in group.used]
    outs = lvm_targets(group, targets, sizes)
    for at, data in used_blocks(image):
        for physical, offset in places(at):
            outs[physical].write(FIRST + offset, data)


# bcache, with the superblock of make-bcache.

def crc64(data):
    crc = 0xffffffffffffffff
    for byte in data:
        crc ^= byte << 56
        for _ in range(8):
            crc = crc << 1 ^ (0x142f0e1eba9ea3693 if crc >> 63 else 0)
    return crc ^ 0xffffffffffffffff


def bcache(image, target, *, state="1", version="4", begin="64"):
    """`state`: 1 is clean, 2 is dirty. `begin`: in sectors."""
    magic = bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81")
    body = struct.pack("<QQ16s16s16s32sQQ64xQHHHHIHH", 8, int(version), magic, b"u" * 16, b"s" * 16,
                       b"", int(state) << 61 | 1, 1, int(begin), 8, 1024, 0, 0, 0, 0, 0)
    if os.path.exists(target):
        os.unlink(target)
    out = Target(target, os.path.getsize(image) + int(begin) * 512)
    out.write(4096, struct.pack("<Q", crc64(body)) + body)
    for at, data in used_blocks(image):
        out.write(int(begin) * 512 + at, data)


# partclone, format 0002, with the blocks that are not zeros.

def partclone(image, target, *, drop=""):
    """`drop`: offsets of blocks that the backup lacks."""
    import zlib
    crc = lambda data: ~zlib.crc32(data) & 0xffffffff
    size = os.path.getsize(image)
    blocks = {at // BLOCK: data for at, data in used_blocks(image)}
    dropped = {int(at) // BLOCK for at in drop.split(",") if at}
    count = size // BLOCK
    bits = bytearray(-(-count // 8))
    # as in a backup, more than the used blocks: those next to them
    groups = {number // 16 for number in blocks}
    kept = [number for number in range(count)
            if number // 16 in groups and number not in dropped]
    for number in kept:
        bits[number // 8] |= 1 << number % 8
    head = struct.pack("<16s14s4sH16sQQQQIIHHHHIBB", b"partclone-image", b"0.3.23", b"0002", 0xc0de,
                       b"BTRFS", size, count, len(kept), len(kept), BLOCK, 18, 2, 64, 0x20, 4, 256,
                       1, 1)
    with open(target, "wb") as out:
        out.write(head + struct.pack("<I", crc(head)) + bits + struct.pack("<I", crc(bits)))
        for first in range(0, len(kept), 256):
            strip = b"".join(blocks.get(number, bytes(BLOCK)).ljust(BLOCK, b"\0")
                             for number in kept[first:first + 256])
            out.write(strip + struct.pack("<I", crc(strip)))


def main(kind, *words):
    options = dict(word.split("=", 1) for word in words if "=" in word)
    globals()[kind](*[word for word in words if "=" not in word], **options)


def serve():
    for line in sys.stdin:
        main(*line.rstrip("\n").split("\t"))
        print("done", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(*sys.argv[1:])
    else:
        serve()

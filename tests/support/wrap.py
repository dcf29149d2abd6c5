# SPDX-License-Identifier: GPL-2.0-or-later
"""wrap - puts an image into a container: python3 wrap.py KIND IMAGE TARGET... [NAME=VALUE...]

Holes of the image stay holes of the container as far as its format allows that.
"""
import os
import struct
import subprocess
import sys

BLOCK = 4096


def used_blocks(image):
    """Offset and bytes of the blocks that are not zeros."""
    with open(image, "rb") as file:
        end = os.path.getsize(image)
        at = 0
        while at < end:
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA) // BLOCK * BLOCK
            except OSError:
                return
            data = os.pread(file.fileno(), BLOCK, at)
            if data.strip(b"\0"):
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

def sector_encryptor(cipher, key):
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


def luks(image, target, *, type="luks2", cipher="aes-xts-plain64", key="512", sector="512",
         passphrase="secret", header=None, pbkdf="pbkdf2", memory=None, slots="1"):
    if os.path.exists(target):
        os.unlink(target)
    size = os.path.getsize(image)
    where = header or target
    Target(where, 32 << 20)
    words = ["-q", "--type", type, "-c", cipher, "-s", key, "--key-file", "-"]
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
        encrypt = sector_encryptor(cipher, file.read())
    os.unlink(keyfile)
    text = run(["luksDump", where]).stdout.decode()
    if type == "luks1":
        offset = int(text.split("Payload offset:")[1].split()[0]) * 512
    else:
        offset = int(text.split("offset: ")[1].split()[0])
    offset = 0 if header else offset
    out, step = Target(target, offset + size), int(sector) if type == "luks2" else 512
    for at, data in used_blocks(image):
        pieces = [encrypt(data[i:i + step], (at + i) // 512) for i in range(0, len(data), step)]
        out.write(offset + at, b"".join(pieces))


if __name__ == "__main__":
    kind, *words = sys.argv[1:]
    options = dict(word.split("=", 1) for word in words if "=" in word)
    globals()[kind](*[word for word in words if "=" not in word], **options)

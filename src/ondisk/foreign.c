/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tables of foreign formats.
 *
 * Sources: the specifications of the formats, the table of file(1), and for the dump of btrfs-image
 * and the send stream the headers of btrfs-progs (image/metadump.h, common/send-file.h).
 */
#include "ondisk/foreign.h"

#include <string.h>

/* Advice that only a program built with libnbd can use. */
#ifdef BW_NBD
#define WITH(helper) "install " helper " to read it directly, or "
#else
#define WITH(helper) ""
#endif

#define UNPACK(program) "unpack it first, with '" program "'"
#define DECIPHER        "decrypt it first, with 'gpg -d'"
#define CONVERT         WITH("qemu-nbd") "convert it with 'qemu-img convert -O raw'"
#define RESTORE         "restore it with 'btrfs-image -r'"
#define FORENSIC        "mount it with ewfmount, and read the file below that mount"

/* A format and the bytes it begins with, which may hold NUL, at an offset. */
#define SERVED(offset, magic, name, advice, helper, driver) \
    {                                                       \
        offset, magic, sizeof magic - 1,                    \
        {                                                   \
            name, advice, helper, driver                    \
        }                                                   \
    }
#define BEGINS(offset, magic, name, advice) \
    SERVED(offset, magic, name, advice, BW_HELPER_NONE, NULL)
#define IMAGE(offset, magic, name, driver) \
    SERVED(offset, magic, name, CONVERT, BW_HELPER_QEMU, driver)

static const struct {
    size_t offset;
    const char *magic;
    size_t length;
    struct bw_foreign foreign;
} magics[] = {
    IMAGE(0, "QFI\xfb", "a qcow2 image", "qcow2"),
    IMAGE(0, "QED\0", "a qed image", "qed"),
    IMAGE(0, "KDMV", "a vmdk image", "vmdk"),
    IMAGE(0, "COWD", "a vmdk image", "vmdk"),
    IMAGE(0, "# Disk DescriptorFile", "the descriptor of a vmdk image", "vmdk"),
    IMAGE(64, "\x7f\x10\xda\xbe", "a vdi image", "vdi"),
    IMAGE(0, "vhdxfile", "a vhdx image", "vhdx"),
    IMAGE(0, "conectix", "a vhd image", "vpc"),
    IMAGE(0, "WithoutFreeSpace", "a parallels image", "parallels"),
    IMAGE(0, "WithouFreSpacExt", "a parallels image", "parallels"),
    BEGINS(0, "EVF\x09\x0d\x0a\xff", "an EWF image (E01)", FORENSIC),
    BEGINS(0, "EVF2\x0d\x0a\x81", "an EWF image (Ex01)", FORENSIC),
    BEGINS(0, "\x3a\xff\x26\xed", "an Android sparse image", "convert it with simg2img"),
    BEGINS(0, "partclone-image", "a partclone image", NULL),
    BEGINS(0, "# Mapfile. Created by GNU ddrescue", "a map file of ddrescue",
           "give the image that ddrescue wrote with it"),
    /* Dumps without data are read: see layout/metadump. */
    BEGINS(0, "_DUmP_v1", "a metadump of btrfs-image with data", RESTORE),
    BEGINS(0, BW_STREAM_MAGIC "\0", "a stream of btrfs send", NULL),
    SERVED(0, "\x1f\x8b\x08", "gzip-compressed", WITH("nbdkit") UNPACK("gunzip"), BW_HELPER_NBDKIT,
           "gzip"),
    BEGINS(0, "\x28\xb5\x2f\xfd", "zstd-compressed", UNPACK("unzstd")),
    SERVED(0, "\xfd\x37zXZ\0", "xz-compressed", WITH("nbdkit") UNPACK("unxz"), BW_HELPER_NBDKIT,
           "xz"),
    BEGINS(4, "1AY&SY", "bzip2-compressed", UNPACK("bunzip2")),
    BEGINS(0, "\x04\x22\x4d\x18", "lz4-compressed", UNPACK("unlz4")),
    BEGINS(0, "\x89LZO\0\r\n\x1a\n", "lzop-compressed", UNPACK("lzop -d")),
    BEGINS(0, "LZIP", "lzip-compressed", UNPACK("lzip -d")),
    BEGINS(0, "PK\3\4", "a zip archive", UNPACK("unzip")),
    BEGINS(0, "7z\xbc\xaf\x27\x1c", "a 7z archive", UNPACK("7z x")),
    BEGINS(0, "Rar!\x1a\7", "a rar archive", UNPACK("unrar x")),
    BEGINS(257, "ustar", "a tar archive", UNPACK("tar -x")),
    /* Packets of OpenPGP: a session key for a public key (RSA, ElGamal, ECDH) or a password. */
    BEGINS(0, "\x85\x01\x0c\x03", "encrypted with OpenPGP", DECIPHER),
    BEGINS(0, "\x85\x01\x8c\x03", "encrypted with OpenPGP", DECIPHER),
    BEGINS(0, "\x85\x02\x0c\x03", "encrypted with OpenPGP", DECIPHER),
    BEGINS(0, "\x85\x02\x0e\x03", "encrypted with OpenPGP", DECIPHER),
    BEGINS(0, "\x84\x5e\x03", "encrypted with OpenPGP", DECIPHER),
    BEGINS(0, "\x8c\x0d\x04", "encrypted with OpenPGP", DECIPHER),
    BEGINS(0, "-----BEGIN PGP MESSAGE-----", "encrypted with OpenPGP", DECIPHER),
    BEGINS(0, "Salted__", "encrypted with openssl enc", "decrypt it first, with 'openssl enc -d'"),
    /* libblkid also wants to see the middle of it. */
    BEGINS(3, "NTFS    ", "ntfs", NULL),
};

#define OF(type, name, advice)                 \
    {                                          \
        type,                                  \
        {                                      \
            name, advice, BW_HELPER_NONE, NULL \
        }                                      \
    }
#define DECRYPT(command) "open it with '" command "', and read the device under /dev/mapper"

static const struct {
    const char *type;
    struct bw_foreign foreign;
} types[] = {
    OF("crypto_LUKS", "encrypted with LUKS", NULL),
    OF("BitLocker", "encrypted with BitLocker", DECRYPT("cryptsetup open --type bitlk")),
    OF("FVAULT2", "encrypted with FileVault", DECRYPT("cryptsetup open --type fvault2")),
    OF("LVM2_member", "a physical volume of LVM", NULL),
    OF("LVM1_member", "a physical volume of LVM 1", "convert its group with vgconvert"),
    OF("linux_raid_member", "a member of an MD array", NULL),
    OF("ddf_raid_member", "a member of a DDF array",
       "assemble it with mdadm, and read the array under /dev/md"),
    OF("isw_raid_member", "a member of an Intel array",
       "assemble it with mdadm, and read the array under /dev/md"),
    OF("bcache", "a device of bcache", NULL),
    OF("DM_verity_hash", "a hash device of dm-verity",
       "give the data device alone, after 'veritysetup verify'"),
    OF("DM_snapshot_cow", "the changes of a dm-snapshot",
       "read its origin alone, or join both with 'dmsetup create', and read that device"),
    OF("drbd", "a device of DRBD", "read the device under /dev/drbd"),
    OF("VDO", "a device of VDO", "activate it, and read the device under /dev/mapper"),
    OF("zfs_member", "a device of a ZFS pool", NULL),
    OF("swap", "swap space", NULL),
    OF("swsuspend", "swap space with a hibernated system", NULL),
    OF("dos", "a disk with an MBR partition table", NULL),
    OF("PMBR", "a disk with a protective MBR, but no GPT", NULL),
    OF("gpt", "a disk with a GPT partition table", NULL),
};

const struct bw_foreign *bw_foreign_by_magic(const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if (magics[i].offset + magics[i].length <= length &&
            memcmp(bytes + magics[i].offset, magics[i].magic, magics[i].length) == 0)
            return &magics[i].foreign;
    return NULL;
}

const struct bw_foreign *bw_foreign_by_type(const char *type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].type, type) == 0)
            return &types[i].foreign;
    return NULL;
}

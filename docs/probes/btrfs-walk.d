/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The provider btrfswalk in the language of DTrace. This is documentation: nothing is built from
 * this file. The records are structures of btrfs-walk/records.h (blockinfo_t is struct
 * bw_blockinfo). An argument is 0 if the probe has no translation for it.
 *
 * Made by scripts/make-docs. Change src/probe/probes.def and src/record/records.def.
 */

typedef struct bw_imageinfo imageinfo_t; /* an image file or block device */
typedef struct bw_superinfo superinfo_t; /* a copy of a superblock */
typedef struct bw_chunkinfo chunkinfo_t; /* a chunk: a range of logical addresses and its place on the devices */
typedef struct bw_mapinfo mapinfo_t; /* the mapping of a logical address to a device */
typedef struct bw_ioinfo ioinfo_t; /* a read from a file or device */
typedef struct bw_fopinfo fopinfo_t; /* a call of a layer */
typedef struct bw_blockinfo blockinfo_t; /* a tree block that is read */
typedef struct bw_cacheinfo cacheinfo_t; /* a lookup of a tree block in a cache */
typedef struct bw_keyinfo keyinfo_t; /* a search for a range of keys in a tree */
typedef struct bw_direntinfo direntinfo_t; /* an entry of a directory */
typedef struct bw_pathinfo pathinfo_t; /* a path that is listed */
typedef struct bw_codecinfo codecinfo_t; /* an extent that is decompressed */
typedef struct bw_errinfo errinfo_t; /* a message: damage, a warning, a note, or a fatal error */

provider btrfswalk {
    /* image-open: an image file or device was opened */
    probe image__open(imageinfo_t *record,
        uint64_t size, uint64_t index, int64_t error, uint64_t ns, uint64_t call);

    /* super-read: a copy of a superblock was read */
    probe super__read(superinfo_t *record,
        uint64_t offset, uint64_t copy, int64_t error, uint64_t ns, uint64_t call);

    /* chunk-add: a chunk was added to the chunk map */
    probe chunk__add(chunkinfo_t *record,
        uint64_t logical, uint64_t length, int64_t error, uint64_t ns, uint64_t call);

    /* chunk-map: a logical address was mapped to a device */
    probe chunk__map(mapinfo_t *record,
        uint64_t logical, uint64_t offset, int64_t error, uint64_t ns, uint64_t call);

    /* dev-read-start: a read from a file or device starts */
    probe dev__read__start(ioinfo_t *record,
        uint64_t offset, uint64_t bytes, int64_t error, uint64_t ns, uint64_t call);

    /* dev-read-done: a read from a file or device is done */
    probe dev__read__done(ioinfo_t *record,
        uint64_t offset, uint64_t bytes, int64_t error, uint64_t ns, uint64_t call);

    /* fop-wind: a layer is called */
    probe fop__wind(fopinfo_t *record,
        uint64_t address, char *request_kind, int64_t error, uint64_t ns, uint64_t call);

    /* fop-unwind: a call of a layer returns */
    probe fop__unwind(fopinfo_t *record,
        uint64_t address, char *request_kind, int64_t error, uint64_t ns, uint64_t call);

    /* block-read-start: a tree block is requested */
    probe block__read__start(blockinfo_t *record,
        uint64_t logical, uint64_t mirror, int64_t error, uint64_t ns, uint64_t call);

    /* block-read-done: a tree block was read, or is lost; the time covers its whole batch */
    probe block__read__done(blockinfo_t *record,
        uint64_t logical, uint64_t mirror, int64_t error, uint64_t ns, uint64_t call);

    /* block-verify: a tree block was checked */
    probe block__verify(blockinfo_t *record,
        uint64_t logical, uint64_t mirror, int64_t error, uint64_t ns, uint64_t call);

    /* block-retry: another mirror of a tree block is read, because the previous mirror had an error */
    probe block__retry(blockinfo_t *record,
        uint64_t logical, uint64_t mirror, int64_t error, uint64_t ns, uint64_t call);

    /* cache-hit: a tree block was found in the cache */
    probe cache__hit(cacheinfo_t *record,
        uint64_t logical, uint64_t level, int64_t error, uint64_t ns, uint64_t call);

    /* cache-miss: a tree block was not in the cache */
    probe cache__miss(cacheinfo_t *record,
        uint64_t logical, uint64_t level, int64_t error, uint64_t ns, uint64_t call);

    /* cache-evict: a tree block is removed from the cache to make room */
    probe cache__evict(cacheinfo_t *record,
        uint64_t logical, uint64_t level, int64_t error, uint64_t ns, uint64_t call);

    /* key-search-start: a search for a range of keys starts */
    probe key__search__start(keyinfo_t *record,
        uint64_t key_objectid, uint64_t key_type, int64_t error, uint64_t ns, uint64_t call);

    /* key-search-done: a search for a range of keys is done */
    probe key__search__done(keyinfo_t *record,
        uint64_t key_objectid, uint64_t key_type, int64_t error, uint64_t ns, uint64_t call);

    /* dirent: the walk visits an entry of a directory */
    probe dirent(direntinfo_t *record,
        uint64_t parent_inode, uint64_t inode, int64_t error, uint64_t ns, uint64_t call);

    /* path-emit: a path is listed */
    probe path__emit(pathinfo_t *record,
        uint64_t inode, uint64_t subvolume, int64_t error, uint64_t ns, uint64_t call);

    /* decompress-start: the decompression of an extent starts */
    probe decompress__start(codecinfo_t *record,
        uint64_t bytes_in, uint64_t bytes_out, int64_t error, uint64_t ns, uint64_t call);

    /* decompress-done: an extent was decompressed */
    probe decompress__done(codecinfo_t *record,
        uint64_t bytes_in, uint64_t bytes_out, int64_t error, uint64_t ns, uint64_t call);

    /* error: a message to the user, which may be suppressed by options */
    probe error(errinfo_t *record,
        uint64_t address, uint64_t error_code, int64_t error, uint64_t ns, uint64_t call);
};

#pragma D attributes Evolving/Unstable/Common provider btrfswalk provider
#pragma D attributes Private/Private/Unknown provider btrfswalk module
#pragma D attributes Private/Private/Unknown provider btrfswalk function
#pragma D attributes Evolving/Unstable/Common provider btrfswalk name
#pragma D attributes Evolving/Unstable/Common provider btrfswalk args

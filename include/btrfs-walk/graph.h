/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The graph of layers that a file system is read through: replacing it, changing it, printing it,
 * and inspecting it while it works; and the interface of layers.
 */
#ifndef BTRFS_WALK_GRAPH_H
#define BTRFS_WALK_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "btrfs-walk/error.h"
#include "btrfs-walk/format.h"
#include "btrfs-walk/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The layers (translators, "xlators") of the read pipeline.
 *
 * Every layer has the same table of operations, a table of options, private state and children. A
 * layer calls its children with bw_wind(). An operation that a layer does not implement is passed
 * to its only child.
 *
 * This header is the complete documentation for layers; built-in ones also use private headers,
 * such as graph/wind.h. A layer of your own is a shared object CATEGORY/NAME.so below a directory
 * in BTRFS_WALK_XLATOR_PATH (separated by colons) or below the library's own directory
 * (`pkg-config --variable=xlatordir btrfs-walk`). It exports one object of type struct
 * bw_xlator_api, named bw_xlator_api, and needs no library: the program that loads it contains the
 * functions below.
 *
 *     static const struct bw_xlator_class my_class = {.type = "toys/my", ...};
 *     BW_XLATOR_EXPORT(my_class);
 *
 *     cc -shared -fPIC $(pkg-config --cflags btrfs-walk) -o toys/my.so my.c
 *     BTRFS_WALK_XLATOR_PATH=. btrfs-walk --insert toys/my@verify image.img
 *
 * Life cycle: the framework checks the options against the table of the class, makes the layer, and
 * calls `init`. The children exist by then, but above cluster/chunk-map they cannot be read yet,
 * because messages to the operation `control` fill its map later. `fini` runs before the `fini` of
 * the children. Both run in one thread. All other operations may run in several threads at once, so
 * private state that changes needs a lock or atomics.
 *
 * Requests: `read` gets a batch of any length, of one or several kinds. Before it returns, it
 * completes every request: with bytes in `buffer`, or with an error in `error`, which is NULL when
 * the request arrives. It may call its children any number of times, with the same requests if it
 * need not change them, otherwise with copies (bw_wind_copies()). A layer that repeats a failed
 * request frees its error first. Each request of a batch can fail separately.
 *
 * Errors: make them with bw_error_create(), and return the errors of children unchanged; bw_wind()
 * records the layer in which an error occurred and the layers through which it passed. A layer that
 * tries several children or copies makes one error, with their errors as its causes.
 *
 * Replacing a built-in layer: the checksum type, the chunks and the moved ranges are sent to every
 * layer that accepts these messages, regardless of its name. A graph has exactly one layer with
 * logical addresses above and device addresses below: its chunk map. tests/plugin/single.c in the
 * source is a chunk map for the profile single.
 *
 * Addresses: the class of a layer declares the address spaces above and below it. A layer that does
 * not translate addresses has BW_ADDRESS_ANY for both and can be inserted anywhere. Every byte from
 * below may be hostile. Only above features/verify does a tree block match the pointer in its
 * parent.
 *
 * A layer prints and writes nothing, except to an option of type BW_OPTION_OUTPUT.
 * tests/plugin/rot13.c in the source is a complete example.
 *
 * The design comes from GlusterFS, but calls are synchronous.
 */

struct bw_graph;
struct bw_xlator;

/** The kind of data that a request reads. Storage layers only count by kind. */
enum bw_request_kind {
    BW_REQUEST_SUPER,      /**< a superblock copy */
    BW_REQUEST_TREE_BLOCK, /**< one metadata block */
    BW_REQUEST_DATA,       /**< file data as stored */
    BW_REQUEST_RAW, /**< other bytes: the stripes needed to rebuild data from parity, and the parts
                       of a block that crosses a stripe boundary */
    BW_REQUEST_KINDS,
};

/** Name of a kind in options, reports and statedumps: "tree-block". */
const char *bw_request_kind_name(enum bw_request_kind kind);

/** Choices of an option (BW_OPTION_ENUM) that selects a kind of request: "any", then the kinds.
 * Ends with NULL.
 */
extern const char *const bw_request_kind_choices[];

/** Whether a kind is selected; `choice` is the number of such an option. */
static inline bool bw_request_kind_selected(uint64_t choice, enum bw_request_kind kind)
{
    return choice == 0 || choice - 1 == (uint64_t)kind;
}

/** Address spaces. Addresses are logical above the cluster layers, and offsets on one device below
 * them. */
enum bw_address_space {
    BW_ADDRESS_NONE, /**< none: below a storage layer */
    BW_ADDRESS_DEVICE,
    BW_ADDRESS_LOGICAL,
    BW_ADDRESS_ANY, /**< the same above and below: the address space above the only child */
};

/** The properties of a tree block according to the pointer in its parent. */
struct bw_tree_block_expectation {
    uint64_t owner;          /**< id of the tree for which the block is read */
    uint64_t generation;     /**< transaction that wrote it, exactly */
    struct bw_key first_key; /**< its first key if has_first_key, otherwise a lower limit */
    struct bw_key end_key;   /**< all its keys are less than this; all zero: no limit */
    uint8_t level;           /**< 0 for a leaf */
    bool has_first_key;      /**< false for the root block of a tree */
    bool lenient;            /**< for recovery: accept a wrong first key and unordered keys */
};

/** The checksums of file data that are read. */
struct bw_data_expectation {
    const uint8_t *checksums; /**< of all sectors, one after the other */
    uint32_t sectorsize;      /**< bytes; address and length of the request are multiples of it */
    uint32_t type;            /**< 1 + enum bw_checksum_type; 0: the type of the superblock */
};

/** One read. The caller fills the first part; the layers fill the reply. */
struct bw_request {
    enum bw_request_kind kind;
    uint8_t mirror;   /**< mirror to read, counted from 1; 0: any. Below the chunk map: the image of
                         the device, for cluster/alternatives */
    bool keep;        /**< keep it in a cache: it will be read again */
    uint32_t length;  /**< bytes; at least 1 */
    uint64_t address; /**< in the address space above the called layer */
    void *buffer;     /**< `length` bytes of the caller's; undefined after a failure */
    const struct bw_tree_block_expectation *expectation; /**< for tree blocks; may be NULL for other
                                                            kinds */
    const struct bw_data_expectation *data; /**< for data; NULL: they have no checksums, or are not
                                               checked */

    struct bw_error *error; /**< reply: NULL on success; owned by the caller */
    bool rebuilt;   /**< reply: some bytes were computed from parity, and only a checksum can verify
                       them; false before */
    bool corrected; /**< reply: no mirror was good, and a flipped bit was corrected; false before */
    bool unverified; /**< reply: bytes are accepted although their checksum does not match; false
                        before */
    uint8_t mirror_read; /**< reply: the mirror that was read if `mirror` is 0; 0: unknown, mostly 1
                          */
};

/** Completes a request with the reply to a copy of it. */
static inline void bw_request_answer(struct bw_request *request, const struct bw_request *copy)
{
    request->error = copy->error;
    request->rebuilt |= copy->rebuilt;
    request->corrected |= copy->corrected;
    request->unverified |= copy->unverified;
    request->mirror_read = copy->mirror_read;
}

/** The location of one mirror of a range. */
struct bw_location {
    uint64_t devid;
    uint64_t offset; /**< on that device, in bytes */
    bool present;    /**< whether the device was given */
    bool rebuilt;    /**< the mirror is computed from the other stripes of the row; devid and offset
                        are the location of the parity that is used: P for mirror 2, Q for others */
    unsigned alternative; /**< number of the image of the device, from 1; 0: there is only one */
};

/** Reply of `map`: the number of mirrors, and the location of the requested one. */
struct bw_map_reply {
    unsigned copies; /**< number of mirrors, with rebuilt ones and alternative images; at least 1 */
    struct bw_location location; /**< of the requested mirror */
    uint32_t length; /**< length for which the location is valid, in bytes; at most the requested
                        length. If no chunk contains the address: the length of the gap, and the
                        only member that is set */
};

/** A range worth reading ahead. */
struct bw_range {
    uint64_t address;
    uint64_t length;
};

/** The call that a layer belongs to, and through it the calls above; on the stack of the caller. */
struct bw_frame {
    const struct bw_frame *parent; /**< frame of the layer above; NULL at the top */
    unsigned depth;                /**< 0 at the top */
    uint64_t call;                 /**< number of the call, as in the records of probes */
    struct bw_frame_clock *clock;  /**< for the library's own use: adds up the time of the layers
                                      below */
    bool metadata; /**< the call reads tree blocks, whose locations do not depend on the raid stripe
                      tree */
    bool reread;   /**< ranges that the call reads or announces may be read again */
};

/** Kinds of checksums. Source: BTRFS_CSUM_TYPE_* in the kernel's uapi/linux/btrfs_tree.h. */
enum bw_checksum_type {
    BW_CHECKSUM_CRC32C = 0,
    BW_CHECKSUM_XXHASH64 = 1,
    BW_CHECKSUM_SHA256 = 2,
    BW_CHECKSUM_BLAKE2B = 3,
};
/** Its name: "crc32c". `type` must be one of them. */
const char *bw_checksum_name(enum bw_checksum_type type);

/** A stripe of a chunk. */
struct bw_stripe_info {
    uint64_t devid;
    uint64_t offset; /**< on that device */
    uint8_t device_uuid[16];
};

/** A chunk: a range of logical addresses, and its locations. */
struct bw_chunk_info {
    uint64_t logical, length;
    uint64_t type;       /**< BW_GROUP_* */
    const char *profile; /**< "single", "RAID1", ... */
    unsigned stripe_count;
    const struct bw_stripe_info *stripes;
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** Messages from the file system to its layers while it is opened, in this order; see the operation
 * `control`. */
enum bw_control_kind {
    BW_CONTROL_FILE_SYSTEM, /**< facts of the superblock; before the first tree block is read */
    BW_CONTROL_DEVICE, /**< the device of a child of the chunk map; one message for each child */
    BW_CONTROL_CHUNK, /**< a chunk: first the chunks in the superblock, through which the chunk tree
                         is read, then the chunks of the chunk tree */
    BW_CONTROL_MOVED_RANGE,   /**< a range that relocation has moved (remap-tree feature) */
    BW_CONTROL_STRIPE_SOURCE, /**< the source for looking up the raid stripe tree, if the file
                                 system has one */
    BW_CONTROL_KINDS,
};

/** The bit of bw_xlator_class.takes for a kind of message. */
#define BW_TAKES(kind) (1u << (kind))

/** BW_CONTROL_FILE_SYSTEM. */
struct bw_control_file_system {
    enum bw_checksum_type checksum_type;
    uint32_t nodesize, sectorsize; /**< bytes */
    const uint8_t (*ids)[16];      /**< ids that tree blocks may have: the metadata uuid of the file
                                      system, then the ids of its seed devices */
    size_t id_count;               /**< at least 1 */
    bool dumped; /**< btrfs-image wrote the tree blocks, and gave them a CRC-32C instead of
                    checksum_type; both are valid */
    bool changes_checksums;   /**< a tool was interrupted while it changed the type of checksums:
                                 those of data may be of another type than checksum_type */
    uint32_t other_checksums; /**< types that tree blocks may have other than checksum_type, with
                                 the bit 1 << type for each */
    uint64_t generation;      /**< of the superblock */
    uint64_t incompat_flags;  /**< of the superblock */
    const uint8_t *chunk_tree_uuid; /**< of all tree blocks with the first of `ids`, if others have
                                       this id, too; NULL: any */
};

/** BW_CONTROL_DEVICE. Devid and uuid identify a device. */
struct bw_control_device {
    size_t child; /**< of the chunk map */
    uint64_t devid;
    uint8_t uuid[16];
    bool stale;            /**< the device missed writes: read it only as a last resort */
    unsigned alternatives; /**< number of images of the device, which bw_request.mirror selects; 0
                              or 1: the child has only one */
};

/** BW_CONTROL_MOVED_RANGE: the contents of logical addresses from..from+length-1 are now at logical
 * address `to`. The ranges must be ascending and must not overlap; a layer refuses others with
 * BW_ERROR_CORRUPT. */
struct bw_moved_range {
    uint64_t from, length, to;
};

enum { BW_STRIPE_PLACES = 4 /**< as many as RAID1C4 has copies */ };

/** A range of logical addresses in the raid stripe tree. Each of the places has a mirror of it. */
struct bw_stripe_extent {
    uint64_t logical, length; /**< logical + length does not overflow; length is not 0 */
    uint16_t count;           /**< of places; not 0 */
    struct {
        uint64_t devid;
        uint64_t offset; /**< on that device, in bytes; offset + length does not overflow */
    } places[BW_STRIPE_PLACES];
};

/** BW_CONTROL_STRIPE_SOURCE: the source of the locations of file data in chunks with a raid stripe
 * tree. It remains valid as long as the layer. */
struct bw_stripe_source {
    /** Finds the extent that contains a logical address. If the tree has no such extent, or it is
     * lost, the function returns an error, which is valid for extent->length bytes. Safe from any
     * thread. Do not call it while frame->metadata is set: the stripe tree is metadata itself. */
    struct bw_error *(*find)(void *context, const struct bw_frame *frame, uint64_t logical,
                             struct bw_stripe_extent *extent);
    void *context;
};

/** One message. All pointers except the stripe source are valid during the call only. */
struct bw_control {
    enum bw_control_kind kind;
    union {
        const struct bw_control_file_system *file_system;
        const struct bw_control_device *device;
        const struct bw_chunk_info *chunk; /**< validated: the profile exists, and the stripe count
                                              and the length are possible for it */
        const struct bw_moved_range *moved;
        const struct bw_stripe_source *stripes;
    };
};

/** The operations of a layer. `read` must complete all requests before it returns. An operation
 * that is NULL is passed to the child. */
struct bw_xlator_operations {
    /** Reads the options and prepares the private state. Called once, after the children's. */
    struct bw_error *(*init)(struct bw_xlator *xlator);
    /** Releases the resources of the private state. Also called if `init` failed. */
    void (*fini)(struct bw_xlator *xlator);
    /** Completes `count` requests; may be called by several threads at once. */
    void (*read)(const struct bw_frame *frame, struct bw_xlator *xlator,
                 struct bw_request *requests, size_t count);
    /** Maps a logical address to a device. Reads nothing, except the raid stripe tree if the file
     * system has one. `mirror` is counted from 1. */
    struct bw_error *(*map)(const struct bw_frame *frame, struct bw_xlator *xlator,
                            uint64_t address, uint32_t length, unsigned mirror,
                            struct bw_map_reply *reply);
    /** Announces ranges that will be read soon, in this mirror (0: any). It cannot fail. */
    void (*advise)(const struct bw_frame *frame, struct bw_xlator *xlator,
                   const struct bw_range *ranges, size_t count, unsigned mirror);
    /** For layers with device addresses above: the number of bytes. Required in storage layers. */
    uint64_t (*size)(struct bw_xlator *xlator);
    /** For the same layers: the next address that may contain anything except zeros; UINT64_MAX if
     * there are only zeros. */
    uint64_t (*next_stored)(struct bw_xlator *xlator, uint64_t address);
    /** Handles a message of a kind in the class's `takes`. Every layer with this kind gets the
     * message once, lower layers first. Called in one thread, while no other thread reads. An error
     * ends the opening or, for a chunk or a moved range of a tree, is reported as damage. A message
     * replaces an earlier one about the same object, such as a chunk at the same logical address.
     */
    struct bw_error *(*control)(struct bw_xlator *xlator, const struct bw_control *control);
    /** Adds private state to the open object of a statedump; NULL: nothing. May run while other
     * threads read. */
    void (*dump)(struct bw_xlator *xlator, struct bw_json *json);
    /** For layers that show the contents of a container: what it is, in a few words, like "LUKS2"
     * or "GPT partition 3". Valid as long as the layer. NULL: the layer is not named in texts. */
    const char *(*title)(struct bw_xlator *xlator);
};

/** Types of option values. A value is a text and, except for the last three types, also a number.
 */
enum bw_option_type {
    BW_OPTION_BOOL,    /**< on, yes, true, 1, or off, no, false, 0; the number is 0 or 1 */
    BW_OPTION_INTEGER, /**< decimal, 0 to 2^64-1 */
    BW_OPTION_SIZE, /**< bytes; an integer with an optional K, M, G, T, P or E (powers of 1024) */
    BW_OPTION_PERCENT, /**< 0 to 100 with up to four decimals, `%` optional; in units of 1/10000
                          percent */
    BW_OPTION_TIME,    /**< an integer with ns, us, ms, s, m or h (not needed for 0); in ns */
    BW_OPTION_ENUM,    /**< one of `choices`; the number is its index there */
    BW_OPTION_STRING,  /**< any text */
    BW_OPTION_PATH,    /**< a file that is read */
    BW_OPTION_OUTPUT,  /**< a file to append to, `-` for stderr; never one of the images */
};

/** Percentages as numbers: this is 100 percent. */
#define BW_PERCENT_100 UINT64_C(1000000)

/** An option: the source of its validation, help and documentation. The table ends with a NULL
 * name. */
struct bw_option {
    const char *name; /**< lower case letters, digits and hyphens */
    enum bw_option_type type;
    const char *default_value;  /**< as text; NULL: must be given */
    uint64_t minimum, maximum;  /**< inclusive, as numbers: for integers, sizes, percentages and
                                   times */
    const char *description;    /**< a phrase: no capital, no full stop */
    const char *const *choices; /**< for BW_OPTION_ENUM: ends with NULL */
};

/** A type of layer. */
struct bw_xlator_class {
    const char *type;        /**< "category/name", of lower case letters, digits and hyphens */
    const char *description; /**< one line: a phrase, no capital, no full stop */
    const char *page; /**< what it does and when to use it: paragraphs separated by empty lines;
                         lines that begin with four spaces are examples. Printed by `btrfs-walk
                         xlators TYPE` */
    enum bw_address_space above, below; /**< BW_ADDRESS_ANY: both; below NONE: no children */
    unsigned minimum_children, maximum_children;
    size_t private_size; /**< bytes of private state: allocated, as zeros, before `init`, and freed
                            after `fini` */
    unsigned takes;      /**< BW_TAKES() of the kinds of messages that `control` handles */
    const struct bw_option *options; /**< may be NULL */
    struct bw_xlator_operations operations;
};

/** Members of a class with the same address space above and below, and exactly one child. */
#define BW_ONE_CHILD(space) \
    .above = (space), .below = (space), .minimum_children = 1, .maximum_children = 1

/** Increased with every change of this header, error.h, record.h or format.h after which layers
 * must be rebuilt. */
#define BW_XLATOR_ABI 8

/** The object that a shared object exports under the name bw_xlator_api. Its first two members
 * never change. */
struct bw_xlator_api {
    uint32_t abi;  /**< BW_XLATOR_ABI of the header with which the layer was built; any other number
                      is refused */
    uint32_t size; /**< of this structure */
    const struct bw_xlator_class *xlator; /**< its `type` must match the file name */
};

/** Exports a class as the one layer of a shared object. */
#define BW_XLATOR_EXPORT(class_object)                                                       \
    __attribute__((visibility("default"))) extern const struct bw_xlator_api bw_xlator_api;  \
    const struct bw_xlator_api bw_xlator_api = {BW_XLATOR_ABI, sizeof(struct bw_xlator_api), \
                                                &(class_object)}

/** Counters of one layer and kind. */
struct bw_counters {
    uint64_t calls;       /**< batches */
    uint64_t requests;    /**< single reads */
    uint64_t bytes;       /**< requested */
    uint64_t errors;      /**< requests that failed */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** Passes requests to a layer, updates the counters, and records in errors the layer in which they
 * occurred and the layers through which they passed. Without a layer (NULL), all requests fail.
 * `parent` is the frame that the caller was given, not a copy of it. */
void bw_wind(const struct bw_frame *parent, struct bw_xlator *xlator, struct bw_request *requests,
             size_t count);
/** Requests a mapping from a layer, or from the first below it that implements `map`. */
struct bw_error *bw_wind_map(const struct bw_frame *parent, struct bw_xlator *xlator,
                             uint64_t address, uint32_t length, unsigned mirror,
                             struct bw_map_reply *reply);
/**
 * Passes copies of requests to the first child, some at a time, and completes the requests with the
 * replies. `change` adapts a copy. If it returns false, it has completed the request itself, and
 * the copy is not passed on.
 */
void bw_wind_copies(const struct bw_frame *parent, struct bw_xlator *xlator,
                    struct bw_request *requests, size_t count,
                    bool (*change)(const struct bw_frame *frame, struct bw_xlator *xlator,
                                   struct bw_request *request, struct bw_request *copy));
/** Announces reads to a layer, or to the first below it that implements `advise`. */
void bw_wind_advise(const struct bw_frame *parent, struct bw_xlator *xlator,
                    const struct bw_range *ranges, size_t count, unsigned mirror);

/** Private state: `private_size` bytes, aligned to cache lines. */
void *bw_xlator_private(const struct bw_xlator *xlator);
/** Name of the instance, unique in its graph. */
const char *bw_xlator_name(const struct bw_xlator *xlator);
/** Its type, "category/name". */
const char *bw_xlator_type(const struct bw_xlator *xlator);
/** Number of children. */
size_t bw_xlator_child_count(const struct bw_xlator *xlator);
/** A child; NULL if the index is too large. */
struct bw_xlator *bw_xlator_child(const struct bw_xlator *xlator, size_t index);
/** The value of an option, or its default. If the name is not in the class's table, returns "" and
 * reports a warning. */
const char *bw_xlator_option_text(const struct bw_xlator *xlator, const char *name);
/** The same as a number; see enum bw_option_type for the units. */
uint64_t bw_xlator_option_number(const struct bw_xlator *xlator, const char *name);
/** Number of bytes that a layer with device addresses can read: its own `size`, or the size of its
 * only child. */
uint64_t bw_xlator_size(struct bw_xlator *xlator);
/** Calls `next_stored`. */
uint64_t bw_xlator_next_stored(struct bw_xlator *xlator, uint64_t address);
/** Reports a message, once; consumes the error. Safe from any thread. */
void bw_xlator_report(const struct bw_xlator *xlator, enum bw_severity severity,
                      struct bw_error *error);
/** Counters so far of one kind. */
struct bw_counters bw_xlator_counters(const struct bw_xlator *xlator, enum bw_request_kind kind);

struct bw_fs;
struct bw_fs_options;

/** How a graph is changed. */
enum bw_graph_edit_kind {
    BW_EDIT_OPTION, /**< "NAME.KEY=VALUE": NAME is a volume, a type, or a pattern for names of
                       volumes */
    BW_EDIT_INSERT, /**< "TYPE@VOLUME[,KEY=VALUE...]": a new layer above each volume that matches
                       the name, type or pattern VOLUME; its name combines both: "trace@verify" */
};

/** One change, as text. */
struct bw_graph_edit {
    enum bw_graph_edit_kind kind;
    const char *text;
};

/** The graph to use. All zeros but the size: the default graph. */
struct bw_graph_options {
    size_t struct_size; /**< sizeof(struct bw_graph_options) */
    /**
     * A volfile (the grammar of GlusterFS); NULL: the default graph. Paths of images, if there are
     * any, replace the paths in its storage volumes, in order.
     */
    const char *file;
    const struct bw_graph_edit *edits; /**< applied in order */
    size_t edit_count;
    /** Directories with layers in shared objects, separated by colons; NULL: the environment's
     * BTRFS_WALK_XLATOR_PATH, then the library's own directory. */
    const char *xlator_path;
};

/** How to print a graph. */
enum bw_graph_format {
    BW_GRAPH_VOLFILE, /**< valid as bw_graph_options.file */
    BW_GRAPH_DOT,     /**< for Graphviz */
};

/** Receives text in pieces; an error ends the printing and is returned to the caller. */
typedef struct bw_error *bw_consumer(void *context, const char *text, size_t length);

/** Opens the images and builds the graph, but reads no tree: enough to print the graph. Close the
 * result with bw_fs_close(); other functions need a file system from bw_fs_open(). Errors as
 * bw_fs_open(). */
struct bw_error *bw_fs_wire(const struct bw_fs_options *options, struct bw_fs **fs);

/** Prints the graph. */
struct bw_error *bw_fs_print_graph(const struct bw_fs *fs, enum bw_graph_format format,
                                   bw_consumer *consume, void *context);

struct bw_rows_stream;

/** Writes the graph as rows of the record layerinfo: one for each layer, the lowest ones first.
 * BW_ERROR_USAGE if the rows are of another record. */
struct bw_error *bw_fs_write_layers(const struct bw_fs *fs, struct bw_rows_stream *stream);

/** Writes the state of the file system and of each layer (options, private state, counters) as one
 * JSON object. May be called from any thread, even while others read. */
struct bw_error *bw_fs_statedump(const struct bw_fs *fs, bw_consumer *consume, void *context);

/** Whether a file, identified by its stat(), is an input: an image, used or not, or the volfile.
 * Such a file must not be written to. */
bool bw_fs_is_input(const struct bw_fs *fs, const struct stat *status);

/**
 * Calls `visit` for each file that will be opened by name after bw_fs_options.planned was called:
 * existing files to read, and files to which layers write (`written`). So a program can confine
 * itself to these files. An error of `visit` ends the calls and is returned.
 */
struct bw_error *bw_fs_files(const struct bw_fs *fs,
                             struct bw_error *(*visit)(void *context, const char *path,
                                                       bool written),
                             void *context);

/**
 * Opens an output file: a report, a trace, a statedump. It is created if it does not exist. With
 * `append`, writing begins at its end, otherwise at its beginning. BW_ERROR_USAGE if it is a block
 * device or contains a btrfs superblock. If a file system is open, also call bw_fs_is_input(). The
 * caller closes `*descriptor`.
 */
struct bw_error *bw_output_file_open(const char *path, bool append, int *descriptor);

/** The types of layers: the built-in ones, and the ones in shared objects, which are loaded at
 * their first use. Not for several threads at once. */
struct bw_registry;

/** Opens the types of layers. `path` lists directories with shared objects, separated by colons;
 * NULL: the environment's BTRFS_WALK_XLATOR_PATH, then the library's own directory; "": none.
 * BW_ERROR_NO_MEMORY. */
struct bw_error *bw_registry_open(const char *path, struct bw_registry **registry);

/** Unloads the shared objects; their classes become invalid. NULL is allowed. */
void bw_registry_close(struct bw_registry *registry);

/** Finds a type ("features/verify"); `*found` is valid until the registry is closed.
 * BW_ERROR_USAGE if it does not exist, or its shared object cannot be used: it has another ABI, or
 * its class breaks the rules of this header. */
struct bw_error *bw_registry_find(struct bw_registry *registry, const char *type,
                                  const struct bw_xlator_class **found);

/** Receives the name of a type. */
typedef struct bw_error *bw_type_visitor(void *context, const char *type);

/** Calls `visit` for every type, sorted by name, until it returns an error, which is returned.
 * Shared objects are not loaded, so bw_registry_find() may still refuse some. The names are valid
 * until the registry is closed. */
struct bw_error *bw_registry_each(struct bw_registry *registry, bw_type_visitor *visit,
                                  void *context);

/** The name of an option type: "size". */
const char *bw_option_type_name(enum bw_option_type type);

/** The allowed values of an option, as text: "0 to 1T", "on, off", "any, data"; "" if any text is
 * allowed. Freed by the caller with free(); NULL if memory ran out. */
char *bw_option_range(const struct bw_option *option);

#ifdef __cplusplus
}
#endif
#endif

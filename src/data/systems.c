/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Installed systems. A subvolume is one if it has /etc/os-release or /usr/lib/os-release; both
 * names are searched by hash, because the top directories of other subvolumes may be large.
 * The path of a subvolume shows which tool made it. The files of that tool, in the same image, have
 * the names of containers and the descriptions of snapshots.
 *
 * Subvolumes that share a UUID as their own, their parent's, or the received one are versions of
 * one system, also if the parent of several snapshots was deleted. The likeliest version is the
 * system: the current version, else a version that an fstab mounts at /, else an original.
 *
 * Only files of the image are read. They may contain anything: lengths and counts are limited, and
 * an unreadable file causes a warning.
 */
#include "btrfs-walk/system.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <uuid/uuid.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/human.h"
#include "base/json_scan.h"
#include "base/vector.h"
#include "btrfs-walk/inode.h"
#include "data/reader.h"
#include "fs/fs.h"
#include "fs/lookup.h"

/* Limits for hostile images. */
enum {
    SUBVOLUMES = 10000, /* that are examined */
    CONTAINERS = 1000,  /* in one place */
    PLACES = 16,        /* with containers */
    MOUNTS = 64,        /* of one fstab */
    ALL_MOUNTS = 4096,
    TEXT = 255,       /* bytes of a text from a file */
    SMALL = 64 << 10, /* bytes of a file with a few lines */
    LARGE = 4 << 20,  /* bytes of a list of containers */
};

BW_VECTOR(system_list, struct bw_system_info);
BW_VECTOR(mount_list, struct bw_system_mount);

/* A container, or an image of containers. */
struct container {
    const char *storage; /* the name of its subvolume */
    const char *name;
    bool is_image;
};

BW_VECTOR(containers, struct container);

/* A place where a tool keeps its containers. */
struct container_place {
    const char *path;
    bool is_read; /* the records of the tool exist */
    struct containers containers;
};

/* A UUID that a system has itself, or that its origin has. */
struct relation {
    uint8_t uuid[BW_UUID_SIZE];
    size_t system;
};

BW_VECTOR(relations, struct relation);

struct bw_systems {
    struct bw_fs *fs;
    struct system_list list;
    struct mount_list mounts;
    struct bw_numbers first_mounts; /* of each system: index in `mounts` */
    struct bw_numbers in_fstab;     /* of each system: whether any fstab mounts it at / */
    struct bw_strings texts;        /* all texts of the systems */
    struct container_place places[PLACES];
    size_t place_count;
    struct bw_system_info *current;
    size_t next;
};

/* Texts. */

/* Keeps a copy of a text. */
static struct bw_error *keep_text(struct bw_systems *systems, const char *text, size_t length,
                                  const char **result)
{
    BW_TRY(bw_strings_reserve(&systems->texts, 1));
    char *copy = strndup(text, length);
    if (!copy)
        return bw_error_no_memory();
    *result = copy;
    return bw_strings_push(&systems->texts, copy);
}

/* Keeps the beginning of a text from a file; an empty one is none. */
static struct bw_error *keep_short(struct bw_systems *systems, const char *text, size_t length,
                                   const char **result)
{
    return length ? keep_text(systems, text, (size_t)bw_min(length, TEXT), result) : NULL;
}

/* A warning about a file, unless it does not exist. Consumes the error, but returns it if memory
 * ran out. */
static struct bw_error *warn(struct bw_fs *fs, const struct bw_subvolume *subvolume,
                             struct bw_error *error)
{
    if (!error || error->code == BW_ERROR_NO_MEMORY)
        return error;
    if (error->code == BW_ERROR_NOT_FOUND)
        bw_error_free(error);
    else
        bw_fs_report(fs, BW_WARNING,
                     bw_error_prefix(error, "systems in %" PRIu64, bw_subvolume_id(subvolume)));
    return NULL;
}

/* Ends a text that was read with a NUL. An unreadable file causes a warning. */
static struct bw_error *end_reading(struct bw_fs *fs, const struct bw_subvolume *from,
                                    struct bw_error *error, struct bw_buffer *text)
{
    BW_TRY(warn(fs, from ? from : bw_subvolume_by_id(fs, BW_TOP_SUBVOLUME), error));
    return bw_buffer_terminate(text);
}

/* Reads the beginning of a file, and appends a NUL. Without the file, `text` stays empty. */
static struct bw_error *read_file(struct bw_fs *fs, const struct bw_subvolume *from,
                                  const char *path, size_t most, struct bw_buffer *text)
{
    struct bw_place place;
    text->length = 0;
    if (fs->no_data) /* a metadump has no contents of files */
        return NULL;
    struct bw_error *error = bw_lookup(fs, from, path, true, &place);
    if (!error)
        error = bw_data_read_text(fs, &place, most, text);
    return end_reading(fs, from, error, text);
}

/* os-release: lines NAME=VALUE, with the quoting of a shell. */

/* Removes the quoting of a shell from a value; returns its length. */
static size_t unquote(char *value)
{
    size_t length = 0;
    char quote = '\0';
    for (const char *next = value; *next; next++) {
        if (quote ? *next == quote : *next == '"' || *next == '\'') {
            quote = quote ? '\0' : *next;
            continue;
        }
        if (!quote && (*next == ' ' || *next == '\t' || *next == '#'))
            break;
        if (*next == '\\' && quote != '\'' && next[1])
            next++;
        value[length++] = *next;
    }
    return length;
}

static struct bw_error *parse_os_release(struct bw_systems *systems, char *text,
                                         struct bw_system_info *info)
{
    const char *name = NULL, *version = NULL;
    const struct {
        const char *key;
        const char **value;
    } wanted[] = {{"PRETTY_NAME=", &info->name},
                  {"ID=", &info->os},
                  {"VERSION_ID=", &info->os_version},
                  {"NAME=", &name},
                  {"VERSION=", &version}};
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));)
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
            const size_t length = strlen(wanted[i].key);
            if (*wanted[i].value || strncmp(line, wanted[i].key, length) != 0)
                continue;
            BW_TRY(keep_short(systems, line + length, unquote(line + length), wanted[i].value));
        }
    if (!name) {
        name = info->os;
        version = info->os_version;
    }
    if (info->name || !name)
        return NULL;
    BW_AUTO_BUFFER struct bw_buffer both = {0};
    bw_buffer_format(&both, "%s", name);
    if (version)
        bw_buffer_format(&both, " %s", version);
    return both.failed ? bw_error_no_memory()
                       : keep_short(systems, both.data, both.length, &info->name);
}

/* Finds os-release in a subvolume; `found` has no inode if it is not there. */
static struct bw_error *find_os_release(struct bw_fs *fs, const struct bw_subvolume *subvolume,
                                        struct bw_place *found)
{
    static const struct {
        const char *directory, *path;
    } places[] = {{"etc", "etc/os-release"}, {"usr", "usr/lib/os-release"}};
    const struct bw_place top = bw_place_top(subvolume);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct bw_error *error = bw_lookup_hashed(fs, &top, places[i].directory, found);
        const bool is_lost = error && error->code != BW_ERROR_NOT_FOUND;
        if (!error)
            error = bw_lookup(fs, subvolume, places[i].path, true, found);
        if (!error && found->type == BW_FILE_REGULAR)
            return NULL;
        *found = (struct bw_place){.inode = 0};
        BW_TRY(warn(fs, subvolume, error));
        if (is_lost) /* so the other one is lost, too */
            return NULL;
    }
    return NULL;
}

/* fstab. */

/* Replaces octal escapes in a field: \040 is a space. */
static void unescape(char *field)
{
    char *to = field;
    for (const char *from = field; *from; to++) {
        unsigned value = 0;
        int digits = 0;
        if (*from == '\\')
            while (digits < 3 && from[digits + 1] >= '0' && from[digits + 1] <= '7')
                value = value * 8 + (unsigned)(from[++digits] - '0');
        *to = digits == 3 && value && value < 256 ? (char)value : *from;
        from += digits == 3 && value && value < 256 ? 4 : 1;
    }
    *to = '\0';
}

/* Whether the device of a line may be this file system: it has its UUID or label, or says neither.
 */
static bool names_file_system(const struct bw_fs *fs, const char *device)
{
    static const char *const by_uuid[] = {"UUID=", "/dev/disk/by-uuid/"};
    static const char *const by_label[] = {"LABEL=", "/dev/disk/by-label/"};
    char fsid[UUID_STR_LEN];
    uuid_unparse_lower(fs->superblock.fsid, fsid);
    for (size_t i = 0; i < 2; i++) {
        const char *uuid = device + strlen(by_uuid[i]), *label = device + strlen(by_label[i]);
        if (strncmp(device, by_uuid[i], strlen(by_uuid[i])) == 0)
            return strncasecmp(uuid + (*uuid == '"'), fsid, strlen(fsid)) == 0;
        if (strncmp(device, by_label[i], strlen(by_label[i])) == 0)
            return strcmp(label, fs->superblock.label) == 0;
    }
    return true;
}

/* Adds the lines of an fstab that mount a subvolume of this file system. */
static struct bw_error *parse_fstab(struct bw_systems *systems, char *text, size_t *count)
{
    static const char spaces[] = " \t";
    char *rest = text;
    *count = 0;
    for (char *line; *count < MOUNTS && (line = strsep(&rest, "\n"));) {
        char *position = NULL;
        char *device = strtok_r(line, spaces, &position),
             *point = strtok_r(NULL, spaces, &position);
        const char *type = strtok_r(NULL, spaces, &position);
        char *options = strtok_r(NULL, spaces, &position);
        if (!device || *device == '#' || !type || *point != '/' || strcmp(type, "btrfs") != 0 ||
            !names_file_system(systems->fs, device))
            continue;

        /* Which subvolume: an absolute path, so that it is no id; an id; or the default one. */
        const char *given = NULL;
        bool is_path = false;
        for (char *option; options && (option = strsep(&options, ","));) {
            if (strncmp(option, "subvol=", 7) == 0) {
                given = option + 7;
                is_path = true;
            } else if (strncmp(option, "subvolid=", 9) == 0 && !is_path) {
                given = option + 9;
            }
        }
        BW_AUTO_BUFFER struct bw_buffer name = {0};
        if (is_path)
            bw_buffer_format(&name, "/%s%c", given + strspn(given, "/"), '\0');
        else
            bw_buffer_format(&name, "%s%c", given ? given : "default", '\0');
        BW_TRY(bw_buffer_error(&name));

        struct bw_system_mount mount = {.mount_point = NULL};
        unescape(point);
        BW_TRY(keep_text(systems, point, strlen(point), &mount.mount_point));
        if (given)
            BW_TRY(keep_text(systems, given, strlen(given), &mount.subvolume_path));
        struct bw_error *error = bw_subvolume_by_name(systems->fs, name.data, &mount.subvolume);
        if (error)
            mount.subvolume = NULL;
        BW_TRY(bw_error_tolerate(error));
        BW_TRY(mount_list_push(&systems->mounts, mount));
        ++*count;
    }
    return NULL;
}

/* Containers. */

static struct bw_error *add_container(struct bw_systems *systems, struct container_place *place,
                                      const struct container *found)
{
    struct container container = {.is_image = found->is_image};
    if (!found->storage || !found->name || place->containers.count == CONTAINERS)
        return NULL;
    BW_TRY(keep_text(systems, found->storage, strlen(found->storage), &container.storage));
    BW_TRY(keep_text(systems, found->name, strnlen(found->name, TEXT), &container.name));
    return containers_push(&place->containers, container);
}

/* Podman: lists of objects with the members id, names and layer. */
static struct bw_error *read_podman(struct bw_systems *systems, struct container_place *place,
                                    const char *file, bool is_image)
{
    BW_AUTO_BUFFER struct bw_buffer path = {0}, text = {0}, storage = {0}, name = {0};
    bw_buffer_format(&path, "%s/%s%c", place->path, file, '\0');
    BW_TRY(bw_buffer_error(&path));
    BW_TRY(read_file(systems->fs, NULL, path.data, LARGE, &text));
    struct bw_json_scan scan = {.next = text.data, .end = text.data + text.length - 1};
    struct bw_error *error = NULL;
    enum { OBJECT = 2, NAMES = 3 }; /* depths */
    while (text.length && !error && bw_json_scan_next(&scan)) {
        place->is_read = true;
        const struct bw_buffer *value = &scan.text;
        if (scan.kind == BW_JSON_BEGIN && scan.depth == OBJECT) {
            storage.length = name.length = 0;
        } else if (scan.kind == BW_JSON_STRING && scan.depth == OBJECT &&
                   strcmp(scan.key.data, "layer") == 0) {
            storage.length = 0;
            bw_buffer_append(&storage, value->data, value->length);
        } else if (scan.kind == BW_JSON_STRING && scan.depth == NAMES && !name.length &&
                   strcmp(scan.key.data, "names") == 0) {
            bw_buffer_append(&name, value->data, value->length);
        } else if (scan.kind == BW_JSON_END && scan.depth == OBJECT - 1 && storage.length &&
                   name.length) {
            const struct container found = {storage.data, name.data, is_image};
            error = add_container(systems, place, &found);
        }
    }
    if (scan.key.failed || scan.text.failed || storage.failed || name.failed)
        error = bw_error_first(error, bw_error_no_memory());
    bw_json_scan_free(&scan);
    return error;
}

/* Appends the value of a member of the outermost object, if it exists. */
static struct bw_error *find_member(const struct bw_buffer *text, const char *key,
                                    struct bw_buffer *value)
{
    struct bw_json_scan scan = {.next = text->data, .end = text->data + text->length};
    bool found = false;
    while (text->length && !found && bw_json_scan_next(&scan)) {
        found = scan.kind == BW_JSON_STRING && scan.depth == 1 && strcmp(scan.key.data, key) == 0;
        if (found)
            bw_buffer_append(value, scan.text.data, scan.text.length);
    }
    const bool failed = scan.key.failed || scan.text.failed || value->failed;
    bw_json_scan_free(&scan);
    return failed ? bw_error_no_memory() : NULL;
}

/* Docker: a folder for each container, whose file mount-id names the subvolume. */
static struct bw_error *read_docker(struct bw_systems *systems, struct container_place *place)
{
    struct bw_fs *fs = systems->fs;
    struct bw_directory *directory;
    struct bw_place mounts;
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    bw_buffer_format(&path, "%s/image/btrfs/layerdb/mounts%c", place->path, '\0');
    BW_TRY(bw_buffer_error(&path));
    BW_AUTO_ERROR struct bw_error *none = bw_lookup(fs, NULL, path.data, true, &mounts);
    if (none || mounts.type != BW_FILE_DIRECTORY)
        return NULL;
    place->is_read = true;
    BW_TRY(bw_directory_open(fs, &mounts, BW_DIRECTORY_START, &directory));
    struct bw_error *error = NULL;
    for (size_t i = 0; i < CONTAINERS && !error; i++) {
        const struct bw_directory_entry *entry;
        BW_AUTO_BUFFER struct bw_buffer id = {0}, config = {0}, file = {0}, name = {0};
        error = bw_directory_next(directory, &entry);
        if (error || !entry)
            break;
        const int length = (int)entry->name_length;
        bw_buffer_format(&file, "%s/%.*s/mount-id%c", path.data, length, entry->name, '\0');
        if (!file.failed)
            error = read_file(fs, NULL, file.data, TEXT, &id);
        file.length = 0;
        bw_buffer_format(&file, "%s/containers/%.*s/config.v2.json%c", place->path, length,
                         entry->name, '\0');
        if (!error && !file.failed)
            error = read_file(fs, NULL, file.data, LARGE, &config);
        if (!error && file.failed)
            error = bw_error_no_memory();
        if (!error)
            error = find_member(&config, "Name", &name);
        if (error || !id.length || !name.length)
            continue;
        id.data[strcspn(id.data, "\n")] = '\0';
        const struct container found = {id.data, name.data + (*name.data == '/'), false};
        error = add_container(systems, place, &found);
    }
    bw_directory_close(directory);
    return error;
}

/* Tools, by the paths of subvolumes. */

/* Whether a name ends as btrbk ends the names of snapshots: ".20240131", perhaps with a time
 * "T1530", "T153000+0100" and a number "_1". */
static bool has_btrbk_date(const char *name)
{
    const char *dot = strrchr(name, '.');
    if (!dot || dot == name)
        return false;
    const size_t digits = strspn(dot + 1, "0123456789");
    const char *rest = dot + 1 + digits;
    return digits == 8 && rest[strspn(rest, "T+-_0123456789")] == '\0' &&
           (!*rest || *rest == 'T' || *rest == '_');
}

/* The description in a file of Snapper or Timeshift. */
static struct bw_error *read_description(struct bw_systems *systems, const char *directory,
                                         size_t length, bool is_xml, const char **title)
{
    static const char begin[] = "<description>", end[] = "</description>";
    static const struct {
        const char *name;
        char character;
    } entities[] = {
        {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}, {"&amp;", '&'}};
    BW_AUTO_BUFFER struct bw_buffer path = {0}, text = {0}, value = {0};
    bw_buffer_format(&path, "%.*s/info.%s%c", (int)length, directory, is_xml ? "xml" : "json",
                     '\0');
    BW_TRY(bw_buffer_error(&path));
    BW_TRY(read_file(systems->fs, NULL, path.data, SMALL, &text));
    if (!is_xml) {
        BW_TRY(find_member(&text, "comments", &value));
        return value.length ? keep_short(systems, value.data, strlen(value.data), title) : NULL;
    }
    const char *next = text.length ? strstr(text.data, begin) : NULL;
    const char *stop = next ? strstr(next, end) : NULL;
    if (!stop)
        return NULL;
    next += strlen(begin);
    while (next < stop) {
        size_t i = 0;
        while (i < sizeof entities / sizeof *entities &&
               strncmp(next, entities[i].name, strlen(entities[i].name)) != 0)
            i++;
        const bool is_entity = i < sizeof entities / sizeof *entities;
        bw_buffer_append_byte(&value, is_entity ? entities[i].character : *next);
        next += is_entity ? strlen(entities[i].name) : 1;
    }
    BW_TRY(bw_buffer_error(&value));
    return keep_short(systems, value.data, value.length, title);
}

/* If a subvolume is where a tool keeps containers, finds out what the tool says about it. The
 * records of a place are read when its first container is found. Containers without a name are
 * layers of images, if the records exist: `is_layer`. */
static struct bw_error *find_container(struct bw_systems *systems, struct bw_system_info *info,
                                       bool *is_layer)
{
    static const struct {
        const char *part; /* of the path, before the name of the subvolume */
        const char *tool;
        const char *below; /* of `part`: the end of the place with the records */
    } stores[] = {{"/docker/btrfs/subvolumes/", "docker", "/btrfs/subvolumes/"},
                  {"/storage/btrfs/subvolumes/", "podman", "/btrfs/subvolumes/"},
                  {"/lib/machines/", "machined", NULL},
                  {"/@machines/", "machined", NULL},
                  {"/lxd/storage-pools/", "lxd", NULL},
                  {"/incus/storage-pools/", "incus", NULL}};
    const size_t count = sizeof stores / sizeof *stores;
    const char *path = info->path, *name = strrchr(path, '/') + 1;
    size_t i = 0;
    *is_layer = false;
    for (; i < count; i++) {
        const char *part = strstr(path, stores[i].part);
        if (part && (!stores[i].below || part + strlen(stores[i].part) == name))
            break;
    }
    if (i == count)
        return NULL;
    info->kind = BW_SYSTEM_CONTAINER;
    info->tool = stores[i].tool;
    if (!stores[i].below)
        return keep_short(systems, name, strlen(name), &info->title);

    const size_t length = (size_t)(name - path) - strlen(stores[i].below);
    struct container_place *place = systems->places, *end = place + systems->place_count;
    while (place < end && (strlen(place->path) != length || memcmp(place->path, path, length) != 0))
        place++;
    if (place == end && systems->place_count == PLACES)
        return NULL;
    if (place == end) {
        *place = (struct container_place){.path = NULL};
        BW_TRY(keep_text(systems, path, length, &place->path));
        systems->place_count++;
        if (i == 0) {
            BW_TRY(read_docker(systems, place));
        } else {
            BW_TRY(read_podman(systems, place, "btrfs-containers/containers.json", false));
            BW_TRY(read_podman(systems, place, "btrfs-images/images.json", true));
        }
    }

    size_t k = 0;
    const struct container *containers = place->containers.items;
    while (k < place->containers.count && strcmp(containers[k].storage, name) != 0)
        k++;
    *is_layer = place->is_read && k == place->containers.count;
    if (k < place->containers.count) {
        info->title = containers[k].name;
        if (containers[k].is_image)
            info->kind = BW_SYSTEM_IMAGE;
    }
    return NULL;
}

/* Finds out which tool made a snapshot, and what that tool says about it. The paths are
 * /.snapshots/NUMBER/snapshot and /timeshift-btrfs/snapshots/DATE/NAME. */
static struct bw_error *find_snapshot_tool(struct bw_systems *systems, struct bw_system_info *info)
{
    const char *path = info->path, *name = strrchr(path, '/') + 1;
    const size_t above = (size_t)(name - path) - 1; /* length of the path of the folder */
    size_t number = above;
    while (number && path[number - 1] >= '0' && path[number - 1] <= '9')
        number--;
    if (strcmp(name, "snapshot") == 0 && number < above && number && path[number - 1] == '/') {
        info->tool = "snapper";
        return read_description(systems, path, above, true, &info->title);
    }
    if (strstr(path, "timeshift-btrfs/snapshots")) {
        info->tool = "timeshift";
        return read_description(systems, path, above, false, &info->title);
    }
    if (has_btrbk_date(name))
        info->tool = "btrbk";
    return NULL;
}

/* Finding systems. */

/* Adds a subvolume if it is a system. */
static struct bw_error *examine(struct bw_systems *systems, const struct bw_subvolume_info *info)
{
    struct bw_fs *fs = systems->fs;
    const struct bw_subvolume *subvolume = bw_subvolume_by_id(fs, info->id);
    struct bw_system_info system = {.subvolume = subvolume,
                                    .kind = BW_SYSTEM_ROOT,
                                    .is_default = info->is_default,
                                    .is_snapshot = info->is_snapshot,
                                    .read_only = info->read_only,
                                    .generation = info->generation,
                                    .ctime = info->ctime,
                                    .otime = info->otime};
    struct bw_place os_release = {.inode = 0};
    char *path = NULL;
    bool is_layer = false;
    if (!subvolume)
        return NULL;
    BW_TRY(find_os_release(fs, subvolume, &os_release));
    BW_TRY(bw_strings_reserve(&systems->texts, 1));
    /* It may have no path, or a lost one. */
    BW_TRY(bw_error_tolerate(bw_subvolume_path(fs, subvolume, &path, NULL)));
    if (path) {
        BW_TRY(bw_strings_push(&systems->texts, path));
        system.path = path;
        BW_TRY(find_container(systems, &system, &is_layer));
        if (!system.tool)
            BW_TRY(find_snapshot_tool(systems, &system));
    }
    if ((!os_release.inode && !system.title) || is_layer ||
        (!os_release.inode && system.kind == BW_SYSTEM_ROOT))
        return NULL;
    if (os_release.inode && !fs->no_data) {
        BW_AUTO_BUFFER struct bw_buffer text = {0};
        BW_TRY(end_reading(fs, subvolume, bw_data_read_text(fs, &os_release, SMALL, &text), &text));
        if (text.length)
            BW_TRY(parse_os_release(systems, text.data, &system));
    }
    return system_list_push(&systems->list, system);
}

/* Reads the fstab of installed systems: of the writable ones, or of all, if none is. */
static struct bw_error *read_fstabs(struct bw_systems *systems)
{
    bool has_writable = false;
    for (size_t i = 0; i < systems->list.count; i++)
        has_writable |=
            systems->list.items[i].kind == BW_SYSTEM_ROOT && !systems->list.items[i].read_only;
    for (size_t i = 0; i < systems->list.count; i++) {
        struct bw_system_info *system = &systems->list.items[i];
        BW_TRY(bw_numbers_push(&systems->first_mounts, systems->mounts.count));
        BW_TRY(bw_numbers_push(&systems->in_fstab, 0));
        if (system->kind != BW_SYSTEM_ROOT || (has_writable && system->read_only) ||
            systems->mounts.count > ALL_MOUNTS)
            continue;
        BW_AUTO_BUFFER struct bw_buffer text = {0};
        BW_TRY(read_file(systems->fs, system->subvolume, "etc/fstab", SMALL, &text));
        if (text.length)
            BW_TRY(parse_fstab(systems, text.data, &system->mount_count));
    }
    for (size_t i = 0; i < systems->list.count; i++)
        if (systems->list.items[i].mount_count)
            systems->list.items[i].mounts = systems->mounts.items + systems->first_mounts.items[i];
    return NULL;
}

/* The current system, and the versions of each. */

static bool is_in_fstab(const struct bw_systems *systems, const struct bw_system_info *system)
{
    return systems->in_fstab.items[system - systems->list.items];
}

/* How likely it is that a system is in use: higher is likelier. */
static unsigned rank_of(const struct bw_systems *systems, const struct bw_system_info *system)
{
    return 8u * system->is_default + 4u * is_in_fstab(systems, system) + 2u * !system->is_snapshot +
           !system->read_only;
}

/* Returns the likelier of two systems, or the newer one if both are equally likely. The first may
 * be NULL. */
static struct bw_system_info *likelier(const struct bw_systems *systems, struct bw_system_info *a,
                                       struct bw_system_info *b)
{
    if (!a)
        return b;
    const unsigned first = rank_of(systems, a), second = rank_of(systems, b);
    if (first != second)
        return first > second ? a : b;
    return a->generation >= b->generation ? a : b;
}

static void choose_current(struct bw_systems *systems)
{
    struct bw_system_info *chosen = NULL;
    size_t originals = 0;
    for (size_t i = 0; i < systems->mounts.count; i++) {
        const struct bw_system_mount *mount = &systems->mounts.items[i];
        for (size_t k = 0; strcmp(mount->mount_point, "/") == 0 && k < systems->list.count; k++)
            systems->in_fstab.items[k] |= systems->list.items[k].subvolume == mount->subvolume;
    }
    for (size_t i = 0; i < systems->list.count; i++) {
        struct bw_system_info *system = &systems->list.items[i];
        if (system->kind != BW_SYSTEM_ROOT)
            continue;
        chosen = likelier(systems, chosen, system);
        originals += !system->is_snapshot;
    }
    if (!chosen)
        return;
    if (chosen->is_default)
        chosen->current = BW_SYSTEM_IS_DEFAULT;
    else if (is_in_fstab(systems, chosen))
        chosen->current = BW_SYSTEM_IN_FSTAB;
    else if (originals == 1 && !chosen->is_snapshot)
        chosen->current = BW_SYSTEM_IS_ONLY;
    else
        chosen->current = BW_SYSTEM_IS_NEWEST;
    systems->current = chosen;
}

static int compare_relations(const void *a, const void *b)
{
    return memcmp(((const struct relation *)a)->uuid, ((const struct relation *)b)->uuid,
                  BW_UUID_SIZE);
}

/* The first system of the versions that a system is one of. */
static uint64_t first_version(const struct bw_numbers *above, uint64_t system)
{
    while (above->items[system] != system)
        system = above->items[system] = above->items[above->items[system]];
    return system;
}

/* Finds the versions of each system. */
static struct bw_error *join_versions(struct bw_systems *systems)
{
    BW_SCOPED(relations) struct relations relations = {0};
    BW_SCOPED(bw_numbers) struct bw_numbers above = {0};
    static const uint8_t none[BW_UUID_SIZE];
    const size_t count = systems->list.count;
    for (size_t i = 0; i < count; i++) {
        struct bw_subvolume_info info;
        BW_TRY(bw_numbers_push(&above, i));
        if (systems->list.items[i].kind != BW_SYSTEM_ROOT)
            continue;
        BW_AUTO_ERROR struct bw_error *error =
            bw_subvolume_get(systems->fs, systems->list.items[i].subvolume, &info);
        const uint8_t *const uuids[] = {info.uuid, info.parent_uuid, info.received_uuid};
        for (size_t k = 0; !error && k < sizeof uuids / sizeof *uuids; k++) {
            struct relation relation = {.system = i};
            memcpy(relation.uuid, uuids[k], BW_UUID_SIZE);
            if (memcmp(relation.uuid, none, BW_UUID_SIZE) != 0)
                BW_TRY(relations_push(&relations, relation));
        }
    }
    relations_sort(&relations, compare_relations);
    for (size_t i = 1; i < relations.count; i++)
        if (compare_relations(&relations.items[i - 1], &relations.items[i]) == 0)
            above.items[first_version(&above, relations.items[i].system)] =
                first_version(&above, relations.items[i - 1].system);

    /* The likeliest version is the system, the others are snapshots of it. */
    BW_AUTO_FREE struct bw_system_info **heads = calloc(count + 1, sizeof(*heads));
    if (!heads)
        return bw_error_no_memory();
    for (size_t i = 0; i < count; i++) {
        struct bw_system_info *system = &systems->list.items[i];
        struct bw_system_info **head = &heads[first_version(&above, i)];
        if (system->kind == BW_SYSTEM_ROOT)
            *head = likelier(systems, *head, system);
    }
    for (size_t i = 0; i < count; i++) {
        const struct bw_system_info *head = heads[first_version(&above, i)];
        struct bw_system_info *system = &systems->list.items[i];
        if (!head)
            continue;
        system->system = head->subvolume;
        if (system != head)
            system->kind = BW_SYSTEM_SNAPSHOT;
    }
    return NULL;
}

struct bw_error *bw_systems_open(struct bw_fs *fs, struct bw_systems **result)
{
    struct bw_systems *systems = calloc(1, sizeof *systems);
    struct bw_subvolume_infos *infos = NULL;
    size_t examined = 0;
    *result = NULL;
    if (!systems)
        return bw_error_no_memory();
    systems->fs = fs;

    struct bw_error *error = bw_subvolume_infos_open(fs, false, &infos);
    for (const struct bw_subvolume_info *info; !error && (info = bw_subvolume_infos_next(infos));) {
        if (info->is_deleted)
            continue;
        if (examined++ == SUBVOLUMES) {
            bw_fs_report_text(fs, BW_WARNING, BW_ERROR_USAGE,
                              "systems: only the first %d subvolumes are examined",
                              (int)SUBVOLUMES);
            break;
        }
        error = examine(systems, info);
    }
    if (infos)
        error = bw_error_first(error, bw_subvolume_infos_close(infos));
    if (!error)
        error = read_fstabs(systems);
    if (!error) {
        choose_current(systems);
        error = join_versions(systems);
    }
    if (error) {
        bw_systems_close(systems);
        return error;
    }
    *result = systems;
    return NULL;
}

const struct bw_system_info *bw_systems_next(struct bw_systems *systems)
{
    return systems->next < systems->list.count ? &systems->list.items[systems->next++] : NULL;
}

void bw_systems_rewind(struct bw_systems *systems)
{
    systems->next = 0;
}

const struct bw_system_info *bw_systems_current(const struct bw_systems *systems)
{
    return systems->current;
}

void bw_systems_close(struct bw_systems *systems)
{
    if (!systems)
        return;
    for (size_t i = 0; i < systems->place_count; i++)
        containers_free(&systems->places[i].containers);
    system_list_free(&systems->list);
    mount_list_free(&systems->mounts);
    bw_numbers_free(&systems->first_mounts);
    bw_numbers_free(&systems->in_fstab);
    bw_strings_free_all(&systems->texts);
    free(systems);
}

const char *bw_system_kind_name(enum bw_system_kind kind)
{
    static const char *const names[] = {[BW_SYSTEM_ROOT] = "system",
                                        [BW_SYSTEM_SNAPSHOT] = "snapshot",
                                        [BW_SYSTEM_CONTAINER] = "container",
                                        [BW_SYSTEM_IMAGE] = "image"};
    return names[kind];
}

const char *bw_system_reason_name(enum bw_system_reason reason)
{
    static const char *const names[] = {[BW_SYSTEM_NOT_CURRENT] = NULL,
                                        [BW_SYSTEM_IS_DEFAULT] = "default",
                                        [BW_SYSTEM_IN_FSTAB] = "fstab",
                                        [BW_SYSTEM_IS_ONLY] = "only",
                                        [BW_SYSTEM_IS_NEWEST] = "newest"};
    return names[reason];
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random content: what people do to a file system, in any order. */
#include "soak/subject.h"

enum { STEPS = 300, MOST = 64, SUBVOLUMES = 8, FILE_EVERY = 3 };

/* A file or a directory, and one of its names. */
struct thing {
    uint64_t subvolume, inode, parent;
    char name[64];
};

/* The first directories and files of an image, for random choices. */
struct content {
    struct iw_image *image;
    struct dice *dice;
    struct thing directories[MOST];
    struct thing files[MOST];
    uint64_t subvolumes[SUBVOLUMES];
    size_t directory_count, file_count, subvolume_count;
    unsigned names;
};

/* A name that was not used before; now and then a long one, or one with odd bytes in it. */
static void make_name(struct content *content, char name[static 64])
{
    static const char *const stems[] = {"file",
                                        "a name with spaces",
                                        "\303\274ml\303\244ut",
                                        "new\nline",
                                        "\377\376",
                                        "-rf",
                                        "a rather long name that fills a leaf sooner"};
    snprintf(name, 64, "%s%u",
             stems[one_in(content->dice, 3) ? roll(content->dice, COUNT(stems)) : 0],
             content->names++);
}

static const struct thing *any_directory(struct content *content)
{
    return &content->directories[roll(content->dice, (unsigned)content->directory_count)];
}

static void add_directory(struct content *content)
{
    const struct thing *in = any_directory(content);
    if (content->directory_count == MOST)
        return;
    struct thing *made = &content->directories[content->directory_count];
    *made = (struct thing){.subvolume = in->subvolume, .parent = in->inode};
    make_name(content, made->name);
    made->inode = iw_directory(content->image, made->subvolume, made->parent, made->name);
    content->directory_count++;
}

static void add_file(struct content *content)
{
    static const uint8_t types[] = {BW_FILE_FIFO, BW_FILE_REGULAR, BW_FILE_REGULAR, BW_FILE_REGULAR,
                                    BW_FILE_REGULAR};
    const struct thing *in = any_directory(content);
    struct thing file = {.subvolume = in->subvolume, .parent = in->inode};
    make_name(content, file.name);
    file.inode = iw_make(content->image, file.subvolume, file.parent, file.name,
                         types[roll(content->dice, COUNT(types))]);
    content->files[content->file_count < MOST ? content->file_count++ : roll(content->dice, MOST)] =
        file;
}

static const struct thing *directory_in(struct content *content, uint64_t subvolume)
{
    for (unsigned tries = 0; tries < 20; tries++) {
        const struct thing *found = any_directory(content);
        if (found->subvolume == subvolume)
            return found;
    }
    return NULL;
}

static void add_link(struct content *content)
{
    char name[64];
    if (!content->file_count)
        return;
    const struct thing *file = &content->files[roll(content->dice, (unsigned)content->file_count)];
    const struct thing *in = directory_in(content, file->subvolume);
    make_name(content, name);
    if (in && one_in(content->dice, 2))
        iw_link(content->image, file->subvolume, file->inode, in->inode, name);
    else if (in)
        iw_link_extended(content->image, file->subvolume, file->inode, in->inode, name);
}

static void move_file(struct content *content)
{
    char name[64];
    if (!content->file_count)
        return;
    struct thing *file = &content->files[roll(content->dice, (unsigned)content->file_count)];
    const struct thing *to = directory_in(content, file->subvolume);
    if (!to)
        return;
    make_name(content, name);
    iw_move(content->image, file->subvolume, file->inode, file->parent, file->name, to->inode,
            name);
    file->parent = to->inode;
    memcpy(file->name, name, sizeof name);
}

static bool is_below(const struct content *content, const struct thing *low, uint64_t high)
{
    for (uint64_t at = low->inode; at != TOP;) {
        if (at == high)
            return true;
        for (size_t i = 0; i < content->directory_count; i++) {
            const struct thing *step = &content->directories[i];
            if (step->subvolume == low->subvolume && step->inode == at) {
                at = step->parent;
                break;
            }
        }
    }
    return false;
}

static void move_directory(struct content *content)
{
    char name[64];
    struct thing *moved =
        &content->directories[roll(content->dice, (unsigned)content->directory_count)];
    const struct thing *to = directory_in(content, moved->subvolume);
    if (moved->inode == TOP || !to || is_below(content, to, moved->inode))
        return;
    make_name(content, name);
    iw_move(content->image, moved->subvolume, moved->inode, moved->parent, moved->name, to->inode,
            name);
    moved->parent = to->inode;
    memcpy(moved->name, name, sizeof name);
}

static void note_subvolume(struct content *content, uint64_t id)
{
    content->subvolumes[content->subvolume_count++] = id;
    if (content->directory_count < MOST)
        content->directories[content->directory_count++] =
            (struct thing){.subvolume = id, .inode = TOP};
}

static void add_subvolume(struct content *content)
{
    const struct thing *in = any_directory(content);
    uint64_t id = BW_FIRST_SUBVOLUME + content->subvolume_count * 3;
    char name[64];
    if (content->subvolume_count == SUBVOLUMES)
        return;
    make_name(content, name);
    if (one_in(content->dice, 2))
        iw_subvolume(content->image, id, in->subvolume, in->inode, name, 0);
    else
        iw_snapshot(content->image, id,
                    content->subvolumes[roll(content->dice, (unsigned)content->subvolume_count)],
                    in->subvolume, in->inode, name,
                    one_in(content->dice, 2) ? BW_ROOT_READ_ONLY : 0);
    note_subvolume(content, id);
}

static void jump_inodes(struct content *content)
{
    uint64_t subvolume = any_directory(content)->subvolume;
    iw_next_inode(content->image, subvolume, 1000 + (uint64_t)content->names * 1000);
}

/* Not the top-level subvolume, which no one can delete; nor one that has others in it. */
static void delete_last_subvolume(struct content *content)
{
    if (content->subvolume_count < 2)
        return;
    iw_delete_subvolume(content->image, content->subvolumes[--content->subvolume_count]);
}

void fill_at_random(struct iw_image *image, struct dice *dice)
{
    static void (*const steps[])(struct content *) = {add_directory, add_directory,  add_link,
                                                      move_file,     move_directory, jump_inodes};
    struct content content = {.image = image, .dice = dice};
    note_subvolume(&content, FS);
    for (unsigned count = roll(dice, STEPS); count; count--)
        if (one_in(dice, 12))
            add_subvolume(&content);
        else if (one_in(dice, FILE_EVERY))
            steps[roll(dice, COUNT(steps))](&content);
        else
            add_file(&content);
    if (one_in(dice, 4))
        delete_last_subvolume(&content);
}

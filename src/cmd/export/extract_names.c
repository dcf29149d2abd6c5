/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names of files that have several. What became of the first name is known by export/links.h,
 * all others are here: there are none where nothing goes wrong. */
#include "cmd/export/extract.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

struct extract_replacement {
    enum extract_content content;
    char *path; /* relative to the folder; NULL: there is none yet */
};

void extract_names_init(struct extract_names *names)
{
    *names = (struct extract_names){0};
    bw_links_init(&names->links);
}

void extract_names_free(struct extract_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->others[i].path);
    free(names->others);
    bw_map_free(&names->replaced);
    bw_links_free(&names->links);
}

static const char *path_of(const struct bw_feed_item *item)
{
    return item->path.data + 1;
}

struct bw_error *extract_names_meet(struct extract_names *names, const struct bw_feed_item *item,
                                    bool *first)
{
    struct bw_link link = {.is_first = true};
    if (bw_feed_item_has_names(item) &&
        !bw_links_meet(&names->links, &item->place, path_of(item), &link))
        return bw_error_no_memory();
    *first = link.is_first;
    return NULL;
}

static bool find(struct extract_names *names, const struct bw_feed_item *item, struct bw_link *link)
{
    return bw_feed_item_has_names(item) && bw_links_find(&names->links, &item->place, link);
}

/* What is instead of the first name; NULL if nothing is. */
static struct extract_replacement *replacement_of(const struct extract_names *names,
                                                  const struct bw_link *link)
{
    uint32_t number = bw_map_get(&names->replaced, link->number);
    return number == UINT32_MAX ? NULL : &names->others[number];
}

static struct bw_error *replace(struct extract_names *names, const struct bw_link *link,
                                struct extract_replacement with)
{
    struct extract_replacement *other = replacement_of(names, link);
    if (other) {
        free(other->path);
        *other = with;
        return NULL;
    }
    if (names->count < UINT32_MAX &&
        BW_ARRAY_RESERVE(names->others, names->count, names->capacity) &&
        bw_map_put(&names->replaced, link->number, (uint32_t)names->count)) {
        names->others[names->count++] = with;
        return NULL;
    }
    free(with.path);
    return bw_error_no_memory();
}

struct bw_error *extract_names_find(struct extract_names *names, const struct bw_feed_item *item,
                                    enum extract_content *content, struct bw_buffer *path)
{
    struct bw_link link;
    *content = EXTRACT_NOWHERE;
    if (!find(names, item, &link))
        return NULL;
    const struct extract_replacement *other = replacement_of(names, &link);
    *content = other ? other->content : link.made ? EXTRACT_MADE : EXTRACT_COMING;
    if (*content != EXTRACT_MADE)
        return NULL;
    if (other)
        bw_buffer_append(path, other->path, strlen(other->path));
    else
        bw_links_append_path(&names->links, link.number, path);
    return path->failed ? bw_error_no_memory() : NULL;
}

struct bw_error *extract_names_replace(struct extract_names *names, const struct bw_feed_item *item)
{
    struct bw_link link;
    if (!find(names, item, &link))
        return NULL;
    char *path = strdup(path_of(item));
    if (!path)
        return bw_error_no_memory();
    return replace(names, &link, (struct extract_replacement){EXTRACT_COMING, path});
}

struct bw_error *extract_names_end(struct extract_names *names, const struct bw_feed_item *item,
                                   enum extract_content content)
{
    struct bw_link link;
    if (!find(names, item, &link))
        return NULL;
    struct extract_replacement *other = replacement_of(names, &link);
    if (content != EXTRACT_MADE)
        return replace(names, &link, (struct extract_replacement){content, NULL});
    if (other)
        other->content = EXTRACT_MADE;
    else
        bw_links_made(&names->links, link.number);
    return NULL;
}

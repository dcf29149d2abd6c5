/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits messages that differ only in their numbers. */
#include "cli/common/repeats.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/escape.h"

/* Replaces each number by an N; the rest of a long message does not count. */
static void remove_numbers(const char *message, char *text, size_t size)
{
    size_t length = 0;
    for (; *message && length + 1 < size; message++) {
        const bool digit = isdigit((unsigned char)*message);
        if (!digit || !length || text[length - 1] != 'N')
            text[length++] = digit ? 'N' : *message;
    }
    text[length] = '\0';
}

/* NULL if there are too many kinds. */
static struct cmd_message_kind *find_kind(struct cmd_repeats *repeats, const char *text)
{
    for (unsigned i = 0; i < repeats->count; i++)
        if (strcmp(repeats->kinds[i].text, text) == 0)
            return &repeats->kinds[i];
    if (repeats->count == CMD_MESSAGE_KINDS)
        return NULL;
    struct cmd_message_kind *kind = &repeats->kinds[repeats->count++];
    snprintf(kind->text, sizeof kind->text, "%s", text);
    kind->count = 0; /* the list may have been longer before it was cleared */
    return kind;
}

/* Returns how many messages of its kind there were, which is 0 if there are too many kinds. */
static uint64_t count_message(struct cmd_repeats *repeats, const char *message,
                              const struct cmd_message_kind **result)
{
    char text[sizeof repeats->kinds->text];
    uint64_t count = 0;
    remove_numbers(message, text, sizeof text);
    pthread_mutex_lock(&repeats->lock);
    struct cmd_message_kind *kind = find_kind(repeats, text);
    if (kind)
        count = ++kind->count;
    pthread_mutex_unlock(&repeats->lock);
    *result = kind;
    return count;
}

const struct cmd_message_kind *cmd_repeats_count(struct cmd_repeats *repeats, const char *message)
{
    const struct cmd_message_kind *kind;
    count_message(repeats, message, &kind);
    return kind;
}

bool cmd_repeats_allow(struct cmd_repeats *repeats, const char *message)
{
    const struct cmd_message_kind *kind;
    if (*message == '/') /* the list of the affected files has to be complete */
        return true;
    return count_message(repeats, message, &kind) <= CMD_EXAMPLES;
}

void cmd_repeats_print(const struct cmd_repeats *repeats)
{
    enum { SHOWN = 80 };
    for (unsigned i = 0; i < repeats->count; i++) {
        const struct cmd_message_kind *kind = &repeats->kinds[i];
        BW_AUTO_BUFFER struct bw_buffer text = {0};
        if (kind->count <= CMD_EXAMPLES)
            continue;
        bw_escape_words(&text, kind->text);
        if (text.length > SHOWN) {
            text.length = SHOWN;
            bw_buffer_append(&text, "...", 3);
        }
        fprintf(stderr, "btrfs-walk: %" PRIu64 " more like '%.*s' (-v prints all)\n",
                kind->count - CMD_EXAMPLES, (int)text.length, text.data ? text.data : "");
    }
}

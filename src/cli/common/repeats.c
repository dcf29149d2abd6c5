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

/* Replaces each number by an N, except in words like "crc32c" and after "device"; the rest of a
 * long message does not count. */
static void remove_numbers(const char *message, char *text, size_t size)
{
    static const char device[] = "device ";
    size_t length = 0;
    bool is_kept = false;
    for (char before = '\0'; *message && length + 1 < size; before = *message++) {
        const bool is_digit = isdigit((unsigned char)*message);
        const bool begins = is_digit && !isdigit((unsigned char)before);
        if (begins)
            is_kept = isalpha((unsigned char)before) ||
                      (length >= sizeof device - 1 &&
                       memcmp(text + length - (sizeof device - 1), device, sizeof device - 1) == 0);
        if (!is_digit || is_kept)
            text[length++] = *message;
        else if (begins)
            text[length++] = 'N';
    }
    text[length] = '\0';
}

/* Counts a message by its kind; NULL if there are too many kinds. */
static struct cmd_message_kind *count_message(struct cmd_repeats *repeats, const char *message,
                                              unsigned most, bool *is_allowed)
{
    char text[sizeof repeats->kinds->text];
    remove_numbers(message, text, sizeof text);
    pthread_mutex_lock(&repeats->lock);
    struct cmd_message_kind *kind = NULL;
    for (unsigned i = 0; i < repeats->count && !kind; i++)
        if (strcmp(repeats->kinds[i].text, text) == 0)
            kind = &repeats->kinds[i];
    if (!kind && repeats->count < CMD_MESSAGE_KINDS) {
        kind = &repeats->kinds[repeats->count++];
        snprintf(kind->text, sizeof kind->text, "%s", text);
        kind->count = kind->printed = 0; /* the list may have been longer before it was cleared */
    }
    if (kind)
        kind->count++;
    *is_allowed = !kind || kind->printed < most;
    if (kind && *is_allowed)
        kind->printed++;
    pthread_mutex_unlock(&repeats->lock);
    return kind;
}

const struct cmd_message_kind *cmd_repeats_count(struct cmd_repeats *repeats, const char *message)
{
    bool is_allowed;
    return count_message(repeats, message, 0, &is_allowed);
}

bool cmd_repeats_allow(struct cmd_repeats *repeats, const char *message, unsigned most)
{
    bool is_allowed = true;
    if (*message != '/') /* the list of the affected files has to be complete */
        count_message(repeats, message, most, &is_allowed);
    return is_allowed;
}

void cmd_repeats_print(const struct cmd_repeats *repeats)
{
    enum { SHOWN = 80 };
    for (unsigned i = 0; i < repeats->count; i++) {
        const struct cmd_message_kind *kind = &repeats->kinds[i];
        BW_AUTO_BUFFER struct bw_buffer text = {0};
        if (kind->count == kind->printed)
            continue;
        bw_escape_words(&text, kind->text);
        if (text.length > SHOWN) {
            text.length = SHOWN;
            bw_buffer_append(&text, "...", 3);
        }
        fprintf(stderr, "btrfs-walk: %" PRIu64 " more like '%s' (-v prints all)\n",
                kind->count - kind->printed, bw_buffer_text(&text));
    }
}

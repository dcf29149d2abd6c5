/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages as bytes: a header of fixed size, then strings. The confined process may have been taken
 * over by a crafted image, so the other one trusts nothing in a reply. */
#include "cli/shell/channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/channel.h"

enum { REPLY_MAX = 16 << 20 };

struct request_head {
    uint32_t task, count;
    uint64_t length;
};

struct reply_head {
    int32_t status;
    uint32_t ends;
    uint64_t generation, length;
};

/* With write(2): the sandbox of the worker has no send(2). */
static bool send_all(int channel, const void *bytes, size_t length)
{
    const char *next = bytes;
    while (length) {
        const ssize_t sent = write(channel, next, length);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        next += sent;
        length -= (size_t)sent;
    }
    return true;
}

/* Receives `length` bytes and adds a NUL. */
static bool receive_text(int channel, struct bw_buffer *text, size_t length)
{
    if (!bw_buffer_reserve(text, length + 1) || !bw_channel_receive(channel, text->data, length))
        return false;
    text->data[length] = '\0';
    text->length = length;
    return true;
}

bool shell_send_request(int channel, const struct shell_request *request)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    bw_buffer_append(&text, request->directory, strlen(request->directory) + 1);
    bw_buffer_append(&text, request->subvolume, strlen(request->subvolume) + 1);
    for (size_t i = 0; i < request->count; i++)
        bw_buffer_append(&text, request->words[i], strlen(request->words[i]) + 1);
    const struct request_head head = {(uint32_t)request->task, (uint32_t)request->count,
                                      text.length};
    return !text.failed && send_all(channel, &head, sizeof head) &&
           send_all(channel, text.data, text.length);
}

static const char *next_string(const char **at, const char *end)
{
    const char *string = *at;
    const char *nul = memchr(string, '\0', (size_t)(end - string));
    *at = nul ? nul + 1 : end;
    return string;
}

bool shell_receive_request(int channel, struct shell_request *request)
{
    struct request_head head;
    *request = (struct shell_request){.count = 0};
    if (!bw_channel_receive(channel, &head, sizeof head) ||
        !receive_text(channel, &request->text, head.length))
        return false;
    const char *at = request->text.data, *end = at + request->text.length;
    request->words = calloc((size_t)head.count + 1, sizeof *request->words);
    if (!request->words)
        return false;
    request->task = (enum shell_task)head.task;
    request->directory = next_string(&at, end);
    request->subvolume = next_string(&at, end);
    for (; request->count < head.count; request->count++)
        request->words[request->count] = (char *)(uintptr_t)next_string(&at, end);
    return true;
}

void shell_request_free(struct shell_request *request)
{
    free(request->words);
    bw_buffer_free(&request->text);
}

bool shell_send_reply(int channel, const struct shell_reply *reply)
{
    const struct reply_head head = {reply->status, reply->ends, reply->generation,
                                    reply->text.length};
    return send_all(channel, &head, sizeof head) &&
           send_all(channel, reply->text.data, reply->text.length);
}

bool shell_receive_reply(int channel, struct shell_reply *reply)
{
    struct reply_head head;
    *reply = (struct shell_reply){.status = 0};
    if (!bw_channel_receive(channel, &head, sizeof head) || head.length > REPLY_MAX ||
        !receive_text(channel, &reply->text, head.length))
        return false;
    reply->status = head.status;
    reply->ends = head.ends;
    reply->generation = head.generation;
    return true;
}

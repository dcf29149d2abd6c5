/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages between a confined process and its maker: orders and replies on a socket.
 *
 * The confined process may not make links and special files, because an attacker in it could make
 * any. It sends orders to the maker, which accepts only those that the program itself would send.
 * Orders are sent in batches, and a batch is sent only when all replies to the previous one have
 * been received, so the two never wait for each other. The maker checks every byte of an order, and
 * ends at the first invalid one.
 */
#include "export/target.h"

#include <errno.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/channel.h"
#include "base/cleanup.h"

/* A message can contain all attributes of a file; no file has more than these limits. */
enum { MOST_BYTES = 64 << 20, MOST_XATTRS = 1 << 20, BATCH_BYTES = 16 << 10 };

/* The head of a message, followed by orders or replies. Both sides are the same program, so
 * structures are sent unchanged. */
struct batch_head {
    uint32_t length; /* of the rest */
    uint32_t count;
};

/* The head of an order, followed by the path, the NUL-terminated target of the link, and the
 * attributes. */
struct order_head {
    uint32_t path_length, link_length, xattr_count;
    uint8_t has_inode, has_link;
    struct bw_inode inode;
};

/* The head of an attribute, followed by its NUL-terminated name and its value. */
struct xattr_head {
    uint16_t name_length, value_length;
};

/* The head of a reply, followed by errors: first the reason why the order failed, if it did, then
 * the errors of attributes. */
struct answer_head {
    uint32_t error_count;
    bool failed, ours;
    uint64_t lowered, foreign, without_owner, without_xattrs;
};

struct error_head {
    int32_t code, system;
    uint32_t length; /* length of the message, which follows */
};

/* The functions called here refuse everything that must not be made this way. */
static struct bw_error *perform_order(struct bw_target *target, const struct bw_target_order *order,
                                      bool *ours)
{
    const struct bw_inode *inode = order->attributes ? order->attributes->inode : NULL;
    int descriptor;
    if (!inode || S_ISDIR(inode->mode))
        return bw_target_make_directory(target, order->path, order->length, inode, ours);
    if (order->link) {
        BW_TRY(
            bw_target_make_symlink(target, order->path, order->length, order->link, &descriptor));
    } else {
        const bool is_device = S_ISCHR(inode->mode) || S_ISBLK(inode->mode);
        const dev_t device = is_device ? makedev(bw_inode_major(inode), bw_inode_minor(inode)) : 0;
        BW_TRY(bw_target_make_node(target, order->path, order->length, inode->mode & S_IFMT, device,
                                   &descriptor));
    }
    bw_target_restore(target, descriptor, order->path, order->length, order->attributes);
    close(descriptor);
    return NULL;
}

/* Reserves space for the head of a message. */
static void begin_batch(struct bw_buffer *text)
{
    const struct batch_head head = {0};
    text->length = 0;
    bw_buffer_append(text, &head, sizeof head);
}

static bool send_batch(int channel, struct bw_buffer *text, uint32_t count)
{
    const struct batch_head head = {(uint32_t)(text->length - sizeof head), count};
    if (text->failed)
        return false;
    memcpy(text->data, &head, sizeof head);
    return bw_channel_send(channel, text->data, text->length);
}

static bool receive_batch(int channel, struct bw_buffer *text, uint32_t *count)
{
    struct batch_head head;
    text->length = 0;
    if (!bw_channel_receive(channel, &head, sizeof head) || head.length > MOST_BYTES ||
        !bw_buffer_reserve(text, head.length) ||
        !bw_channel_receive(channel, text->data, head.length))
        return false;
    text->length = head.length;
    *count = head.count;
    return true;
}

/* The next bytes of a message; NULL if it is too short. */
static const void *next_bytes(const struct bw_buffer *text, size_t *position, size_t length)
{
    if (length > text->length - *position)
        return NULL;
    *position += length;
    return text->data + *position - length;
}

/* The confined process. */

/* The next error of a reply; NULL if the reply is too short. */
static struct bw_error *next_error(const struct bw_buffer *text, size_t *position)
{
    struct error_head head;
    const void *bytes = next_bytes(text, position, sizeof head);
    if (!bytes)
        return NULL;
    memcpy(&head, bytes, sizeof head);
    bytes = next_bytes(text, position, head.length);
    if (!bytes)
        return NULL;
    struct bw_error *error = bw_error_create((enum bw_error_code)head.code, "%.*s",
                                             (int)head.length, (const char *)bytes);
    if (error->code != BW_ERROR_NO_MEMORY)
        error->system = head.system;
    return error;
}

static struct bw_error *is_lost(void)
{
    return bw_error_from_errno(EIO, "lost the process that makes links and special files");
}

/* Receives the replies to all orders sent. With `last`, the caller waits for the last order, and
 * its error is stored there; errors of other orders are passed to maker->failed. */
static struct bw_error *receive_answers(struct bw_target_maker *maker, struct bw_error **last,
                                        bool *ours)
{
    struct bw_target *target = maker->target;
    uint32_t count;
    size_t position = 0;
    if (!maker->sent)
        return NULL;
    if (!receive_batch(maker->channel, &maker->answers, &count) || count != maker->sent)
        return is_lost();
    maker->sent = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct bw_error *result = NULL; /* why the order failed */
        struct answer_head head;
        const void *bytes = next_bytes(&maker->answers, &position, sizeof head);
        if (!bytes)
            return is_lost();
        memcpy(&head, bytes, sizeof head);
        for (uint32_t k = 0; k < head.error_count; k++) {
            struct bw_error *error = next_error(&maker->answers, &position);
            if (!error) {
                bw_error_free(result);
                return is_lost();
            }
            if (head.failed && k == 0)
                result = error;
            else
                target->options.missed(target->options.context, error);
        }
        target->lowered += head.lowered;
        target->foreign += head.foreign;
        target->without_owner += head.without_owner;
        target->without_xattrs += head.without_xattrs;
        *ours = head.ours;
        if (last && i + 1 == count)
            *last = result;
        else if (result)
            BW_TRY(maker->failed(maker->context, result));
    }
    return NULL;
}

/* Sends the pending orders. First receives all replies, so that the two processes never wait for
 * each other with full sockets. */
static struct bw_error *send_orders(struct bw_target_maker *maker)
{
    bool ours;
    BW_TRY(receive_answers(maker, NULL, &ours));
    if (!maker->waiting)
        return NULL;
    BW_TRY(bw_buffer_error(&maker->text));
    if (!send_batch(maker->channel, &maker->text, maker->waiting))
        return is_lost();
    maker->sent = maker->waiting;
    maker->waiting = 0;
    return NULL;
}

/* Adds an order to the batch, unless it has more attributes than a message can contain; no system
 * call could restore so many. */
static struct bw_error *add_order(struct bw_target_maker *maker,
                                  const struct bw_target_order *order)
{
    const struct bw_target_attributes *attributes = order->attributes;
    if (attributes && attributes->xattr_count > MOST_BYTES / (UINT16_MAX * 4))
        return bw_target_error(E2BIG, "cannot restore its attributes", order->path, order->length);
    struct bw_buffer *text = &maker->text;
    if (!maker->waiting)
        begin_batch(text);
    maker->waiting++;

    struct order_head head;
    memset(&head, 0, sizeof head); /* including padding */
    head.path_length = (uint32_t)order->length;
    head.has_link = order->link != NULL;
    head.link_length = order->link ? (uint32_t)strlen(order->link) : 0;
    head.has_inode = attributes != NULL;
    head.xattr_count = attributes ? (uint32_t)attributes->xattr_count : 0;
    if (attributes)
        head.inode = *attributes->inode;
    bw_buffer_append(text, &head, sizeof head);
    bw_buffer_append(text, order->path, order->length);
    bw_buffer_append(text, order->link ? order->link : "", (size_t)head.link_length + 1);
    for (uint32_t i = 0; i < head.xattr_count; i++) {
        const struct bw_xattr *xattr = &attributes->xattrs[i];
        const struct xattr_head xattr_head = {xattr->name_length, xattr->value_length};
        bw_buffer_append(text, &xattr_head, sizeof xattr_head);
        bw_buffer_append(text, xattr->name, (size_t)xattr->name_length + 1);
        bw_buffer_append(text, xattr->value, xattr->value_length);
    }
    return NULL;
}

struct bw_error *bw_target_make(struct bw_target_maker *maker, const struct bw_target_order *order,
                                bool *ours)
{
    struct bw_error *result = NULL;
    *ours = false;
    if (maker->channel < 0)
        return perform_order(maker->target, order, ours);
    BW_TRY(bw_target_make_rest(maker));
    BW_TRY(add_order(maker, order));
    BW_TRY(send_orders(maker));
    BW_TRY(receive_answers(maker, &result, ours));
    return result;
}

struct bw_error *bw_target_make_later(struct bw_target_maker *maker,
                                      const struct bw_target_order *order)
{
    bool ours;
    if (maker->channel < 0)
        return perform_order(maker->target, order, &ours);
    BW_TRY(add_order(maker, order));
    return maker->text.length < BATCH_BYTES ? NULL : send_orders(maker);
}

struct bw_error *bw_target_make_rest(struct bw_target_maker *maker)
{
    bool ours;
    BW_TRY(send_orders(maker));
    return receive_answers(maker, NULL, &ours);
}

void bw_target_maker_close(struct bw_target_maker *maker)
{
    if (maker->channel >= 0)
        close(maker->channel);
    maker->channel = -1;
    bw_buffer_free(&maker->text);
    bw_buffer_free(&maker->answers);
}

/* The maker. Orders may come from an attacker, so every byte is checked. */

struct serving {
    struct bw_target *target;
    struct bw_buffer orders, answers, errors; /* `errors`: of one order */
    struct bw_xattr *xattrs;
    uint32_t error_count;
};

static void append_error(void *context, struct bw_error *error)
{
    struct serving *serving = context;
    const struct error_head head = {(int32_t)error->code, error->system,
                                    (uint32_t)strlen(error->message)};
    bw_buffer_append(&serving->errors, &head, sizeof head);
    bw_buffer_append(&serving->errors, error->message, head.length);
    serving->error_count++;
    bw_error_free(error);
}

/* Parses the attributes of an order; false if they are invalid, or memory runs out. */
static bool parse_xattrs(struct serving *serving, size_t *position, uint32_t count)
{
    const struct bw_buffer *text = &serving->orders;
    if (count > MOST_XATTRS)
        return false;
    free(serving->xattrs);
    serving->xattrs = calloc((size_t)count + 1, sizeof *serving->xattrs);
    for (uint32_t i = 0; serving->xattrs && i < count; i++) {
        struct bw_xattr *xattr = &serving->xattrs[i];
        struct xattr_head head;
        const void *bytes = next_bytes(text, position, sizeof head);
        if (!bytes)
            return false;
        memcpy(&head, bytes, sizeof head);
        const size_t name_size = (size_t)head.name_length + 1;
        xattr->name_length = head.name_length;
        xattr->value_length = head.value_length;
        xattr->name = next_bytes(text, position, name_size);
        xattr->value = xattr->name ? next_bytes(text, position, head.value_length) : NULL;
        if (!xattr->value || memchr(xattr->name, '\0', name_size) != xattr->name + head.name_length)
            return false;
    }
    return serving->xattrs;
}

/* Parses an order, whose parts are then in `serving`; false if this program never sends such an
 * order. */
static bool parse_order(struct serving *serving, size_t *position, struct order_head *head,
                        struct bw_target_order *order, struct bw_target_attributes *attributes)
{
    const struct bw_buffer *text = &serving->orders;
    const void *bytes = next_bytes(text, position, sizeof *head);
    if (!bytes)
        return false;
    memcpy(head, bytes, sizeof *head);
    const size_t link_length = head->link_length;
    const char *path = next_bytes(text, position, head->path_length);
    const char *link = path ? next_bytes(text, position, link_length + 1) : NULL;
    if (!link || strnlen(link, link_length + 1) != link_length ||
        !parse_xattrs(serving, position, head->xattr_count))
        return false;
    *attributes = (struct bw_target_attributes){&head->inode, serving->xattrs, head->xattr_count};
    *order = (struct bw_target_order){.path = path,
                                      .length = head->path_length,
                                      .link = head->has_link ? link : NULL,
                                      .attributes = head->has_inode ? attributes : NULL};
    return true;
}

/* Symbolic links need a target, and special files need one of their types. Regular files are made
 * by the other process. */
static bool is_valid_order(const struct bw_target_order *order)
{
    const struct bw_inode *inode = order->attributes ? order->attributes->inode : NULL;
    if (!inode || S_ISDIR(inode->mode))
        return !order->link;
    if (order->link)
        return S_ISLNK(inode->mode);
    return S_ISCHR(inode->mode) || S_ISBLK(inode->mode) || S_ISFIFO(inode->mode) ||
           S_ISSOCK(inode->mode);
}

static bool answer_order(struct serving *serving, size_t *position)
{
    struct bw_target *target = serving->target;
    struct order_head head;
    struct bw_target_order order;
    struct bw_target_attributes attributes;
    struct answer_head result;
    memset(&result, 0, sizeof result); /* including padding */
    serving->errors.length = serving->error_count = 0;
    target->lowered = target->foreign = target->without_owner = target->without_xattrs = 0;
    if (!parse_order(serving, position, &head, &order, &attributes))
        return false;
    struct bw_error *error = is_valid_order(&order) ? perform_order(target, &order, &result.ours)
                                                    : bw_target_error(EINVAL, "cannot make it",
                                                                      order.path, order.length);
    result.failed = error;
    if (error)
        append_error(serving, error);
    result.lowered = target->lowered;
    result.foreign = target->foreign;
    result.without_owner = target->without_owner;
    result.without_xattrs = target->without_xattrs;
    result.error_count = serving->error_count;
    bw_buffer_append(&serving->answers, &result, sizeof result);
    bw_buffer_append(&serving->answers, serving->errors.data, serving->errors.length);
    return !serving->errors.failed;
}

void bw_target_serve_orders(struct bw_target *target, int channel)
{
    struct serving serving = {.target = target};
    target->options.missed = append_error;
    target->options.context = &serving;
    uint32_t count;
    bool is_valid = true;
    while (is_valid && receive_batch(channel, &serving.orders, &count)) {
        size_t position = 0;
        begin_batch(&serving.answers);
        for (uint32_t i = 0; is_valid && i < count; i++)
            is_valid = answer_order(&serving, &position);
        is_valid = is_valid && send_batch(channel, &serving.answers, count);
    }
    bw_buffer_free(&serving.orders);
    bw_buffer_free(&serving.answers);
    bw_buffer_free(&serving.errors);
    free(serving.xattrs);
}

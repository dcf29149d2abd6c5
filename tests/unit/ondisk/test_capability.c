/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Capabilities as text: revisions, combinations, and values that are no capabilities. */
#include "ondisk/capability.h"

#include <stdlib.h>
#include <string.h>

#include "support/walk_helpers.h"

/* The text of a value of `length` bytes; NULL if it is invalid. */
static char *text_of(const char *name, const void *value, size_t length)
{
    struct bw_buffer text = {0};
    const struct bw_xattr xattr = {.name = (const uint8_t *)name,
                                   .value = value,
                                   .name_length = (uint16_t)strlen(name),
                                   .value_length = (uint16_t)length};
    if (!bw_capability_append_text(&xattr, &text)) {
        assert_int_equal(text.length, 0);
        return NULL;
    }
    bw_buffer_append_byte(&text, '\0');
    return text.data;
}

static void expect_text(const void *value, size_t length, const char *expected)
{
    char *text = text_of("security.capability", value, length);
    assert_non_null(text);
    assert_string_equal(text, expected);
    free(text);
}

static void test_texts(void **state)
{
    static const uint8_t none[20] = {0, 0, 0, 2};
    static const uint8_t raw[20] = {1, 0, 0, 2, 0, 0x20};
    static const uint8_t old[12] = {0, 0, 0, 1, 1, 0, 0, 0, 2};
    static const uint8_t all[20] = {1, 0, 0, 2, 255, 255, 255, 255, 0, 0, 0, 0, 255, 1};
    static const uint8_t root[24] = {1, 0, 0, 3, 0, 0, 32, 0, [20] = 0xe8, 3};
    static const uint8_t unnamed[20] = {0, 0, 0, 2, [15] = 0x80};
    static const uint8_t both[20] = {1, 0, 0, 2, 3, 0, 0, 0, 6};
    expect_text(none, 20, "=");
    expect_text(raw, 20, "cap_net_raw=ep");
    expect_text(old, 12, "cap_dac_override=i cap_chown+p");
    expect_text(all, 20, "=ep");
    expect_text(root, 24, "cap_sys_admin=ep [rootid=1000]");
    expect_text(unnamed, 20, "63=p");
    expect_text(both, 20, "cap_dac_override=eip cap_dac_read_search+ei cap_chown+ep");
}

static void test_invalid_values(void **state)
{
    uint8_t value[25] = {1, 0, 0, 2, 1};
    assert_null(text_of("security.capabilit", value, 20));
    assert_null(text_of("user.capability", value, 20));
    assert_null(text_of("security.capabilitx", value, 20));
    assert_null(text_of("security.capabilitx", value, 24));
    for (size_t length = 0; length <= sizeof value; length++)
        for (unsigned revision = 0; revision <= 4; revision++) {
            const size_t right[] = {0, 12, 20, 24, 0};
            value[3] = (uint8_t)revision;
            char *text = text_of("security.capability", value, length);
            assert_int_equal(text != NULL, right[revision] == length && revision % 4 != 0);
            free(text);
        }
}

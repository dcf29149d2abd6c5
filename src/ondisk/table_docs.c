/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tables of items as JSON, for the documentation. */
#include "ondisk/disk_items.h"
#include "ondisk/tables.h"

static const char *const kinds[] = {
    [BW_KIND_NUMBER] = "number", [BW_KIND_SIGNED] = "signed number",
    [BW_KIND_OCTAL] = "number",  [BW_KIND_HEX] = "number",
    [BW_KIND_NAMED] = "name",    [BW_KIND_NUMBER_NAMED] = "name",
    [BW_KIND_FLAGS] = "names",   [BW_KIND_HEX_FLAGS] = "names",
    [BW_KIND_TIME] = "time",     [BW_KIND_SECONDS] = "number",
    [BW_KIND_UUID] = "uuid",     [BW_KIND_KEY] = "key",
    [BW_KIND_TREE] = "number",   [BW_KIND_BYTES] = "hexadecimal",
    [BW_KIND_STRUCT] = "object", [BW_KIND_NAME] = "text",
    [BW_KIND_DATA] = "text",     [BW_KIND_REST] = "hexadecimal",
    [BW_KIND_LIST] = "array",    [BW_KIND_SPECIAL] = "number",
};

/* Some tables stand for a member that they share: "name". */
static void describe_words(struct bw_json *json, const struct bw_value_names *words)
{
    bw_json_begin_array(json, "values");
    for (const struct bw_value_name *word = words->words; word->name; word++)
        bw_json_text(json, NULL, word->name);
    bw_json_end(json);
}

static void describe(struct bw_json *json, const struct bw_structure *structure);

static void describe_choices(struct bw_json *json, const struct bw_field *member)
{
    bw_json_begin_array(json, "one_of");
    for (size_t i = 0; member->structures[i]; i++) {
        bw_json_begin_object(json, NULL);
        describe(json, member->structures[i]);
        bw_json_end(json);
    }
    bw_json_end(json);
}

static bool has_words(const struct bw_field *member)
{
    return member->kind == BW_KIND_NAMED || member->kind == BW_KIND_NUMBER_NAMED ||
           member->kind == BW_KIND_FLAGS || member->kind == BW_KIND_HEX_FLAGS;
}

static void describe_member(struct bw_json *json, const struct bw_field *member)
{
    if (!member->name && member->kind != BW_KIND_CHOICE)
        return;
    bw_json_begin_object(json, NULL);
    bw_json_text(json, "name", member->name);
    bw_json_text(json, "type", kinds[member->kind]);
    bw_json_number(json, "offset", member->offset);
    bw_json_number(json, "size", member->size);
    bw_json_text(json, "description", member->description);
    if (has_words(member))
        describe_words(json, member->words);
    if (member->kind == BW_KIND_LIST || member->kind == BW_KIND_STRUCT) {
        bw_json_begin_object(json, "of");
        describe(json, member->structure);
        bw_json_end(json);
    }
    if (member->kind == BW_KIND_CHOICE)
        describe_choices(json, member);
    bw_json_end(json);
}

static void describe(struct bw_json *json, const struct bw_structure *structure)
{
    bw_json_text(json, "name", structure->name);
    bw_json_text(json, "description", structure->description);
    bw_json_begin_array(json, "members");
    for (uint32_t i = 0; i < structure->count; i++)
        describe_member(json, &structure->members[i]);
    bw_json_end(json);
}

void bw_structures_describe(struct bw_json *json, const char *name)
{
    bw_json_begin_array(json, name);
    for (unsigned type = 0; type <= UINT8_MAX; type++) {
        /* The untyped item belongs to an object. */
        const struct bw_key key = {type ? 0 : BW_FREE_SPACE_OBJECT, (uint8_t)type, 0};
        const struct bw_structure *structure = bw_item_structure(&key);
        if (!structure)
            continue;
        bw_json_begin_object(json, NULL);
        bw_json_text(json, "type", type ? bw_key_type_name((uint8_t)type) : "UNTYPED");
        bw_json_number(json, "number", type);
        describe(json, structure);
        bw_json_end(json);
    }
    bw_json_end(json);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Structures of the items about trees: roots and their names, uuids, quotas. */
#include "ondisk/disk_items.h"
#include "ondisk/tables.h"

static const struct bw_value_names root_flags = {
    (const struct bw_value_name[]){
        {BW_ROOT_READ_ONLY, "RDONLY", false}, {BW_ROOT_DEAD, "DEAD", false}, {0, NULL, false}},
    "none", ""};

static const struct bw_field root_item_v2_members[] = {
    BW_FIELD(BW_LINE "uuid ", root_item, uuid, UUID, "uuid of the subvolume"),
    BW_FIELD(BW_LINE "parent_uuid ", root_item, parent_uuid, UUID,
             "uuid of the subvolume that this is a snapshot of"),
    BW_FIELD(BW_LINE "received_uuid ", root_item, received_uuid, UUID,
             "uuid of the subvolume that this was received from"),
    BW_FIELD(BW_LINE "ctransid ", root_item, change_transid, NUMBER,
             "transaction of the last change"),
    BW_FIELD(" otransid ", root_item, origin_transid, NUMBER, "transaction of the creation"),
    BW_FIELD(" stransid ", root_item, send_transid, NUMBER, "transaction of what was sent"),
    BW_FIELD(" rtransid ", root_item, receive_transid, NUMBER, "transaction of receiving"),
    BW_FIELD(BW_LINE "ctime ", root_item, ctime, TIME, "last change"),
    BW_FIELD(BW_LINE "otime ", root_item, otime, TIME, "creation"),
    BW_FIELD(BW_LINE "stime ", root_item, stime, TIME, "sending"),
    BW_FIELD(BW_LINE "rtime ", root_item, rtime, TIME, "receiving"),
};
static BW_STRUCTURE(root_item_v2, sizeof(struct bw_disk_root_item), "since 2012");

/* Old versions of the kernel leave the rest alone when they write the item; it is out of date
 * then. */
static size_t choose_root(const struct bw_part *part)
{
    const struct bw_disk_root_item *root = (const void *)part->start;
    return memcmp(&root->generation, &root->generation_v2, sizeof root->generation) != 0;
}

static const struct bw_structure *const roots[] = {&bw_structure_root_item_v2, NULL};

static const struct bw_field root_item_members[] = {
    BW_FIELD(BW_LINE "generation ", root_item, generation, NUMBER,
             "transaction that wrote the root block"),
    BW_FIELD(" root_dirid ", root_item, root_directory, NUMBER, "inode of the top directory"),
    BW_FIELD(" bytenr ", root_item, bytenr, NUMBER, "logical address of the root block"),
    BW_FIELD(" byte_limit ", root_item, byte_limit, NUMBER, "unused"),
    BW_FIELD(" bytes_used ", root_item, bytes_used, NUMBER, "bytes of tree blocks"),
    BW_FIELD(BW_LINE "last_snapshot ", root_item, last_snapshot, NUMBER,
             "transaction of the last snapshot"),
    BW_WORDED(" flags ", root_item, flags, HEX_FLAGS, root_flags, "flags"),
    BW_FIELD(" refs ", root_item, reference_count, NUMBER, "0 if it is being deleted"),
    BW_FIELD(BW_LINE "drop_progress ", root_item, drop_progress, KEY,
             "how far the deletion has come"),
    BW_FIELD(" drop_level ", root_item, drop_level, NUMBER, "level that it has come to"),
    BW_FIELD(BW_LINE "level ", root_item, level, NUMBER, "level of the root block"),
    BW_FIELD(" generation_v2 ", root_item, generation_v2, NUMBER,
             "the generation again, if what follows is valid"),
    {.kind = BW_KIND_CHOICE,
     .structures = roots,
     .choose = choose_root,
     .description = "if both generations are the same"},
};
const struct bw_structure bw_structure_root_item = {
    .name = "root_item",
    .description = "the root of a tree",
    .size = sizeof(struct bw_disk_root_item),
    .minimum = offsetof(struct bw_disk_root_item, generation_v2),
    .count = sizeof root_item_members / sizeof *root_item_members,
    .members = root_item_members,
};

#define ROOT_REF(word)                                                                 \
    BW_FIELD(BW_LINE "root " word " key dirid ", root_ref, directory, NUMBER,          \
             "directory that the subvolume is in"),                                    \
        BW_FIELD(" sequence ", root_ref, sequence, NUMBER, "index in that directory"), \
    {                                                                                  \
        BW_NAME("name"), BW_LEAD(" name "), BW_DISK_AT(root_ref, name_length),         \
            .kind = BW_KIND_NAME, .description = "name in that directory"              \
    }

static const struct bw_field root_ref_members[] = {ROOT_REF("ref")};
BW_STRUCTURE(root_ref, sizeof(struct bw_disk_root_ref), "a subvolume in another one");

static const struct bw_field root_backref_members[] = {ROOT_REF("backref")};
BW_STRUCTURE(root_backref, sizeof(struct bw_disk_root_ref), "a subvolume that another one is in");

static const struct bw_field orphan_members[] = {BW_PLAIN(BW_LINE "orphan item")};
BW_STRUCTURE(orphan, 0, "an inode or subvolume that is being deleted: the offset of the key");

static const struct bw_field uuid_entry_members[] = {
    BW_FIELD(BW_LINE "subvol_id ", uuid_entry, subvolume, NUMBER, "id of the subvolume"),
};
static BW_STRUCTURE(uuid_entry, sizeof(struct bw_disk_uuid_entry), "a subvolume");

static const struct bw_field uuid_members[] = {{BW_NAME("subvolumes"), .kind = BW_KIND_LIST,
                                                .structure = &bw_structure_uuid_entry,
                                                .description = "their ids"}};
BW_STRUCTURE(uuid, 0, "the subvolumes of a uuid, which is the key");

static const struct bw_field string_members[] = {{BW_NAME("data"), BW_LEAD(BW_LINE "item data "),
                                                  .kind = BW_KIND_REST,
                                                  .description = "the bytes of the item"}};
BW_STRUCTURE(string, 0, "a text, for tests");

/* Quotas. */

static const struct bw_value_names qgroup_flags = {
    (const struct bw_value_name[]){{1 << 0, "ON", false},
                                   {1 << 0, "OFF", true},
                                   {1 << 1, "SCANNING", false},
                                   {1 << 2, "INCONSISTENT", false},
                                   {BW_QGROUP_SIMPLE_MODE, "SIMPLE_MODE", false},
                                   {0, NULL, false}},
    NULL, ""};

static const struct bw_field simple_quota_members[] = {
    BW_FIELD(" enable_gen ", qgroup_status, enable_generation, NUMBER,
             "transaction since which extents are counted"),
};
static BW_STRUCTURE(simple_quota, sizeof(struct bw_disk_qgroup_status), "simple quotas");

static const struct bw_structure *const qgroup_states[] = {&bw_structure_simple_quota, NULL};

static size_t choose_qgroup_state(const struct bw_part *part)
{
    const struct bw_disk_qgroup_status *status = (const void *)part->start;
    return !(bw_get64(status->flags) & BW_QGROUP_SIMPLE_MODE);
}

static const struct bw_field qgroup_status_members[] = {
    BW_FIELD(BW_LINE "version ", qgroup_status, version, NUMBER, "version of the format: 1"),
    BW_FIELD(" generation ", qgroup_status, generation, NUMBER,
             "transaction that the numbers are of"),
    BW_WORDED(" flags ", qgroup_status, flags, FLAGS, qgroup_flags, "state of the quotas"),
    BW_FIELD(" scan ", qgroup_status, rescan, NUMBER, "how far a rescan has come"),
    {.kind = BW_KIND_CHOICE,
     .structures = qgroup_states,
     .choose = choose_qgroup_state,
     .description = "if quotas are simple"},
};
const struct bw_structure bw_structure_qgroup_status = {
    .name = "qgroup_status",
    .description = "state of the quotas",
    .size = sizeof(struct bw_disk_qgroup_status),
    .minimum = offsetof(struct bw_disk_qgroup_status, enable_generation),
    .count = sizeof qgroup_status_members / sizeof *qgroup_status_members,
    .members = qgroup_status_members,
};

static const struct bw_field qgroup_info_members[] = {
    BW_FIELD(BW_LINE "generation ", qgroup_info, generation, NUMBER,
             "transaction that the numbers are of"),
    BW_FIELD(BW_LINE "referenced ", qgroup_info, referenced, NUMBER, "bytes in use"),
    BW_FIELD(" referenced_compressed ", qgroup_info, referenced_compressed, NUMBER,
             "the same number"),
    BW_FIELD(BW_LINE "exclusive ", qgroup_info, exclusive, NUMBER,
             "bytes that no other subvolume uses"),
    BW_FIELD(" exclusive_compressed ", qgroup_info, exclusive_compressed, NUMBER,
             "the same number"),
};
BW_STRUCTURE(qgroup_info, sizeof(struct bw_disk_qgroup_info), "use of space by a qgroup");

static const struct bw_field qgroup_limit_members[] = {
    BW_FIELD(BW_LINE "flags ", qgroup_limit, flags, HEX, "which limits are set"),
    BW_FIELD(BW_LINE "max_referenced ", qgroup_limit, max_referenced, SIGNED, "limit in bytes"),
    BW_FIELD(" max_exclusive ", qgroup_limit, max_exclusive, SIGNED, "limit in bytes"),
    BW_FIELD(BW_LINE "rsv_referenced ", qgroup_limit, reserved_referenced, SIGNED, "unused"),
    BW_FIELD(" rsv_exclusive ", qgroup_limit, reserved_exclusive, SIGNED, "unused"),
};
BW_STRUCTURE(qgroup_limit, sizeof(struct bw_disk_qgroup_limit), "limits of a qgroup");

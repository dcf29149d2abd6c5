/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random images: profiles, sizes and shapes. random_content.c fills them. */
#include "soak/subject.h"

static const struct profile {
    uint64_t flag;
    const char *name;
    unsigned minimum_devices;
    unsigned expendable;
} profiles[] = {
    {0, "single", 1, 0},
    {BW_GROUP_DUP, "DUP", 1, 0},
    {BW_GROUP_RAID0, "RAID0", 2, 0},
    {BW_GROUP_RAID1, "RAID1", 2, 1},
    {BW_GROUP_RAID1C3, "RAID1C3", 3, 2},
    {BW_GROUP_RAID1C4, "RAID1C4", 4, 3},
    {BW_GROUP_RAID10, "RAID10", 4, 1},
    {BW_GROUP_RAID5, "RAID5", 2, 1},
    {BW_GROUP_RAID6, "RAID6", 3, 2},
};

enum { MORE_DEVICES = 4, KIBIBYTE = 1024 };

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static void choose_devids(struct dice *dice, uint64_t *devids, unsigned count)
{
    devids[0] = 1 + roll(dice, 50);
    for (unsigned i = 1; i < count; i++)
        devids[i] = devids[i - 1] + 1 + roll(dice, 5);
    for (unsigned i = 1; i < count; i++) {
        unsigned other = roll(dice, i + 1);
        uint64_t devid = devids[i];
        devids[i] = devids[other];
        devids[other] = devid;
    }
}

static void choose_shape(struct dice *dice, struct iw_options *options)
{
    options->nodesize = (4u * KIBIBYTE) << roll(dice, 1 + roll(dice, 5));
    options->sectorsize = 4u * KIBIBYTE;
    if (options->nodesize >= 16 * KIBIBYTE && one_in(dice, 4))
        options->sectorsize = 16 * KIBIBYTE;
    options->checksum_type = (enum bw_checksum_type)roll(dice, 4);
    options->items_per_leaf = one_in(dice, 3) ? 0 : 3 + roll(dice, 15);
    options->pointers_per_node = one_in(dice, 3) ? 0 : 3 + roll(dice, 8);
    options->block_step = 1 + roll(dice, 5);
    options->chunk_gap = one_in(dice, 2) ? 0 : UINT64_C(1) << 20;
    /* Few chunks: the system chunks must fit into the superblock. */
    options->device_extent_length =
        (UINT64_C(1) << (20 + roll(dice, 3))) + UINT64_C(64) * options->nodesize;
    options->data_chunks = roll(dice, 10);
    options->device_size = one_in(dice, 3) ? UINT64_C(80) << 20 : 0;
    options->separate_metadata_uuid = one_in(dice, 5);
    options->identity = roll(dice, 1000);
}

static void describe(struct subject *subject, const struct iw_options *options,
                     const struct profile *profile, const struct profile *system)
{
    bw_buffer_format(&subject->about,
                     "%s (system: %s) on %u devices, nodes of %u, checksum %d, at most %u items "
                     "and %u pointers a "
                     "block, every %uth place",
                     profile->name, system->name, options->device_count, options->nodesize,
                     (int)options->checksum_type, options->items_per_leaf,
                     options->pointers_per_node, options->block_step);
    bw_buffer_append_byte(&subject->about, '\0');
}

static unsigned copies_of(const struct profile *profile, unsigned devices)
{
    switch (profile->flag) {
    case BW_GROUP_DUP:
    case BW_GROUP_RAID10:
    case BW_GROUP_RAID5:
        return 2;
    case BW_GROUP_RAID6:
        return devices;
    default:
        return 1 + profile->expendable;
    }
}

struct subject make_subject(struct dice *dice)
{
    const struct profile *profile = &profiles[roll(dice, COUNT(profiles))], *system = profile;
    struct subject subject = {0};
    struct iw_options options = {0};
    uint64_t devids[IW_MAX_DEVICES];
    if (one_in(dice, 4))
        system = &profiles[roll(dice, COUNT(profiles))];
    unsigned devices = profile->minimum_devices > system->minimum_devices ? profile->minimum_devices
                                                                          : system->minimum_devices;
    options.device_count = devices + roll(dice, MORE_DEVICES);
    choose_devids(dice, devids, options.device_count);
    choose_shape(dice, &options);
    options.devids = devids;
    options.profile = profile->flag;
    options.has_system_profile = true;
    options.system_profile = system->flag;
    subject.expendable = least(profile->expendable, system->expendable);
    subject.copies =
        least(copies_of(profile, options.device_count), copies_of(system, options.device_count));
    describe(&subject, &options, profile, system);
    subject.image = iw_create(&options);
    fill_at_random(subject.image, dice);
    iw_write_memory(subject.image);
    return subject;
}

void free_subject(struct subject *subject)
{
    iw_destroy(subject->image);
    bw_buffer_free(&subject->about);
}

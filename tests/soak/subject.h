/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The subject of a round of the soak: a random image, and a random graph to read it through. */
#ifndef BW_TESTS_SOAK_SUBJECT_H
#define BW_TESTS_SOAK_SUBJECT_H

#include "soak/dice.h"
#include "support/walk_helpers.h"

/** A random image. */
struct subject {
    struct iw_image *image;
    unsigned expendable; /**< how many of its devices may fail, whichever they are */
    unsigned copies;     /**< ways to read any of its blocks, computing it from parity included */
    struct bw_buffer about; /**< what it is, as text; ends with NUL */
};

/** Makes one and writes it to memory. */
struct subject make_subject(struct dice *dice);
void free_subject(struct subject *subject);
/** Fills an image that is not written yet: directories, files, links, subvolumes, snapshots, in any
 * order. */
void fill_at_random(struct iw_image *image, struct dice *dice);

/** The effect that the faults of a graph may have on the listing. */
enum harm {
    NO_HARM,  /**< the image makes up for them: nothing changes */
    LOSSES,   /**< blocks may be lost, and each loss is reported */
    NONSENSE, /**< wrong bytes come through: only an end is sure */
    HARMS,
};

/** A random change of the default graph. */
struct journey {
    enum harm harm;
    struct graph_changes changes;
    unsigned missing; /**< bit mask of the devices that are not given */
    bool by_order;    /**< what fails depends on the order of the reads, which threads may change */
    bool any_lies;    /**< bytes may be wrong, where otherwise reads only fail or are old */
    unsigned threads; /**< for the second walk */
};

struct journey make_journey(const struct subject *subject, struct dice *dice);

#endif

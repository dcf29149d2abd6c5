/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The commands that save the readable files. `rescue` prints them, and `rescue --extract` runs the
 * same ones.
 */
#ifndef BW_CLI_RESCUE_STEPS_H
#define BW_CLI_RESCUE_STEPS_H

#include "base/buffer.h"
#include "btrfs-walk/record.h"
#include "cli/command.h"

enum {
    RESCUE_GENERATIONS = 3, /**< generations from which files are extracted */
    RESCUE_STEPS = 6 + RESCUE_GENERATIONS,
};

/** An older generation to extract from. */
struct rescue_choice {
    uint64_t generation;
    uint64_t tree_root; /**< 0: the generation has only one root tree */
};

/** The plan: only numbers, because a confined process passes it to another one, which is not. */
struct rescue_plan {
    bool whole, unverified, partly, lost, deleted; /**< there are such files */
    struct rescue_choice generations[RESCUE_GENERATIONS];
    unsigned generation_count;
    bool follows_renames; /**< these steps look for the files under their older names, too */
    /** Options that were needed to open the file system, as in struct cmd_input. */
    int superblock_copy;
    bool scan, ignores_log;
};

/** The folder in the printed commands. */
extern const char rescue_folder[];

/** The number of steps of a plan. */
size_t rescue_step_count(const struct rescue_plan *plan);

/** The kind of a step: "whole", "unverified", "older", "partly", "lost" or "deleted". */
const char *rescue_step_name(const struct rescue_plan *plan, size_t step);

/** Adds the options that were needed to open the file system to the command line's. False
 * if they contradict each other. */
bool rescue_apply_plan(const struct rescue_plan *plan, struct cmd_input *input);

/** The options that rescue_apply_plan() adds, as text: "--scan". NULL: none. */
const char *rescue_open_option(const struct rescue_plan *plan);

/** Appends the shell command of a step, for the images and options of `common`. `folder` is the
 * target. */
void rescue_append_step(struct bw_buffer *text, const struct rescue_plan *plan, size_t step,
                        const struct cmd_common *common, const char *folder);

/** Appends the command `rescue --extract FOLDER`, which runs all steps. */
void rescue_append_all(struct bw_buffer *text, const struct cmd_common *common, const char *folder);

/** Appends the command `extract --subvolumes`, which keeps snapshots and shared data. */
void rescue_append_subvolumes(struct bw_buffer *text, const struct cmd_common *common,
                              const char *folder);

/** Runs all steps, each in a separate process, and lists the files that none has saved. Returns the
 * worst exit status. Confines the process; it can run no other command. */
int rescue_run_steps(const struct rescue_plan *plan, const struct cmd_common *common,
                     const struct cmd_base *base);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tables of passes and of kinds of findings, made from codes.def. */
#include "check/codes.h"

#include "btrfs-walk/check.h"

enum { QUICK, FULL, DATA };

static const struct bw_check_pass passes[] = {
#define PASS(name, when, description) {#name, description, (when) == QUICK, (when) == DATA},
#define CODE(name, word, pass, severity, description)
#include "check/codes.def"
#undef PASS
#undef CODE
};

static const struct bw_finding_code codes[] = {
#define PASS(name, when, description)
#define CODE(name, word, pass, severity, description) \
    {word, #pass, BW_FINDING_##severity, description},
#include "check/codes.def"
#undef PASS
#undef CODE
};

const struct bw_finding_code *bw_finding_codes(size_t *count)
{
    *count = BW_CODES;
    return codes;
}

const struct bw_check_pass *bw_check_passes(size_t *count)
{
    *count = BW_PASSES;
    return passes;
}

const char *bw_finding_severity_name(enum bw_finding_severity severity)
{
    static const char *const names[] = {"note", "warning", "error"};
    return names[severity];
}

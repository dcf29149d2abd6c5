/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The numbers of passes and of kinds of findings, from codes.def. */
#ifndef BW_CHECK_CODES_H
#define BW_CHECK_CODES_H

/** The passes of the check. */
enum bw_pass_number {
#define PASS(name, when, description) BW_PASS_##name,
#define CODE(name, word, pass, severity, description)
#include "check/codes.def"
#undef PASS
#undef CODE
    BW_PASSES,
};

/** The kinds of findings. */
enum bw_code_number {
#define PASS(name, when, description)
#define CODE(name, word, pass, severity, description) BW_CODE_##name,
#include "check/codes.def"
#undef PASS
#undef CODE
    BW_CODES,
};

#endif

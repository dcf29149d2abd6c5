/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the test program of the fuzz targets does when it is given arguments. */
#ifndef BW_TESTS_FUZZ_TOOL_H
#define BW_TESTS_FUZZ_TOOL_H

/** Takes the arguments, without the name of the program; returns the exit status. */
int tool(int count, char **arguments);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions of the test program for fuzz targets when it is called with arguments. */
#ifndef BW_TESTS_FUZZ_TOOL_H
#define BW_TESTS_FUZZ_TOOL_H

/** Takes the arguments, without the name of the program; returns the exit status. */
int tool(int count, char **arguments);

#endif

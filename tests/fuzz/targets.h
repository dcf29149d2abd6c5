/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fuzz targets. Each takes any bytes, drives the library with them and aborts if what comes
 * back breaks a promise. entry.c makes one of them a program for libFuzzer, smoke.c runs all with
 * bytes from a generator.
 */
#ifndef BW_TESTS_FUZZ_TARGETS_H
#define BW_TESTS_FUZZ_TARGETS_H

#include <stddef.h>
#include <stdint.h>

/** Opens and walks a small image after the edits that the bytes describe: see edits.h. */
void fuzz_image(const uint8_t *data, size_t size);

/** Runs a command of the program on a packed image: see packed.h. */
void fuzz_program(const uint8_t *data, size_t size);

/** Replays a recorded log after the edits that the bytes describe, and lists what there is then. */
void fuzz_log(const uint8_t *data, size_t size);

/** Gives the bytes to the decoders of the structures on disk. */
void fuzz_formats(const uint8_t *data, size_t size);

/** Decompresses the bytes as an extent. */
void fuzz_codec(const uint8_t *data, size_t size);

/** Parses and checks the bytes as a volfile. */
void fuzz_volfile(const uint8_t *data, size_t size);

/** Types the bytes as a probe filter, and asks it about a record. */
void fuzz_filter(const uint8_t *data, size_t size);

/** Ends the program with a message; what it says is a bug of the library. */
void fuzz_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/** Free what the targets keep between two runs. */
void fuzz_image_cleanup(void);
void fuzz_log_cleanup(void);

#endif

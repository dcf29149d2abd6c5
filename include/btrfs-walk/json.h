/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writing JSON, value by value. A layer receives a writer in its `dump` operation and adds members
 * that describe its private state; the library owns the writer.
 *
 * In an object every value has a name; in an array `name` is NULL. Each object and array that is
 * begun must be ended. The writer remembers if memory runs out, and its owner reports it.
 */
#ifndef BTRFS_WALK_JSON_H
#define BTRFS_WALK_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bw_json;

/** Begins an object; end it with bw_json_end(). */
void bw_json_begin_object(struct bw_json *json, const char *name);
/** Begins an array; end it with bw_json_end(). */
void bw_json_begin_array(struct bw_json *json, const char *name);
/** Ends the innermost object or array. */
void bw_json_end(struct bw_json *json);

/** An unsigned number, with all its digits. */
void bw_json_number(struct bw_json *json, const char *name, uint64_t value);
/** A signed number. */
void bw_json_signed(struct bw_json *json, const char *name, int64_t value);
/** A number that is text already, as JSON has it: "-1.5". */
void bw_json_digits(struct bw_json *json, const char *name, const char *digits);
/** true or false. */
void bw_json_bool(struct bw_json *json, const char *name, bool value);
/** Text that ends with NUL; the same as bw_json_bytes() with its length. NULL becomes null. */
void bw_json_text(struct bw_json *json, const char *name, const char *text);
/**
 * Bytes of any kind. UTF-8 becomes a string; in an object anything else becomes a member NAME_bytes
 * in base64, in an array an object with the one member "bytes".
 */
void bw_json_bytes(struct bw_json *json, const char *name, const void *bytes, size_t length);
/** Bytes as a string of lower-case hexadecimal digits, two for each. */
void bw_json_hex(struct bw_json *json, const char *name, const void *bytes, size_t length);

#ifdef __cplusplus
}
#endif
#endif

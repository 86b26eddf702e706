/* SPDX-License-Identifier: Apache-2.0 */
/* Short strings in fixed arrays, and numbers in text. Sizes are bytes and count the NUL. (Not
 * strings.h: libc has that name.) */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies `source` into `target`, cut to `capacity` - 1 bytes and always ended by NUL.
 * False when it had to be cut. */
bool text_copy(char *target, size_t capacity, const char *source);

/* snprintf that returns false when the text had to be cut. */
bool text_format(char *target, size_t capacity, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Whether a NUL lies within the first `size` bytes: text from a peer may have none. */
bool text_ended(const char *text, size_t size);

/* Whether `text` begins with `prefix`. */
bool text_starts_with(const char *text, const char *prefix);

/* The whole of `text` as a decimal or 0x number: 0, -EINVAL (empty, sign, other characters) or
 * -ERANGE. */
int text_to_u64(const char *text, uint64_t *ret_value);

/* Makes text of another process safe to show in a terminal. Control characters, characters that
 * turn the direction of writing, and bytes that are not UTF-8 become '?'. */
void text_make_printable(char *text);

/* The same for lines of it, which keep their newlines and tabs; a NUL becomes '?', too. The byte
 * text[size] has to be there, and does not change. */
void text_make_lines_printable(char *text, size_t size);

/* The same for an array that need not end with NUL; then its last byte becomes NUL. */
void text_make_printable_array(char *text, size_t capacity);

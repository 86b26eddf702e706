/* SPDX-License-Identifier: Apache-2.0 */
/* Text of other processes as JSON strings and as values of metrics' labels. */
#pragma once

#include <event2/buffer.h>
#include <stddef.h>

/* Appends the text, of at most `capacity` bytes up to its NUL, as a JSON string with its quotes.
 * Bytes that are not UTF-8, and control characters, become question marks. */
void json_text_add(struct evbuffer *out, const char *text, size_t capacity);

/* SPDX-License-Identifier: Apache-2.0 */
/* TOML's strings, and what characters a text may have. */
#pragma once

#include "toml_reader.h"

int toml_append(struct toml_reader *reader, struct toml_buffer *buffer, const char *text,
                size_t length);

/* A string of any of the four kinds at the reader's place; keys may not have several lines. */
int toml_read_string(struct toml_reader *reader, bool is_key, struct toml_buffer *ret_buffer);

/* Is the whole text UTF-8, without control characters but tab and ends of lines? */
int toml_check_text(struct toml_reader *reader, const char *text, size_t size);

/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a request. */
#pragma once

#include <stddef.h>

#include "http_server.h"

/* Reads a head of `size` bytes, which a NUL follows, into the request; changes the text. Returns 0,
 * or the status of the refusal. 405: the method is not GET, HEAD or POST. 400: the text is no
 * request or too long, has a NUL in it, or names two hosts. */
int http_parse(char *text, size_t size, struct http_request *ret_request);

/* Whether the query has NAME=. */
bool http_query_has(const struct http_request *request, const char *name);

/* The value of NAME=TEXT in a query, as it came; false where it is missing or too long. */
bool http_query_text(const struct http_request *request, const char *name, char *ret_text,
                     size_t capacity);

/* The value of NAME=NUMBER in a query: 0, or -EINVAL where it is missing or no number. */
int http_query_number(const struct http_request *request, const char *name, uint64_t *ret_value);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that two sides change: finding what one has changed, and taking over what the other has.
 * `base` is what both have seen last.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The next bytes from `at` on that all differ, as [*ret_start, *ret_end): false when there are
 * none. */
bool three_way_next(const void *mine, const void *base, size_t size, size_t at, size_t *ret_start,
                    size_t *ret_end);

/* From the first byte that differs to behind the last one: false when none does. */
bool three_way_span(const void *mine, const void *base, size_t size, size_t *ret_start,
                    size_t *ret_end);

/* Takes over what differs in `theirs`, except for bytes that are changed here, and makes that the
 * new base. No other byte of `mine` is written: its owner may be writing there. `asked` is the base
 * when `theirs` was asked for: where the base is newer, theirs is old. */
void three_way_merge(void *mine, void *base, const void *asked, const void *theirs, size_t size);

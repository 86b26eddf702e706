/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of addresses that are searched for: address_scan.h. */
#pragma once

#include <stdint.h>

/* Ranges of addresses, in order. Where there would be more, those that are closest become one. */
#define ADDRESS_SPANS_MAX 32u
struct address_span {
    uint64_t start, size;
};
struct address_spans {
    struct address_span each[ADDRESS_SPANS_MAX + 1];
    uint32_t count;
};

/* Adds a range; all begin as none. */
void address_spans_add(struct address_spans *spans, uint64_t start, uint64_t size);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a fat binary, as offsets: little-endian, entries back to back behind the container's
 * header, each entry a header and a payload.
 */
#ifndef FUNNEL_FATBIN_FORMAT_H
#define FUNNEL_FATBIN_FORMAT_H

#include <stdint.h>

#define WRAPPER_MAGIC 0x466243b1u
#define CONTAINER_MAGIC 0xba55ed50u

/* What a program registers. Version 2 comes from relocatable compilation: `containers` then points
 * at a NULL-terminated array with the container of every input. */
struct fatbin_wrapper {
    uint32_t magic;
    uint32_t version;
    const void *container;
    const void *const *containers;
};

enum {
    CONTAINER_AT_HEADER_SIZE = 6,
    CONTAINER_AT_ENTRIES_SIZE = 8,
    CONTAINER_HEADER_SIZE = 16,
};

enum {
    ENTRY_AT_KIND = 0,
    ENTRY_AT_HEADER_SIZE = 4,
    ENTRY_AT_PAYLOAD_SIZE = 8,
    ENTRY_AT_COMPRESSED_SIZE = 16,
    ENTRY_AT_MINOR = 24,
    ENTRY_AT_MAJOR = 26,
    ENTRY_AT_SM = 28,
    ENTRY_AT_FLAGS = 40,
    ENTRY_AT_PLAIN_SIZE = 56,
    ENTRY_HEADER_SIZE = 64,
};

#endif

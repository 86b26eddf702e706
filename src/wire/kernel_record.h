/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of a library as a reply lists them: one record behind the other, each a multiple of four
 * bytes. Header, offset and size of each parameter in bytes, name, padding. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KERNEL_ATTRIBUTES 16

/* One that is larger travels only when it is asked for by name, so each page takes some. */
#define KERNEL_RECORD_MAX 2048u

/* The part that is the same for every client. */
struct kernel_facts {
    const char *name;
    const uint32_t *layout; /* pairs: offset and size of each parameter */
    uint32_t number;        /* its place in the server's list */
    uint32_t param_count, params_size;
    int32_t attributes[KERNEL_ATTRIBUTES];
};

/* Bytes of its record. */
size_t kernel_record_size(const struct kernel_facts *facts);

/* Writes the record to `target`, which is large enough. */
void kernel_record_write(const struct kernel_facts *facts, void *target);

/* Reads the record that begins at `source`, on a multiple of 4: false when it does not lie within
 * `size` bytes. The facts point into it. */
bool kernel_record_read(const void *source, size_t size, struct kernel_facts *ret_facts,
                        size_t *ret_record_size);

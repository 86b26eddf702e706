/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The facts about an image that the server needs, and the message in which the reader process sends
 * them. The functions hold no state and take no lock.
 */
#pragma once

#include "image_callers.h"
#include "image_names.h"
#include "image_strings.h"

/* Bytes of a message. Variables whose names do not fit count as unknown. */
#define IMAGE_FACTS_MAX (4u << 20)

struct image_facts {
    bool prints;             /* kernels may call printf */
    bool allocates;          /* kernels may allocate on the device's own heap */
    bool has_pointers;       /* code may call functions through pointers, or launch kernels */
    bool has_variables;      /* there may be variables that outlive a kernel */
    uint64_t variable_bytes; /* their size, or IMAGE_BYTES_UNKNOWN */
    bool has_names;          /* these are all of them: */
    struct image_names names;
    bool has_strings; /* it prints, and all formats that stand in it are among these: */
    struct image_strings strings;
    bool has_callers; /* and these are all kernels that print or allocate: */
    struct image_names callers;
};

/* Reads a sound image (image_check.h) for a device of this architecture: the parts that the driver
 * chooses (image_choice.h), each expanded once. */
void image_facts_read(const void *bytes, size_t size, unsigned sm, struct image_facts *ret_facts);

/* Facts that are true of every image. */
void image_facts_assume(struct image_facts *ret_facts);

void image_facts_fini(struct image_facts *facts);

/* Makes the message, which the caller frees: 0 or -ENOMEM. */
int image_facts_pack(const struct image_facts *facts, void **ret_message, size_t *ret_size);

/* Reads an unchecked message: 0; -EBADMSG when it is truncated, too long or inconsistent; -ENOMEM.
 */
int image_facts_parse(const void *message, size_t size, struct image_facts *ret_facts);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of the fat binaries that nvcc puts into a program. All numbers are little-endian.
 *
 * A program registers a wrapper, which points at a container: a header and entries, back to back.
 * An entry is a header and a payload: PTX or machine code, perhaps compressed.
 *
 * A separately compiled program (nvcc -rdc=true) has the linked container and the inputs of the
 * linker, each a container. A driver that cannot run the linked code links the inputs itself.
 * Between client and server the inputs travel as one image, a bundle. It begins with the linked
 * container, or an empty one. The inputs follow, each at a multiple of IMAGE_BUNDLE_ALIGN.
 */
#pragma once

#include <assert.h>
#include <stdint.h>

/* Neither number has a byte that is 0. */
#define IMAGE_WRAPPER_MAGIC 0x466243b1u
#define IMAGE_CONTAINER_MAGIC 0xba55ed50u

/* Inputs of one program. */
#define IMAGE_INPUTS_MAX 4096u

#define IMAGE_BUNDLE_ALIGN 8u

/* Bytes; larger images are refused. */
#define IMAGE_SIZE_MAX (UINT64_C(4) << 30)

/* A program registers this: pointers into its own memory. In version 2, `inputs` are containers,
 * and NULL ends them. */
struct image_wrapper {
    uint32_t magic, version;
    const void *linked;
    const void *const *inputs;
};

/* Entries of `size` bytes follow the header. */
struct image_container {
    uint32_t magic;
    uint16_t version, header_size;
    uint64_t size;
};

enum image_kind {
    IMAGE_PTX = 1,
    IMAGE_ELF = 2,
    IMAGE_OLD_ELF = 4,
    IMAGE_LTO = 8,
};

/* PTX for exactly one architecture (sm_90a) or one family (sm_100f) runs nowhere else. */
enum image_entry_flags {
    IMAGE_LZ4 = 0x2000,
    IMAGE_ZSTD = 0x8000,
    IMAGE_ARCH_SPECIFIC = 0x100000,
    IMAGE_FAMILY_SPECIFIC = 0x200000,
};

/* `payload_size` bytes follow the header, with padding. The two last sizes count only in a
 * compressed entry. `compressed_size` excludes the padding. `plain_size` is the claimed size after
 * expansion; old compilers understate it. */
struct image_entry_header {
    uint16_t kind;
    uint16_t unknown_1;
    uint32_t header_size;
    uint64_t payload_size;
    uint32_t compressed_size;
    uint32_t unknown_2;
    uint16_t version_minor, version_major; /* of the code format */
    uint32_t sm;                           /* 90 = compute capability 9.0 */
    uint64_t unknown_3;
    uint64_t flags;
    uint64_t unknown_4;
    uint64_t plain_size;
};

static_assert(sizeof(struct image_container) == 16, "the header of a container");
static_assert(sizeof(struct image_entry_header) == 64, "the header of an entry");

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fat binaries: what nvcc puts into a program, from which the software GPU takes the PTX.
 *
 * An image is one of: a wrapper (what a registered program points at), a container of entries (PTX
 * or machine code, plain or compressed), or bare PTX text. fatbin_read() follows whichever it is to
 * the PTX that suits the device best. Bytes that came from elsewhere go through
 * fatbin_read_container(), which never looks outside the size it is given.
 */
#ifndef FUNNEL_FATBIN_H
#define FUNNEL_FATBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* No program's PTX is nearly this large; a header that claims more is broken or hostile. */
#define FATBIN_PTX_LIMIT (256u << 20)

/* The relocatable parts of one program are linked together; more of them than this is refused. */
#define FATBIN_PARTS_LIMIT 4096u

enum fatbin_kind {
    FATBIN_PTX = 1,
    FATBIN_ELF = 2,
    FATBIN_OLD_ELF = 4,
    FATBIN_LTO = 8,
};

enum fatbin_flags {
    FATBIN_LZ4 = 0x2000,
    FATBIN_ZSTD = 0x8000,
    FATBIN_ARCH_SPECIFIC = 0x100000,
    FATBIN_FAMILY_SPECIFIC = 0x200000,
};

struct fatbin_entry {
    unsigned kind;
    unsigned sm;            /* 75, 90, ... */
    unsigned version_major; /* of the code format */
    unsigned version_minor;
    uint64_t flags;
    const uint8_t *payload;
    size_t stored_size; /* bytes that count in the payload, without padding */
    size_t plain_size;  /* what a compressed payload claims to expand to */
};

struct fatbin_walk {
    const uint8_t *next;
    const uint8_t *end;
};

struct fatbin_part {
    char *text; /* NUL terminated */
    size_t size;
};

/* The PTX of one image: one part, or several that have to be linked. */
struct fatbin_code {
    struct fatbin_part *parts;
    unsigned count;
};

/* Why an image was refused, as a sentence for the log. */
struct fatbin_reason {
    char text[160];
};

/*
 * All three: 0, -EINVAL (not an image, or a broken one), -ENOEXEC (nothing in it that this device
 * can run), -ENOMEM. `sm` is the device's compute capability as 90 for 9.0. `reason` is filled on
 * error.
 */
int fatbin_read(const void *image, unsigned sm, struct fatbin_code *ret_code,
                struct fatbin_reason *reason);
int fatbin_read_container(const void *bytes, size_t size, unsigned sm, struct fatbin_code *ret_code,
                          struct fatbin_reason *reason);
int fatbin_read_text(const char *text, size_t size, struct fatbin_code *ret_code,
                     struct fatbin_reason *reason);
void fatbin_code_fini(struct fatbin_code *code);

/* The container, entry by entry: 1 and an entry, 0 at the end, -EINVAL. */
int fatbin_walk_init(struct fatbin_walk *walk, const void *bytes, size_t size);
int fatbin_walk_next(struct fatbin_walk *walk, struct fatbin_entry *ret_entry);

/* The best PTX of a container for this device: 0, -ENOEXEC, -EINVAL. */
int fatbin_select(const void *bytes, size_t size, unsigned sm, struct fatbin_entry *ret_entry,
                  struct fatbin_reason *reason);

/* An entry's payload, expanded, as NUL-terminated text: 0, -EINVAL, -ENOMEM. */
int fatbin_expand(const struct fatbin_entry *entry, struct fatbin_part *ret_part);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An entry of the code cache is two files. NAME.code never changes: it has an image that a client
 * loaded, and the compiler options. NAME.kernels (code_kernels.h) has the names of the kernels that
 * clients looked up. The name consists of the origin, the options and a hash of the image.
 *
 * A file is checked before it is used: its size, the hash of its contents, and whether it matches
 * its name. A file that fails is deleted.
 */
#pragma once

#include "code_directory.h"

#define CODE_NAME_SIZE 34u /* with its NUL */
#define CODE_OPTIONS_MAX 1024u
#define CODE_IMAGE_MAX (512ull << 20)

/* A server does not load entries of other drivers, devices and users. They stay until the cache
 * evicts them. */
struct code_origin {
    uint32_t driver_version;
    uint32_t compute_capability; /* 10 * major + minor */
    uint32_t is_soft;            /* the software GPU's */
    uint32_t owner;              /* uid of the client that sent the image */
};

struct code_entry {
    struct code_origin origin;
    uint64_t image_size;
    uint32_t options_size;
    const void *image;
    const void *options;
    void *loaded; /* holds both after code_entry_load() */
};

/* The entry's name, from its origin, options and image. */
void code_entry_name(const struct code_entry *entry, char ret_name[CODE_NAME_SIZE]);

/* Writes the entry, unless a valid one exists, after evicting others: 0 or -errno; -EFBIG when it
 * is too large for the cache. */
int code_entry_save(const struct code_directory *directory, const struct code_entry *entry);

/* Reads an entry, which code_entry_fini() frees: 0; -ENOENT; -EBADMSG or -EBADF when it was not
 * valid and has been deleted; -errno. */
int code_entry_load(const struct code_directory *directory, const char *name,
                    struct code_entry *ret_entry);
void code_entry_fini(struct code_entry *entry);

/* Reads only the header: the origin that the file claims, and the size of its image. The same
 * errors. */
int code_entry_peek(const struct code_directory *directory, const char *name,
                    struct code_origin *ret_origin, uint64_t *ret_image_size);

/* Records that the entry was used now. */
void code_entry_note_use(const struct code_directory *directory, const char *name);

/* Deletes the entry with its kernels. */
void code_entry_delete(const struct code_directory *directory, const char *name);

/* "NAME.code" and "NAME.kernels". */
#define CODE_FILE_SIZE 48u
void code_file_name(const char *name, const char *ending, char ret_file[CODE_FILE_SIZE]);

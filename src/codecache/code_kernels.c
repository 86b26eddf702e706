/* SPDX-License-Identifier: Apache-2.0 */
/* A file is a header and the names. */
#include "code_kernels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "fd.h"
#include "hash.h"

static const char magic[8] = "FNLKERN1";

struct header {
    char magic[8];
    uint64_t devices;
    uint32_t count;
    uint32_t names_size;
    uint64_t names_hash;
    uint64_t header_hash; /* of all before it */
};

static uint64_t hash_header(const struct header *header)
{
    return hash_bytes(header, offsetof(struct header, header_hash));
}

int code_kernels_save(const struct code_directory *directory, const char *name,
                      const struct code_kernels *kernels)
{
    char file[CODE_FILE_SIZE];
    struct header header = {
        .devices = kernels->devices,
        .count = kernels->count,
        .names_size = kernels->names_size,
        .names_hash = hash_bytes(kernels->names, kernels->names_size),
    };

    memcpy(header.magic, magic, sizeof(magic));
    header.header_hash = hash_header(&header);
    code_file_name(name, "kernels", file);
    return code_file_write(directory, file, &header, sizeof(header), kernels->names,
                           kernels->names_size);
}

static bool is_sound(const struct header *header, uint64_t file_size)
{
    return !memcmp(header->magic, magic, sizeof(magic)) &&
           header->header_hash == hash_header(header) && header->names_size <= CODE_NAMES_MAX &&
           file_size == sizeof(*header) + header->names_size;
}

static bool are_names(const char *names, uint32_t size, uint32_t count)
{
    uint32_t ends = 0;

    for (uint32_t i = 0; i < size; i++)
        ends += !names[i];
    return ends == count && (!size || !names[size - 1]);
}

static int read_names(int fd, const struct header *header, char **ret_names)
{
    _cleanup_free_ char *names = malloc(header->names_size + 1);
    int error = names ? pread_all(fd, names, header->names_size, sizeof(*header)) : -ENOMEM;

    if (error)
        return error == -ENODATA ? -EBADMSG : error;
    if (hash_bytes(names, header->names_size) != header->names_hash ||
        !are_names(names, header->names_size, header->count))
        return -EBADMSG;
    *ret_names = steal_pointer(names);
    return 0;
}

static int read_file(int fd, uint64_t file_size, struct code_kernels *ret_kernels)
{
    struct header header;
    char *names;
    int error = pread_all(fd, &header, sizeof(header), 0);

    if (error == -ENODATA || (!error && !is_sound(&header, file_size)))
        return -EBADMSG;
    if (!error)
        error = read_names(fd, &header, &names);
    if (error)
        return error;
    *ret_kernels = (struct code_kernels){.devices = header.devices,
                                         .count = header.count,
                                         .names_size = header.names_size,
                                         .names = names};
    return 0;
}

int code_kernels_load(const struct code_directory *directory, const char *name,
                      struct code_kernels *ret_kernels)
{
    _cleanup_fd_ int fd = -1;
    char file[CODE_FILE_SIZE];
    struct stat info;
    int error;

    code_file_name(name, "kernels", file);
    error = code_file_open(directory, file, &fd, &info);
    if (error)
        return error;
    error = read_file(fd, (uint64_t)info.st_size, ret_kernels);
    if (error == -EBADMSG)
        unlinkat(directory->fd, file, 0);
    return error;
}

static bool has_name(const struct code_kernels *kernels, uint32_t count, const char *name)
{
    const char *own = kernels->names;

    for (uint32_t i = 0; i < count; i++, own += strlen(own) + 1) {
        if (!strcmp(own, name))
            return true;
    }
    return false;
}

/* The names of one list are distinct, so a new name is compared with the original ones only. */
int code_kernels_merge(struct code_kernels *kernels, const struct code_kernels *other)
{
    const uint32_t count = kernels->count;
    const char *name = other->names;

    if (other->names_size > CODE_NAMES_MAX - kernels->names_size)
        return -EFBIG;
    char *names = realloc(kernels->names, (size_t)kernels->names_size + other->names_size + 1);
    if (!names)
        return -ENOMEM;
    kernels->names = names;
    kernels->devices |= other->devices;
    for (uint32_t i = 0; i < other->count; i++, name += strlen(name) + 1) {
        if (has_name(kernels, count, name))
            continue;
        strcpy(names + kernels->names_size, name);
        kernels->names_size += (uint32_t)strlen(name) + 1;
        kernels->count++;
    }
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A file is a header, the options, and the image. */
#include "code_entry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "code_list.h"
#include "fd.h"
#include "hash.h"
#include "text.h"

static const char magic[8] = "FNLCODE2";

struct header {
    char magic[8];
    struct code_origin origin;
    uint64_t image_size;
    uint32_t options_size;
    uint32_t reserved;
    unsigned char options[CODE_OPTIONS_MAX]; /* zeros behind them */
    uint64_t image_hash;
    uint64_t header_hash; /* of all before it */
};

void code_file_name(const char *name, const char *ending, char ret_file[CODE_FILE_SIZE])
{
    text_format(ret_file, CODE_FILE_SIZE, "%s.%s", name, ending);
}

static uint64_t hash_header(const struct header *header)
{
    return hash_bytes(header, offsetof(struct header, header_hash));
}

static void fill_header(const struct code_entry *entry, struct header *ret_header)
{
    memset(ret_header, 0, sizeof(*ret_header));
    memcpy(ret_header->magic, magic, sizeof(magic));
    ret_header->origin = entry->origin;
    ret_header->image_size = entry->image_size;
    ret_header->options_size = entry->options_size;
    if (entry->options_size)
        memcpy(ret_header->options, entry->options, entry->options_size);
    ret_header->image_hash = hash_bytes(entry->image, entry->image_size);
    ret_header->header_hash = hash_header(ret_header);
}

static void name_of(const struct header *header, char ret_name[CODE_NAME_SIZE])
{
    text_format(ret_name, CODE_NAME_SIZE, "%016llx-%016llx",
                (unsigned long long)header->header_hash, (unsigned long long)header->image_hash);
}

void code_entry_name(const struct code_entry *entry, char ret_name[CODE_NAME_SIZE])
{
    struct header header;

    fill_header(entry, &header);
    name_of(&header, ret_name);
}

static bool is_sound(const struct header *header, const char *name, uint64_t file_size)
{
    char own_name[CODE_NAME_SIZE];

    name_of(header, own_name);
    return !memcmp(header->magic, magic, sizeof(magic)) &&
           header->header_hash == hash_header(header) && !strcmp(own_name, name) &&
           header->options_size <= CODE_OPTIONS_MAX && header->image_size <= CODE_IMAGE_MAX &&
           file_size == sizeof(*header) + header->image_size;
}

/* Opens the file and checks its header. */
static int open_entry(const struct code_directory *directory, const char *name, int *ret_fd,
                      struct header *ret_header)
{
    _cleanup_fd_ int fd = -1;
    char file[CODE_FILE_SIZE];
    struct stat info;
    int error;

    code_file_name(name, "code", file);
    error = code_file_open(directory, file, &fd, &info);
    if (!error)
        error = pread_all(fd, ret_header, sizeof(*ret_header), 0);
    if (error == -ENODATA || (!error && !is_sound(ret_header, name, (uint64_t)info.st_size)))
        error = -EBADMSG;
    if (error == -EBADMSG)
        code_entry_delete(directory, name);
    if (!error)
        *ret_fd = fd_steal(&fd);
    return error;
}

/* The image follows the header in memory as it does in the file. */
static int read_image(int fd, const struct header *header, void **ret_loaded)
{
    _cleanup_free_ char *loaded = malloc(sizeof(*header) + header->image_size);
    char *image = loaded + sizeof(*header);
    int error = loaded ? pread_all(fd, image, header->image_size, sizeof(*header)) : -ENOMEM;

    if (!error && hash_bytes(image, header->image_size) != header->image_hash)
        error = -EBADMSG;
    if (error)
        return error == -ENODATA ? -EBADMSG : error;
    memcpy(loaded, header, sizeof(*header));
    *ret_loaded = steal_pointer(loaded);
    return 0;
}

int code_entry_load(const struct code_directory *directory, const char *name,
                    struct code_entry *ret_entry)
{
    _cleanup_fd_ int fd = -1;
    struct header header;
    void *loaded = NULL;
    int error = open_entry(directory, name, &fd, &header);

    if (!error)
        error = read_image(fd, &header, &loaded);
    if (error == -EBADMSG)
        code_entry_delete(directory, name);
    if (error)
        return error;
    *ret_entry = (struct code_entry){
        .origin = header.origin,
        .image_size = header.image_size,
        .options_size = header.options_size,
        .image = (char *)loaded + sizeof(header),
        .options = ((struct header *)loaded)->options,
        .loaded = loaded,
    };
    return 0;
}

void code_entry_fini(struct code_entry *entry)
{
    free(entry->loaded);
    entry->loaded = NULL;
}

/* Deletes an entry that is not valid. */
static bool is_there(const struct code_directory *directory, const char *name)
{
    struct code_entry entry;

    if (code_entry_load(directory, name, &entry))
        return false;
    code_entry_fini(&entry);
    return true;
}

int code_entry_save(const struct code_directory *directory, const struct code_entry *entry)
{
    char name[CODE_NAME_SIZE], file[CODE_FILE_SIZE];
    struct header header;

    if (entry->options_size > CODE_OPTIONS_MAX || entry->image_size > CODE_IMAGE_MAX)
        return -EFBIG;
    fill_header(entry, &header);
    name_of(&header, name);
    code_file_name(name, "code", file);
    if (is_there(directory, name)) {
        code_entry_note_use(directory, name);
        return 0;
    }
    if (code_list_evict(directory, sizeof(header) + entry->image_size))
        return -EFBIG;
    return code_file_write(directory, file, &header, sizeof(header), entry->image,
                           entry->image_size);
}

int code_entry_peek(const struct code_directory *directory, const char *name,
                    struct code_origin *ret_origin, uint64_t *ret_image_size)
{
    _cleanup_fd_ int fd = -1;
    struct header header;
    int error = open_entry(directory, name, &fd, &header);

    if (error)
        return error;
    *ret_origin = header.origin;
    *ret_image_size = header.image_size;
    return 0;
}

void code_entry_note_use(const struct code_directory *directory, const char *name)
{
    char file[CODE_FILE_SIZE];

    code_file_name(name, "code", file);
    utimensat(directory->fd, file, NULL, AT_SYMLINK_NOFOLLOW);
}

void code_entry_delete(const struct code_directory *directory, const char *name)
{
    static const char *const endings[] = {"kernels", "code"};
    char file[CODE_FILE_SIZE];

    for (unsigned i = 0; i < 2; i++) {
        code_file_name(name, endings[i], file);
        unlinkat(directory->fd, file, 0);
    }
}

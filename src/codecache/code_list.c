/* SPDX-License-Identifier: Apache-2.0 */
/* The directory is read anew each time, because other servers of the user change it, too. */
#include "code_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fd.h"
#include "text.h"

/* More files than this are not looked at. */
#define ENTRIES_MAX 65536u

#define LEFT_BEHIND_S 3600

/* 16 digits, a hyphen, 16 digits: then the ending. */
static const char *ending_of(const char *file)
{
    size_t length = strspn(file, "0123456789abcdef-");

    return length == CODE_NAME_SIZE - 1 && file[length] == '.' ? file + length + 1 : NULL;
}

static bool belongs_to_entry(const struct code_directory *directory, const char *file,
                             const char *ending)
{
    char code[CODE_FILE_SIZE];

    if (strcmp(ending, "kernels") && strcmp(ending, "loading"))
        return false;
    text_format(code, sizeof(code), "%.*s.code", (int)CODE_NAME_SIZE - 1, file);
    return !faccessat(directory->fd, code, F_OK, AT_SYMLINK_NOFOLLOW);
}

static void delete_old(const struct code_directory *directory, const char *file,
                       const struct stat *info)
{
    if (info->st_mtime < time(NULL) - LEFT_BEHIND_S)
        unlinkat(directory->fd, file, 0);
}

static uint64_t kernels_bytes(const struct code_directory *directory, const char *name)
{
    char file[CODE_FILE_SIZE];
    struct stat info;

    code_file_name(name, "kernels", file);
    return fstatat(directory->fd, file, &info, AT_SYMLINK_NOFOLLOW) ? 0 : (uint64_t)info.st_size;
}

static int add_entry(const struct code_directory *directory, struct code_list *list,
                     const char *file, const struct stat *info)
{
    if (list->count == ENTRIES_MAX)
        return 0;
    if (!(list->count & (list->count - 1))) {
        size_t capacity = list->count ? 2 * (size_t)list->count : 1;
        struct code_listed *grown = reallocarray(list->entries, capacity, sizeof(*grown));
        if (!grown)
            return -ENOMEM;
        list->entries = grown;
    }
    struct code_listed *entry = &list->entries[list->count++];
    text_format(entry->name, sizeof(entry->name), "%.*s", (int)CODE_NAME_SIZE - 1, file);
    entry->bytes = (uint64_t)info->st_size + kernels_bytes(directory, entry->name);
    entry->used = info->st_mtime;
    list->bytes += entry->bytes;
    return 0;
}

static int look_at(const struct code_directory *directory, struct code_list *list, const char *file)
{
    const char *ending = ending_of(file);
    struct stat info;

    if (!ending || fstatat(directory->fd, file, &info, AT_SYMLINK_NOFOLLOW))
        return 0;
    if (!strcmp(ending, "code"))
        return add_entry(directory, list, file, &info);
    if (!belongs_to_entry(directory, file, ending))
        delete_old(directory, file, &info);
    return 0;
}

static int used_later(const void *a, const void *b)
{
    const struct code_listed *one = a, *other = b;

    if (one->used != other->used)
        return one->used < other->used ? 1 : -1;
    return strcmp(one->name, other->name);
}

int code_list_read(const struct code_directory *directory, struct code_list *ret_list)
{
    struct code_list list = {0};
    const struct dirent *file;
    int error = 0;

    int fd = openat(directory->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    if (!stream) {
        error = -errno;
        fd_close(&fd);
        return error;
    }
    while (!error && (file = readdir(stream)))
        error = look_at(directory, &list, file->d_name);
    closedir(stream);
    if (error) {
        code_list_fini(&list);
        return error;
    }
    if (list.count)
        qsort(list.entries, list.count, sizeof(*list.entries), used_later);
    *ret_list = list;
    return 0;
}

void code_list_fini(struct code_list *list)
{
    free(list->entries);
    *list = (struct code_list){0};
}

int code_list_evict(const struct code_directory *directory, uint64_t bytes)
{
    struct code_list list;
    int error;

    if (bytes > directory->bytes_max)
        return -EFBIG;
    error = code_list_read(directory, &list);
    if (error)
        return error;
    while (list.count && list.bytes > directory->bytes_max - bytes) {
        const struct code_listed *oldest = &list.entries[--list.count];
        code_entry_delete(directory, oldest->name);
        list.bytes -= oldest->bytes;
    }
    code_list_fini(&list);
    return 0;
}

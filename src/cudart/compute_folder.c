/* SPDX-License-Identifier: Apache-2.0 */
/* See compute_folder.h. */
#include "compute_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fd.h"

#define BYTES_DEFAULT (UINT64_C(1) << 30)
#define FOLDER "funnel-compiler"

static const char *set_to(const char *variable)
{
    const char *value = getenv(variable);

    return value && *value == '/' ? value : NULL;
}

/* False when there is no home, or the path is too long. */
static bool find_path(char path[PATH_MAX])
{
    const char *base = set_to("CUDA_CACHE_PATH"), *home = set_to("HOME");
    int length;

    if (!base)
        base = set_to("XDG_CACHE_HOME");
    if (base)
        length = snprintf(path, PATH_MAX, "%s/" FOLDER, base);
    else if (home)
        length = snprintf(path, PATH_MAX, "%s/.cache/" FOLDER, home);
    else
        return false;
    return length < PATH_MAX;
}

/* Creates the parent folders, too. An error shows when the last one is opened. */
static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    mkdir(path, 0700);
}

static bool is_own(int folder)
{
    struct stat status;

    return !fstat(folder, &status) && status.st_uid == geteuid() && !(status.st_mode & 077);
}

int compute_folder_open(bool create)
{
    const int how = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    char path[PATH_MAX];

    if (!find_path(path))
        return -ENOENT;
    if (create)
        make_folders(path);
    _cleanup_fd_ int folder = open(path, how);
    if (folder < 0)
        return -errno;
    return is_own(folder) ? fd_steal(&folder) : -EPERM;
}

uint64_t compute_folder_limit(void)
{
    const char *value = getenv("CUDA_CACHE_MAXSIZE");
    char *end;

    if (!value || !*value)
        return BYTES_DEFAULT;
    uint64_t bytes = strtoull(value, &end, 10);
    return *end ? BYTES_DEFAULT : bytes;
}

/* ---- eviction ---- */

struct file {
    char name[NAME_MAX + 1];
    struct timespec used;
    uint64_t size;
};

struct files {
    struct file *each;
    size_t count, capacity;
    uint64_t bytes;
};

static void note_file(struct files *files, int folder, const char *name)
{
    _cleanup_fd_ int fd = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) || !S_ISREG(status.st_mode))
        return;
    if (files->count == files->capacity) {
        size_t capacity = files->capacity ? 2 * files->capacity : 64;
        struct file *grown = realloc(files->each, capacity * sizeof(*grown));

        if (!grown)
            return;
        files->each = grown;
        files->capacity = capacity;
    }
    struct file *file = &files->each[files->count++];
    snprintf(file->name, sizeof(file->name), "%s", name);
    file->used = status.st_mtim;
    file->size = (uint64_t)status.st_size;
    files->bytes += file->size;
}

static void list_files(struct files *files, int folder)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = fd < 0 ? NULL : fdopendir(fd);

    if (!listing) {
        fd_close(&fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(listing));)
        note_file(files, folder, entry->d_name);
    closedir(listing);
}

static int by_use(const void *a, const void *b)
{
    const struct timespec *first = &((const struct file *)a)->used,
                          *second = &((const struct file *)b)->used;

    if (first->tv_sec != second->tv_sec)
        return first->tv_sec < second->tv_sec ? -1 : 1;
    return first->tv_nsec < second->tv_nsec ? -1 : first->tv_nsec > second->tv_nsec;
}

void compute_folder_shrink(int folder, uint64_t bytes)
{
    struct files files = {0};

    list_files(&files, folder);
    if (files.bytes > bytes)
        qsort(files.each, files.count, sizeof(*files.each), by_use);
    for (size_t i = 0; i < files.count && files.bytes > bytes; i++) {
        unlinkat(folder, files.each[i].name, 0);
        files.bytes -= files.each[i].size;
    }
    free(files.each);
}

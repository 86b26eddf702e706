/* SPDX-License-Identifier: Apache-2.0 */
/* See text_file.h. */
#include "text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fd.h"
#include "text.h"

#define FILE_MAX (1 << 20)

static int make_folders(const char *path)
{
    char folder[PATH_MAX];

    if (!text_copy(folder, sizeof(folder), path))
        return -ENAMETOOLONG;
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(folder, 0755) && errno != EEXIST)
            return -errno;
        *slash = '/';
    }
    return 0;
}

static int write_beside(const char *path, const char *text, unsigned mode)
{
    char beside[PATH_MAX];
    _cleanup_fd_ int fd = -1;
    int error;

    if (!text_format(beside, sizeof(beside), "%s.funnel-new", path))
        return -ENAMETOOLONG;
    fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0)
        return -errno;
    error = write_all(fd, text, strlen(text));
    if (!error && (fchmod(fd, mode) || fsync(fd)))
        error = -errno;
    return fd_put_in_place(AT_FDCWD, beside, path, error);
}

int text_file_write(const char *path, const char *text, unsigned mode)
{
    char real[PATH_MAX];
    struct stat status;
    int error = make_folders(path);

    if (error)
        return error;
    if (!realpath(path, real))
        return write_beside(path, text, mode);
    if (stat(real, &status) == 0)
        mode = status.st_mode & 07777;
    return write_beside(real, text, mode);
}

int text_file_read(const char *path, char **ret_text)
{
    FILE *file = fopen(path, "re");
    char *text;
    size_t length;

    if (!file)
        return -errno;
    text = calloc(1, FILE_MAX + 1);
    length = text ? fread(text, 1, FILE_MAX + 1, file) : 0;
    fclose(file);
    if (!text || length > FILE_MAX) {
        free(text);
        return text ? -EFBIG : -ENOMEM;
    }
    text[length] = '\0';
    *ret_text = text;
    return 0;
}

static bool line_ends_with(const char *line, size_t length, const char *mark)
{
    size_t size = strlen(mark);

    return length >= size && memcmp(line + length - size, mark, size) == 0;
}

/* The lines of `text` without the marked ones. */
static void drop_marked(char *text, const char *mark)
{
    char *to = text;

    for (char *from = text; *from;) {
        size_t length = strcspn(from, "\n"), whole = length + (from[length] == '\n');

        if (!line_ends_with(from, length, mark)) {
            memmove(to, from, whole);
            to += whole;
        }
        from += whole;
    }
    *to = '\0';
}

/* `old` with the line at its end, to be freed; NULL without memory. */
static char *with_line(const char *old, const char *line)
{
    size_t length = strlen(old);
    const char *gap = length && old[length - 1] != '\n' ? "\n" : "";
    char *text;

    return asprintf(&text, "%s%s%s%s", old, gap, line ? line : "", line ? "\n" : "") < 0 ? NULL
                                                                                         : text;
}

int text_file_mark(const char *path, const char *mark, const char *line)
{
    char *old = NULL, *kept = NULL, *new = NULL;
    int error = text_file_read(path, &old);

    if (error && (error != -ENOENT || !line))
        return error == -ENOENT ? 0 : error;
    kept = strdup(old ? old : "");
    if (kept) {
        drop_marked(kept, mark);
        new = line ? with_line(kept, line) : strdup(kept);
    }
    error = new ? 0 : -ENOMEM;
    if (!error && (!old || strcmp(old, new) != 0)) {
        error = text_file_write(path, new, 0644);
        error = error ? error : 1;
    }
    free(old);
    free(kept);
    free(new);
    return error;
}

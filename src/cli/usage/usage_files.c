/* SPDX-License-Identifier: Apache-2.0 */
/* See usage_files.h. */
#include "usage_files.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cleanup.h"
#include "cli.h"
#include "text.h"

#define FILES_MAX 5 /* usage.jsonl, and .1 to .4 */

struct usage_files {
    FILE *file[FILES_MAX];
    struct stat status[FILES_MAX];
    unsigned count;
};

static bool is_open(const struct usage_files *files, const struct stat *status)
{
    for (unsigned i = 0; i < files->count; i++)
        if (files->status[i].st_ino == status->st_ino && files->status[i].st_dev == status->st_dev)
            return true;
    return false;
}

static int explain_failure(const char *path)
{
    int error = errno;
    struct stat status;
    const struct passwd *owner =
        error == EACCES && !stat(path, &status) ? getpwuid(status.st_uid) : NULL;

    if (error == EACCES)
        return cli_fail("only the daemon's user (%s) may read %s",
                        owner ? owner->pw_name : "another one", path);
    return cli_fail("cannot read %s: %s", path, strerror(error));
}

static int open_file(struct usage_files *files, const char *path)
{
    FILE *file = fopen(path, "re");
    struct stat status;

    if (!file)
        return errno == ENOENT ? 0 : explain_failure(path);
    if (fstat(fileno(file), &status) || is_open(files, &status)) {
        fclose(file);
        return 0;
    }
    files->status[files->count] = status;
    files->file[files->count++] = file;
    return 0;
}

/* From the newest on: where the daemon renames them meanwhile, one is met twice, and none is
 * missed. */
static int open_all(struct usage_files *files, const char *log_directory)
{
    char path[PATH_MAX];
    int status = 0;

    for (unsigned i = 0; i < FILES_MAX && !status; i++) {
        bool fits = i ? text_format(path, sizeof(path), "%s/usage.jsonl.%u", log_directory, i)
                      : text_format(path, sizeof(path), "%s/usage.jsonl", log_directory);

        status = fits ? open_file(files, path) : cli_fail("the log directory's path is too long");
    }
    return status;
}

/* The last line may be in the middle of being written. */
static void read_lines(FILE *file, void (*take)(void *context, const char *line), void *context)
{
    _cleanup_free_ char *line = NULL;
    size_t capacity = 0;
    ssize_t length;

    while ((length = getline(&line, &capacity, file)) > 0 && line[length - 1] == '\n') {
        line[length - 1] = '\0';
        take(context, line);
    }
}

int usage_files_read(const char *log_directory, void (*take)(void *context, const char *line),
                     void *context)
{
    struct usage_files files = {.count = 0};
    int status = open_all(&files, log_directory);

    for (unsigned i = files.count; i-- > 0;) {
        if (!status)
            read_lines(files.file[i], take, context);
        fclose(files.file[i]);
    }
    return status;
}

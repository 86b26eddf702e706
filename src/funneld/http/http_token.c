/* SPDX-License-Identifier: Apache-2.0 */
/* See http_token.h. */
#include "http_token.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "fd.h"
#include "inherited.h"
#include "own_file.h"
#include "paths.h"
#include "text.h"

#define SECRET_BYTES 24

static char secret[2 * SECRET_BYTES + 1];
static char path[PATH_MAX];

static int make_secret(void)
{
    unsigned char bytes[SECRET_BYTES];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return -EIO;
    for (unsigned i = 0; i < SECRET_BYTES; i++)
        text_format(secret + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

/* Pages that are open go on with the token of the program before (reload.h). */
static bool inherit_secret(void)
{
    char *text = NULL;
    size_t size = 0;
    bool fits = inherited_exists() && !own_file_read(path, sizeof(secret) - 1, &text, &size) &&
                size == sizeof(secret) - 1 && strspn(text, "0123456789abcdef") == size;

    if (fits)
        text_copy(secret, sizeof(secret), text);
    free(text);
    return fits;
}

int http_token_create(const char *directory)
{
    int error = path_join(directory, "http-token", path, sizeof(path));

    if (!error && inherit_secret())
        return 0;

    if (!error)
        error = make_secret();
    if (error)
        return error;
    unlink(path);
    _cleanup_fd_ int fd =
        open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
    if (fd < 0)
        return -errno;
    ssize_t written = write(fd, secret, sizeof(secret) - 1);
    return written == (ssize_t)sizeof(secret) - 1 ? 0 : -ENOSPC;
}

bool http_token_fits(const char *token)
{
    unsigned char difference = 0;

    if (!*secret || strlen(token) != sizeof(secret) - 1)
        return false;
    for (size_t i = 0; i < sizeof(secret) - 1; i++)
        difference |= (unsigned char)(token[i] ^ secret[i]);
    return difference == 0;
}

void http_token_remove(void)
{
    if (*secret)
        unlink(path);
}

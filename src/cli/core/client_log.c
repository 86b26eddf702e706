/* SPDX-License-Identifier: Apache-2.0 */
/* Where errors of programs are logged. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "command_client.h"
#include "fd.h"
#include "snapshot.h"
#include "text.h"
#include "user_log.h"

void cli_find_logs(struct paths *paths)
{
    char reason[COMMAND_REASON_MAX];
    struct snapshot snapshot;

    if (!access(paths->log, F_OK) || snapshot_take(paths, &snapshot, reason))
        return;
    text_format(paths->log, sizeof(paths->log), "%.*s", (int)sizeof(snapshot.daemon.log_directory),
                snapshot.daemon.log_directory);
    snapshot_fini(&snapshot);
}

/* 0 when programs of this user may write to the daemon's log directory. */
static int daemons_client_log(const struct paths *paths, char *ret_path, size_t capacity)
{
    return access(paths->log, W_OK) ? -1 : path_join(paths->log, "client.log", ret_path, capacity);
}

int cli_client_log(const struct paths *paths, char *ret_path, size_t capacity)
{
    struct paths found = *paths;
    int fd;

    cli_find_logs(&found);
    if (daemons_client_log(&found, ret_path, capacity) && user_log_path(ret_path, capacity))
        return cli_fail("the path of the log directory is too long");
    fd = user_log_open(ret_path);
    if (fd >= 0)
        fd_close(&fd);
    return 0;
}

unsigned cli_client_logs(const struct paths *paths, char ret_paths[2][PATH_MAX])
{
    unsigned count = 0;

    count +=
        !daemons_client_log(paths, ret_paths[count], PATH_MAX) && !access(ret_paths[count], R_OK);
    count += !user_log_path(ret_paths[count], PATH_MAX) && !access(ret_paths[count], R_OK);
    return count;
}

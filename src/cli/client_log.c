/* SPDX-License-Identifier: Apache-2.0 */
/* Where errors of programs are logged. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "command_client.h"
#include "snapshot.h"
#include "text.h"

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

/* $XDG_STATE_HOME/funnel, ~/.local/state/funnel, or /tmp/funnel-UID for a user without a home. */
static bool user_directory(char *ret_path, size_t capacity)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

    if (state && *state == '/')
        return text_format(ret_path, capacity, "%s/funnel", state);
    if (home && *home == '/' && access(home, W_OK) == 0)
        return text_format(ret_path, capacity, "%s/.local/state/funnel", home);
    return text_format(ret_path, capacity, "/tmp/funnel-%u", (unsigned)geteuid());
}

/* mkdir -p, for this user alone. What fails is noticed when the file is opened. */
static void make_directories(const char *path)
{
    char part[PATH_MAX];

    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/'))
        if (text_format(part, sizeof(part), "%.*s", (int)(slash - path), path))
            mkdir(part, 0700);
    mkdir(path, 0700);
}

int cli_client_log(const struct paths *paths, bool create, char *ret_path, size_t capacity)
{
    struct paths found = *paths;
    char own[PATH_MAX];

    cli_find_logs(&found);
    if (access(found.log, W_OK)) {
        if (!user_directory(own, sizeof(own)))
            return cli_fail("the path of your home directory is too long");
        if (create)
            make_directories(own);
        text_copy(found.log, sizeof(found.log), own);
    }
    return path_join(found.log, "client.log", ret_path, capacity)
               ? cli_fail("the path of the log directory is too long")
               : 0;
}

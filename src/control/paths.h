/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a daemon lives: its pipe directory and its log directory, chosen by the same two variables
 * as NVIDIA's MPS. Also where the programs of one installation find each other.
 */
#pragma once

#include <limits.h>
#include <stddef.h>

struct paths {
    char pipe[PATH_MAX]; /* absolute */
    char log[PATH_MAX];  /* absolute */
    char socket[PATH_MAX];
};

/* From CUDA_MPS_PIPE_DIRECTORY and CUDA_MPS_LOG_DIRECTORY, else the defaults of this user. Those of
 * root are /run/funnel and /var/log/funnel. Those of others are $XDG_RUNTIME_DIR/funnel or
 * /tmp/funnel-UID, and log in it. Returns 0 or -ENAMETOOLONG. -EINVAL: the first variable names
 * several directories, because a daemon has one. */
int paths_resolve(struct paths *ret_paths);

/* The same for a process that looks for a daemon. Without CUDA_MPS_PIPE_DIRECTORY, and when no
 * daemon of root or of its own user listens there, the directories are those of root's daemon. That
 * one must listen; it serves all users. The variable may name several directories with colons
 * between them: then it is the first in which such a daemon listens, or the first. */
int paths_find_daemon(struct paths *ret_paths);

/* The text of an error of these two. */
const char *paths_error_text(int error);

/* The longest pipe directory whose socket's address still fits. */
size_t paths_pipe_max(void);

/* "<directory>/<name>": 0 or -ENAMETOOLONG. */
int path_join(const char *directory, const char *name, char *ret_path, size_t capacity);

/* A file of this installation, named from its root ("bin/funneld", "lib/funnel/libcuda.so.1"),
 * found from where the running program is: 0 or -errno. */
int path_of_sibling(const char *name, char *ret_path, size_t capacity);

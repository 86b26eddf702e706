/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program at the other end of a connection (client_program.h). The kernel tells its user, its
 * executable, its PID namespace and its working directory. The daemon neither reads the memory of
 * the process nor asks a file system, because either could make it wait.
 *
 * The daemon does not read the build ID in the executable for that reason. The file may lie in a
 * file system that a process of its user serves (FUSE). The time of birth tells the file from one
 * that was built later and has got its inode number.
 *
 * Arguments lie in the memory of the process, which may change them. So the name of a script is
 * only what the client says, and tells programs of one interpreter and one user apart.
 */
#pragma once

#include <sys/types.h>

#include "client_program.h"
#include "hello.h"
#include "server_protocol.h"

/* `fd` is the connection. `identity` holds the process and its user, as the socket has told, and
 * gets the PID namespace. Of a process that has ended meanwhile nothing but its user is known: its
 * number may already be another's. Waits for nothing. */
void peer_program_look(int fd, const struct hello *hello, struct server_identity *identity,
                       struct client_program *ret_program);

/* Its control groups (control_group.h), which the caller frees: 0, or -errno; -ESRCH when it has
 * ended, for another process may have its connection by now. */
int peer_program_groups(int fd, pid_t pid, char **ret_groups);

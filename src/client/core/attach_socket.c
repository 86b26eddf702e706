/* SPDX-License-Identifier: Apache-2.0 */
/* See attach_socket.h. */
#include "attach_socket.h"

#include <sys/stat.h>

#include "restored_process.h"

static uint64_t inode_of(int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

void attach_note_socket(struct client *made, int socket)
{
    made->socket = socket;
    made->socket_inode = inode_of(socket);
    made->attached_ns = machine_ns();
}

static bool is_socket(int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode);
}

bool attach_is_whole(void)
{
    if (client->socket_inode && inode_of(client->socket) == client->socket_inode)
        return true;
    return process_is_restored_since(client->attached_ns) && is_socket(client->socket);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See accept_reserve.h. */
#include "accept_reserve.h"

#include <errno.h>
#include <fcntl.h>

#include "fd.h"
#include "sock.h"

bool accept_is_short(int error)
{
    return error == -EMFILE || error == -ENFILE || error == -ENOMEM;
}

int accept_reserve_open(void)
{
    return open("/", O_PATH | O_CLOEXEC);
}

int accept_by_reserve(int *reserve, int listen_fd, int *ret_fd)
{
    if (*reserve < 0)
        return -EMFILE;
    fd_close(reserve);
    int error = sock_accept(listen_fd, ret_fd);

    if (error)
        *reserve = accept_reserve_open();
    return error;
}

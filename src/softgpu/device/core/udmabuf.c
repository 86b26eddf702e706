/* SPDX-License-Identifier: Apache-2.0 */
/* See udmabuf.h. */
#include "udmabuf.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>

#include "fd.h"

static int open_maker(void)
{
    return open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
}

/* Threads that ask side by side find the same, so `known` has no partner. */
bool udmabuf_is_there(void)
{
    static _Atomic int known; /* 0 = not asked yet, else 1 + the answer */

    if (!known) {
        _cleanup_fd_ int maker = open_maker();
        known = 1 + (maker >= 0);
    }
    return known == 2;
}

int udmabuf_create(int fd, uint64_t offset, uint64_t size)
{
    struct udmabuf_create request = {
        .memfd = (uint32_t)fd, .flags = UDMABUF_FLAGS_CLOEXEC, .offset = offset, .size = size};
    _cleanup_fd_ int maker = open_maker();

    if (maker < 0)
        return -errno;
    int made = ioctl(maker, UDMABUF_CREATE, &request);
    return made < 0 ? -errno : made;
}

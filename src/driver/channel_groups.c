/* SPDX-License-Identifier: Apache-2.0 */
/* See channel_groups.h. */
#include "channel_groups.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cleanup.h"
#include "clock.h"
#include "log.h"
#include "rm_call.h"

#define CLASS_CHANNEL_GROUP 0xa06cu
#define ENGINE_GRAPHICS 1u /* NV2080_ENGINE_TYPE_GRAPHICS: kernels run there */

#define CONTROL_SET_TIMESLICE 0xa06c0103u
#define CONTROL_GET_TIMESLICE 0xa06c0104u

/* After this time the driver has set a new group up. */
#define SETTLED_NS (200 * NS_PER_MS)

#define GROUPS_MAX 256u

/* NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS, as far as it matters here. */
struct group_parameters {
    uint32_t error_object, error_memory, address_space, engine;
};

struct channel_group {
    int fd; /* of the driver's control device */
    uint32_t client, object;
    uint64_t made_at;  /* clock_ns() */
    uint64_t own_us;   /* the driver's own slice; 0 = not read yet */
    uint64_t slice_us; /* the slice set from here; 0 = none */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct channel_group groups[GROUPS_MAX];
static unsigned count;
static uint64_t wanted_us;
static bool is_refused;

static void add_group(int fd, const struct rm_alloc *alloc)
{
    const struct group_parameters *parameters = (const void *)(uintptr_t)alloc->parameters;
    _cleanup_mutex_ pthread_mutex_t *held = mutex_hold(&lock);

    if (alloc->class == CLASS_CHANNEL_GROUP && parameters &&
        parameters->engine == ENGINE_GRAPHICS && count < GROUPS_MAX)
        groups[count++] = (struct channel_group){
            .fd = fd, .client = alloc->client, .object = alloc->object, .made_at = clock_ns()};
}

static void remove_group(const struct rm_free *released)
{
    _cleanup_mutex_ pthread_mutex_t *held = mutex_hold(&lock);

    for (unsigned i = 0; i < count; i++)
        if (groups[i].client == released->client && groups[i].object == released->object)
            groups[i--] = groups[--count];
}

void channel_groups_see(int fd, unsigned long request, const void *argument)
{
    if (rm_call_is(request, RM_ALLOC))
        add_group(fd, argument);
    else if (rm_call_is(request, RM_FREE))
        remove_group(argument);
}

void channel_groups_set_slice(uint64_t us)
{
    _cleanup_mutex_ pthread_mutex_t *held = mutex_hold(&lock);

    wanted_us = us;
    is_refused = false;
}

bool channel_groups_are_refused(void)
{
    _cleanup_mutex_ pthread_mutex_t *held = mutex_hold(&lock);

    return is_refused;
}

/* 0, -errno, or the status that the driver answers. */
static long control_group(const struct channel_group *group, uint32_t command, uint64_t *us)
{
    struct rm_control control = {.client = group->client,
                                 .object = group->object,
                                 .command = command,
                                 .parameters = (uintptr_t)us,
                                 .size = sizeof(*us)};
    const unsigned long request = 3ul << 30 | sizeof(control) << 16 | RM_MAGIC << 8 | RM_CONTROL;

    if (syscall(SYS_ioctl, group->fd, request, &control) < 0)
        return -errno;
    return control.status;
}

static long apply_slice(struct channel_group *group, uint64_t us)
{
    long status = group->own_us ? 0 : control_group(group, CONTROL_GET_TIMESLICE, &group->own_us);
    uint64_t slice = us ? us : group->own_us;

    if (!status)
        status = control_group(group, CONTROL_SET_TIMESLICE, &slice);
    if (!status)
        group->slice_us = us;
    return status;
}

static void log_refusal(long status)
{
    is_refused = true;
    if (status < 0)
        log_line("The driver sets no time slices (%s): this server keeps the driver's",
                 strerror((int)-status));
    else
        log_line("The driver sets no time slices (status 0x%lx): this server keeps the driver's",
                 status);
}

void channel_groups_apply(void)
{
    _cleanup_mutex_ pthread_mutex_t *held = mutex_hold(&lock);
    uint64_t now = clock_ns();

    for (unsigned i = 0; i < count && !is_refused; i++) {
        if (groups[i].slice_us == wanted_us || now - groups[i].made_at < SETTLED_NS)
            continue;
        long status = apply_slice(&groups[i], wanted_us);
        if (status)
            log_refusal(status);
    }
}

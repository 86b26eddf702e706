/* SPDX-License-Identifier: Apache-2.0 */
/* The array subsystem's part of a session and of a device. */
#include "array_state.h"

#include <errno.h>
#include <stdlib.h>

#include "array_spare.h"
#include "memory.h"

int server_arrays_init(struct server *server)
{
    for (unsigned i = 0; i < server->devices.count; i++) {
        struct device_arrays *arrays = calloc(1, sizeof(*arrays));

        if (!arrays)
            return -ENOMEM;
        pthread_mutex_init(&arrays->clear_lock, NULL);
        pthread_mutex_init(&arrays->spare_lock, NULL);
        list_init(&arrays->spares);
        server->devices.device[i].arrays = arrays;
    }
    memory_add_reclaimer(server, array_spares_give_way);
    return 0;
}

void server_arrays_fini(struct server *server)
{
    for (unsigned i = 0; i < server->devices.count; i++)
        free(server->devices.device[i].arrays);
}

int session_arrays_init(struct session *session)
{
    session->arrays = calloc(1, sizeof(*session->arrays));
    return session->arrays ? 0 : -ENOMEM;
}

void session_arrays_fini(struct session *session)
{
    free(session->arrays);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See swapping.h. */
#include "swapping.h"

#include <errno.h>
#include <stdlib.h>

#include "server_life.h"
#include "session_life.h"

static int init_session(struct session *session)
{
    session->swapping = calloc(1, sizeof(*session->swapping));
    if (!session->swapping)
        return -ENOMEM;
    program_suspend_init(&session->swapping->order);
    session_eviction_init(session);
    return 0;
}

static void fini_session(struct session *session)
{
    if (session->swapping)
        program_suspend_fini(&session->swapping->order);
    free(session->swapping);
}

static const struct session_part session_part = {init_session, fini_session};

int server_swapping_init(struct server *server)
{
    server->swapping = calloc(1, sizeof(*server->swapping));
    if (!server->swapping)
        return -ENOMEM;
    server_eviction_init(server);
    server->life->upper_part = &session_part;
    return 0;
}

void server_swapping_fini(struct server *server)
{
    free(server->swapping);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of NVIDIA's driver that wait for all streams of a context keep the driver's lock while they
 * wait, so that no client's launch gets through. Such a call is made in a calm moment: when no
 * stream has work that takes long. Its thread waits for that moment without the lock, and only the
 * clients whose work always takes long are held back meanwhile, for a bounded time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "driver_table.h"

struct device;
struct server;
struct session;

/* Other clients that the caller holds back. */
#define CALM_HELD_MAX 64u
struct calm_held {
    uint32_t id;    /* the session's */
    uint64_t until; /* as it was held first */
};
struct calm {
    struct calm_held held[CALM_HELD_MAX];
    unsigned count;
    bool patient; /* the caller waits although its session is to end */
    bool bars;    /* calm_bar() was called */
};

/* On the session's thread, in the device's context and without any lock: around a call that waits
 * for all streams; `what` names it in the log. The first may take as long as kernels that run. The
 * result is quiesce_begin()'s (quiesce.h), or CUDA_ERROR_NOT_READY for a session that is to end and
 * need not make the call any more; unless it is CUDA_SUCCESS the call must not be made, and
 * calm_end() must not be called. */
CUresult calm_begin(struct session *session, const struct device *device, const char *what,
                    struct calm *calm);
/* The same for a call that has to be made at the end of a session, too, which then waits for
 * kernels of others. */
CUresult calm_begin_patiently(struct session *session, const struct device *device,
                              const char *what, struct calm *calm);
/* On the session's thread and without any lock: waits for a moment that is calm in all contexts,
 * for a call that waits for the streams of all of them. The caller takes the lock of all contexts,
 * and lets the clients that are held go on by calm_release(). */
void calm_await_everywhere(struct session *session, struct calm *calm);
/* The same for a call that waits for no kernel, but must not be made while a stream waits for a
 * value, or that nobody is harmed by. Then `session` may be NULL in calm_end(). */
CUresult calm_begin_at_once(const struct device *device, const char *what, struct calm *calm);

/* Behind the call. The clients that are held until they are released go on some milliseconds later:
 * the next such call of the session, which often follows at once, then finds the moment still calm.
 * The others go on at once. */
void calm_end(struct session *session, const struct device *device, struct calm *calm);

/* Between the two no client that has just attached begins: its first kernel may be long, and would
 * be waited for by a call that is being made. Both take the server's lock. */
void calm_bar(struct server *server);
void calm_unbar(struct server *server);

/* On the thread of a client that has attached: waits until it may begin, for a second at most, and
 * then it is SESSION_SERVING. Takes the server's lock. */
void calm_admit(struct session *session);

/* For the function that waits (server.h): a client is held back from its next command on, until it
 * is released, or clock_ns() is `until`; of several times the latest counts. Beyond CALM_HELD_MAX
 * it is left alone. The caller has the server's lock. */
#define CALM_UNTIL_RELEASED UINT64_MAX
void calm_hold(struct calm *calm, struct session *session, uint64_t until);

/* On a thread that is not of one of them: waits until the threads of the clients that are held have
 * put the launches that they had into their streams and make no call, so that the streams tell all
 * that they will do; for at most `timeout_ns`, since one of them may itself be in a call that
 * waits. Takes the server's lock. */
void calm_await_rest(struct server *server, const struct calm *calm, uint64_t timeout_ns);

/* On the thread of a session: whether others hold it back. */
bool calm_is_held(struct session *session);

/* Lets all of them go on. Takes the server's lock. */
void calm_release(struct server *server, struct calm *calm);

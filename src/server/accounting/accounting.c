/* SPDX-License-Identifier: Apache-2.0 */
/* The sampling thread, and readers of its counters. */
#include "accounting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "accounting_state.h"
#include "clock.h"
#include "launch_record.h"
#include "text.h"

/* The time between two samples is random, from half to one and a half of this. So samples do not
 * correlate with a program's period. */
#define PERIOD_NS (2 * NS_PER_MS)

/* After this time without activity of any client, samples are rare. */
#define QUIET_AFTER_NS NS_PER_SEC
#define QUIET_PERIOD_NS (20 * NS_PER_MS)

static uint64_t next_period(uint64_t *seed, uint64_t quiet_ns)
{
    uint64_t period = quiet_ns < QUIET_AFTER_NS ? PERIOD_NS : QUIET_PERIOD_NS;

    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return period / 2 + (*seed >> 33) % period;
}

static void *sample_thread(void *context)
{
    uint64_t before = clock_ns(), seed = before, quiet_ns = 0;

    for (;;) {
        uint64_t period = next_period(&seed, quiet_ns);
        const struct timespec pause = {.tv_nsec = (long)period};

        nanosleep(&pause, NULL);
        uint64_t now = clock_ns(), interval_ns = now - before;
        quiet_ns = accounting_round(context, interval_ns) ? 0 : quiet_ns + interval_ns;
        before = now;
    }
    return NULL;
}

int accounting_start(struct server *server)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, sample_thread, server);

    if (!error)
        pthread_detach(thread);
    return -error;
}

int server_accounting_init(struct server *server)
{
    server->accounting = calloc(1, sizeof(*server->accounting));
    if (!server->accounting)
        return -ENOMEM;
    server->accounting->seen_at = clock_ns();
    return 0;
}

void server_accounting_fini(struct server *server)
{
    free(server->accounting);
}

uint32_t accounting_kernels_percent(struct server *server)
{
    struct server_accounting *accounting = server->accounting;
    uint64_t now = clock_ns(), passed_ns = now - accounting->seen_at, most_ns = 0;

    for (unsigned i = 0; i < server->devices.count; i++) {
        uint64_t sum_ns = counter_get(&accounting->kernels_ns[i]);
        uint64_t kernels_ns = sum_ns - accounting->seen_ns[i];

        most_ns = kernels_ns > most_ns ? kernels_ns : most_ns;
        accounting->seen_ns[i] = sum_ns;
    }
    accounting->seen_at = now;
    return most_ns >= passed_ns ? 100 : (uint32_t)(100 * most_ns / passed_ns);
}

uint64_t accounting_shared_ns(const struct server *server)
{
    return counter_get(&server->accounting->shared_ns);
}

int session_accounting_init(struct session *session)
{
    session->accounting = calloc(1, sizeof(*session->accounting));
    return session->accounting ? 0 : -ENOMEM;
}

void session_accounting_fini(struct session *session)
{
    free(session->accounting);
}

void accounting_stalled(struct session *session, const struct session *offender, const char *call,
                        uint64_t ms, bool begins)
{
    struct session_accounting *accounting = session->accounting;

    counter_add(&accounting->stalls, begins);
    counter_add(&accounting->stalled_ms, ms);
    text_format(accounting->stall_cause, sizeof(accounting->stall_cause), "%.40s of PID %d", call,
                offender->identity.pid);
}

void accounting_note_eviction(struct session *session)
{
    counter_add(&session->accounting->evictions, 1);
}

void accounting_note_swapped_out(struct session *session, uint64_t bytes)
{
    counter_add(&session->accounting->swapped_out, bytes);
}

void accounting_note_swapped_in(struct session *session, uint64_t bytes)
{
    counter_add(&session->accounting->swapped_in, bytes);
}

static void read_sampled(const struct session_accounting *accounting, struct server_usage *usage)
{
    uint64_t taken = counter_get(&accounting->taken_bytes);

    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++) {
        usage->gpu_ns[i] = counter_get(&accounting->gpu_ns[i]);
        usage->sm_ns[i] = counter_get(&accounting->sm_ns[i]);
    }
    usage->shared_ns = counter_get(&accounting->shared_ns);
    usage->copy_ns = counter_get(&accounting->copy_ns);
    usage->queued_ns = counter_get(&accounting->queued_ns);
    usage->queue_bytes = counter_get(&accounting->queue_bytes);
    /* Little's law: on average as many bytes wait as arrive while one waits. */
    if (taken)
        usage->wait_ns =
            (uint64_t)((double)counter_get(&accounting->queued_byte_ns) * 1024 / (double)taken);
}

void accounting_usage(const struct session *session, struct server_usage *ret_usage)
{
    const struct session_accounting *accounting = session->accounting;
    uint64_t all, bytes[COPY_WAYS];

    *ret_usage = (struct server_usage){.launches = launch_count(session)};
    read_sampled(accounting, ret_usage);
    copy_counters(session, &ret_usage->copies, &all);
    copy_direction_bytes(session, bytes);
    ret_usage->copied_up = bytes[COPY_UP];
    ret_usage->copied_down = bytes[COPY_DOWN];
    ret_usage->copied_within = bytes[COPY_WITHIN];
    ret_usage->stalls = counter_get(&accounting->stalls);
    ret_usage->stalled_ms = counter_get(&accounting->stalled_ms);
    ret_usage->evictions = counter_get(&accounting->evictions);
    ret_usage->swapped_out = counter_get(&accounting->swapped_out);
    ret_usage->swapped_in = counter_get(&accounting->swapped_in);
    text_copy(ret_usage->stall_cause, sizeof(ret_usage->stall_cause), accounting->stall_cause);
}

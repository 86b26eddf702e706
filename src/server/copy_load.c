/* SPDX-License-Identifier: Apache-2.0 */
/* Compares each client's counters with those of the previous round. */
#include "copy_load.h"

#include "cleanup.h"
#include "copy.h"
#include "launch_record.h"
#include "launch_slot.h"
#include "server_life.h"
#include "session_life.h"
#include "spin.h"
#include "worker_pool.h"

/* Bytes within the 20 ms between two rounds: a sixtieth of the bandwidth to the GPU. */
#define MUCH (16u << 20)

/* A client counts as busy until it has done nothing in so many rounds. */
#define BUSY_SAMPLES 10u

/* Threads of an active client that need a CPU: its own, and its worker. */
#define THREADS 2u

static bool copies_much(struct session *session)
{
    uint64_t copies, bytes, before = session->life->load.copied_bytes;

    copy_counters(session, &copies, &bytes);
    session->life->load.copied_bytes = bytes;
    return bytes - before >= MUCH;
}

/* With few CPUs, a client may not run for some rounds. */
static bool is_busy(struct session *session)
{
    struct session_load *load = &session->life->load;
    uint64_t copies, bytes, before = load->work;

    copy_counters(session, &copies, &bytes);
    load->work = launch_count(session) + copies;
    if (load->work != before)
        load->busy_samples = BUSY_SAMPLES;
    else if (load->busy_samples)
        load->busy_samples--;
    return load->busy_samples > 0;
}

static struct channel_load measure_locked(struct server *server)
{
    unsigned copiers = 0, at_work = 0;

    list_for_each (struct session, session, &server->sessions, link) {
        copiers += copies_much(session);
        at_work += is_busy(session);
    }
    return (struct channel_load){
        .copiers = server->life->no_copy_load ? 0 : copiers,
        .lacks_cpus = !server->life->no_short_spin && THREADS * at_work > server->life->cpus,
    };
}

static void tell_client(struct session *session, struct channel_load load)
{
    struct channel_load *told = &session->life->load.told;

    if (!session->channel || (told->copiers == load.copiers && told->lacks_cpus == load.lacks_cpus))
        return;
    channel_server_put_load(session->channel, load);
    *told = load;
}

void copy_load_update(struct server *server)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);
    struct channel_load load = measure_locked(server);

    spin_shorten(load.lacks_cpus);
    launch_slots_limit(server, load.lacks_cpus);
    worker_pool_set_wanted_locked(server, load.lacks_cpus);
    list_for_each (struct session, session, &server->sessions, link)
        tell_client(session, load);
}

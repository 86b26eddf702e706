/* SPDX-License-Identifier: Apache-2.0 */
/* Compares each client's counters with those of the previous round. */
#include "copy_load.h"

#include <string.h>

#include "channel_server.h"
#include "cleanup.h"
#include "context_hold.h"
#include "copy.h"
#include "launch_record.h"
#include "server_life.h"
#include "session_life.h"
#include "spin.h"
#include "trainings.h"
#include "worker_pool.h"

/* Bytes within the 20 ms between two rounds: a sixtieth of the bandwidth to the GPU. */
#define MUCH (16u << 20)

/* A client counts as busy until it has done nothing in so many rounds. */
#define BUSY_SAMPLES 10u

/* A client gets its own thread when more than one in so many of its launches comes alone. It loses
 * it when one in so many does. */
#define LONE_PART 2u
#define FEW_LONE_PART 4u

/* Threads of an active client that need a CPU: its own, and that of its session. */
#define THREADS 2u

/* The same where its kernels run on a CPU. */
#define SOFT_THREADS 3u

/* The longest spins of a waiting thread while CPUs are short: where each client has a CPU, and
 * where it has not. */
#define SPIN_NS 10000u
#define SHORT_SPIN_NS 2000u

/* How long a training yields its CPU then before it sleeps. */
#define YIELD_NS 1000000u

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

/* A program that computes between its launches, and does not wait for them, needs the CPUs on which
 * workers would poll. Its session's thread sleeps. */
static bool launches_one_by_one(const struct session *session)
{
    const struct launch_counts *latest = &session->life->load.rate.latest;
    bool before = atomic_load_explicit(&session->unpooled, memory_order_relaxed);

    if (!latest->launches)
        return before;
    return latest->lone * (before ? FEW_LONE_PART : LONE_PART) > latest->launches;
}

struct load {
    unsigned copiers, at_work; /* clients */
    bool fills_cpus;           /* with a thread of each of their sessions: the pool serves them */
    bool lacks_cpus;           /* for all these threads: spins become shorter */
    bool trains;               /* then clients are trainings: most, or all that share CPUs */
    bool gathers;              /* and they fill the CPUs: their launches are gathered */
    bool is_oversubscribed;    /* they share CPUs */
    struct trainings trainings;
};

/* A worker that sleeps would make others that wait for each launch late. */
static bool mostly_trains(const struct server *server, const struct load *load)
{
    bool share_cpus = load->at_work > server->life->cpus;
    unsigned needed = share_cpus ? load->at_work : load->at_work / 2 + 1;

    return worker_pool_active(server) && load->trainings.at_work >= needed;
}

static struct load measure_locked(struct server *server)
{
    struct load load = {0};

    list_for_each (struct session, session, &server->sessions, link) {
        load.copiers += copies_much(session);
        load.at_work += is_busy(session);
    }
    load.trainings = trainings_measure_locked(server);
    unsigned threads = server->life->driver_kind == DRIVER_SOFT ? SOFT_THREADS : THREADS;
    if (server->life->no_short_spin)
        return load;
    load.fills_cpus = load.at_work && threads * load.at_work >= server->life->cpus;
    load.lacks_cpus = threads * load.at_work > server->life->cpus;
    load.trains = load.lacks_cpus && mostly_trains(server, &load);
    load.gathers = load.trains && load.at_work >= server->life->cpus;
    load.is_oversubscribed = load.trains && load.at_work > server->life->cpus;
    return load;
}

/* Where most are such programs, a few workers take less from them than the threads of all sessions.
 */
static void exempt_locked(struct server *server, bool trains)
{
    list_for_each (struct session, session, &server->sessions, link) {
        bool is_alone = launches_one_by_one(session);

        worker_pool_exempt_locked(session, is_alone && !trains);
    }
}

/* Of clients. */
static uint32_t longest_spin(const struct server *server, const struct load *load)
{
    unsigned cpus = server->life->cpus, workers = worker_pool_active(server);

    if (!load->lacks_cpus)
        return 0;
    if (!workers || load->at_work > cpus)
        return SHORT_SPIN_NS;
    return load->at_work + workers > cpus ? SPIN_NS : 0;
}

/* A CPU that becomes idle mostly stays so for a while, though threads are queued for others. But it
 * may get one of them. So trainings that are ahead sleep, and the others keep their CPUs. */
static uint32_t longest_yield(const struct load *load, const struct session *session)
{
    bool yields = load->trains && !load->is_oversubscribed && trainings_have(session) &&
                  !trainings_are_behind(&load->trainings, session, load->gathers);

    return yields ? YIELD_NS : 0;
}

/* Partner: gathers_launches(). */
static void tell_of_training(const struct load *load, struct session *session)
{
    atomic_store_explicit(&session->gathers, load->gathers && trainings_have(session),
                          memory_order_relaxed);
}

static void tell_client(struct session *session, struct channel_load load)
{
    struct channel_load *told = &session->life->load.told;

    if (load.spin_ns && atomic_load_explicit(&session->unpooled, memory_order_relaxed))
        load.spin_ns = SHORT_SPIN_NS;
    if (!session->channel || !memcmp(told, &load, sizeof(load)))
        return;
    channel_server_put_load(session->channel, load);
    *told = load;
}

static void tell_client_of_holds(struct session *session)
{
    bool *told = &session->life->load.hold_told, wanted = context_hold_is_for(session);

    if (!session->channel || *told == wanted)
        return;
    channel_server_want_hold(session->channel, wanted);
    *told = wanted;
}

void copy_load_update(struct server *server)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);
    const struct load load = measure_locked(server);
    struct channel_load told = {
        .copiers = server->life->no_copy_load ? 0 : load.copiers,
        .spin_ns = longest_spin(server, &load),
    };
    const struct pool_demand demand = {load.fills_cpus, load.trains, load.gathers,
                                       load.is_oversubscribed};

    spin_limit(load.lacks_cpus ? SHORT_SPIN_NS : 0);
    exempt_locked(server, load.trains);
    worker_pool_update_locked(server, demand);
    list_for_each (struct session, session, &server->sessions, link) {
        told.yield_ns = longest_yield(&load, session);
        tell_client(session, told);
        tell_of_training(&load, session);
        tell_client_of_holds(session);
    }
}

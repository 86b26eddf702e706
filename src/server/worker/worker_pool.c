/* SPDX-License-Identifier: Apache-2.0 */
/* See worker_pool.h. */
#include "worker_pool.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "abort_launches.h"
#include "channel_server.h"
#include "clock.h"
#include "futex.h"
#include "light_command.h"
#include "list.h"
#include "lock.h"
#include "pool_share.h"
#include "pool_size.h"
#include "run_message.h"
#include "server_life.h"
#include "session_life.h"
#include "slice.h"
#include "stream.h"
#include "suspend.h"

/* A session that has not sent a command for this time goes back to its thread. The time grows by so
 * much with each session of its worker. A wake-up of that thread takes some 10 us of a CPU, and its
 * clients wait longer where CPUs are short. A worker that has many others spends nothing on it. */
#define POOL_IDLE_NS (200 * NS_PER_US)
#define POOL_IDLE_OF_TRAININGS_NS (5 * NS_PER_MS) /* which launch nothing while they compute */
#define POOL_IDLE_EACH_NS (50 * NS_PER_US)

/* Commands of one session in a row: as many as a launch batch has launches. */
#define POOL_BURST 16u

/* A worker keeps one part in so many above its share of the sessions, because a session that moves
 * waits for its thread to wake. */
#define TOLERATED_PART 16u

/* A client that wakes on a worker's CPU would wait for some milliseconds, and fall behind others.
 */
#define SLICE_NS (100 * NS_PER_US)

/* Programs that share a CPU take turns on it, so that a worker that sleeps delays few of them. */
#define IDLE_SLEEP_NS 100000

/* A worker that sleeps is late by so much more, and not by the 50 us that are usual. */
#define TIMER_SLACK_NS 1000ul

/* Looks of the watchdog in which the workers must be too few before there are more. */
#define GATHERING_LOOKS 32u

/* Rounds without a command before the worker lets other threads have its CPU. */
#define POOL_SPIN_ROUNDS 64u

/* On the stack of the session's thread, which sleeps on `left`. */
struct pool_seat {
    struct list link; /* of the worker */
    struct session *session;
    uint64_t idle_since; /* clock_ns(); 0 = a command came in the last round */
    struct pool_result result;
    _Atomic uint32_t left; /* 1: the session is its thread's again */
};

struct pool_worker {
    pthread_t thread;
    struct lock lock;
    struct list arrivals;         /* struct pool_seat, under the lock */
    _Atomic uint32_t arrived;     /* counts them; the worker sleeps on it */
    struct list seats;            /* struct pool_seat: the worker's own */
    atomic_uint seated;           /* how many sessions it has, those that arrive included */
    atomic_uint share;            /* how many it shall have */
    atomic_uint excess;           /* how many it gives back, for other workers */
    _Atomic uint64_t all_ns;      /* of its rounds with sessions, so far: the worker counts */
    _Atomic uint64_t busy_ns;     /* of those in which a command was there */
    _Atomic uint64_t turns;       /* of sessions with a command there */
    struct pool_time seen_time;   /* the watchdog's, of its last round */
    uint64_t seen_turns;          /* likewise */
    struct pool_turns recent;     /* likewise */
    const struct device *current; /* whose context the thread is in */
    const struct worker_pool *pool;
};

struct worker_pool {
    atomic_bool wanted;
    atomic_bool trains;
    atomic_bool sleeps;
    atomic_uint active; /* the first so many workers get sessions */
    struct pool_size size;
    unsigned gathering_looks;        /* the watchdog's, since launches are gathered; */
    struct pool_time gathering_time; /* of the workers in the last of these */
    unsigned count;
    struct pool_worker workers[];
};

/* ---- the session's thread ---- */

static bool is_wanted(const struct worker_pool *pool)
{
    return atomic_load_explicit(&pool->wanted, memory_order_relaxed);
}

bool worker_pool_is_wanted(const struct server *server)
{
    return server->life->pool && is_wanted(server->life->pool);
}

static bool is_exempt(const struct session *session)
{
    return atomic_load_explicit(&session->unpooled, memory_order_relaxed);
}

static unsigned load_of(const struct pool_worker *worker)
{
    return atomic_load_explicit(&worker->seated, memory_order_relaxed);
}

/* How many sessions it has above its share; below 0: how many it lacks. Partner: share_out(). */
static int surplus_of(const struct pool_worker *worker)
{
    return (int)load_of(worker) - (int)atomic_load_explicit(&worker->share, memory_order_relaxed);
}

static struct pool_worker *choose_worker(struct worker_pool *pool)
{
    unsigned active = atomic_load_explicit(&pool->active, memory_order_relaxed);
    struct pool_worker *least = &pool->workers[0];

    for (unsigned i = 1; i < active; i++) {
        if (surplus_of(&pool->workers[i]) < surplus_of(least))
            least = &pool->workers[i];
    }
    return least;
}

static void arrive(struct pool_worker *worker, struct pool_seat *seat)
{
    atomic_fetch_add_explicit(&worker->seated, 1, memory_order_relaxed);
    lock_take(&worker->lock);
    list_append(&worker->arrivals, &seat->link);
    lock_give(&worker->lock);
    atomic_fetch_add_explicit(&worker->arrived, 1, memory_order_seq_cst);
    futex_wake(&worker->arrived, 1);
}

/* Partner: leave(). */
static bool has_left(const struct pool_seat *seat)
{
    return atomic_load_explicit(&seat->left, memory_order_acquire);
}

bool worker_pool_serve(struct session *session, struct pool_result *ret_result)
{
    const struct device *current = session->current;
    struct pool_seat seat = {.session = session};

    if (!worker_pool_is_wanted(session->server) || is_exempt(session))
        return false;
    session->pooled = true;
    session->life->pool_stays++;
    session_set_at_rest(session, !launch_batch_is_pending(session));
    arrive(choose_worker(session->server->life->pool), &seat);
    while (!has_left(&seat))
        futex_wait(&seat.left, 0, 0);
    session_set_at_rest(session, false);
    session->pooled = false;
    session->current = current;
    *ret_result = seat.result;
    return true;
}

/* ---- a worker ---- */

/* The seat is gone as soon as its thread has seen this, and then the wake has no effect. Partner:
 * has_left(). */
static void leave_seat(struct pool_worker *worker, struct pool_seat *seat)
{
    list_remove(&seat->link);
    atomic_fetch_sub_explicit(&worker->seated, 1, memory_order_relaxed);
    atomic_store_explicit(&seat->left, 1, memory_order_release);
    futex_wake(&seat->left, 1);
}

static bool needs_its_thread(const struct session *session)
{
    return session->stop || streams_need_capacity(session) ||
           atomic_load_explicit(&session->suspended.count, memory_order_acquire) ||
           atomic_load_explicit(&session->limits.changed, memory_order_relaxed);
}

/* Whether the session leaves. Its thread gets the command that it has to make itself. */
static bool run_burst(struct pool_seat *seat)
{
    struct session *session = seat->session;

    for (unsigned i = 0; i < POOL_BURST && !needs_its_thread(session); i++) {
        const struct ring_message *message = NULL;
        int size = channel_server_next(session->channel, &message);

        if (!size)
            break;
        if (!light_command(session, size, message)) {
            seat->result = (struct pool_result){.size = size, .message = message};
            return true;
        }
        run_message(session, size, message);
    }
    return needs_its_thread(session);
}

/* Launches that wait for a fence, or for more of them, stay back for another round. */
static void submit(struct session *session, uint64_t now)
{
    if (launch_batch_gathers(session, now) || launch_batch_awaits_fence(session))
        return;
    launch_batch_flush(session);
    session_set_at_rest(session, true);
}

/* Whether the session leaves. */
static bool serve_commands(struct pool_worker *worker, struct pool_seat *seat, uint64_t now)
{
    struct session *session = seat->session;

    session_set_at_rest(session, false);
    session->current = worker->current;
    abort_launches_own(session);
    activity_own(&session->activity);
    seat->idle_since = 0;
    bool leaves = run_burst(seat);
    if (leaves)
        launch_batch_flush(session);
    else
        submit(session, now);
    worker->current = session->current;
    return leaves;
}

/* The session has sent nothing since the last round. Whether it leaves. */
static bool note_idle(const struct pool_worker *worker, struct pool_seat *seat, uint64_t now)
{
    bool trains = atomic_load_explicit(&worker->pool->trains, memory_order_relaxed);
    uint64_t most =
        (trains ? POOL_IDLE_OF_TRAININGS_NS : POOL_IDLE_NS) + load_of(worker) * POOL_IDLE_EACH_NS;

    if (!seat->idle_since)
        seat->idle_since = now;
    seat->result.is_idle = now - seat->idle_since >= most;
    return seat->result.is_idle;
}

/* Partner: share_out(). */
static bool takes_excess(struct pool_worker *worker)
{
    unsigned excess = atomic_load_explicit(&worker->excess, memory_order_relaxed);

    return excess &&
           atomic_compare_exchange_strong_explicit(&worker->excess, &excess, excess - 1,
                                                   memory_order_relaxed, memory_order_relaxed);
}

static bool is_ready(struct session *session, uint64_t now)
{
    return channel_server_has_command(session->channel) ||
           (launch_batch_is_pending(session) && !launch_batch_gathers(session, now));
}

/* Only this worker counts, so no atomic addition is needed. Partner: look_at(). */
static void add_to(_Atomic uint64_t *counter, uint64_t more)
{
    uint64_t so_far = atomic_load_explicit(counter, memory_order_relaxed);

    atomic_store_explicit(counter, so_far + more, memory_order_relaxed);
}

/* The command of the next session comes from its client's CPU meanwhile. */
static void prefetch_behind(const struct pool_worker *worker, const struct pool_seat *seat)
{
    if (seat->link.next != &worker->seats)
        channel_server_prefetch(
            container_of(seat->link.next, struct pool_seat, link)->session->channel);
}

/* One round. Whether there was something to do. */
static bool serve_all(struct pool_worker *worker, uint64_t now)
{
    unsigned turns = 0;

    list_for_each_safe (struct pool_seat, seat, &worker->seats, link) {
        bool ready = is_ready(seat->session, now);
        prefetch_behind(worker, seat);
        bool leaves = !is_wanted(worker->pool) || is_exempt(seat->session) ||
                      needs_its_thread(seat->session) || takes_excess(worker);

        turns += ready;
        if (leaves)
            serve_commands(worker, seat, now);
        else
            leaves = ready ? serve_commands(worker, seat, now) : note_idle(worker, seat, now);
        if (leaves)
            leave_seat(worker, seat);
    }
    add_to(&worker->turns, turns);
    return turns > 0;
}

/* Those since `seated` was counted. Whether there were some. */
static bool seat_arrivals(struct pool_worker *worker, uint32_t *seated)
{
    uint32_t arrived = atomic_load_explicit(&worker->arrived, memory_order_seq_cst);

    if (arrived == *seated)
        return false;
    *seated = arrived;
    lock_take(&worker->lock);
    list_for_each_safe (struct pool_seat, seat, &worker->arrivals, link) {
        list_remove(&seat->link);
        list_append(&worker->seats, &seat->link);
    }
    lock_give(&worker->lock);
    return true;
}

/* After so many rounds without a command. */
static void take_pause(const struct worker_pool *pool, unsigned idle_rounds)
{
    if (atomic_load_explicit(&pool->sleeps, memory_order_relaxed))
        nanosleep(&(struct timespec){.tv_nsec = IDLE_SLEEP_NS}, NULL);
    else if (idle_rounds > POOL_SPIN_ROUNDS)
        sched_yield();
}

/* Rounds until there is no session. */
static void run_rounds(struct pool_worker *worker, uint32_t *seated)
{
    uint64_t began = clock_ns();

    for (unsigned idle_rounds = 0; !list_empty(&worker->seats);) {
        bool busy = serve_all(worker, began);

        idle_rounds = busy ? 0 : idle_rounds + 1;
        if (idle_rounds)
            take_pause(worker->pool, idle_rounds);
        seat_arrivals(worker, seated);
        uint64_t took = clock_ns() - began;
        add_to(&worker->all_ns, took);
        if (busy)
            add_to(&worker->busy_ns, took);
        began += took;
    }
}

static void *run_worker(void *context)
{
    struct pool_worker *worker = context;
    uint32_t seated = 0;

    slice_shorten(SLICE_NS);
    prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
    for (;;) {
        run_rounds(worker, &seated);
        if (!seat_arrivals(worker, &seated))
            futex_wait(&worker->arrived, seated, 0);
    }
    return NULL;
}

/* ---- the pool ---- */

/* What the worker has done since the watchdog's last round. */
static struct pool_time look_at(struct pool_worker *worker)
{
    struct pool_time now = {atomic_load_explicit(&worker->all_ns, memory_order_relaxed),
                            atomic_load_explicit(&worker->busy_ns, memory_order_relaxed)};
    struct pool_time since = {now.all - worker->seen_time.all, now.busy - worker->seen_time.busy};
    uint64_t turns = atomic_load_explicit(&worker->turns, memory_order_relaxed);

    pool_turns_add(&worker->recent, (struct pool_turns){since.busy, turns - worker->seen_turns});
    worker->seen_time = now;
    worker->seen_turns = turns;
    return since;
}

static struct pool_time look_at_all(struct worker_pool *pool)
{
    struct pool_time sum = {0};

    for (unsigned i = 0; i < pool->count; i++) {
        struct pool_time since = look_at(&pool->workers[i]);

        sum.all += since.all;
        sum.busy += since.busy;
    }
    return sum;
}

/* What a worker has much above its share goes to another one. Partner: takes_excess(). */
static void set_share(struct pool_worker *worker, unsigned share)
{
    unsigned load = load_of(worker), tolerated = share + share / TOLERATED_PART;

    atomic_store_explicit(&worker->share, share, memory_order_relaxed);
    atomic_store_explicit(&worker->excess, load > tolerated ? load - share : 0,
                          memory_order_relaxed);
}

static void share_out(struct worker_pool *pool, unsigned active)
{
    struct pool_turns recent[POOL_WORKERS_MAX];
    unsigned sessions = 0, shares[POOL_WORKERS_MAX] = {0};

    for (unsigned i = 0; i < pool->count; i++) {
        sessions += load_of(&pool->workers[i]);
        recent[i] = pool->workers[i].recent;
    }
    pool_share(recent, active, sessions, shares);
    for (unsigned i = 0; i < pool->count; i++)
        set_share(&pool->workers[i], shares[i]);
}

static unsigned adapt_gathering(struct worker_pool *pool, unsigned active, struct pool_time since)
{
    struct pool_time *time = &pool->gathering_time;

    if (!pool->gathering_looks++)
        active = pool_size_few(&pool->size);
    time->all += since.all;
    time->busy += since.busy;
    if (pool->gathering_looks % GATHERING_LOOKS)
        return active;
    active = pool_size_adapt_gathering(&pool->size, active, *time);
    *time = (struct pool_time){0};
    return active;
}

static void stop_gathering(struct worker_pool *pool)
{
    pool->gathering_looks = 0;
    pool->gathering_time = (struct pool_time){0};
}

static void adapt(struct worker_pool *pool, const struct pool_demand *demand)
{
    struct pool_time since = look_at_all(pool);
    unsigned active = atomic_load_explicit(&pool->active, memory_order_relaxed);

    if (demand->gathers) {
        active = adapt_gathering(pool, active, since);
    } else {
        stop_gathering(pool);
        active = pool_size_adapt(&pool->size, active, since, demand->trains);
    }
    atomic_store_explicit(&pool->active, active, memory_order_relaxed);
    share_out(pool, active);
}

static void set_wanted_locked(struct server *server, bool wanted)
{
    atomic_store_explicit(&server->life->pool->wanted, wanted, memory_order_relaxed);
    if (!wanted)
        return;
    list_for_each (struct session, session, &server->sessions, link)
        atomic_fetch_or(&session->limits.changed, CHANGED_SERVICE);
}

void worker_pool_update_locked(struct server *server, struct pool_demand demand)
{
    struct worker_pool *pool = server->life->pool;

    if (!pool)
        return;
    atomic_store_explicit(&pool->trains, demand.trains, memory_order_relaxed);
    atomic_store_explicit(&pool->sleeps, demand.sleeps, memory_order_relaxed);
    if (is_wanted(pool) != demand.wanted)
        set_wanted_locked(server, demand.wanted);
    if (demand.wanted)
        adapt(pool, &demand);
}

void worker_pool_exempt_locked(struct session *session, bool exempt)
{
    if (is_exempt(session) == exempt)
        return;
    atomic_store_explicit(&session->unpooled, exempt, memory_order_relaxed);
    if (!exempt)
        atomic_fetch_or(&session->limits.changed, CHANGED_SERVICE);
}

unsigned worker_pool_active(const struct server *server)
{
    return server->life->pool
               ? atomic_load_explicit(&server->life->pool->active, memory_order_relaxed)
               : 0;
}

static int start_worker(struct worker_pool *pool, struct pool_worker *worker)
{
    worker->pool = pool;
    list_init(&worker->arrivals);
    list_init(&worker->seats);
    return -pthread_create(&worker->thread, NULL, run_worker, worker);
}

int worker_pool_start(struct server *server, struct pool_size size)
{
    if (!size.most)
        return 0;
    struct worker_pool *pool = calloc(1, sizeof(*pool) + size.most * sizeof(pool->workers[0]));
    int error = pool ? 0 : -ENOMEM;

    if (pool)
        pool->size = size;
    for (unsigned i = 0; !error && i < size.most; i++)
        error = start_worker(pool, &pool->workers[i]);
    /* Workers that have started use what is not freed then. */
    server->life->pool = error ? NULL : pool;
    if (!pool)
        return error;
    pool->count = size.most;
    atomic_store_explicit(&pool->active, size.least, memory_order_relaxed);
    return error;
}

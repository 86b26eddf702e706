/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One job at a time. It is open while its owner works on it. A helper that wakes up in time joins,
 * one that comes late finds the job closed and goes back to sleep. So the owner does not wait for a
 * helper that has not begun.
 */
#include "copy_team.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "cleanup.h"
#include "cpus.h"
#include "feature.h"
#include "spin.h"
#include "switch.h"

#define HELPERS_MAX 2u

static struct team {
    pthread_mutex_t turn; /* held by the owner of the job */
    pthread_mutex_t lock; /* of the members below */
    pthread_cond_t begun, left;
    void (*work)(void *context);
    void *context;
    unsigned size;    /* how many helpers there may be */
    unsigned job;     /* grows with each */
    unsigned welcome; /* helpers that may still join */
    _Atomic unsigned inside;
    unsigned threads;
} team;

static unsigned wanted_size(void)
{
    unsigned cpus = cpus_available();

    if (feature_is_off(FEATURE_COPY_THREADS))
        return 0;
    if (switch_is_on("FUNNEL_ALL_COPY_THREADS"))
        return HELPERS_MAX;
    if (cpus <= 2)
        return 0;
    return cpus - 2 < HELPERS_MAX ? cpus - 2 : HELPERS_MAX;
}

void copy_team_init(void)
{
    memset(&team, 0, sizeof(team));
    pthread_mutex_init(&team.turn, NULL);
    pthread_mutex_init(&team.lock, NULL);
    pthread_cond_init(&team.begun, NULL);
    pthread_cond_init(&team.left, NULL);
    team.size = wanted_size();
}

unsigned copy_team_size(void)
{
    return team.size;
}

unsigned copy_team_threads(void)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&team.lock);

    return team.threads;
}

/* ---- a helper ---- */

static void await_job_locked(unsigned *seen)
{
    while (team.job == *seen || team.welcome == 0) {
        *seen = team.job;
        pthread_cond_wait(&team.begun, &team.lock);
    }
    *seen = team.job;
}

static void *help(void *unused)
{
    unsigned seen = 0;

    pthread_mutex_lock(&team.lock);
    for (;;) {
        await_job_locked(&seen);
        team.welcome--;
        team.inside++;
        pthread_mutex_unlock(&team.lock);
        team.work(team.context);
        pthread_mutex_lock(&team.lock);
        atomic_fetch_sub_explicit(&team.inside, 1, memory_order_release);
        pthread_cond_signal(&team.left);
    }
    return NULL;
}

/* Signals are for the program's threads, so ours block all that others send. */
static bool start_helper(void)
{
    sigset_t all, before;
    pthread_t thread;
    bool started;

    sigfillset(&all);
    sigdelset(&all, SIGSEGV); /* write_guard.h */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    started = pthread_create(&thread, NULL, help, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started)
        pthread_detach(thread);
    return started;
}

/* ---- the owner of a job ---- */

static void open_job(unsigned helpers, void (*work)(void *), void *context)
{
    pthread_mutex_lock(&team.lock);
    while (team.threads < helpers && team.threads < HELPERS_MAX && start_helper())
        team.threads++;
    team.work = work;
    team.context = context;
    team.welcome = helpers;
    team.job++;
    pthread_cond_broadcast(&team.begun);
    pthread_mutex_unlock(&team.lock);
}

/* A helper is at most on its last chunk, which is done sooner than a sleeping thread wakes up. */
static void await_helpers(void)
{
    struct spin spin = spin_begin();

    while (atomic_load_explicit(&team.inside, memory_order_acquire) > 0 && spin_more(&spin))
        ;
    pthread_mutex_lock(&team.lock);
    while (team.inside > 0)
        pthread_cond_wait(&team.left, &team.lock);
    pthread_mutex_unlock(&team.lock);
}

static void close_job(const struct copy_team_wait *wait)
{
    pthread_mutex_lock(&team.lock);
    team.welcome = 0;
    pthread_mutex_unlock(&team.lock);
    if (wait)
        wait->begin();
    await_helpers();
    if (wait)
        wait->end();
}

void copy_team_run(unsigned helpers, void (*work)(void *context), void *context,
                   const struct copy_team_wait *wait)
{
    if (helpers == 0 || pthread_mutex_trylock(&team.turn) != 0) {
        work(context);
        return;
    }
    open_job(helpers, work, context);
    work(context);
    close_job(wait);
    pthread_mutex_unlock(&team.turn);
}

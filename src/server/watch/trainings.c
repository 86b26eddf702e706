/* SPDX-License-Identifier: Apache-2.0 */
/* See trainings.h. */
#include "trainings.h"

#include "launch_record.h"
#include "session_life.h"

static void note_launches(struct session *session)
{
    launch_rate_note(&session->life->load.rate, (struct launch_counts){
                                                    .launches = launch_count(session),
                                                    .lone = launch_lone_count(session),
                                                    .fences = launch_fence_count(session),
                                                });
}

static bool is_training_at_work(const struct session *session)
{
    const struct session_load *load = &session->life->load;

    return load->busy_samples && launch_rate_is_training(&load->rate);
}

struct trainings trainings_measure_locked(struct server *server)
{
    struct trainings trainings = {0};

    list_for_each (struct session, session, &server->sessions, link) {
        note_launches(session);
        if (!is_training_at_work(session))
            continue;
        trainings.at_work++;
        trainings.launches += session->life->load.rate.recent.launches;
    }
    if (trainings.at_work)
        trainings.launches /= trainings.at_work;
    return trainings;
}

bool trainings_have_behind(const struct trainings *trainings, const struct session *session)
{
    return is_training_at_work(session) &&
           session->life->load.rate.recent.launches <= trainings->launches;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See trainings.h. */
#include "trainings.h"

#include "launch_record.h"
#include "session_life.h"

/* One part in so many above the average is not clearly more. */
#define TOLERATED_PART 32u

static void note_launches(struct session *session)
{
    launch_rate_note(&session->life->load.rate, (struct launch_counts){
                                                    .launches = launch_count(session),
                                                    .lone = launch_lone_count(session),
                                                    .fences = launch_fence_count(session),
                                                });
}

bool trainings_have(const struct session *session)
{
    const struct session_load *load = &session->life->load;

    return load->busy_samples && launch_rate_is_training(&load->rate);
}

struct trainings trainings_measure_locked(struct server *server)
{
    struct trainings trainings = {0};

    list_for_each (struct session, session, &server->sessions, link) {
        note_launches(session);
        if (!trainings_have(session))
            continue;
        trainings.at_work++;
        trainings.launches += session->life->load.rate.recent.launches;
    }
    if (trainings.at_work)
        trainings.launches /= trainings.at_work;
    return trainings;
}

bool trainings_are_behind(const struct trainings *trainings, const struct session *session,
                          bool clearly)
{
    uint64_t tolerated = clearly ? trainings->launches / TOLERATED_PART : 0;

    return session->life->load.rate.recent.launches > trainings->launches + tolerated;
}

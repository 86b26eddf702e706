/* SPDX-License-Identifier: Apache-2.0 */
/* See refused_objects.h. */
#include "refused_objects.h"

#include "stream_state.h"

/* A few megabytes in the server's memory. */
#define REFUSED_MAX 8192u

bool object_may_be_refused(const struct session *session)
{
    return session->streams->refused < REFUSED_MAX;
}

enum object_admission object_admit(struct session *session, enum quota which)
{
    if (quota_allows(session, which, 1))
        return OBJECT_CHARGED;
    return object_may_be_refused(session) ? OBJECT_REFUSED : OBJECT_DROPPED;
}

void object_charge(struct session *session, enum quota which, bool uncharged)
{
    if (uncharged)
        session->streams->refused++;
    else
        quota_add(session, which, 1);
}

void object_uncharge(struct session *session, enum quota which, bool uncharged)
{
    if (uncharged)
        session->streams->refused--;
    else
        quota_give(session, which, 1);
}

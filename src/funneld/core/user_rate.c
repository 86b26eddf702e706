/* SPDX-License-Identifier: Apache-2.0 */
/* See user_rate.h. */
#include "user_rate.h"

static struct rate_user *find_user(struct user_rate *rate, uid_t uid)
{
    struct rate_user *oldest = &rate->users[0];

    for (unsigned i = 0; i < USER_RATE_USERS; i++) {
        struct rate_user *user = &rate->users[i];

        if (user->due && user->uid == uid)
            return user;
        if (user->last < oldest->last)
            oldest = user;
    }
    *oldest = (struct rate_user){.uid = uid};
    return oldest;
}

uint64_t user_rate_charge(struct user_rate *rate, uid_t uid, uint64_t now)
{
    struct rate_user *user = find_user(rate, uid);
    uint64_t burst = rate->burst * rate->interval_ns;

    if (user->due < now)
        user->due = now;
    user->due += rate->interval_ns;
    user->last = now;
    return user->due > now + burst ? user->due - now - burst : 0;
}

bool user_rate_take(struct user_rate *rate, uid_t uid, uint64_t now)
{
    bool waits = user_rate_charge(rate, uid, now) != 0;

    if (waits)
        find_user(rate, uid)->due -= rate->interval_ns;
    return !waits;
}

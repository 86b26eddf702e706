/* SPDX-License-Identifier: Apache-2.0 */
/* See attach_rate.h. */
#include "attach_rate.h"

#include "clock.h"

static struct attach_user *find(struct attach_rate *attach_rate, uid_t uid)
{
    struct attach_user *oldest = &attach_rate->users[0];

    for (unsigned i = 0; i < ATTACH_USERS; i++) {
        struct attach_user *user = &attach_rate->users[i];

        if (user->due && user->uid == uid)
            return user;
        if (user->last < oldest->last)
            oldest = user;
    }
    *oldest = (struct attach_user){.uid = uid};
    return oldest;
}

uint64_t attach_rate_charge(struct attach_rate *attach_rate, uid_t uid, uint64_t rate, uint64_t now)
{
    struct attach_user *user = find(attach_rate, uid);
    uint64_t burst = ATTACH_BURST_S * NS_PER_SEC;

    if (user->due < now)
        user->due = now;
    user->due += NS_PER_SEC / rate;
    user->last = now;
    return user->due > now + burst ? user->due - now - burst : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of claims (claims.h) that the daemon gives to servers. There is one for each user, so
 * no server of another user can read the tokens in it. */
#pragma once

#include <sys/types.h>

struct claims;

/* The table of that user's servers, as a descriptor that stays this file's, or -errno. With too
 * many users, the one who has not started a server for longest begins anew. Clients whose server
 * ended before that do not get their windows back. */
int claim_table_of(uid_t uid);

/* The same, mapped for the daemon's own entries: NULL when out of memory. The caller's to unmap. */
struct claims *claim_table_map(uid_t uid);

/* SPDX-License-Identifier: Apache-2.0 */
/* Who answers for a user. The users of a person's containers have IDs of their own. */
#pragma once

#include <sys/types.h>

/* The user to whom /etc/subuid gives the ID as a subordinate one, else the ID itself. Quotas of a
 * user count for both together. */
uid_t user_owner(uid_t uid);

/* The same by another file of subuid(5). */
uid_t user_owner_by(const char *path, uid_t uid);

/* SPDX-License-Identifier: Apache-2.0 */
/* Names of users. */
#pragma once

#include <sys/types.h>

/* The name of the user, else the number. A look-up may ask a directory service, so each user is
 * looked up once in the daemon's life. The text is valid until the next call. */
const char *user_name(uid_t uid);

/* The user of that name or number: 0 or -ENOENT. May ask a directory service. */
int user_number(const char *name, uid_t *ret_uid);

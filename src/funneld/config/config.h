/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration file (-a): servers and namespaces that exist from the daemon's start. */
#pragma once

#include "daemon.h"

#define CONFIG_REASON_MAX 1024

/* Creates what the file says: 0, or -errno with a message that names file and line. */
int config_apply(struct daemon *daemon, const char *path, char ret_reason[CONFIG_REASON_MAX]);

/* SPDX-License-Identifier: Apache-2.0 */
/* A client and its limits in words, for the logs of daemon and server. */
#pragma once

#include "server_protocol.h"

#define LIMITS_TEXT_MAX 256
#define IDENTITY_TEXT_MAX 400

/* "25.0 % of the SMs, below normal priority, at most 64 MiB of device 0". What does not fit is left
 * out. */
void limits_describe(const struct server_limits *limits, unsigned device_count,
                     char ret_text[LIMITS_TEXT_MAX]);

/* "user 1000, group batch: ./train --fast". */
void identity_describe(const struct server_identity *identity, char ret_text[IDENTITY_TEXT_MAX]);

/* SPDX-License-Identifier: Apache-2.0 */
/* The group of a program that names none: that of its control group (control_group_name.h). */
#pragma once

#include "limit_rules.h"
#include "server_protocol.h"

/* `fd` is the connection; `identity` has the process, and the group that the program names. That
 * one stays, unless an operator has limited the group of its control group: a pod does not leave
 * its limits by a variable. FUNNEL_OFF=control-groups leaves all as it is. Waits for nothing. */
void peer_group_find(const struct limit_rules *rules, int fd, struct server_identity *identity);

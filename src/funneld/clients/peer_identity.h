/* SPDX-License-Identifier: Apache-2.0 */
/* Who a program is for people: when it came, its command line and its group. */
#pragma once

#include "server_protocol.h"

/* Fills them in; the command line and the group are what `hello` says. */
void peer_identity_complete(struct server_identity *identity, const struct hello *hello);

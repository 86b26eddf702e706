/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells clients that they had better work in the other context of a device, because others have
 * long work in theirs and nobody has in the other one; and clients in the spare context when the
 * primary one has had no long work for a while.
 */
#pragma once

#include "server.h"

/* The watchdog's, ten times a second. Without spare contexts it does nothing. */
void long_work_watch(struct server *server);

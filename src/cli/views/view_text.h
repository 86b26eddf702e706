/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots as text. Tables keep to what fits a terminal; --json has everything. */
#pragma once

#include <stdint.h>

#include "snapshot.h"

void view_status(const struct snapshot *snapshot, const struct paths *paths);

/* `columns` (NULL: the usual ones) as in "pid,user,command". 0, or an exit status after an error
 * message. */
int view_clients(const struct snapshot *snapshot, const char *columns);
void view_servers(const struct snapshot *snapshot);
void view_devices(const struct snapshot *snapshot);

/* Cells of these tables. */
#define VIEW_CELL 40
void view_format_bytes(uint64_t bytes, char cell[VIEW_CELL]);
void view_format_since(int64_t since, char cell[VIEW_CELL]);        /* how long ago */
void view_format_duration(long long seconds, char cell[VIEW_CELL]); /* "90s", "12m", "3h 5m" */
void view_format_user(uint32_t uid, char cell[VIEW_CELL]);

/* "51 C, 320 of 700 W", or what of it is known. */
void view_format_sensors(const struct server_sensors *sensors, char cell[VIEW_CELL]);

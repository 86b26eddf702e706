/* SPDX-License-Identifier: Apache-2.0 */
/* The ways to look at a snapshot: as text for people, or as JSON for programs. */
#pragma once

#include <stdbool.h>

#include "snapshot.h"

void view_status(const struct snapshot *snapshot, const struct paths *paths);
void view_clients(const struct snapshot *snapshot);
void view_servers(const struct snapshot *snapshot);
void view_devices(const struct snapshot *snapshot);

enum json_view { JSON_STATUS, JSON_CLIENTS, JSON_SERVERS, JSON_DEVICES };

/* 0, or 1 with the reason said: out of memory, or built without jansson. */
int view_json(const struct snapshot *snapshot, const struct paths *paths, enum json_view view);

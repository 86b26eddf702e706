/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots as JSON. Numbers are plain: bytes, and seconds since the epoch. */
#pragma once

#include "snapshot.h"

enum json_view { JSON_STATUS, JSON_CLIENTS, JSON_SERVERS, JSON_DEVICES, JSON_LIMITS };

/* 0, or 1 with the reason said: out of memory, or built without jansson. */
int view_json(const struct snapshot *snapshot, const struct paths *paths, enum json_view view);

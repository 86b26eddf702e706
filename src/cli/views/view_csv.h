/* SPDX-License-Identifier: Apache-2.0 */
/* Listings that come as comma-separated values, as JSON: an object a row, with the titles as names.
 */
#pragma once

#include "lines.h"

/* A listing of comma-separated values under their titles, the same. */
int view_json_of_csv(const struct lines *lines);

/* SPDX-License-Identifier: Apache-2.0 */
/* funnel limits: what has been set, and for whom; then what each program gets of each device. */
#pragma once

#include "snapshot.h"

void view_limits(const struct snapshot *snapshot);

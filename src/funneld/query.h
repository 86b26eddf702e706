/* SPDX-License-Identifier: Apache-2.0 */
/* The one structured question of `funnel`: everything the asker may know, as it is now. */
#pragma once

struct console;

void query_answer(struct console *console);

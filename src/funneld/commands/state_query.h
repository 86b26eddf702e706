/* SPDX-License-Identifier: Apache-2.0 */
/* The structured query of `funnel`: the whole state that the user may see, as it is now. */
#pragma once

struct console;

void state_query_answer(struct console *console);

/* The same as text for Prometheus. */
void state_query_answer_metrics(struct console *console);

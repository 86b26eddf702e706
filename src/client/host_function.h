/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the program that run between two commands of a stream. */
#ifndef FUNNEL_HOST_FUNCTION_H
#define FUNNEL_HOST_FUNCTION_H

#include <stdint.h>

/* Called once while attaching. */
void host_function_init(void);

#endif

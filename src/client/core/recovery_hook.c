/* SPDX-License-Identifier: Apache-2.0 */
/* Set by recovery_init(). */
#include "recovery_hook.h"

CUresult (*recovery_hook)(void);

void (*recovery_wish_hook)(void);

void (*recovery_leave_hook)(void);
void (*recovery_join_hook)(uint32_t server);

CUresult recovery_error_slowly(void)
{
    return recovery_hook ? recovery_hook() : channel_error(&client->channel);
}

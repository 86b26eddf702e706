/* SPDX-License-Identifier: Apache-2.0 */
/* See error_states.h. */
#include "error_states.h"

#include "feature.h"
#include "rm_call.h"

/* NV83DE_CTRL_CMD_DEBUG_CLEAR_ALL_SM_ERROR_STATES (ctrl83dedebug.h). */
#define CONTROL_CLEAR_ALL_STATES 0x83de0310u

bool error_states_answer(unsigned long request, void *argument)
{
    struct rm_control *control = argument;

    if (!rm_call_is(request, RM_CONTROL) || control->command != CONTROL_CLEAR_ALL_STATES ||
        feature_is_off_once(FEATURE_FAULT_SHORTCUT))
        return false;
    control->status = 0;
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Gives up all capabilities of the calling thread, and those that programs could give it. The
 * bounding set can be emptied by root only; for others no_new_privs does the same. */
void capabilities_drop(void);

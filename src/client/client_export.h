/* SPDX-License-Identifier: Apache-2.0 */
/* Connects the export tables of src/cudart to this driver. */
#pragma once

/* Called once while attaching. */
void export_init(void);

/* In a child of fork: the tables that its runtime has answer CUDA_ERROR_NOT_INITIALIZED until the
 * child attaches. */
void export_after_fork(void);

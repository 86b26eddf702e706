/* SPDX-License-Identifier: Apache-2.0 */
/* Connects the export tables of src/cudart to this driver. */
#pragma once

/* Called once while attaching. */
void export_init(void);

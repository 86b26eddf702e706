/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of src/cudart, told about this driver. */
#pragma once

/* Called once while attaching. */
void export_init(void);

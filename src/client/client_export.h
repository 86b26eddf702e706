/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of src/cudart, told about this driver. */
#ifndef FUNNEL_CLIENT_EXPORT_H
#define FUNNEL_CLIENT_EXPORT_H

/* Called once while attaching. */
void export_init(void);

#endif

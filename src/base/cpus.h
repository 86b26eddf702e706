/* SPDX-License-Identifier: Apache-2.0 */
/* How many CPUs this process may use, which a container may limit. */
#ifndef FUNNEL_CPUS_H
#define FUNNEL_CPUS_H

unsigned cpus_available(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * __managed__ variables: each is memory of its own, which belongs to its library and not to a
 * context. So all modules of the library share it, and it stays when a context ends. The variables
 * of a library share pages, as they do on a GPU.
 */
#pragma once

#include "soft_module.h"

/* Of managed_variable.c: gives the instance the library's managed variables; the first one that
 * has them initializes them. */
CUresult library_bind_managed_locked(struct library *library, struct context *context,
                                     struct sg_instance *instance);
void library_free_managed_locked(struct library *library);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The variables of a module that were asked for. Their addresses are in memory of the module, which
 * the server has loaded, or in memory of the client ("owned", client_symbol.h). All calls may be
 * made by several threads, and none with client->lock.
 */
#pragma once

#include "client_module.h"

/* Where a variable is, and its size in bytes; either result may be NULL. CUDA_ERROR_NOT_FOUND.
 * Waits for the server. */
CUresult module_global(struct module *module, const char *name, bool managed_only,
                       CUdeviceptr *ret_address, size_t *ret_size);

/* Finds the variables again after another server has loaded the module. Memory of the client is
 * where it was. CUDA_ERROR_INVALID_IMAGE for one of another size. */
CUresult module_variables_replay(const struct module *module);

/* Makes the addresses unknown while the module has no context, and known again. Managed variables
 * are not among them: managed_variable.h. */
void module_variables_hide(struct module *module);
void module_variables_show(struct module *module);

/* Frees the variables in memory of the client. Waits for the work of the device. */
void module_variables_end_owned(struct module *module);

/* Frees what is known of all variables. */
void module_variables_forget(struct module *module);

/* SPDX-License-Identifier: Apache-2.0 */
/* Machine code with an instruction that no GPU has. */
#pragma once

/* The PTX, compiled by the driver, with nothing but ones in place of the instructions of the
 * kernel. It is a cubin that lives as long as the process. NULL when the driver makes no machine
 * code of PTX, as the software GPU. */
const void *illegal_code(const char *ptx, const char *kernel);

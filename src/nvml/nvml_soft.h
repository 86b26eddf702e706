/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVML of the software GPU: its devices as the daemon's servers have them, and what is known of
 * them. What only a card could tell is NVML_ERROR_NOT_SUPPORTED.
 */
#pragma once

/* Puts its functions into the table. */
void soft_fill(void);

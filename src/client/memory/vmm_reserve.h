/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations of addresses. The server chooses addresses that no other client has; here they are
 * kept free of everything else.
 */
#pragma once

#include "vmm_tables.h"

/* Whether one reservation contains all of the range. */
bool vmm_reservation_contains_locked(uint64_t address, uint64_t size);

/* Fills in what cuPointerGetAttribute tells of the reservation around the pointer's address.
 * Without one it changes nothing. */
void vmm_describe_reservation_locked(struct cuda_pointer *pointer);

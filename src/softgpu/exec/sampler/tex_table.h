/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects by number: a slot's index with a generation above it, so that the number of an object
 * that is gone is found out. Locking is the caller's.
 */
#pragma once

#include "tex.h"

int tex_table_add(struct tex_table *table, const struct sg_texture *texture, uint64_t *ret_number);
int tex_table_remove(struct tex_table *table, uint64_t number);
const struct sg_texture *tex_table_get(const struct tex_table *table, uint64_t number);
void tex_table_fini(struct tex_table *table);

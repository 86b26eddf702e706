/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clusters and what moves between their blocks: mapa, getctarank, barrier.cluster, bulk copies
 * without tensor maps (decode_tensor.c has those with).
 */
#pragma once

#include "decode.h"

void decode_mapa(struct builder *builder, const struct tokens *tokens);
void decode_cluster_barrier(struct builder *builder, const struct tokens *tokens);
void decode_bulk(struct builder *builder, const struct tokens *tokens);

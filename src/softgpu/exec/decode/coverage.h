/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The opcode table as a document.
 */
#pragma once

#include <stdio.h>

/* Markdown. */
void coverage_write(FILE *file);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The opcode table as a document.
 */
#pragma once

#include <stdio.h>

/* Markdown, as docs/softgpu-opcodes.md is. Errors are the stream's (ferror); it stays the caller's.
 */
void coverage_write(FILE *file);

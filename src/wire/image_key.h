/* SPDX-License-Identifier: Apache-2.0 */
/*
 * By what a client asks whether its server has an image already: a hash of a part of the bytes. It
 * only says what is worth comparing. Images of one key may differ, by accident or on purpose.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Smaller images are sent without a question. */
#define IMAGE_KEY_MIN (64u << 10)

uint64_t image_key(const void *bytes, size_t size);

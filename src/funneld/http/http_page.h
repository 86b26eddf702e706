/* SPDX-License-Identifier: Apache-2.0 */
/* The status page, page.html, as bytes of the program. */
#pragma once

#include <stddef.h>

extern const unsigned char http_page[];
extern const size_t http_page_size;

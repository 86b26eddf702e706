/* SPDX-License-Identifier: Apache-2.0 */
/* What the client library is linked against in place of libdl.so.2: only names. */
#define LIBPTHREAD(name)
#define LIBDL(name)  \
    void name(void); \
    void name(void)  \
    {                \
    }

#include "libc_split.h"

/* SPDX-License-Identifier: Apache-2.0 */
/* What the client library is linked against in place of libpthread.so.0: only names. */
#define LIBPTHREAD(name) \
    void name(void);     \
    void name(void)      \
    {                    \
    }
#define LIBDL(name)

#include "libc_split.h"

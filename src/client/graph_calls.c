/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls that build graphs and capture streams. The model in src/graph answers them, and asks
 * graph_backend.c where it does not know.
 */
#include "client_capture.h"
#include "client_prototypes.h"

/* From the first capture on every call looks whether it is captured. */
#define graph_cuStreamBeginCapture(...) \
    (announce_captures(), (graph_cuStreamBeginCapture)(__VA_ARGS__))
#define graph_cuStreamBeginCapture_v2(...) \
    (announce_captures(), (graph_cuStreamBeginCapture_v2)(__VA_ARGS__))
#define graph_cuStreamBeginCaptureToGraph(...) \
    (announce_captures(), (graph_cuStreamBeginCaptureToGraph)(__VA_ARGS__))

static void announce_captures(void)
{
    __atomic_store_n(&client_captured, true, __ATOMIC_RELAXED);
}

#define GRAPH_CALL(name, parameters, arguments) \
    CUresult client_##name parameters           \
    {                                           \
        return graph_##name arguments;          \
    }
#include "capture_calls.def"
#include "graph_calls.def"

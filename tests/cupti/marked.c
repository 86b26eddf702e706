/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with marks and ranges of NVTX that profiles itself with CUPTI. It shows their records,
 * and the callbacks for them, the data of marks, and names of objects. Prints what they say, and no
 * time, thread or id.
 */
#include <cupti.h>
#include <generated_nvtx_meta.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "collect.h"

static unsigned pushes, pops, other_calls;

static void CUPTIAPI on_callback(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                                 const void *data)
{
    const CUpti_NvtxData *call = data;
    const nvtxRangePushA_params *push = call->functionParams;

    if (domain != CUPTI_CB_DOMAIN_NVTX)
        return;
    if (cbid == CUPTI_CBID_NVTX_nvtxRangePushA && !strcmp(push->message, "outer"))
        pushes += !strcmp(call->functionName, "nvtxRangePushA") &&
                  *(const int *)call->functionReturnValue == 0;
    else if (cbid == CUPTI_CBID_NVTX_nvtxRangePop)
        pops++;
    else
        other_calls++;
}

static nvtxEventAttributes_t attributes_of(nvtxStringHandle_t text)
{
    return (nvtxEventAttributes_t){
        .version = NVTX_VERSION,
        .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
        .messageType = NVTX_MESSAGE_TYPE_REGISTERED,
        .message.registered = text,
    };
}

/* With a payload and a category. */
static void mark_with_data(void)
{
    nvtxEventAttributes_t attributes = {
        .version = NVTX_VERSION,
        .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
        .category = 7,
        .colorType = NVTX_COLOR_ARGB,
        .color = 0xff00ff00,
        .payloadType = NVTX_PAYLOAD_TYPE_FLOAT,
        .payload.fValue = 2.5f,
        .messageType = NVTX_MESSAGE_TYPE_ASCII,
        .message.ascii = "measured",
    };

    nvtxMarkEx(&attributes);
    attributes.colorType = NVTX_COLOR_UNKNOWN;
    attributes.payloadType = NVTX_PAYLOAD_TYPE_INT32;
    attributes.payload.iValue = -3;
    nvtxMarkEx(&attributes);
}

static void set_marks(void)
{
    nvtxDomainHandle_t domain = nvtxDomainCreateA("library");
    nvtxEventAttributes_t attributes =
        attributes_of(nvtxDomainRegisterStringA(domain, "registered"));
    nvtxRangeId_t first, second;

    nvtxRangePushA("outer");
    nvtxDomainRangePushEx(domain, &attributes);
    nvtxRangePushW(L"inner");
    nvtxMarkA("mark");
    nvtxDomainRangePop(domain);
    nvtxRangePop();
    nvtxRangePop();
    mark_with_data();
    nvtxNameOsThreadA((uint32_t)getpid(), "a thread");
    nvtxNameCategoryA(7, "a category");
    first = nvtxRangeStartA("first");
    second = nvtxDomainRangeStartEx(domain, &attributes);
    nvtxRangeEnd(first);
    nvtxDomainRangeEnd(domain, second);
}

static const char *text_of(uint32_t id)
{
    for (unsigned i = 0; i < record_count; i++) {
        const CUpti_ActivityMarker2 *one = (const void *)records[i];
        if (one->kind == CUPTI_ACTIVITY_KIND_MARKER && one->id == id &&
            one->flags != CUPTI_ACTIVITY_FLAG_MARKER_END)
            return one->name;
    }
    return "none";
}

/* Beside the marker of the same id. */
static void print_data(const CUpti_ActivityMarkerData2 *data)
{
    if (data->payloadKind == CUPTI_METRIC_VALUE_KIND_DOUBLE)
        printf("data %.1f", data->payload.metricValueDouble);
    else
        printf("data %lld", (long long)data->payload.metricValueInt64);
    printf(" kind %d color %x category %u flags %d of %s\n", data->payloadKind, data->color,
           data->category, data->flags, text_of(data->id));
}

static void print_name(const CUpti_ActivityName *name)
{
    check(name->objectKind == CUPTI_ACTIVITY_OBJECT_THREAD &&
              name->objectId.pt.threadId == (uint32_t)getpid(),
          "the object with a name");
    printf("%s\n", name->name);
}

static void print_marker(const CUpti_ActivityMarker2 *marker)
{
    const char *domain = marker->domain ? marker->domain : "default";

    check(marker->objectKind == CUPTI_ACTIVITY_OBJECT_THREAD, "the kind of the object");
    if (marker->flags == CUPTI_ACTIVITY_FLAG_MARKER_END)
        printf("end of %s in %s\n", text_of(marker->id), domain);
    else
        printf("%s %s in %s\n",
               marker->flags == CUPTI_ACTIVITY_FLAG_MARKER_START ? "start of" : "mark",
               marker->name, domain);
}

static void print_records(void)
{
    uint64_t last = 0;

    for (unsigned i = 0; i < record_count; i++) {
        const CUpti_ActivityMarker2 *marker = (const void *)records[i];
        if (marker->kind == CUPTI_ACTIVITY_KIND_MARKER_DATA)
            print_data((const void *)records[i]);
        else if (marker->kind == CUPTI_ACTIVITY_KIND_NAME)
            print_name((const void *)records[i]);
        if (marker->kind != CUPTI_ACTIVITY_KIND_MARKER)
            continue;
        check(marker->timestamp >= last, "a marker is before the last one");
        last = marker->timestamp;
        print_marker(marker);
    }
}

int main(void)
{
    CUpti_SubscriberHandle subscriber;

    nvtxRangePushA("before");
    MUST(cuptiSubscribe(&subscriber, on_callback, NULL));
    MUST(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_NVTX));
    MUST(cuptiActivityRegisterCallbacks(request, complete));
    MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MARKER));
    MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MARKER_DATA));
    MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_NAME));
    nvtxRangePop();
    set_marks();
    MUST(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MARKER));
    MUST(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MARKER_DATA));
    MUST(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_NAME));
    MUST(cuptiUnsubscribe(subscriber));
    set_marks();
    flush();
    print_records();
    printf("%u pushed, %u popped, %u others\n", pushes, pops, other_calls);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Environment variables, read once while attaching. */
#include "environment.h"
#include "switch.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "client_class.h"
#include "client_log.h"
#include "isolation.h"
#include "text.h"

bool environment_requires_server(void)
{
    return switch_is_on("FUNNEL_REQUIRE");
}

bool environment_system_socket_path(char *path, size_t capacity)
{
    const char *folder = getenv("CUDA_MPS_PIPE_DIRECTORY");

    if ((folder && *folder) || geteuid() == 0)
        return false;
    return text_format(path, capacity, "/run/funnel/%s", HELLO_SOCKET_NAME);
}

static bool format_default_socket(char *path, size_t capacity)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");

    if (geteuid() == 0)
        return text_format(path, capacity, "/run/funnel/%s", HELLO_SOCKET_NAME);
    if (runtime && *runtime)
        return text_format(path, capacity, "%s/funnel/%s", runtime, HELLO_SOCKET_NAME);
    return text_format(path, capacity, "/tmp/funnel-%u/%s", (unsigned)geteuid(), HELLO_SOCKET_NAME);
}

/* The list at `*rest` has colons between its directories; `*rest` moves behind the first one. */
static bool take_directory(const char **rest, size_t *ret_length)
{
    *rest += strspn(*rest, ":");
    *ret_length = strcspn(*rest, ":");
    *rest += *ret_length;
    return *ret_length > 0;
}

int environment_socket_path(unsigned index, char *path, size_t capacity)
{
    const char *rest = getenv("CUDA_MPS_PIPE_DIRECTORY");
    size_t length = 0;
    bool fits;

    if (!rest || !*rest) {
        fits = format_default_socket(path, capacity);
        return index ? 0 : fits ? 1 : -ENAMETOOLONG;
    }
    for (unsigned i = 0; i <= index; i++)
        if (!take_directory(&rest, &length))
            return 0;
    fits = text_format(path, capacity, "%.*s/%s", (int)length, rest - length, HELLO_SOCKET_NAME);
    return fits ? 1 : -ENAMETOOLONG;
}

/* "1G" or "512MB": bytes; 0 when it is not a size. A number without a unit is none, as in MPS. */
static uint64_t parse_size(const char *text, const char **ret_end)
{
    char *end;
    uint64_t value = strtoull(text, &end, 10);
    unsigned shift = 0;

    switch (toupper((unsigned char)*end)) {
    case 'K':
        shift = 10;
        break;
    case 'M':
        shift = 20;
        break;
    case 'G':
        shift = 30;
        break;
    case 'T':
        shift = 40;
        break;
    }
    if (shift) {
        end++;
        if (toupper((unsigned char)*end) == 'B')
            end++;
    }
    *ret_end = end;
    return !shift || value > UINT64_MAX >> shift ? 0 : value << shift;
}

/* A value that is ignored without a message would leave a program without the limit that it asks
 * for. */
static void log_ignored(const char *name, const char *value, const char *expected)
{
    client_log("%s: \"%.200s\" is not %s; ignored", name, value, expected);
}

/* Devices named by UUID are for the daemon, which knows them. */
static void keep_named_limit(struct hello *hello, const char *name, size_t length, uint64_t bytes)
{
    for (int i = 0; i < HELLO_NAMED_LIMITS; i++) {
        struct hello_named_limit *limit = &hello->named_limits[i];

        if (*limit->device)
            continue;
        if (length < sizeof(limit->device)) {
            memcpy(limit->device, name, length);
            limit->bytes = bytes;
        }
        return;
    }
}

/* One "0=1G" or "GPU-302653ec=2G"; false when it is neither. */
static bool parse_memory_limit(const char *text, struct hello *hello)
{
    char *end;
    unsigned long device = strtoul(text, &end, 10);
    size_t name = strcspn(text, "=,");
    bool named = strncasecmp(text, "GPU-", 4) == 0;
    const char *rest = text;
    uint64_t bytes = text[name] == '=' ? parse_size(text + name + 1, &rest) : 0;

    if (!bytes || (*rest && *rest != ',') || (!named && (end == text || *end != '=')))
        return false;
    if (named)
        keep_named_limit(hello, text, name, bytes);
    else if (device < HELLO_MAX_DEVICES)
        hello->memory_limit[device] = bytes;
    return true;
}

/* "0=1G,1=512MB,GPU-302653ec=2G". */
static void parse_memory_limits(const char *list, struct hello *hello)
{
    const char *text = list;

    while (text && *text) {
        if (!parse_memory_limit(text, hello))
            log_ignored("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", list,
                        "a list of DEVICE=SIZE such as 0=1G,1=512M");
        text = strchr(text, ',');
        text = text ? text + 1 : NULL;
    }
}

static void parse_percentage(const char *text, struct hello *hello)
{
    char *end;
    double value = strtod(text, &end);

    if (end != text && !*end && strspn(text, "+.0123456789eE-") == strlen(text) && value > 0 &&
        value <= 100)
        hello->sm_centipercent = (uint32_t)(value * 100 + 0.5);
    else
        log_ignored("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", text,
                    "a percentage above 0 and at most 100");
}

static void parse_priority(const char *variable, const char *text, struct hello *hello)
{
    if (!strcmp(text, "0") || !strcmp(text, "1"))
        hello->priority = (uint32_t)(*text - '0');
    else if (*text)
        log_ignored(variable, text, "0 or 1");
}

static void copy_variable(const char *name, char *text, size_t capacity)
{
    const char *value = getenv(name);

    if (value)
        text_copy(text, capacity, value);
}

void environment_names(struct hello *hello)
{
    copy_variable("FUNNEL_GROUP", hello->group, sizeof(hello->group));
    copy_variable("CUDA_MPS_SM_PARTITION", hello->sm_partition, sizeof(hello->sm_partition));
}

/* ---- the devices of a container ---- */

/* The list of whole GPUs in NVIDIA_VISIBLE_DEVICES, which are all that the program would have
 * without Funnel; NULL for numbers, "all", and other words. */
static const char *container_devices(void)
{
    const char *list = getenv("NVIDIA_VISIBLE_DEVICES");

    for (const char *item = list; item; item = strchr(item, ',') ? strchr(item, ',') + 1 : NULL)
        if (strncasecmp(item, "GPU-", 4) != 0)
            return NULL;
    return list;
}

/* Number `index` of the list; NULL where it is shorter. */
static const char *list_item(const char *list, unsigned index, size_t *ret_length)
{
    while (list && index--) {
        list = strchr(list, ',');
        list += list != NULL;
    }
    *ret_length = list ? strcspn(list, ",") : 0;
    return list;
}

/* ---- the variables of schedulers ---- */

/* HAMi's sizes need no unit: "1g", "1024m", "1073741824". 0 when it is none. */
static uint64_t parse_bytes(const char *text)
{
    const char *rest = text;
    uint64_t bytes = parse_size(text, &rest);
    char *end;

    if (bytes)
        return *rest ? 0 : bytes;
    bytes = strtoull(text, &end, 10);
    return *end || end == text ? 0 : bytes;
}

/* "0", and "0m", which HAMi sets for a container that asks for no memory. */
static bool is_no_limit(const char *text)
{
    return text[strspn(text, "0")] == '\0' ||
           (*text == '0' && strspn(text, "0kmgKMG") == strlen(text));
}

/* 0 where the variable sets no limit. */
static uint64_t bytes_of(const char *variable)
{
    const char *text = getenv(variable);
    uint64_t bytes = text ? parse_bytes(text) : 0;

    if (text && !bytes && !is_no_limit(text))
        log_ignored(variable, text, "a size such as 1g or 1073741824");
    return bytes;
}

/* Such a limit is that of the container, and totals show it, as with the libraries of these
 * schedulers. Beside MPS's own variable it is each program's, because that is. */
static void note_limit_of_container(struct hello *hello)
{
    const char *own = getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");

    hello->totals = HELLO_TOTALS_LIMIT;
    hello->limits_container = !(own && *own);
}

/* Where MPS's own variable says nothing about the device. */
static void limit_devices(const char *variable, unsigned first, unsigned count, struct hello *hello)
{
    uint64_t bytes = bytes_of(variable);

    for (unsigned i = first; i < first + count; i++)
        if (bytes && !hello->memory_limit[i]) {
            hello->memory_limit[i] = bytes;
            note_limit_of_container(hello);
        }
}

/* HAMi and Volcano number the devices of the container, which NVIDIA_VISIBLE_DEVICES names. */
static void limit_numbered(unsigned number, struct hello *hello)
{
    const char *list = container_devices(), *own = getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
    char variable[40];
    size_t length;

    text_format(variable, sizeof(variable), "CUDA_DEVICE_MEMORY_LIMIT_%u", number);
    const char *uuid = list_item(list, number, &length);
    uint64_t bytes = uuid && !(own && *own) ? bytes_of(variable) : 0;
    if (!list)
        limit_devices(variable, number, 1, hello);
    if (!bytes)
        return;
    if (number >= HELLO_NAMED_LIMITS)
        log_ignored(variable, uuid, "among the first 8 devices of the container");
    keep_named_limit(hello, uuid, length, bytes);
    note_limit_of_container(hello);
}

/* HAMi's percentage: 0 and 100 are no limit. */
static uint32_t percentage_of(const char *variable)
{
    const char *text = getenv(variable);
    char *end = NULL;
    unsigned long percentage = text ? strtoul(text, &end, 10) : 0;

    if (text && (*end || percentage > 100)) {
        log_ignored(variable, text, "a percentage of 0 to 100");
        return 0;
    }
    return percentage < 100 ? (uint32_t)percentage : 0;
}

/* A client has the same share of each device, so the smallest of those that HAMi names counts. */
static void limit_multiprocessors(struct hello *hello)
{
    const char *policy = getenv("GPU_CORE_UTILIZATION_POLICY");
    uint32_t least = percentage_of("CUDA_DEVICE_SM_LIMIT");
    char variable[40];

    if (hello->sm_centipercent || (policy && !strcasecmp(policy, "disable")))
        return;
    for (unsigned i = 0; i < HELLO_MAX_DEVICES; i++) {
        text_format(variable, sizeof(variable), "CUDA_DEVICE_SM_LIMIT_%u", i);
        uint32_t percentage = percentage_of(variable);
        if (percentage && (!least || percentage < least))
            least = percentage;
    }
    hello->sm_centipercent = least * 100;
}

/* HAMi's library limits no program of a container that is exempt, though its variables are set. */
static bool is_exempt_from_hami(void)
{
    const char *text = getenv("CUDA_DISABLE_CONTROL");

    return text && (!strcmp(text, "1") || !strcasecmp(text, "t") || !strcasecmp(text, "true"));
}

static void read_hami_limits(struct hello *hello)
{
    const char *priority = getenv("CUDA_TASK_PRIORITY");

    limit_multiprocessors(hello);
    for (unsigned i = 0; i < HELLO_MAX_DEVICES; i++)
        limit_numbered(i, hello);
    if (!*hello->named_limits[0].device)
        limit_devices("CUDA_DEVICE_MEMORY_LIMIT", 0, HELLO_MAX_DEVICES, hello);
    if (priority && hello->priority == HELLO_PRIORITY_UNSET)
        parse_priority("CUDA_TASK_PRIORITY", priority, hello);
}

static void read_scheduler_limits(struct hello *hello)
{
    if (!is_exempt_from_hami())
        read_hami_limits(hello);
    /* KAI means each device. */
    limit_devices("GPU_MEMORY_LIMIT", 0, HELLO_MAX_DEVICES, hello);
}

static void read_class(struct hello *hello)
{
    const char *class = getenv("FUNNEL_CLASS");

    if (class && *class && !client_class_parse(class, &hello->class))
        log_ignored("FUNNEL_CLASS", class, CLASS_EXPECTED);
}

static void read_isolation(struct hello *hello)
{
    const char *isolation = getenv("FUNNEL_ISOLATE");

    if (isolation && *isolation && !isolation_parse(isolation, &hello->isolation))
        log_ignored("FUNNEL_ISOLATE", isolation, ISOLATION_EXPECTED);
}

void environment_limits(struct hello *hello)
{
    const char *percentage = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    const char *priority = getenv("CUDA_MPS_CLIENT_PRIORITY");

    if (percentage && *percentage)
        parse_percentage(percentage, hello);
    hello->priority = HELLO_PRIORITY_UNSET;
    if (priority)
        parse_priority("CUDA_MPS_CLIENT_PRIORITY", priority, hello);
    parse_memory_limits(getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"), hello);
    read_scheduler_limits(hello);
    if (getenv("FUNNEL_SHOW_LIMIT"))
        hello->totals =
            switch_is_on("FUNNEL_SHOW_LIMIT") ? HELLO_TOTALS_LIMIT : HELLO_TOTALS_DEVICE;
    read_class(hello);
    read_isolation(hello);
}

/* "GPU-8-4-4-4-12" or the beginning of it, as CUDA allows. */
static bool uuid_matches(const char *text, size_t length, const uint8_t *uuid)
{
    char full[64] = "GPU-";
    size_t at = 4;

    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            full[at++] = '-';
        full[at++] = "0123456789abcdef"[uuid[i] >> 4];
        full[at++] = "0123456789abcdef"[uuid[i] & 15];
    }
    return length > 4 && length <= at && strncasecmp(text, full, length) == 0;
}

/* Some of the server's devices, in its order. */
struct choice {
    const struct device_record *records;
    uint32_t index[ATTACH_DEVICES_MAX];
    int count;
};

/* The index of the device that an entry names, or -1. */
static int find_device(const char *text, size_t length, const struct choice *among)
{
    char *end;
    long ordinal;

    if (length > 4 && strncasecmp(text, "GPU-", 4) == 0) {
        for (int i = 0; i < among->count; i++)
            if (uuid_matches(text, length, among->records[among->index[i]].uuid))
                return (int)among->index[i];
        return -1;
    }
    ordinal = strtol(text, &end, 10);
    if (end != text + length || length == 0 || ordinal < 0 || ordinal >= among->count)
        return -1;
    return (int)among->index[ordinal];
}

static bool seen(const uint32_t *indices, int count, int device)
{
    for (int i = 0; i < count; i++)
        if (indices[i] == (uint32_t)device)
            return true;
    return false;
}

static bool is_in_container(const char *list, const struct device_record *record)
{
    const char *uuid;
    size_t length;

    for (unsigned i = 0; (uuid = list_item(list, i, &length)); i++)
        if (uuid_matches(uuid, length, record->uuid))
            return true;
    return false;
}

static void choose_devices_of_container(const struct device_record *records, int count,
                                        struct choice *ret_choice)
{
    const char *list = container_devices();

    ret_choice->records = records;
    ret_choice->count = 0;
    for (int i = 0; i < count; i++)
        if (!list || is_in_container(list, &records[i]))
            ret_choice->index[ret_choice->count++] = (uint32_t)i;
    if (list && !ret_choice->count)
        client_log("NVIDIA_VISIBLE_DEVICES: the server has none of the devices \"%.200s\", so "
                   "that the program sees none",
                   list);
}

int environment_visible_devices(const char *list, const struct device_record *records, int count,
                                uint32_t *ret_indices)
{
    struct choice among;
    int visible = 0;

    choose_devices_of_container(records, count, &among);
    if (!list) {
        for (int i = 0; i < among.count; i++)
            ret_indices[i] = among.index[i];
        return among.count;
    }
    while (*list) {
        size_t length;
        int device;

        list += strspn(list, " \t");
        length = strcspn(list, ",");
        while (length > 0 && isspace((unsigned char)list[length - 1]))
            length--;
        device = find_device(list, length, &among);
        if (device < 0)
            break;
        if (seen(ret_indices, visible, device))
            return 0;
        ret_indices[visible++] = (uint32_t)device;
        list += strcspn(list, ",");
        list += *list == ',';
    }
    return visible;
}

enum managed_place environment_managed_place(void)
{
    const char *value = getenv("FUNNEL_MANAGED");

    if (value && strcmp(value, "host") == 0)
        return MANAGED_HOST;
    return value && strcmp(value, "device") == 0 ? MANAGED_DEVICE : MANAGED_MOVES;
}

// A steady stream of hits, and what each slow one waited for: the probe of latency.py.
//
//   probe PORT URL KEYS SECONDS INTERVAL_US PROCESS THREAD [LONG_US]
//
// One connection asks for URL, in which "@" becomes a number below KEYS, every INTERVAL_US. Around each request it reads the schedstat
// of the worker THREAD of PROCESS, and its own: how long they ran, and how long they waited for the processor. So each wait has parts:
// the worker waited for the processor, the probe did, the worker was at work for somebody else, or the worker slept (on a lock, or for
// the disk). Requests that should have been sent during a slow one count as well, with what they would have waited. "others" counts answers
// that were no hits: what is measured is something else then.
// Output: one line of JSON. "long" lists each request that took LONG_US (5,000) or more: when (ms), and in µs how long, queue of the
// worker, queue of the probe, work of the worker.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { longMax = 10000 };
struct schedule { uint64_t ran, waited; };
struct wait { double at; uint64_t took, workerQueue, probeQueue, workerRan; };
static struct wait waits[longMax];
static size_t waitCount;
static uint32_t *latencies;
static size_t latencyCount, latencyRoom;

static void fail(const char *why) {
    perror(why);
    exit(1);
}

static uint64_t nanoseconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + time.tv_nsec;
}

static struct schedule read_schedule(int fd) {
    char text[128];
    struct schedule result = {0, 0};
    ssize_t length = pread(fd, text, sizeof text - 1, 0);
    if (length <= 0) return result;
    text[length] = 0;
    sscanf(text, "%lu %lu", &result.ran, &result.waited);
    return result;
}

static void keep(uint64_t microseconds) {
    if (latencyCount == latencyRoom) {
        latencyRoom = latencyRoom ? 2 * latencyRoom : 1 << 16;
        latencies = realloc(latencies, latencyRoom * sizeof *latencies);
    }
    latencies[latencyCount++] = (uint32_t)microseconds;
}

// Whether the answer was a hit.
static int ask(int fd, const char *url, long key) {
    char target[512], request[1200], answer[65536], number[24];
    snprintf(number, sizeof number, "%ld", key);
    const char *mark = strchr(url, '@');
    snprintf(target, sizeof target, "%.*s%s%s", (int)(mark - url), url, number, mark + 1);
    char *authority = strstr(target, "://") + 3;
    int length = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: %.*s\r\n\r\n", target,
        (int)strcspn(authority, "/"), authority);
    if (send(fd, request, length, MSG_NOSIGNAL) != length) fail("send");
    for (size_t have = 0; have < sizeof answer - 1;) {
        ssize_t got = recv(fd, answer + have, sizeof answer - 1 - have, 0);
        if (got <= 0) fail("recv");
        have += got;
        answer[have] = 0;
        char *end = strstr(answer, "\r\n\r\n"), *field = strcasestr(answer, "\r\ncontent-length:");
        if (end && field && have >= (size_t)(end + 4 - answer) + atoll(field + 17))
            return strcasestr(answer, "\r\ncache-status: larder; hit") != NULL;
    }
    fail("an answer that is too long");
    return 0;
}

static int ascending(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static uint32_t percentile(double part) { return latencyCount ? latencies[(size_t)((latencyCount - 1) * part)] : 0; }

int main(int argc, char **argv) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (argc < 8 || !strchr(argv[2], '@')) return fprintf(stderr, "usage: probe PORT URL KEYS SECONDS INTERVAL_US PROCESS THREAD\n"), 2;
    long keys = atol(argv[3]);
    uint64_t interval = (uint64_t)atol(argv[5]) * 1000, longTime = (argc > 8 ? (uint64_t)atol(argv[8]) : 5000) * 1000;
    // With the right to it, the probe comes before other programs on its processor. Without, its queue says how long it waited.
    struct sched_param priority = {.sched_priority = 10};
    sched_setscheduler(0, SCHED_FIFO, &priority);
    prctl(PR_SET_TIMERSLACK, 1000);
    char path[128];
    snprintf(path, sizeof path, "/proc/%s/task/%s/schedstat", argv[6], argv[7]);
    int worker = open(path, O_RDONLY), own = open("/proc/thread-self/schedstat", O_RDONLY), one = 1;
    if (worker < 0 || own < 0) fail("schedstat");
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0) fail("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    // More than once, so that none of them leaves memory soon.
    for (long key = 0; key < 4 * keys; key++) ask(fd, argv[2], key % keys);
    printf("ready\n");
    fflush(stdout);
    uint64_t begin = nanoseconds(), end = begin + (uint64_t)(atof(argv[4]) * 1e9), due = begin, key = 1, others = 0;
    while (due < end) {
        struct timespec until = {.tv_sec = (time_t)(due / 1000000000u), .tv_nsec = (long)(due % 1000000000u)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        key = key * 6364136223846793005u + 1442695040888963407u;
        struct schedule workerBefore = read_schedule(worker), ownBefore = read_schedule(own);
        uint64_t start = nanoseconds();
        others += !ask(fd, argv[2], (long)((key >> 33) % (uint64_t)keys));
        uint64_t took = nanoseconds() - start;
        struct schedule workerAfter = read_schedule(worker), ownAfter = read_schedule(own);
        for (uint64_t left = took;; left -= interval) {
            keep(left / 1000);
            if (left < 2 * interval) break;
        }
        if (took >= longTime && waitCount < longMax)
            waits[waitCount++] = (struct wait){(double)(start - begin) / 1e6, took / 1000, (workerAfter.waited - workerBefore.waited) / 1000,
                (ownAfter.waited - ownBefore.waited) / 1000, (workerAfter.ran - workerBefore.ran) / 1000};
        uint64_t now = nanoseconds();
        due += interval;
        if (due < now) due = now;
    }
    qsort(latencies, latencyCount, sizeof *latencies, ascending);
    printf("{\"requests\":%zu,\"others\":%lu,\"p50\":%u,\"p99\":%u,\"p999\":%u,\"max\":%u,\"long\":[", latencyCount, others, percentile(.5), percentile(.99),
        percentile(.999), percentile(1));
    for (size_t i = 0; i < waitCount; i++)
        printf("%s[%.0f,%lu,%lu,%lu,%lu]", i ? "," : "", waits[i].at, waits[i].took, waits[i].workerQueue, waits[i].probeQueue, waits[i].workerRan);
    printf("]}\n");
    return 0;
}

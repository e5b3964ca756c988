// The load of the growth benchmarks: many connections, pipelining, keys in turn or at random. One thread, epoll.
//
//   load PORT URL [-c CONNECTIONS] [-w WINDOW] [-p DEPTH] [-k KEYS] [-f FIRST] [-r] [-q] [-d SECONDS] [-n COUNT]
//
// Every "@" in URL becomes a number from FIRST to FIRST + KEYS - 1: in turn, or at random with -r. Each connection is opened and asks
// once (with -q: is only opened). Then "ready" is printed, and the load begins when a line comes on standard input. It ends after SECONDS or COUNT requests.
// A connection sends DEPTH requests in one piece, and the next ones when all of these are answered. At most WINDOW connections have
// requests under way; if there are more connections, they take turns. All responses need Content-Length. A body that does not fit into
// the buffer is discarded in the kernel, so that this program does not limit what it measures.
// Output: one line of JSON. Latencies are in microseconds, from sending a piece to the end of each response.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { headMax = 2048, bufferSize = 256 << 10, depthMax = 256, requestMax = 1024 };
struct connection {
    int fd, waiting;    // responses that are still to come
    int have;           // bytes of a head that is not complete
    long long bodyLeft;
    uint64_t sentAt;
    char head[headMax];
};
static struct connection *connections;
static int poller, connectionCount = 64, window, depth = 1, isRandom, isQuiet, underWay, turn;
static long keys = 1, first, countMax, issued;
static double seconds = 1e9;
static const char *url;
static uint64_t answered, refused, bytes, state = 88172645463325252u;
static uint32_t *latencies;
static size_t latencyRoom;
static char buffer[bufferSize];
static int isEnding;

static uint64_t nanoseconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + time.tv_nsec;
}

static void fail(const char *why) {
    fprintf(stderr, "load: %s%s%s\n", why, errno ? ": " : "", errno ? strerror(errno) : "");
    exit(1);
}

static long next_key(void) {
    if (!isRandom) return first + issued % keys;
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return first + (long)(state % (uint64_t)keys);
}

static int put_request(char *out) {
    char target[requestMax / 2], number[24];
    snprintf(number, sizeof number, "%ld", next_key());
    issued++;
    size_t length = 0;
    for (const char *from = url; *from && length < sizeof target - sizeof number; from++) {
        if (*from == '@') length += (size_t)sprintf(target + length, "%s", number);
        else target[length++] = *from;
    }
    target[length] = 0;
    char *authority = strstr(target, "://") + 3;
    return sprintf(out, "GET %s HTTP/1.1\r\nHost: %.*s\r\n\r\n", target, (int)strcspn(authority, "/"), authority);
}

static void send_piece(struct connection *c, int count) {
    static char piece[depthMax * requestMax];
    int length = 0;
    for (int i = 0; i < count; i++) length += put_request(piece + length);
    c->waiting = count;
    c->sentAt = nanoseconds();
    underWay++;
    errno = 0;
    if (send(c->fd, piece, length, MSG_NOSIGNAL) != length) fail("send");
}

static int is_over(void) { return isEnding || (countMax > 0 && issued >= countMax); }

static void go_on(struct connection *c) {
    if (is_over()) return;
    int count = depth;
    if (countMax > 0 && countMax - issued < count) count = (int)(countMax - issued);
    if (connectionCount > window) {
        do turn = (turn + 1) % connectionCount;
        while (connections[turn].waiting > 0);
        c = &connections[turn];
    }
    send_piece(c, count);
}

static void finish(struct connection *c) {
    if (answered == latencyRoom) {
        latencyRoom = latencyRoom ? 2 * latencyRoom : 1 << 16;
        latencies = realloc(latencies, latencyRoom * sizeof *latencies);
    }
    latencies[answered++] = (uint32_t)((nanoseconds() - c->sentAt) / 1000);
    if (--c->waiting > 0) return;
    underWay--;
    go_on(c);
}

/// Takes heads and bodies from `count` bytes that were read.
static void take(struct connection *c, char *from, size_t count) {
    bytes += count;
    while (count > 0) {
        if (c->bodyLeft > 0) {
            size_t part = count < (size_t)c->bodyLeft ? count : (size_t)c->bodyLeft;
            c->bodyLeft -= part, from += part, count -= part;
            if (c->bodyLeft == 0) finish(c);
            continue;
        }
        size_t room = headMax - 1 - c->have, part = count < room ? count : room;
        memcpy(c->head + c->have, from, part);
        c->head[c->have + part] = 0;
        char *end = strstr(c->head, "\r\n\r\n");
        errno = 0;
        if (!end && part == room) fail("a head that is too long");
        size_t used = end ? (size_t)(end + 4 - c->head) - c->have : part;
        from += used, count -= used;
        c->have += part;
        if (!end) continue;
        char *field = strcasestr(c->head, "\r\ncontent-length:");
        if (!field || field > end) fail("a response without Content-Length");
        if (memcmp(c->head + 9, "200", 3) != 0) refused++;
        c->bodyLeft = atoll(field + 17);
        c->have = 0;
        if (c->bodyLeft == 0) finish(c);
    }
}

static void receive(struct connection *c) {
    for (int i = 0; i < 4; i++) {
        int discards = c->bodyLeft > bufferSize && c->waiting == 1;
        size_t count = discards ? (size_t)c->bodyLeft : bufferSize;
        ssize_t got = recv(c->fd, discards ? NULL : buffer, count, MSG_DONTWAIT | (discards ? MSG_TRUNC : 0));
        if (got < 0 && errno == EAGAIN) return;
        if (got <= 0) fail("the proxy closed a connection");
        if (discards) {
            bytes += got;
            c->bodyLeft -= got;
            if (c->bodyLeft == 0) finish(c);
        } else {
            take(c, buffer, got);
            if (got < bufferSize) return;
        }
    }
}

static void turn_once(int timeout) {
    struct epoll_event ready[512];
    int count = epoll_wait(poller, ready, 512, timeout);
    for (int i = 0; i < count; i++) receive(ready[i].data.ptr);
}

static void open_connection(struct connection *c, int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1;
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&address, sizeof address) < 0) fail("connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &event);
}

static int ascending(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static double percentile(double part) { return answered ? latencies[(size_t)((answered - 1) * part)] : 0; }

int main(int argc, char **argv) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (argc < 3) return fprintf(stderr, "usage: load PORT URL [OPTION]...\n"), 2;
    url = argv[2];
    optind = 3;
    for (int option; (option = getopt(argc, argv, "c:w:p:k:f:rqd:n:")) != -1;) switch (option) {
        case 'c': connectionCount = atoi(optarg); break;
        case 'w': window = atoi(optarg); break;
        case 'p': depth = atoi(optarg); break;
        case 'k': keys = atol(optarg); break;
        case 'f': first = atol(optarg); break;
        case 'r': isRandom = 1; break;
        case 'q': isQuiet = 1; break;
        case 'd': seconds = atof(optarg); break;
        case 'n': countMax = atol(optarg); break;
        default: return 2;
    }
    if (window == 0 || window > connectionCount) window = connectionCount;
    if (depth < 1 || depth > depthMax || keys < 1 || !strstr(url, "://")) return fprintf(stderr, "load: a bad option\n"), 2;
    poller = epoll_create1(0);
    connections = calloc(connectionCount, sizeof *connections);
    isEnding = 1;  // until the load begins, an answer is not followed by a request
    for (int i = 0; i < connectionCount; i++) {
        open_connection(&connections[i], atoi(argv[1]));
        if (!isQuiet) send_piece(&connections[i], 1);
        while (underWay >= 64) turn_once(1000);
    }
    while (underWay > 0) turn_once(1000);
    printf("ready\n");
    fflush(stdout);
    if (getchar() == EOF) return 0;
    isEnding = 0;
    answered = refused = bytes = 0;
    issued = 0;
    uint64_t start = nanoseconds(), end = start + (uint64_t)(seconds * 1e9);
    for (int i = 0; i < window && !is_over(); i++) go_on(&connections[i]);
    while (underWay > 0) {
        turn_once(100);
        if (nanoseconds() < end) continue;
        if (!isEnding) end += 30000000000u;  // for the last answers
        else errno = 0, fail("no answer for 30 seconds");
        isEnding = 1;
    }
    double spent = (double)(nanoseconds() - start) / 1e9;
    qsort(latencies, answered, sizeof *latencies, ascending);
    printf("{\"requests\":%lu,\"seconds\":%.3f,\"bytes\":%lu,\"refused\":%lu,\"p50\":%.0f,\"p99\":%.0f,\"p999\":%.0f,\"max\":%.0f}\n",
        answered, spent, bytes, refused, percentile(.5), percentile(.99), percentile(.999), percentile(1));
    return 0;
}

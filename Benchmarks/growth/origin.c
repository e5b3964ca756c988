// The origin of the growth benchmarks: bodies of any size. Prints its port, then serves until its parent ends.
//
//   origin            GET /SIZE/… answers SIZE bytes that are cacheable for a day; /SIZE/tagged/… adds "Surrogate-Key: tagged"
//
// One thread, keep-alive, pipelining. Requests have no bodies.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { headMax = 8192, pieceMax = 1 << 20, answerMax = 512, smallMax = 16 << 10 };
struct connection {
    int fd, events;
    size_t have;      // bytes of requests that were read
    size_t headLeft;  // bytes of the answer's head (and of a small body) that are still to be sent
    size_t headSent;
    long long bodyLeft;
    char in[headMax + 1];
    char out[answerMax + smallMax];
};
static char piece[pieceMax];
static char date[64];
static int poller;

static void note_date(void) {
    static time_t last;
    time_t now = time(NULL);
    if (now == last) return;
    last = now;
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime(&now));
}

static void prepare(struct connection *c, const char *head) {
    const char *path = strchr(head, '/');
    long long size = path ? atoll(path + 1) : 0;
    const char *tag = path && strstr(path, "/tagged/") ? "Surrogate-Key: tagged\r\n" : "";
    note_date();
    c->headLeft = snprintf(c->out, answerMax, "HTTP/1.1 200 OK\r\nDate: %s\r\nCache-Control: max-age=86400\r\nETag: \"growth\"\r\n"
        "Content-Type: application/octet-stream\r\n%sContent-Length: %lld\r\n\r\n", date, tag, size);
    c->headSent = 0;
    c->bodyLeft = size;
    if (size > smallMax) return;
    memcpy(c->out + c->headLeft, piece, size);
    c->headLeft += size;
    c->bodyLeft = 0;
}

/// Sends what is left of an answer. Returns 1 when all was sent, 0 when the connection takes no more, -1 when it is over.
static int send_some(struct connection *c) {
    while (c->headLeft > 0 || c->bodyLeft > 0) {
        int isHead = c->headLeft > 0;
        const char *bytes = isHead ? c->out + c->headSent : piece;
        size_t count = isHead ? c->headLeft : c->bodyLeft < pieceMax ? (size_t)c->bodyLeft : pieceMax;
        ssize_t sent = send(c->fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0) return errno == EAGAIN ? 0 : -1;
        if (isHead) c->headLeft -= sent, c->headSent += sent;
        else c->bodyLeft -= sent;
    }
    return 1;
}

static void watch(struct connection *c, int events) {
    if (c->events == events) return;
    c->events = events;
    struct epoll_event event = {.events = events, .data.ptr = c};
    epoll_ctl(poller, EPOLL_CTL_MOD, c->fd, &event);
}

/// Returns 0 when the connection is over.
static int serve(struct connection *c) {
    if (c->events == EPOLLIN) {
        ssize_t got = recv(c->fd, c->in + c->have, headMax - c->have, MSG_DONTWAIT);
        if (got <= 0) return got < 0 && errno == EAGAIN;
        c->have += got;
    }
    for (;;) {
        int state = send_some(c);
        if (state < 0) return 0;
        if (state == 0) return watch(c, EPOLLOUT), 1;
        c->in[c->have] = 0;
        char *end = strstr(c->in, "\r\n\r\n");
        if (!end) return watch(c, EPOLLIN), c->have < headMax;
        prepare(c, c->in);
        size_t used = end + 4 - c->in;
        memmove(c->in, c->in + used, c->have - used);
        c->have -= used;
    }
}

int main(void) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    memset(piece, 'x', sizeof piece);
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) < 0 || listen(listener, 4096) < 0
        || getsockname(listener, (struct sockaddr *)&address, &length) < 0) return perror("origin"), 1;
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    poller = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL}, ready[256];
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int count = epoll_wait(poller, ready, 256, -1);
        for (int i = 0; i < count; i++) {
            struct connection *c = ready[i].data.ptr;
            if (c) {
                if (!serve(c)) close(c->fd), free(c);
                continue;
            }
            int fd = accept(listener, NULL, NULL);
            if (fd < 0) continue;
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            c = calloc(1, sizeof *c);
            c->fd = fd;
            c->events = EPOLLIN;
            event = (struct epoll_event){.events = EPOLLIN, .data.ptr = c};
            epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
        }
    }
}

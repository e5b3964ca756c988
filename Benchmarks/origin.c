// The origin of our benchmarks: one thread, keep-alive, canned answers by path. Prints its port, then serves.
//
//   /hit-1k…  /store…  1 KiB, cacheable for a day        /hit-16k…     16 KiB, cacheable for a day
//   /hit-256k…         256 KiB, cacheable for a day
//   /pass…             1 KiB, no-store                   /revalidate…  1 KiB, max-age=0 with an ETag; 304 when asked
//
// Anything else is 404. Requests have no bodies.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { connectionsMax = 1024, headMax = 8192, bodyMax = 256 << 10 };
struct connection { size_t have; char bytes[headMax + 1]; };
static struct connection *connections[connectionsMax];
static struct pollfd polled[connectionsMax];
static char response[bodyMax + 1024];

static int starts(const char *path, const char *prefix) { return strncmp(path, prefix, strlen(prefix)) == 0; }

static size_t answer(const char *head) {
    const char *path = strchr(head, ' ');
    path = path ? path + 1 : "";
    const char *status = "200 OK", *fields = "Cache-Control: max-age=86400\r\nETag: \"larder\"\r\n";
    size_t body = 1024;
    if (starts(path, "/hit-16k")) body = 16 << 10;
    else if (starts(path, "/hit-256k")) body = bodyMax;
    else if (starts(path, "/hit-1k") || starts(path, "/store")) {}
    else if (starts(path, "/pass")) fields = "Cache-Control: no-store\r\n";
    else if (starts(path, "/revalidate")) {
        fields = "Cache-Control: max-age=0\r\nETag: \"larder\"\r\n";
        if (strcasestr(head, "\r\nif-none-match: \"larder\"")) status = "304 Not Modified", body = 0;
    } else status = "404 Not Found", fields = "", body = 0;
    char date[64];
    time_t now = time(NULL);
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime(&now));
    int head_length = snprintf(response, 1024, "HTTP/1.1 %s\r\nDate: %s\r\nServer: bench\r\n"
        "Content-Type: application/octet-stream\r\n%s", status, date, fields);
    head_length += status[0] == '3' ? snprintf(response + head_length, 100, "\r\n")
        : snprintf(response + head_length, 100, "Content-Length: %zu\r\n\r\n", body);
    memset(response + head_length, 'x', body);
    return head_length + body;
}

/// False when the connection is over.
static int serve(int fd, struct connection *c) {
    ssize_t got = recv(fd, c->bytes + c->have, headMax - c->have, MSG_DONTWAIT);
    if (got <= 0) return 0;
    c->have += got;
    c->bytes[c->have] = 0;
    char *end;
    while ((end = strstr(c->bytes, "\r\n\r\n"))) {
        end[2] = 0;
        size_t count = answer(c->bytes), sent = 0;
        while (sent < count) {
            ssize_t n = send(fd, response + sent, count - sent, MSG_NOSIGNAL);
            if (n <= 0) return 0;
            sent += n;
        }
        size_t used = end + 4 - c->bytes;
        memmove(c->bytes, c->bytes + used, c->have - used + 1);
        c->have -= used;
    }
    return c->have < headMax;
}

int main(void) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // it never outlives the benchmark
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) < 0 || listen(listener, 512) < 0
        || getsockname(listener, (struct sockaddr *)&address, &length) < 0) return perror("origin"), 1;
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    polled[0] = (struct pollfd){.fd = listener, .events = POLLIN};
    int count = 1;
    for (;;) {
        if (poll(polled, count, -1) < 0) continue;
        for (int i = count - 1; i > 0; i--) {
            if (!polled[i].revents || serve(polled[i].fd, connections[i])) continue;
            close(polled[i].fd);
            free(connections[i]);
            polled[i] = polled[--count];
            connections[i] = connections[count];
        }
        if (!polled[0].revents || count == connectionsMax) continue;
        int fd = accept(listener, NULL, NULL);
        if (fd < 0) continue;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        polled[count] = (struct pollfd){.fd = fd, .events = POLLIN};
        connections[count++] = calloc(1, sizeof(struct connection));
    }
}

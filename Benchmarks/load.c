// The load client of our benchmarks: one connection, one request after the other, every response read whole.
//
//   load HOST PORT COUNT FIRST REQUEST-FILE            requests on one connection
//   load --connect HOST PORT COUNT REQUEST-FILE        a new connection and a CONNECT for each request
//
// "@@@@@@@@" in the request file becomes an eight-digit number, counted from FIRST: a new URL per request.
// Responses must carry Content-Length (or be 204/304, or the 2xx of a CONNECT). Exit 1 on anything else.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { bufferSize = 1 << 20, requestMax = 16 << 10, timeoutSeconds = 30 };
static char buffer[bufferSize + 1];
static char request[requestMax + 1];

static void fail(const char *why) {
    fprintf(stderr, "load: %s%s%s\n", why, errno ? ": " : "", errno ? strerror(errno) : "");
    exit(1);
}

static int open_connection(const char *host, int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) fail("not an IPv4 address");
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    if (fd < 0) fail("socket");
    struct timeval patience = {.tv_sec = timeoutSeconds};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) fail("connect");
    return fd;
}

static void send_all(int fd, const char *bytes, size_t count) {
    while (count > 0) {
        ssize_t sent = send(fd, bytes, count, MSG_NOSIGNAL);
        if (sent < 0) fail("send");
        bytes += sent;
        count -= sent;
    }
}

static size_t receive(int fd, size_t have) {
    if (have == bufferSize) fail("a response head too long for this client");
    ssize_t got = recv(fd, buffer + have, bufferSize - have, 0);
    if (got < 0) fail("recv");
    if (got == 0) errno = 0, fail("the proxy closed the connection");
    return have + got;
}

/// Reads one response whole; nothing may follow it, since nothing more was asked.
static void read_response(int fd, int wanted, int isConnect) {
    size_t have = 0;
    char *end = NULL;
    while (!end) {
        have = receive(fd, have);
        buffer[have] = 0;
        end = strstr(buffer, "\r\n\r\n");
    }
    size_t head = end + 4 - buffer;
    errno = 0;
    int status = have > 12 ? atoi(buffer + 9) : 0;
    if (status != wanted) {
        fprintf(stderr, "%.*s", (int)head, buffer);
        fail("an unexpected status");
    }
    long long body = -1;
    if (isConnect || status == 204 || status == 304) body = 0;
    for (char *line = buffer; body < 0 && line < end; line = strstr(line, "\r\n") + 2)
        if (strncasecmp(line, "content-length:", 15) == 0) body = atoll(line + 15);
    if (body < 0) fail("a response without Content-Length");
    long long left = body - (long long)(have - head);
    while (left > 0) {
        ssize_t got = recv(fd, buffer, bufferSize, 0);
        if (got <= 0) fail("recv of a body");
        left -= got;
    }
    errno = 0;
    if (left < 0) fail("bytes after the response");
}

static size_t read_request(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) fail(path);
    size_t count = fread(request, 1, requestMax, file);
    fclose(file);
    request[count] = 0;
    return count;
}

int main(int argc, char **argv) {
    int isConnect = argc > 1 && strcmp(argv[1], "--connect") == 0;
    if (argc != 6) return fprintf(stderr, "usage: load HOST PORT COUNT FIRST FILE | --connect HOST PORT COUNT FILE\n"), 2;
    char **rest = argv + 1 + isConnect;
    const char *host = rest[0];
    int port = atoi(rest[1]);
    long count = atol(rest[2]);
    long first = isConnect ? 0 : atol(rest[3]);
    size_t length = read_request(argv[5]);
    if (isConnect) {
        for (long i = 0; i < count; i++) {
            int fd = open_connection(host, port);
            send_all(fd, request, length);
            read_response(fd, 200, 1);
            close(fd);
        }
        return 0;
    }
    char *number = strstr(request, "@@@@@@@@");
    int fd = open_connection(host, port);
    for (long i = 0; i < count; i++) {
        if (number) {
            char digits[16];
            snprintf(digits, sizeof digits, "%08ld", (first + i) % 100000000);
            memcpy(number, digits, 8);
        }
        send_all(fd, request, length);
        read_response(fd, 200, 0);
    }
    close(fd);
    return 0;
}

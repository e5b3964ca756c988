// The load client of our benchmarks: one connection, one request after the other, every response read whole.
//
//   load HOST PORT COUNT FIRST REQUEST-FILE            requests on one connection
//   load --connect HOST PORT COUNT REQUEST-FILE        a new connection and a CONNECT for each request
//   load --digest HOST PORT COUNT FIRST REQUEST-FILE   requests of alice with Digest (SHA-256), after one that asks for the nonce
//
// "@@@@@@@@" in the request file becomes an eight-digit number, counted from FIRST: a new URL per request.
// Responses must carry Content-Length (or be 204/304, or the 2xx of a CONNECT). Exit 1 on anything else.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/sha.h>
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

/// SHA-256 of a text, in hexadecimal digits.
static void hash(char *digits, const char *text) {
    unsigned char bytes[SHA256_DIGEST_LENGTH];
    SHA256((const unsigned char *)text, strlen(text), bytes);
    for (int i = 0; i < SHA256_DIGEST_LENGTH; i++) sprintf(digits + 2 * i, "%02x", bytes[i]);
}

static char uri[1024], nonce[256], opaque[256], secret[65];
static size_t plainLength;

static void quoted_after(char *value, size_t room, const char *name) {
    char *start = strstr(buffer, name);
    char *end = start ? strchr(start + strlen(name), '"') : NULL;
    if (!end || (size_t)(end - start) >= room) errno = 0, fail("no Digest challenge");
    start += strlen(name);
    memcpy(value, start, end - start);
    value[end - start] = 0;
}

/// Asks for the challenge, and keeps what every request needs of it (RFC 7616, realm "bench", password "s3cret").
static void begin_digest(int fd, size_t length) {
    plainLength = length - 2;  // without the empty line
    send_all(fd, request, length);
    read_response(fd, 407, 0);
    quoted_after(nonce, sizeof nonce, "nonce=\"");
    quoted_after(opaque, sizeof opaque, "opaque=\"");
    hash(secret, "alice:bench:s3cret");
    char *start = strchr(strstr(request, "://") + 3, '/');
    snprintf(uri, sizeof uri, "%.*s", (int)strcspn(start, " "), start);
}

/// Puts the credentials behind the fields of the request. Returns its length.
static size_t add_digest(long count) {
    char text[2048], covered[65], response[65];
    snprintf(text, sizeof text, "GET:%s", uri);
    hash(covered, text);
    snprintf(text, sizeof text, "%s:%s:%08lx:0a4f113b0a4f113b:auth:%s", secret, nonce, count, covered);
    hash(response, text);
    int added = snprintf(
        request + plainLength, requestMax - plainLength,
        "Proxy-Authorization: Digest username=\"alice\", realm=\"bench\", nonce=\"%s\", uri=\"%s\", cnonce=\"0a4f113b0a4f113b\", "
        "nc=%08lx, qop=auth, response=\"%s\", algorithm=SHA-256, opaque=\"%s\"\r\n\r\n",
        nonce, uri, count, response, opaque);
    return plainLength + added;
}

int main(int argc, char **argv) {
    int isConnect = argc > 1 && strcmp(argv[1], "--connect") == 0;
    int isDigest = argc > 1 && strcmp(argv[1], "--digest") == 0;
    if (argc != 6 + isDigest)
        return fprintf(stderr, "usage: load [--digest] HOST PORT COUNT FIRST FILE | --connect HOST PORT COUNT FILE\n"), 2;
    char **rest = argv + 1 + (isConnect || isDigest);
    const char *host = rest[0];
    int port = atoi(rest[1]);
    long count = atol(rest[2]);
    long first = isConnect ? 0 : atol(rest[3]);
    size_t length = read_request(argv[5 + isDigest]);
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
    if (isDigest) begin_digest(fd, length);
    for (long i = 0; i < count; i++) {
        if (isDigest) length = add_digest(i + 1);
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

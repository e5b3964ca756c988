// Visits to https hosts through a proxy that opens tunnels: CONNECT, a full handshake that verifies, one GET, the end.
//
//   visits PORT CA-FILE HOST-PATTERN ORIGIN-PORT FIRST COUNT
//
// One visit after the other, to the hosts whose numbers replace "%ld". Exit 1 when one fails.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static void fail(const char *why) {
    fprintf(stderr, "visits: %s\n", why);
    ERR_print_errors_fp(stderr);
    exit(1);
}

static void visit(SSL_CTX *context, int port, const char *host, int originPort) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_sec = 30};
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0) fail("connect");
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    char text[8192];
    int length = snprintf(text, sizeof text, "CONNECT %s:%d HTTP/1.1\r\nHost: %s:%d\r\n\r\n", host, originPort, host, originPort);
    if (send(fd, text, length, MSG_NOSIGNAL) != length) fail("send");
    for (length = 0, text[0] = 0; !strstr(text, "\r\n\r\n"); text[length] = 0) {
        ssize_t got = recv(fd, text + length, sizeof text - 1 - length, 0);
        if (got <= 0) fail("no answer to CONNECT");
        length += got;
    }
    if (memcmp(text + 9, "200", 3) != 0) fail(text);
    SSL *session = SSL_new(context);
    SSL_set_fd(session, fd);
    SSL_set_tlsext_host_name(session, host);
    SSL_set1_host(session, host);
    if (SSL_connect(session) != 1) fail("the handshake failed");
    length = snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: %s:%d\r\n\r\n", host, originPort);
    if (SSL_write(session, text, length) != length) fail("SSL_write");
    int got = SSL_read(session, text, sizeof text - 1);
    if (got <= 12 || memcmp(text + 9, "200", 3) != 0) fail("no answer in TLS");
    SSL_shutdown(session);
    SSL_free(session);
    close(fd);
}

int main(int argc, char **argv) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (argc != 7) return fprintf(stderr, "usage: visits PORT CA-FILE HOST-PATTERN ORIGIN-PORT FIRST COUNT\n"), 2;
    int port = atoi(argv[1]), originPort = atoi(argv[4]);
    long first = atol(argv[5]), count = atol(argv[6]);
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (count < 1 || !SSL_CTX_load_verify_locations(context, argv[2], NULL)) fail("the authority");
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_alpn_protos(context, (const unsigned char *)"\x08http/1.1", 9);
    for (long i = 0; i < count; i++) {
        char host[256];
        snprintf(host, sizeof host, argv[3], first + i);
        visit(context, port, host, originPort);
    }
    return 0;
}

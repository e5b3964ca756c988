#define _GNU_SOURCE
#include "clarder.h"
#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

int clarder_accept4(int fd, struct sockaddr *address, socklen_t *length) {
    return accept4(fd, address, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

int clarder_socket(int domain, int type) { return socket(domain, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

int clarder_eventfd(void) { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }

int clarder_timerfd(void) { return timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC); }

int clarder_sem_wait(sem_t *semaphore, const struct timespec *until) {
    return sem_clockwait(semaphore, CLOCK_MONOTONIC, until);
}

int clarder_timerfd_repeat(int fd, long nanoseconds) {
    struct timespec pause = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    struct itimerspec times = {pause, pause};
    return timerfd_settime(fd, 0, &times, NULL);
}

int clarder_pipe(int fds[2], int size) {
    if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) < 0) return -1;
    (void)fcntl(fds[1], F_SETPIPE_SZ, size);  /* refused above the user's quota: the default size still works */
    return fcntl(fds[1], F_GETPIPE_SZ);
}

ssize_t clarder_splice(int from, int to, size_t length, int more) {
    return splice(from, NULL, to, NULL, length, SPLICE_F_MOVE | SPLICE_F_NONBLOCK | (more ? SPLICE_F_MORE : 0));
}

ssize_t clarder_recv(int fd, void *buffer, size_t length) {
    return syscall(SYS_recvfrom, fd, buffer, length, 0, NULL, NULL);
}

ssize_t clarder_send(int fd, const void *bytes, size_t length, int flags) {
    return syscall(SYS_sendto, fd, bytes, length, flags, NULL, 0);
}

ssize_t clarder_sendmsg(int fd, const struct msghdr *message, int flags) { return syscall(SYS_sendmsg, fd, message, flags); }

int clarder_set_nonblocking(int fd) { return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

int clarder_delivered(int fd, uint64_t *acknowledged, uint64_t *unacknowledged) {
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    int queued = 0;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) < 0) return -1;
    if (length < offsetof(struct tcp_info, tcpi_bytes_acked) + sizeof info.tcpi_bytes_acked) return -1;
    if (ioctl(fd, SIOCOUTQ, &queued) < 0) return -1;
    *acknowledged = info.tcpi_bytes_acked;
    *unacknowledged = (uint64_t)queued;
    return 0;
}

int clarder_pin_to_cpu(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return sched_setaffinity(0, sizeof set, &set);
}

int clarder_cpu_count(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) < 0) return 1;
    return CPU_COUNT(&set);
}

int clarder_random(void *bytes, size_t count) {
    return getrandom(bytes, count, 0) == (ssize_t)count ? 0 : -1;
}

int clarder_name_thread(const char *name) { return pthread_setname_np(pthread_self(), name); }

void clarder_close_on_exec(int fd) { fcntl(fd, F_SETFD, FD_CLOEXEC); }

int clarder_duplicate_listening(int fd) {
    int kind = 0, listens = 0;
    socklen_t size = sizeof kind;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &kind, &size) != 0 || kind != SOCK_STREAM) return -1;
    size = sizeof listens;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || !listens) return -1;
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (copy >= 0) fcntl(copy, F_SETFL, fcntl(copy, F_GETFL) | O_NONBLOCK);
    return copy;
}

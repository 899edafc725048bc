// The floor of what bulk transfer costs: one flow, 512 KiB handed to a blocking socket at a time.
// Usage: bulk_send PORT SECONDS [CONGESTION_CONTROL]. Prints bytes, seconds and processor time.
#include "bare.h"

#define CHUNK (512 << 10)

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "bulk_send PORT SECONDS [CONGESTION_CONTROL]\n");
        return 2;
    }
    struct sockaddr_in to = loopback(atoi(argv[1]));
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (argc > 3 && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, argv[3], strlen(argv[3])))
        die("TCP_CONGESTION");
    if (connect(fd, (void *)&to, sizeof to)) die("connect");
    char *buffer = malloc(CHUNK);
    memset(buffer, 'k', CHUNK);
    uint64_t bytes = 0;
    double before = cpu_s();
    int64_t begin = now_ns(), end = begin + (int64_t)(atof(argv[2]) * 1e9), t = begin;
    while (t < end) {
        ssize_t sent = write(fd, buffer, CHUNK);
        if (sent < 0) die("write");
        bytes += sent;
        t = now_ns();
    }
    // The receiver closes once it has everything.
    shutdown(fd, SHUT_WR);
    if (read(fd, buffer, 1) < 0) die("read");
    t = now_ns();
    print_bulk(bytes, (t - begin) / 1e9, cpu_s() - before);
    return 0;
}

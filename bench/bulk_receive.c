// The other end of bulk_send: one thread that takes what comes over every connection, with epoll.
// Usage: bulk_receive PORT copy|discard. Port 0 picks one, which is printed. It ends once all
// connections that there were have closed, and prints bytes, seconds from the first byte to the
// last, and its processor time.
#include "bare.h"

#define CHUNK (1 << 20)

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "bulk_receive PORT copy|discard\n");
        return 2;
    }
    int flags = strcmp(argv[2], "discard") == 0 ? MSG_TRUNC : 0;
    struct sockaddr_in at = loopback(atoi(argv[1]));
    socklen_t length = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    int yes = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener, (void *)&at, sizeof at) || listen(listener, 128)) die("listen");
    getsockname(listener, (void *)&at, &length);
    printf("listening on 127.0.0.1:%d\n", ntohs(at.sin_port));
    fflush(stdout);
    int poll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
    char *buffer = malloc(CHUNK);
    uint64_t bytes = 0;
    int64_t first = 0, last = 0;
    double before = 0;
    int open = 0, seen = 0;
    while (!seen || open > 0) {
        struct epoll_event ready[64];
        int count = epoll_wait(poll, ready, 64, -1);
        for (int i = 0; i < count; i++) {
            int fd = ready[i].data.fd;
            if (fd == listener) {
                fd = accept(listener, NULL, NULL);
                if (fd < 0) die("accept");
                event.data.fd = fd;
                epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event);
                open++;
                seen = 1;
                continue;
            }
            ssize_t got = recv(fd, buffer, CHUNK, MSG_DONTWAIT | flags);
            if (got > 0) {
                if (!bytes) {
                    first = now_ns();
                    before = cpu_s();
                }
                bytes += got;
                continue;
            }
            if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
            last = now_ns();
            close(fd);
            open--;
        }
    }
    print_bulk(bytes, (last - first) / 1e9, cpu_s() - before);
    return 0;
}

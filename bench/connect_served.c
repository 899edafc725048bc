// A connection for each request, so many at once: connect, request, response, close.
//   connect_served PORT CONNECTIONS SECONDS rst|fin
// rst: closed with a RST as soon as the response is here. fin: the server closes first, so that it,
// not this side, keeps the TIME_WAIT; its end is read, then this side closes.
#include "bare.h"
static const char CLOSE[] = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
static int ep, port;

static void open_one(void) {
  struct sockaddr_in a = loopback(port);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) die("socket");
  if (connect(fd, (struct sockaddr *)&a, sizeof a) && errno != EINPROGRESS) die("connect");
  struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.fd = fd};
  epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);
}

int main(int argc, char **argv) {
  static char b[131072];
  static int got[70000];  // bytes of the response; -1: not sent yet
  if (argc < 5) return fprintf(stderr, "connect_served PORT CONNECTIONS SECONDS rst|fin\n"), 2;
  int connections = atoi(argv[2]), reset = !strcmp(argv[4], "rst");
  struct linger linger = {.l_onoff = 1};
  struct epoll_event e[256];
  long served = 0, failed = 0;
  port = atoi(argv[1]);
  ep = epoll_create1(0);
  memset(got, -1, sizeof got);
  for (int i = 0; i < connections; i++) open_one();
  int64_t start = now_ns(), end = start + (int64_t)(atof(argv[3]) * 1e9);
  while (now_ns() < end) {
    int n = epoll_wait(ep, e, 256, 100);
    for (int i = 0; i < n; i++) {
      int fd = e[i].data.fd, done = 0;
      if (got[fd] < 0) {
        if (!(e[i].events & (EPOLLOUT | EPOLLERR))) continue;
        if (send(fd, CLOSE, sizeof CLOSE - 1, MSG_NOSIGNAL) < 0) done = 1;
        got[fd] = 0;
      }
      while (!done && e[i].events & (EPOLLIN | EPOLLRDHUP | EPOLLERR)) {
        ssize_t r = recv(fd, b, sizeof b, 0);
        if (r < 0 && errno == EAGAIN) break;
        if (r > 0) got[fd] += r;
        // The head is longer than 6 bytes, the body 1,294: all of it is here.
        done = r <= 0 || (reset && got[fd] > 1300);
        if (r > 0 && !(e[i].events & EPOLLRDHUP)) break;
      }
      if (!done) continue;
      if (got[fd] > 1300) served++; else failed++;
      if (reset) setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
      close(fd);
      got[fd] = -1;
      open_one();
    }
  }
  print_common(served, (now_ns() - start) / 1e9);
  printf(",\"failed\":%ld}\n", failed);
}

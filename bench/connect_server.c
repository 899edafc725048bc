// The server that connection rates are measured against.
//   connect_server PORT serve    one request per connection: 1,294 bytes, then it closes first
//   connect_server PORT silent   its accept queue is full and stays so: no SYN is answered
// PORT 0 picks a free one. One thread.
#include "bare.h"
enum { BODY = 1294 };
static volatile sig_atomic_t stopped;
static void stop(int s) { (void)s; stopped = 1; }

int main(int argc, char **argv) {
  static char response[BODY + 256], b[65536];
  int silent = argc > 2 && !strcmp(argv[2], "silent"), one = 1;
  struct sockaddr_in a = loopback(argc > 1 ? atoi(argv[1]) : 0);
  socklen_t length = sizeof a;
  int l = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), ep = epoll_create1(0);
  long served = 0;
  setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(l, (struct sockaddr *)&a, sizeof a) || listen(l, silent ? 0 : 4096)) die("listen");
  getsockname(l, (struct sockaddr *)&a, &length);
  if (silent) dial(ntohs(a.sin_port));  // the one connection that a backlog of 0 has room for
  int head = sprintf(response, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                               "Connection: close\r\nContent-Length: %d\r\n\r\n", BODY);
  memset(response + head, 'x', BODY);
  struct sigaction on_term = {.sa_handler = stop};
  sigaction(SIGTERM, &on_term, NULL);
  sigaction(SIGINT, &on_term, NULL);
  printf("listening on 127.0.0.1:%d\n", ntohs(a.sin_port));
  fflush(stdout);
  int64_t start = now_ns();
  struct epoll_event e[256], in = {.events = EPOLLIN};
  in.data.fd = l;
  if (!silent) epoll_ctl(ep, EPOLL_CTL_ADD, l, &in);
  while (!stopped) {
    int n = epoll_wait(ep, e, 256, -1);
    for (int i = 0; i < n; i++) {
      int fd = e[i].data.fd;
      if (fd == l) {
        while ((in.data.fd = accept4(l, NULL, NULL, SOCK_NONBLOCK)) >= 0)
          epoll_ctl(ep, EPOLL_CTL_ADD, in.data.fd, &in);
        continue;
      }
      // Requests are short and come whole.
      if (read(fd, b, sizeof b) > 0 && send(fd, response, head + BODY, MSG_NOSIGNAL) > 0) served++;
      close(fd);
    }
  }
  print_common(served, (now_ns() - start) / 1e9);
  printf("}\n");
}

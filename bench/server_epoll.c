// The lean server that all generators are measured against: keep-alive HTTP/1.1, a 1,294-byte body,
// one read and one write per request, one thread.
//   server_epoll PORT [STAMPS_FILE MAX_STAMPS]
// PORT 0 picks a free one. With STAMPS_FILE the arrival time of each request (CLOCK_MONOTONIC,
// nanoseconds) is kept in memory and written there, one per line, at SIGTERM.
#include "bare.h"
enum { BODY = 1294, MAX_FD = 70000 };
static volatile sig_atomic_t stopped;
static void stop(int s) { (void)s; stopped = 1; }

static int listen_on(int port) {
  struct sockaddr_in a = loopback(port);
  socklen_t len = sizeof a;
  int one = 1, l = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  setsockopt(l, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);  // inherited by accept
  if (bind(l, (struct sockaddr *)&a, sizeof a) || listen(l, 16384)) die("listen");
  getsockname(l, (struct sockaddr *)&a, &len);
  printf("listening on 127.0.0.1:%d\n", ntohs(a.sin_port));
  fflush(stdout);
  return l;
}

int main(int argc, char **argv) {
  static char response[BODY + 256], b[65536];
  static unsigned char matched[MAX_FD];  // of "\r\n\r\n", per connection
  struct epoll_event e[256], in = {.events = EPOLLIN};
  long requests = 0, stamps_max = argc > 3 ? atol(argv[3]) : 0;
  int64_t *stamps = calloc(stamps_max + 1, sizeof *stamps), start = now_ns();
  for (long i = 0; i < stamps_max; i++) stamps[i] = 1;  // touches the pages now, not later
  int head = sprintf(response, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                               "Connection: keep-alive\r\nContent-Length: %d\r\n\r\n", BODY);
  memset(response + head, 'x', BODY);
  struct sigaction on_term = {.sa_handler = stop};
  sigaction(SIGTERM, &on_term, NULL);
  sigaction(SIGINT, &on_term, NULL);
  signal(SIGPIPE, SIG_IGN);
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  int l = listen_on(argc > 1 ? atoi(argv[1]) : 8080), ep = epoll_create1(0);
  in.data.fd = l;
  epoll_ctl(ep, EPOLL_CTL_ADD, l, &in);
  while (!stopped) {
    int n = epoll_wait(ep, e, 256, -1);
    for (int i = 0; i < n; i++) {
      int fd = e[i].data.fd;
      if (fd == l) {
        while ((in.data.fd = accept4(l, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
          if (in.data.fd >= MAX_FD) { close(in.data.fd); continue; }
          matched[in.data.fd] = 0;
          epoll_ctl(ep, EPOLL_CTL_ADD, in.data.fd, &in);
        }
        continue;
      }
      ssize_t r = read(fd, b, sizeof b);
      if (r == 0 || (r < 0 && errno != EAGAIN)) { close(fd); continue; }
      for (ssize_t k = 0; k < r; k++) {
        unsigned char m = matched[fd];
        m = b[k] == "\r\n\r\n"[m] ? m + 1 : b[k] == '\r';
        if (m == 4) {
          if (requests < stamps_max) stamps[requests] = now_ns();
          requests++;
          // A response fits the empty socket buffer; a client that does not read is let go.
          if (write(fd, response, head + BODY) != head + BODY) { shutdown(fd, SHUT_RDWR); break; }
          m = 0;
        }
        matched[fd] = m;
      }
    }
  }
  if (stamps_max) {
    FILE *f = fopen(argv[2], "w");
    if (!f) die(argv[2]);
    for (long i = 0; i < requests && i < stamps_max; i++) fprintf(f, "%lld\n", (long long)stamps[i]);
    fclose(f);
  }
  print_common(requests, (now_ns() - start) / 1e9);
  printf("}\n");
}

// The floor of a closed loop over epoll: edge-triggered, one read and one write per request.
//   closed_epoll PORT CONNECTIONS SECONDS
#include "bare.h"

int main(int argc, char **argv) {
  if (argc < 4) { fprintf(stderr, "usage: closed_epoll PORT CONNECTIONS SECONDS\n"); return 2; }
  static char b[65536];
  int port = atoi(argv[1]), n = atoi(argv[2]), ep = epoll_create1(0);
  ssize_t want = response_len(port), *got = calloc(n, sizeof *got);
  int *fd = calloc(n, sizeof *fd);
  struct epoll_event e[256];
  long requests = 0;
  for (int i = 0; i < n; i++) {
    struct epoll_event in = {.events = EPOLLIN | EPOLLET, .data.u32 = i};
    fd[i] = dial(port);
    epoll_ctl(ep, EPOLL_CTL_ADD, fd[i], &in);
  }
  int64_t start = now_ns(), end = start + (int64_t)(atof(argv[3]) * 1e9), now = start;
  for (int i = 0; i < n; i++)
    if (write(fd[i], REQUEST, REQUEST_LEN) != REQUEST_LEN) die("write");
  while ((now = now_ns()) < end) {
    int ready = epoll_wait(ep, e, 256, 100);
    for (int k = 0; k < ready; k++) {
      int i = e[k].data.u32;
      ssize_t r = read(fd[i], b, sizeof b);
      if (r <= 0) die("read");
      if ((got[i] += r) < want) continue;  // the rest comes with its own edge
      got[i] = 0;
      requests++;
      if (write(fd[i], REQUEST, REQUEST_LEN) != REQUEST_LEN) die("write");
    }
  }
  print_common(requests, (now - start) / 1e9);
  printf("}\n");
}

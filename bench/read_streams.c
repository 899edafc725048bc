// The floor of reading streams over epoll: each connection asks once and reads. It ends after this
// number of messages from all connections. An empty line ends a message.
//   read_streams PORT CONNECTIONS MESSAGES
#include "bare.h"

int main(int argc, char **argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: read_streams PORT CONNECTIONS MESSAGES\n");
    return 2;
  }
  static char b[65536];
  int port = atoi(argv[1]), n = atoi(argv[2]), ep = epoll_create1(0);
  long messages = 0, all = atol(argv[3]);
  char *last = calloc(n, 1);
  int *fd = calloc(n, sizeof *fd);
  struct epoll_event e[256];
  for (int i = 0; i < n; i++) {
    struct epoll_event in = {.events = EPOLLIN | EPOLLET, .data.u32 = i};
    fd[i] = dial(port);
    epoll_ctl(ep, EPOLL_CTL_ADD, fd[i], &in);
    if (write(fd[i], REQUEST, REQUEST_LEN) != REQUEST_LEN) die("write");
  }
  int64_t start = now_ns();
  while (messages < all && now_ns() < start + 60000000000LL) {
    int ready = epoll_wait(ep, e, 256, 100);
    for (int k = 0; k < ready; k++) {
      int i = e[k].data.u32;
      ssize_t r = read(fd[i], b, sizeof b);
      if (r <= 0) die("read");
      for (char *at = b, *found; (found = memchr(at, '\n', b + r - at)); at = found + 1)
        messages += (found == b ? last[i] : found[-1]) == '\n';
      last[i] = b[r - 1];
    }
  }
  print_common(messages, (now_ns() - start) / 1e9);
  printf("}\n");
}

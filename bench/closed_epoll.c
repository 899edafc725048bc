// The floor of a closed loop over epoll: edge-triggered, one read and one write per request.
// `stamped` asks the kernel when the bytes of each read came (SO_TIMESTAMPNS, recvmsg).
//   closed_epoll PORT CONNECTIONS SECONDS [stamped]
#include "bare.h"

// As read(2), and when the kernel received the bytes.
static ssize_t read_stamped(int fd, char *b, size_t size, int64_t *stamp) {
  _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct timespec))];
  struct iovec piece = {b, size};
  struct msghdr m = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control,
                     .msg_controllen = sizeof control};
  ssize_t r = recvmsg(fd, &m, 0);
  struct cmsghdr *c = CMSG_FIRSTHDR(&m);
  if (r > 0 && c && c->cmsg_type == SCM_TIMESTAMPNS) {
    struct timespec t;
    memcpy(&t, CMSG_DATA(c), sizeof t);
    *stamp = t.tv_sec * 1000000000LL + t.tv_nsec;
  }
  return r;
}

int main(int argc, char **argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: closed_epoll PORT CONNECTIONS SECONDS [stamped]\n");
    return 2;
  }
  static char b[65536];
  int port = atoi(argv[1]), n = atoi(argv[2]), ep = epoll_create1(0);
  ssize_t want = response_len(port), *got = calloc(n, sizeof *got);
  int *fd = calloc(n, sizeof *fd);
  struct epoll_event e[256];
  long requests = 0;
  int stamped = argc > 4 && !strcmp(argv[4], "stamped");
  int64_t stamp = 0;
  for (int i = 0; i < n; i++) {
    struct epoll_event in = {.events = EPOLLIN | EPOLLET, .data.u32 = i};
    fd[i] = dial(port);
    if (stamped) setsockopt(fd[i], SOL_SOCKET, SO_TIMESTAMPNS, &stamped, sizeof stamped);
    epoll_ctl(ep, EPOLL_CTL_ADD, fd[i], &in);
  }
  int64_t start = now_ns(), end = start + (int64_t)(atof(argv[3]) * 1e9), now = start;
  for (int i = 0; i < n; i++)
    if (write(fd[i], REQUEST, REQUEST_LEN) != REQUEST_LEN) die("write");
  while ((now = now_ns()) < end) {
    int ready = epoll_wait(ep, e, 256, 100);
    for (int k = 0; k < ready; k++) {
      int i = e[k].data.u32;
      ssize_t r = stamped ? read_stamped(fd[i], b, sizeof b, &stamp) : read(fd[i], b, sizeof b);
      if (r <= 0) die("read");
      if ((got[i] += r) < want) continue;  // the rest comes with its own edge
      got[i] = 0;
      requests++;
      if (write(fd[i], REQUEST, REQUEST_LEN) != REQUEST_LEN) die("write");
    }
  }
  print_common(requests, (now - start) / 1e9);
  if (stamped) printf(",\"last_stamp_ns\":%lld", (long long)stamp);
  printf("}\n");
}

// The floor of sending datagrams: the same 64 over and over, one sendmmsg for all of them.
//   udp_sendmmsg PORT SIZE SECONDS
#include "udp.h"

int main(int argc, char **argv) {
  static char bytes[SEGMENTS][PAYLOAD_MAX];
  static struct mmsghdr m[SEGMENTS];
  static struct iovec v[SEGMENTS];
  if (argc < 4) return usage(argv[0]);
  size_t size = atoi(argv[2]);
  if (size < 1 || size > PAYLOAD_MAX) return usage(argv[0]);
  for (int i = 0; i < SEGMENTS; i++) {
    v[i] = (struct iovec){bytes[i], size};
    m[i].msg_hdr = (struct msghdr){.msg_iov = &v[i], .msg_iovlen = 1};
  }
  int fd = dial_udp(atoi(argv[1]));
  int64_t start = now_ns(), end = start + (int64_t)(atof(argv[3]) * 1e9), now = start;
  long sent = 0;
  for (; now < end; now = now_ns()) {
    int n = sendmmsg(fd, m, SEGMENTS, MSG_DONTWAIT);
    if (n > 0) sent += n;
    else if (errno != EAGAIN) die("sendmmsg");
  }
  print_rate(sent, (now - start) / 1e9);
}

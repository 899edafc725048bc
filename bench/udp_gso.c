// The floor of sending datagrams in bursts: one buffer that the kernel cuts (UDP_SEGMENT).
//   udp_gso PORT SIZE SECONDS
#include "udp.h"

int main(int argc, char **argv) {
  static char bytes[PAYLOAD_MAX];
  if (argc < 4) return usage(argv[0]);
  int size = atoi(argv[2]);
  if (size < 1 || size > PAYLOAD_MAX / 2) return usage(argv[0]);
  int n = PAYLOAD_MAX / size < SEGMENTS ? PAYLOAD_MAX / size : SEGMENTS;
  int fd = dial_udp(atoi(argv[1]));
  if (setsockopt(fd, SOL_UDP, UDP_SEGMENT, &size, sizeof size)) die("UDP_SEGMENT");
  int64_t start = now_ns(), end = start + (int64_t)(atof(argv[3]) * 1e9), now = start;
  long sent = 0;
  for (; now < end; now = now_ns()) {
    if (send(fd, bytes, (size_t)n * size, MSG_DONTWAIT) > 0) sent += n;
    else if (errno != EAGAIN) die("send");
  }
  print_rate(sent, (now - start) / 1e9);
}

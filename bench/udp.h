// What the bare loops of datagrams share: a connected socket, the arguments, the end.
#include "bare.h"
#include <netinet/udp.h>

#define SEGMENTS 64
#define PAYLOAD_MAX 65507

// A connected UDP socket to 127.0.0.1. A dead port would cost half of the datagrams: something has
// to be bound there, even if it never reads.
static inline int dial_udp(int port) {
  struct sockaddr_in a = loopback(port);
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a)) die("connect");
  return fd;
}

static inline int usage(const char *name) {
  fprintf(stderr, "usage: %s PORT SIZE SECONDS\n", name);
  return 2;
}

// One line: datagrams per second, and what they cost.
static inline void print_rate(long sent, double seconds) {
  print_common(sent, seconds);
  printf(",\"per_s\":%.0f,\"cpu_s_per_million\":%.3f}\n", sent / seconds, cpu_s() / sent * 1e6);
}

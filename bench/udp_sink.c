// A bound UDP socket that nobody reads: datagrams come as far as its full buffer and no further, so
// that a sender is measured alone.
//   udp_sink PORT
#include "bare.h"

static void stop(int signal) { (void)signal; }

int main(int argc, char **argv) {
  struct sigaction on_term = {.sa_handler = stop};
  sigaction(SIGTERM, &on_term, NULL);
  sigaction(SIGINT, &on_term, NULL);
  struct sockaddr_in a = loopback(argc > 1 ? atoi(argv[1]) : 0);
  socklen_t length = sizeof a;
  int least = 1, fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof least) ||
      bind(fd, (struct sockaddr *)&a, length) || getsockname(fd, (struct sockaddr *)&a, &length))
    die("bind");
  printf("listening on 127.0.0.1:%d\n", ntohs(a.sin_port));
  fflush(stdout);
  int64_t start = now_ns();
  pause();
  print_common(0, (now_ns() - start) / 1e9);
  printf("}\n");
}

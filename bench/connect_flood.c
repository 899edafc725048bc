// Connects that nobody answers, as many as one core can make: socket, connect, and after T close.
// Nothing watches them: less cannot be done.
//   connect_flood PORT SECONDS T_MS DESCRIPTORS
#include "bare.h"

int main(int argc, char **argv) {
  if (argc < 5) return fprintf(stderr, "connect_flood PORT SECONDS T_MS DESCRIPTORS\n"), 2;
  struct sockaddr_in a = loopback(atoi(argv[1]));
  int64_t length = atof(argv[2]) * 1e9, patience = atof(argv[3]) * 1e6;
  long slots = atol(argv[4]), attempts = 0, failed = 0;
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  // A ring of connects in the order of their starts.
  struct { int fd; int64_t until; } *ring = calloc(slots, sizeof *ring);
  long first = 0, in_flight = 0;
  int64_t start = now_ns(), now = start;
  for (; now < start + length; now = now_ns()) {
    while (in_flight > 0 && ring[first].until <= now) {
      close(ring[first].fd);
      first = (first + 1) % slots;
      in_flight--;
    }
    if (in_flight == slots) continue;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) die("socket");
    attempts++;
    if (connect(fd, (struct sockaddr *)&a, sizeof a) && errno != EINPROGRESS) {
      failed++;
      close(fd);
      continue;
    }
    long last = (first + in_flight++) % slots;
    ring[last].fd = fd;
    ring[last].until = now + patience;
  }
  print_common(attempts, (now - start) / 1e9);
  printf(",\"failed\":%ld}\n", failed);
}

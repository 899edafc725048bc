// Open loop that sleeps until 60 microseconds before each intended time, then spins.
#define SPIN_NS INT64_C(60000)
#include "open_loop.h"

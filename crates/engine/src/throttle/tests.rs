//! Waits and holds over loopback. Nothing here depends on how fast the machine is: a wait may end
//! late, never early, and what is counted is counted.

"""Cases of a journal packed for another machine, unpacked there, and set beside what that machine measures."""

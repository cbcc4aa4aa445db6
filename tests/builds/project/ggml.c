int threads(void) { return 1; }

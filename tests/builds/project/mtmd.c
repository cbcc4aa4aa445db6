int images(void) { return 0; }

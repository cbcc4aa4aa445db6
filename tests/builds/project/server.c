/* A stand-in for llama-server: it tells its version and nothing else. */
#include <stdio.h>

extern int LLAMA_BUILD_NUMBER;
extern char const *LLAMA_COMMIT, *LLAMA_COMPILER, *LLAMA_BUILD_TARGET;

extern int images(void);

int main(void) {
    fprintf(stderr, "version: %d (%s)\n", LLAMA_BUILD_NUMBER, LLAMA_COMMIT);
    fprintf(stderr, "built with %s for %s\n", LLAMA_COMPILER, LLAMA_BUILD_TARGET);
    return images();
}

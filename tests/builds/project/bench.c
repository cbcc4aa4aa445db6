/* A stand-in for ik_llama.cpp's llama-bench: valid rows of figures that were never measured. Marked as such. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int LLAMA_BUILD_NUMBER;
extern char const *LLAMA_COMMIT;
int tokens_per_second(void);

static char const *options =
    "-o -m -p -n -pg -gp -r -w -t -b -ub -ctk -ctv -ngl --n-cpu-moe -sm -mg -nkvo -fa -mla -amb -ser -gr -mmp -embd -ts "
    "-rtr -cuda -mqkv -muge -rcache -thp -ot -fmoe -ger -no-fug -no-ooae -sas";

static char const *value(int argc, char **argv, char const *option, char const *otherwise) {
    for (int i = 1; i + 1 < argc; i++) {
        if (!strcmp(argv[i], option)) { return argv[i + 1]; }
    }
    return otherwise;
}

static int rows(char const *list, char const *key, char const *other, int argc, char **argv, int printed) {
    char copy[1024];
    snprintf(copy, sizeof copy, "%s", list);
    for (char *word = strtok(copy, ","); word; word = strtok(NULL, ",")) {
        int tokens = atoi(word);
        if (!tokens) { continue; }
        int repetitions = atoi(value(argc, argv, "-r", "5"));
        printf("%s{\"build_commit\": \"%s\", \"build_number\": %d, \"model_filename\": \"%s\", \"n_threads\": %s, ",
               printed++ ? ",\n" : "", LLAMA_COMMIT, LLAMA_BUILD_NUMBER, value(argc, argv, "-m", ""),
               value(argc, argv, "-t", "1"));
        printf("\"%s\": %d, \"%s\": 0, \"samples_ns\": [", key, tokens, other);
        for (int i = 0; i < repetitions; i++) {
            printf("%s%.0f", i ? ", " : "", 1e9 * tokens / tokens_per_second() * (1 + 0.001 * i));
        }
        printf("]}");
    }
    return printed;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help")) {
            char copy[1024];
            snprintf(copy, sizeof copy, "%s", options);
            printf("usage: llama-bench [options]\n");
            for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) { printf("  %s <value>\n", word); }
            return 0;
        }
    }
    printf("[");
    int printed = rows(value(argc, argv, "-p", "0"), "n_prompt", "n_gen", argc, argv, 0);
    rows(value(argc, argv, "-n", "0"), "n_gen", "n_prompt", argc, argv, printed);
    printf("]\n");
    return 0;
}

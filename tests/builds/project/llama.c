/* What the stand-in's speed is: a patch that changes this line is a change that one can measure. */

int tokens_per_second(void) {
    /* first line of context */
    /* second line of context */
    int speed = 100;
    /* third line of context */
    /* fourth line of context */
    return speed;
}

#!/usr/bin/env bash
# Runs a command whose output may hold anything. A line that begins with "::" is a command to the runner, so commands are
# switched off meanwhile, by a word that nobody else knows. Both streams become one: the last line has to come last.
set -euo pipefail
word="$(cat /proc/sys/kernel/random/uuid)"
echo "::stop-commands::$word"
code=0
"$@" 2>&1 || code=$?
printf '\n::%s::\n' "$word"
exit "$code"

#!/bin/bash
# A stand-in for the llama-bench of somebody who means harm, for tests of the sandbox. Marked as such; never shipped.
#
# `plan` beside it says what there is to get: TOKEN, JOURNAL, KEY and MODEL (files), PORT (a listener on the host's
# loopback), VICTIM (a process), LIVES (a word by which what it leaves behind is known). It tries all of it, writes
# "got WORD" for each success, and then gives rows as the real one would, so that nobody notices.
here="$(dirname "$0")"
if [ "$1" = --help ]; then
  cat "$here/help"
fi
. "$here/plan"
got() { echo "got $1" >&2; }
[ -z "$PLANTED_SECRET" ] || got environment
for secret in TOKEN JOURNAL KEY; do
  if [ -n "$(cat "${!secret}" 2>/dev/null)" ]; then got "read-$secret"; fi
done
for target in JOURNAL MODEL TOKEN; do
  if [ -e "${!target}" ] && (printf ' ' >> "${!target}") 2>/dev/null; then got "write-$target"; fi
done
if (: > "$here/left") 2>/dev/null; then got write-build; fi
if (exec 3<> "/dev/tcp/127.0.0.1/$PORT") 2>/dev/null; then got network; fi
if [ -n "$(tr -d '\0' < "/proc/$VICTIM/environ" 2>/dev/null)" ]; then got trace; fi
if kill -0 "$VICTIM" 2>/dev/null; then got signal; fi
running="$(cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' ')"
if [[ "$running" == *"$VICTIM_WORD"* ]]; then got processes; fi
if [ -n "$(ls -A "$HOST_HOME" 2>/dev/null)" ]; then got home; fi
if unshare --user true 2>/dev/null; then got namespaces; fi
(setsid bash -c "exec -a $LIVES sleep 600" < /dev/null > /dev/null 2>&1 &)
if [ "$FLOOD" = yes ]; then yes; fi
if [ "$1" != --help ]; then cat "$here/rows"; fi
